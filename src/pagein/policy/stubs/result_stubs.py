"""Stubs: the text in place of an evicted tool result.

A stub is a function of the object and of the model's way of recall: no clock and no position, so that it is the same
whenever it is rendered. It
claims one thing, that its id recalls exactly the stored bytes.
"""

import re
from typing import Final

from pagein.model.objects import ObjectId
from pagein.policy.stubs.recall_ways import Way

FIRST_LINE: Final = 100
"""Maximum characters of the first non-empty line in a description."""
TOOL_NAME: Final = 40
"""Maximum characters of the tool's name in a stub."""
# Not str.isprintable: its set of printable characters changes with the version of Python.
_UNSEEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
MARKER: Final = "[readcache: "
ANSWERED_BY_MARKER: Final = "answer that rests on text shown earlier"
# Lines that codex puts in front of every command's output: they describe no output in particular.
_STAMPS: Final = ("Chunk ID: ", "Exit code: ", "Script completed\n", "Wall time: ")
_STAMPED: Final = "\nOutput:\n"
_LONGEST_STAMP: Final = 400
AFTER_ONE_REQUEST: Final = ", shown once"
"""End of the description of a result that a single request showed."""
LONGEST: Final = 320
"""Maximum characters of a stub. Content of this length or less stays in the window."""


def description(text: str) -> str:
    """Describe a result by its beginning and length: `<first non-empty line, at most 100> - <N> lines`."""
    count = text.count("\n") + (not text.endswith("\n")) if text else 0
    lines = "1 line" if count == 1 else f"{count:,} lines"
    # a marker is true only at its place; quoted elsewhere it would claim too much
    first = ANSWERED_BY_MARKER if text.startswith(MARKER) else _first_line(text)
    return f"{first} - {lines}" if first else lines


def stub(object_id: ObjectId, tool: str, tokens: int, about: str, way: Way) -> str:
    """Return the two lines in place of content of `tokens` tokens.

    way: how the model recalls.
    """
    label = one_line(tool)[:TOOL_NAME] or "tool"
    return f"[pagein: {object_id} | {label} | {tokens:,} tokens | {about}]\n{way.recall_words(str(object_id))}"


def one_line(text: str) -> str:
    """Return the text on one line, without invisible characters, blanks folded."""
    return " ".join(_UNSEEN.sub(" ", text).split())


def _first_line(text: str) -> str:
    start = _behind_stamps(text)
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        # A line may be megabytes long: look only at the part that can be shown (and the blanks in front of it).
        line = text[start:end].lstrip()[: 4 * FIRST_LINE]
        if line:
            return one_line(line)[:FIRST_LINE].rstrip()
        start = end + 1
    return ""


def _behind_stamps(text: str) -> int:
    """Return the start of the output after codex's header; 0 if no visible text follows."""
    if not text.startswith(_STAMPS):
        return 0
    found = text.find(_STAMPED, 0, _LONGEST_STAMP)
    start = found + len(_STAMPED)
    return start if found >= 0 and text[start : start + 4 * FIRST_LINE].strip() else 0
