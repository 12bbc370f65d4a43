"""Which tool calls may have shown what must not be stored.

Law 9: content of excluded files, and shell output that shows them, is never stored; hence it is never paged out either
and stays in the window. The test errs on the side of keeping: a command that merely names such a file counts.
Source: readcache spec 17, `notes/prior-art.md` 2.2.
"""

import re
from typing import Final

from pagein.model.messages import ToolCall

EXCLUDED_BASENAMES: Final = re.compile(
    r"\.env.*|.*\.(?:pem|key|p12|pfx|crt|cer|der|pk8)|id_rsa|id_ed25519|\.npmrc|\.netrc", re.IGNORECASE
)
_WORD: Final = re.compile(r"""[^\s"'`\\/=:;,|&<>(){}\[\]]+""")
_HINTS: Final = (
    ".env",
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".crt",
    ".cer",
    ".der",
    ".pk8",
    "id_rsa",
    "id_ed25519",
    ".npmrc",
    ".netrc",
)


def is_excluded(path: str) -> bool:
    """Whether a file of this path must never be stored, by its last component."""
    return EXCLUDED_BASENAMES.fullmatch(path.replace("\\", "/").rstrip("/").rpartition("/")[2]) is not None


def may_show_excluded(call: ToolCall) -> bool:
    """Whether the result of this call may hold content of an excluded file."""
    if any(is_excluded(access.path) for access in call.accesses):
        return True
    arguments = call.arguments.lower()
    if not any(hint in arguments for hint in _HINTS):
        return False
    return any(EXCLUDED_BASENAMES.fullmatch(word) for word in _WORD.findall(arguments))
