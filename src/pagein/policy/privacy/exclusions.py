"""Detection of tool calls that may have shown an excluded file.

Law 9: content of excluded files, and shell output that shows them, is never stored; hence it is never evicted either
and stays in the window. The test errs on the side of keeping: a command that merely names such a file counts. Of an edit
or a write only the path counts: its text may be code, in which `x.key` is a field and no file.
"""

import fnmatch
import functools
import re
from collections.abc import Iterable
from typing import Final

from pagein.model.arguments import field_names, texts_in
from pagein.model.messages import ToolCall

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
