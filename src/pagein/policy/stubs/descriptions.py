"""Short descriptions of objects, for manifests, lists and stubs.

A description is a function of the content alone, so that it is always the same.
"""

from typing import Final

from pagein.model.messages import Role
from pagein.policy.stubs.result_stubs import TOOL_NAME, description, one_line

FIRST_WORDS: Final = 100
"""Maximum characters of a message, a path or a label in a description."""

_SPEAKERS: Final[dict[Role, str]] = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}


def of_result(tool: str, text: str) -> str:
    """Describe the result of a tool call: `<tool>: <first non-empty line, at most 100> - <N> lines`."""
    label = one_line(tool)[:TOOL_NAME]
    return f"{label}: {description(text)}" if label else description(text)


def of_message(role: Role, text: str) -> str:
    """Describe a message: its role, and the first 100 characters with newlines as spaces."""
    # examine only as much of a long text as can be shown
    words = one_line(text[: 4 * FIRST_WORDS])[:FIRST_WORDS].rstrip()
    return f"{_SPEAKERS[role]}: {words}"


def of_file(path: str, lines: tuple[int, int] | None = None) -> str:
    """Describe a file, or its stored lines (from 1, inclusive)."""
    part = "full file" if lines is None else f"lines {lines[0]}-{lines[1]}"
    return f"{shorten_path(path)} ({part})"


def of_artifact(label: str) -> str:
    """Describe an object derived from other objects, by the words of the request."""
    return f"Extracted: {one_line(label[: 4 * FIRST_WORDS])[:FIRST_WORDS].rstrip()}"


def shorten_path(path: str) -> str:
    """Return a path on one line; only the end of a long path, as the end says more."""
    plain = one_line(path)
    return plain if len(plain) <= FIRST_WORDS else f"...{plain[-(FIRST_WORDS - 3) :]}"
