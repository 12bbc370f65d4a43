"""The tools that codex adds in an item of the input, and not in the field `tools`, for GPT-5.6 and later models."""

from functools import lru_cache
from typing import Final

from pagein.model.json_text import decode_json
from pagein.policy.clients.profiles import CODEX, tools_of

ADDED_TOOLS: Final = b'"additional_tools"'
"""What the bytes of such an item contain."""
_PROGRAMS: Final = "exec"  # codex's tool for programs, which call its shell


@lru_cache(maxsize=16)
def adds_shell_of_codex(raw: bytes) -> bool:
    """Return whether an input item adds codex's shell, or its tool for programs, which call the shell."""
    if ADDED_TOOLS not in raw:
        return False
    value = decode_json(raw)
    tools = value.get("tools") if isinstance(value, dict) and value.get("type") == "additional_tools" else None
    return any(one.name == _PROGRAMS or CODEX.ops.get(one.name) == "exec" for one in tools_of(tools))
