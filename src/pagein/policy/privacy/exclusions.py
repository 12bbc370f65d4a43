"""Detection of what must not be stored (law 9): calls that may show an excluded file, and keys and passwords in a text.

Rules of this file
------------------
1. Content of excluded files, and shell output that shows them, is never stored; hence it is never evicted either and
   stays in the window. The test errs on the side of keeping: a command that merely names such a file counts. Of an edit
   or a write only the path counts: its text may be code, in which `x.key` is a field and no file.
2. Keys are told by their shape. A text without the words of any shape costs one look; any other text one more look for
   each shape with a word in it. Each look is linear in the text.
3. A doubtful text is no key: redacted text stays in the window for good, and that costs. A key must look random where
   its shape says so (`entropy`), and a placeholder in an example is no key.
"""

import fnmatch
import functools
import math
import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final

from pagein.model.arguments import field_names, texts_in
from pagein.model.messages import ToolCall
from pagein.model.text_removal import PrivateSpan
from pagein.policy.privacy.key_shapes import SHAPES, Shape

EXCLUDED: Final = (
    ".env*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.crt",
    "*.cer",
    "*.der",
    "*.pk8",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    ".npmrc",
    ".netrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
)
"""Patterns of file names with content that is never stored, matched with the last part of a path in any case."""

_COMMANDS: Final = frozenset({"command", "cmd"})
_WORD: Final = re.compile(r"""[^\s"'`\\/=:;,|&<>(){}\[\]]+""")
_WILD: Final = re.compile(r"\[[^\]]*\]?|[*?]")

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


# --- excluded files ---


def is_excluded(path: str, patterns: Iterable[str] = EXCLUDED) -> bool:
    """Return whether the last component of this path matches an excluded pattern."""
    name = path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return _names(tuple(patterns)).fullmatch(name.lower()) is not None


@functools.lru_cache(maxsize=16)
def _names(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(pattern.lower()) for pattern in patterns) or r"(?!)")


@functools.lru_cache(maxsize=16)
def _hints(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the longest fixed part of each pattern, for a cheap first search."""
    return tuple(max(_WILD.split(pattern.lower()), key=len) for pattern in patterns)


@functools.lru_cache(maxsize=64)  # asked when the call enters, and when its result enters, is settled and answered
def may_show_excluded(call: ToolCall, patterns: tuple[str, ...] = EXCLUDED) -> bool:
    """Return whether the result of this call may contain an excluded file."""
    if call.withheld is not None and not call.withheld.part:
        return True
    if any(is_excluded(access.path, patterns) for access in call.accesses):
        return True
    if _is_change_of_files(call):
        return False
    arguments = call.arguments.lower()
    if "\\u" not in arguments and not any(hint in arguments for hint in _hints(patterns)):
        return False
    # the raw text too, for arguments that are not JSON; and each text whole, for names with blanks in them
    texts = (call.arguments, *texts_in(call.arguments))
    return any(
        is_excluded(text, patterns) or any(is_excluded(word, patterns) for word in _WORD.findall(text))
        for text in texts
    )


def _is_change_of_files(call: ToolCall) -> bool:
    """Return whether a call does nothing but edit or write the files that it names, and runs no command."""
    named = all(one.via == "native" and one.op in ("edit", "write") for one in call.accesses)
    return bool(call.accesses) and named and _COMMANDS.isdisjoint(field_names(call.arguments))


# --- keys ---


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


@functools.cache
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


@functools.cache
def _name_pattern() -> Any:  # noqa: ANN401  as below
    return _compile(r"\$[A-Z_][A-Z0-9_]*|[A-Za-z_.]+(?:\(.*\)|\[.*\])")


@functools.cache
def _compile(expression: str) -> Any:  # noqa: ANN401  re2 ships no types
    import re2

    return re2.compile(expression.encode(), _options())


def _options() -> Any:  # noqa: ANN401  as above
    import re2

    options: Any = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20
    return options
