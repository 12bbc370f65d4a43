"""Which tool calls may have shown what must not be stored.

Law 9: content of excluded files, and shell output that shows them, is never stored; hence it is never paged out either
and stays in the window. The test errs on the side of keeping: a command that merely names such a file counts.
Source: readcache spec 17, `notes/prior-art.md` 2.2.
"""

import fnmatch
import functools
import re
from collections.abc import Iterable
from typing import Final

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
"""Names of files whose content is never stored, as patterns over the last part of a path. Case does not matter."""

_WORD: Final = re.compile(r"""[^\s"'`\\/=:;,|&<>(){}\[\]]+""")
# what a command line must hold for any of its words to match: a cheap first look
_HINTS: Final = tuple(pattern.strip("*") for pattern in EXCLUDED)


def is_excluded(path: str, patterns: Iterable[str] = EXCLUDED) -> bool:
    """Whether a file of this path must never be stored, by its last component."""
    name = path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return _names(tuple(patterns)).fullmatch(name.lower()) is not None


@functools.lru_cache(maxsize=16)
def _names(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(pattern.lower()) for pattern in patterns) or r"(?!)")


def may_show_excluded(call: ToolCall) -> bool:
    """Whether the result of this call may hold content of an excluded file."""
    if any(is_excluded(access.path) for access in call.accesses):
        return True
    arguments = call.arguments.lower()
    if not any(hint in arguments for hint in _HINTS):
        return False
    return any(is_excluded(word) for word in _WORD.findall(arguments))
