"""What an object is, in a few words: for manifests, lists and stubs (pi-rlm spec 5.5, `notes/prior-art.md` 3.2).

A description is a function of the content alone, so that it is the same whenever and wherever it is made.
"""

from typing import Final

from pagein.model.messages import Role
from pagein.policy.stubs.result_stubs import TOOL_NAME, description, one_line

FIRST_WORDS: Final = 100
"""At most so many characters of what was said, of a path or of a label appear in a description."""

_SPEAKERS: Final[dict[Role, str]] = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}


def of_result(tool: str, text: str) -> str:
    """The result of a tool call: `<tool>: <first non-empty line, at most 100> - <N> lines`."""
    label = one_line(tool)[:TOOL_NAME]
    return f"{label}: {description(text)}" if label else description(text)


def of_message(role: Role, text: str) -> str:
    """Something said: who said it, and the first 100 characters with newlines as spaces."""
    # of megabytes no more is looked at than can be shown
    words = one_line(text[: 4 * FIRST_WORDS])[:FIRST_WORDS].rstrip()
    return f"{_SPEAKERS[role]}: {words}"


def of_file(path: str, lines: tuple[int, int] | None = None) -> str:
    """A file, or the lines of it that are kept (from 1, inclusive)."""
    part = "full file" if lines is None else f"lines {lines[0]}-{lines[1]}"
    return f"{shorten_path(path)} ({part})"


def of_artifact(label: str) -> str:
    """Something that was made from other objects, by the words that asked for it."""
    return f"Extracted: {one_line(label[: 4 * FIRST_WORDS])[:FIRST_WORDS].rstrip()}"


def shorten_path(path: str) -> str:
    """A path on one line; of a long one its end, which tells more than its beginning."""
    plain = one_line(path)
    return plain if len(plain) <= FIRST_WORDS else f"...{plain[-(FIRST_WORDS - 3) :]}"
