"""What a careful reader knows of one file from the request alone. The witness and the audit judge by it.

A reader keeps three things apart: the text last shown under each number; the text now believed to be at each number,
for the reader's own edits and the shown diffs move lines whose numbers no later answer has shown; and the length of the
file as last told.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pagein.model.read_events import LineCopy
from pagein.model.spans import Spans


class MisledReader(Exception):
    """The reader would have a false idea of the file.

    line: the place, if at one line.
    """

    def __init__(self, why: str, line: int | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.line = line


@dataclass(slots=True)
class Sheet:
    """A reader's knowledge of one file.

    printed: text last shown under each number.
    taken: text that the reader now believes to be at each number.
    length: number of lines last told; None if never told, or changed by the reader's own edit by an unknown number.
    """

    printed: dict[int, str] = field(default_factory=dict)
    taken: dict[int, str] = field(default_factory=dict)
    length: int | None = None

    def copy(self) -> "Sheet":
        """Return a copy, for another branch from here."""
        return Sheet(dict(self.printed), dict(self.taken), self.length)

    @property
    def end(self) -> int:
        """Number of lines that the reader believes the file to have."""
        return max(self.taken, default=0) if self.length is None else self.length

    def whole(self, total: int) -> dict[int, str]:
        """Return the reader's lines after "the file is unchanged and has `total` lines".

        Raises MisledReader.
        """
        seen = {n: self._expected_text(n, n) for n in range(1, total + 1)}
        if self.length != total:
            told = "nobody told how long it is" if self.length is None else f"was last said to have {self.length} lines"
            beyond = min((n for n in self.taken if n > total), default=None)
            raise MisledReader(f"the file is said to be unchanged, and {told}", beyond)
        return seen

    def in_place(self, first: int, last: int) -> dict[int, str]:
        """Return the reader's lines after "these lines are unchanged", named by their numbers.

        Raises MisledReader.
        """
        seen = self.shown_as(first, last, first)
        for n, text in seen.items():
            if self._expected_text(n, n) != text:
                raise MisledReader(
                    f"line {n} is said to be unchanged, and other text has moved there since it was shown", n
                )
        return seen

    def shown_as(self, first: int, last: int, start: int) -> dict[int, str]:
        """Return the reader's lines after "these lines were shown under the numbers from `start` on".

        Raises MisledReader.
        """
        seen: dict[int, str] = {}
        for n in range(first, last + 1):
            text = self.printed.get(n - first + start)
            if text is None:
                raise MisledReader(f"line {n - first + start} was never shown", n)
            seen[n] = text
        return seen

    def _expected_text(self, number: int, line: int) -> str:
        text = self.taken.get(number)
        if text is None:
            raise MisledReader(f"line {number} was never shown", line)
        return text

    def learns(self, seen: Mapping[int, str], total: int) -> None:
        """Raise MisledReader if the reader already believes every line that an answer reports as changed.

        total: the length of the file. A diff of lines up to its end may also report removed lines behind it.
        """
        if max(seen, default=0) >= total != self.length:
            return
        if all(self.taken.get(n) == text for n, text in seen.items()):
            raise MisledReader(
                "lines are said to have changed that the reader takes to be so already", min(seen, default=None)
            )

    def reads(
        self, seen: Mapping[int, str], printed: Iterable[int], told: int | None, reckoned: int | None = None
    ) -> None:
        """Record an answer that the reader has understood.

        seen: lines that the answer stands for. printed: lines in the answer as text.
        told: length of the file, where the answer states it.
        reckoned: length by earlier answers, plus and minus the lines of this answer, where the answer names the new
            length only in passing. If they differ, the reader does not know where the file ends.
        """
        self.taken |= seen
        self.printed |= {n: seen[n] for n in printed if n in seen}
        if told is None and self.length is not None and max(seen, default=0) > self.length:
            self.length = None
        elif told is not None:
            self.length = told
            self.taken = {n: text for n, text in self.taken.items() if n <= told}
            if reckoned not in (None, told):
                self.taken.pop(told, None)

    def shifts(self, last: int, now: int) -> None:
        """Record that a diff ended with the old line `last`, which is line `now` of the new file: the lines behind moved."""
        here = {n: text for n, text in self.taken.items() if n <= min(last, now)}
        self.taken = here | {n + now - last: text for n, text in self.taken.items() if n > last}

    def edits(self, copies: tuple[LineCopy, ...], own: Mapping[int, str], grown: int | None) -> None:
        """Record an edit by the reader.

        copies: lines that the edit left alone. own: its own text. grown: number of added lines; None if unknown.
        Where the untouched lines are unknown, the reader has lost its place, and is sure of nothing but its own text.
        """
        edited = [copy for copy in copies if copy.base == copies[0].base]
        moved = {
            copy.at + k: self.taken[copy.first + k]
            for copy in edited
            for k in range(copy.count)
            if copy.first + k in self.taken
        }
        self.length = None if self.length is None or grown is None else self.length + grown
        self.taken = moved | dict(own)

    def writes(self, text: Mapping[int, str]) -> None:
        """Record a write of the whole file by the reader; the call holds its lines from first to last."""
        self.printed |= text
        self.taken, self.length = dict(text), len(text)


def numbers_of(lines: Spans) -> list[int]:
    """Return the numbers in a set of lines, in order."""
    return [n for first, last in lines for n in range(first, last + 1)]
