"""Patterns and texts made to meet each other: a small alphabet, every construct that RE2 has."""

import re2
from hypothesis import strategies as st

QUIET = re2.Options()
QUIET.log_errors = False
QUIET.never_capture = True
FOLDING = re2.Options()
FOLDING.log_errors = False
FOLDING.never_capture = True
FOLDING.case_sensitive = False

# letters with unequal partners: Kelvin sign, long s, sharp s, dotted I, final sigma, Angstrom sign; NUL, line ends, a surrogate pair
ALPHABET = "abAB kK\u212as\u017f\u00df\u1e9eiI\u0130\u0131\u03c3\u03c2\u03a3\u00e5\u212b\0\r\n\t.-_1\u4e2d\U0001f600"
texts = st.text(alphabet=ALPHABET, max_size=60)
_letters = st.sampled_from([*"abABkKsSi1_ -", "\u00df", "\u03c3", "\u212a", "\u4e2d", "\U0001f600", "\0", "\n"])
_escapes = st.sampled_from(
    [
        r"\d",
        r"\w",
        r"\s",
        r"\W",
        r"\S",
        r"\.",
        r"\-",
        r"\t",
        r"\n",
        r"\r",
        r"\x61",
        r"\x{212a}",
        r"\141",
        r"\0",
        r"\pL",
        r"\p{Greek}",
        r"\PN",
        r"\b",
        r"\B",
        r"\A",
        r"\z",
        r"\C",
        r"\Qa.b\E",
        r"\Qab",
        r"\Q\E",
        r"^",
        r"$",
        r".",
        r"[ab]",
        r"[^ab]",
        r"[a-k]",
        r"[]a]",
        r"[^]a]",
        r"[[:alpha:]]",
        r"[\d_]",
        r"[\]a]",
        r"[a\-b]",
        r"[kK]",
        r"[[:^digit:]a]",
        r"(?i)",
        r"(?s)",
        r"(?m)",
        r"(?-i)",
        r"(?i-s)",
        r"(?U)",
        r"{",
        r"}",
        r"{,2}",
        r"]",
        r"\{",
    ]
)
_words = st.sampled_from(["abab", "aaa", "kkk", "ass", "a b", "isK", "bab_1", "\u03c3\u03a3\u03c2", "b\r\na", "a\0b"])


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    sign = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0}", "{0,1}", "{2,}", "*?", "+?", "??", "{1,3}?"])
    opened = st.sampled_from(["(", "(?:", "(?i:", "(?-i:", "(?P<n>", "(?<n>", "(?s-i:"])
    return st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=1, max_size=3).map("|".join),
        st.tuples(opened, inner).map(lambda parts: f"{parts[0]}{parts[1]})"),
        st.tuples(inner, sign).map("".join),
    )


_raw = st.recursive(st.one_of(_letters, _words, _escapes), _grown, max_leaves=12)


def compiles(pattern: str) -> bool:
    try:
        re2.compile(pattern.encode(), QUIET)
    except re2.error:
        return False
    return True


patterns = _raw.filter(compiles)
