"""Find the lines shown by a read result with numbered lines, if the recording has only its text."""

import re
from typing import Final

from pagein.model.messages import ShownLines

_NUMBERED: Final = re.compile(r"^[ \t]*(\d+)(?::|\||→|\t)", re.MULTILINE)
_TOTAL: Final = re.compile(r"\(End of file - total (\d+) lines?\)|\(Showing lines \d+-\d+ of (\d+)\.")


def line_run(words: str) -> ShownLines | None:
    """Return the run of numbered lines in a read result of OpenCode, and the length of the file if its last line
    reports one.

    None without numbered lines, or if the numbers at both ends are not consecutive.
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
