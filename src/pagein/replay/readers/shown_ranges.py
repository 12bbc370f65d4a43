"""Which lines a read result with numbered lines shows, where the recording has no word of it beside the text."""

import re
from typing import Final

from pagein.model.messages import ShownLines

_NUMBERED: Final = re.compile(r"^[ \t]*(\d+)(?::|\||→|\t)", re.MULTILINE)
_TOTAL: Final = re.compile(r"\(End of file - total (\d+) lines?\)|\(Showing lines \d+-\d+ of (\d+)\.")


def line_run(words: str) -> ShownLines | None:
    """The run of numbered lines in a read result of OpenCode, and the file's length where its last line tells it.

    None where nothing is numbered or the numbers do not follow one another at both ends.
    """
    body = words.partition("<content>")[2] or words
    first = _NUMBERED.search(body)
    if first is None:
        return None
    start = int(first[1])
    lines = 0
    for line in body[first.start() :].split("\n"):
        match = _NUMBERED.match(line)
        if match is None or int(match[1]) != start + lines:
            break
        lines += 1
    total = _TOTAL.search(words[-400:])
    return ShownLines(start, lines, None if total is None else int(total[1] or total[2]))
