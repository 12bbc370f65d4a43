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
import re
from collections.abc import Iterable, Iterator
from typing import Final

from pagein.model.arguments import field_names, texts_in
from pagein.model.messages import ToolCall
from pagein.model.text_removal import PrivateSpan
from pagein.policy.privacy.key_shapes import Shape, compile_expression, is_key, words_of_shapes

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
_TELLING: Final = 512
"""Bytes of a value that are examined."""


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
    words, shapes = words_of_shapes()
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


def _spans(shape: Shape, raw: bytes) -> Iterator[tuple[int, int, str]]:
    for match in compile_expression(shape.expression).finditer(raw):
        start, end = match.span(match.lastindex)
        if is_key(shape, raw[start : min(end, start + _TELLING)].decode("utf-8", "replace")):
            yield start, end, shape.name


def _in_characters(raw: bytes, found: list[PrivateSpan]) -> Iterator[PrivateSpan]:
    for one in found:
        start = len(raw[: one.start].decode("utf-8", "surrogatepass"))
        yield PrivateSpan(start, start + len(raw[one.start : one.end].decode("utf-8", "surrogatepass")), one.shape)
