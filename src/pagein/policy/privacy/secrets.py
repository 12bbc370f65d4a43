"""Detection of keys and passwords in a text by shape, for redaction before storage (law 9).

Rules of this file
------------------
1. A text without the words of any shape costs one look; any other text one more look for each shape with a word in it.
   Each look is linear in the text.
2. A doubtful text is no key: redacted text stays in the window for good, and that costs. A key must look random where
   its shape says so (`entropy`), and a placeholder in an example is no key.
"""

import math
import string
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any, Final

from pagein.model.text_removal import PrivateSpan
from pagein.policy.privacy.key_shapes import SHAPES, Shape

_EXAMPLES: Final = (
    "example", "changeme", "change_me", "change-me", "placeholder", "your", "dummy", "redacted", "sample", "xxxx", "1234567890abcdef",
    "abcdefgh", "00000000", "fake", "test_key", "notreal", "process.env", "os.environ", "secrets.", "getenv", "import.meta", "config.",
    "undefined", "localhost", "abc123", "?.",
)  # fmt: skip
_NAMES_OF_KEYS: Final = ("key", "token", "secret", "password", "credentials")
_MANY: Final = 0.8
_TELLING: Final = 512
"""Bytes of a value that are examined."""
_WORDY: Final = 3.2
_DRAWN_FROM: Final = 20
_CHANGES: Final = 0.4
"""Minimum share of neighbouring letters of different kinds (small, capital, digit): about .6 in random text, under .3
in words.
"""
_KINDS: Final = 3
_BASE64: Final = frozenset(string.ascii_letters + string.digits + "+/")
_BASE64_URL: Final = frozenset(string.ascii_letters + string.digits + "-_")
_MEMBERS: Final = frozenset({"json-member", "json-member-in-string", "json-member-in-strings"})
_NAMED: Final = frozenset({"environment-line", "environment-in-string", "yaml-line", "named-variable"}) | _MEMBERS
_LOOSE: Final = _NAMED | {"password-in-url"}
_REFERENCES: Final = (("${", "}"), ("$(", ")"), ("`", "`"), ("<", ">"), ("[pagein: withheld, ", "]"))


def keys_in(text: str) -> tuple[PrivateSpan, ...]:
    """Return the spans of the keys in a text, in order, without overlap."""
    raw = text.encode("utf-8", "surrogatepass")
    words, shapes = _words()
    likely = dict.fromkeys(shapes[place] for place in words.Match(raw) or ())
    spans = sorted({span for shape in likely for span in _spans(shape, raw)}) if likely else []
    found: list[PrivateSpan] = []
    end = -1
    for start, stop, name in spans:
        if start < end:
            if stop > end:
                found[-1] = PrivateSpan(found[-1].start, stop, found[-1].shape)
                end = stop
            continue
        found.append(PrivateSpan(start, stop, name))
        end = stop
    return tuple(found if len(raw) == len(text) else _in_characters(raw, found))


def entropy(text: str) -> float:
    """Return the Shannon entropy of a text, in bits per character."""
    counts = Counter(text)
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts.values()) if text else 0.0


def _spans(shape: Shape, raw: bytes) -> Iterator[tuple[int, int, str]]:
    for match in _compile(shape.expression).finditer(raw):
        start, end = match.span(match.lastindex)
        if _is_key(shape, raw[start : min(end, start + _TELLING)].decode("utf-8", "replace")):
            yield start, end, shape.name


def _is_key(shape: Shape, key: str) -> bool:
    if shape.entropy and entropy(key) < shape.entropy:
        return False
    low = key.partition(" #")[0].lower()
    if any(word in low for word in _EXAMPLES):
        return False
    if shape.name in _NAMED and _is_spoken_of(key, prose=shape.name == "yaml-line" or shape.name in _MEMBERS):
        return False
    return shape.name not in _LOOSE or _looks_drawn(key)


def _is_spoken_of(line: str, *, prose: bool) -> bool:
    """Return whether a line names the source of the value instead of the value: a variable, a command, a call, words."""
    value = line.strip("\"', ;\t\r")
    if any(value.startswith(begin) and end in value for begin, end in _REFERENCES) or _name_pattern().fullmatch(
        value.encode()
    ):
        return True
    return prose and " " in value and not any(one.isdigit() for one in value)


def _looks_drawn(key: str) -> bool:
    """Return whether a value behind a telling name may be a password, instead of code or words."""
    letters = sum(one.isalpha() for one in key)
    digits = sum(one.isdigit() for one in key)
    if not letters or key.startswith((".", "http")) or (key.startswith(("/", "-")) and not _is_base64(key)):
        return False
    if not digits and (entropy(key) < _WORDY or all(one.isalpha() or one in "_." for one in key)):
        return False
    if not digits and key.lower().endswith(_NAMES_OF_KEYS):
        return False
    return Counter(key).most_common(1)[0][1] < _MANY * len(key)


def _is_base64(key: str) -> bool:
    """Return whether a value with the beginning of a path or flag is base64 by chance: long, one alphabet, mixed
    letters.
    """
    plain = key.rstrip("=,")
    if len(plain) < _DRAWN_FROM or not (set(plain) <= _BASE64 or set(plain) <= _BASE64_URL):
        return False
    kinds = ["a" if one.islower() else "A" if one.isupper() else "0" for one in plain if one.isalnum()]
    changes = sum(one != other for one, other in pairwise(kinds))
    return len(set(kinds)) == _KINDS and changes >= _CHANGES * len(kinds)


def _in_characters(raw: bytes, found: list[PrivateSpan]) -> Iterator[PrivateSpan]:
    for one in found:
        start = len(raw[: one.start].decode("utf-8", "surrogatepass"))
        yield PrivateSpan(start, start + len(raw[one.start : one.end].decode("utf-8", "surrogatepass")), one.shape)


@cache
def _words() -> tuple[Any, tuple[Shape, ...]]:
    """Return a matcher for the words of every shape, and the shape of each word."""
    import re2

    found, shapes = re2.Set.SearchSet(_options()), []
    for shape in SHAPES:
        for word in shape.words:
            found.Add(re2.escape(word))
            shapes.append(shape)
    found.Compile()
    return found, tuple(shapes)


@cache
def _name_pattern() -> Any:  # noqa: ANN401  as below
    return _compile(r"\$[A-Z_][A-Z0-9_]*|[A-Za-z_.]+(?:\(.*\)|\[.*\])")


@cache
def _compile(expression: str) -> Any:  # noqa: ANN401  re2 ships no types
    import re2

    return re2.compile(expression.encode(), _options())


def _options() -> Any:  # noqa: ANN401  as above
    import re2

    options: Any = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20
    return options
