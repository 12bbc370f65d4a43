"""What a careful reader holds of one file who has nothing but the request: the ground of the witness and of the audit.

A reader holds three things apart: which text stood last under which number; what it takes to stand there by now, for its own
edits and the diffs that it was shown move lines whose numbers nobody has shown it since; and how long it was last told the file is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pagein.model.read_events import LineCopy
from pagein.model.spans import Spans


class MisledReader(Exception):
    """The reader would take the file for something else than it is. line: where, if at one line."""

    def __init__(self, why: str, line: int | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.line = line


@dataclass(slots=True)
class Sheet:
    """What one reader holds of one file.

    printed: the text that stood last under each number. taken: what the reader takes to stand under it by now. length: the number of
    lines that it was told last, None where nobody told it, or its own edit changed it by it does not know how much.
    """

    printed: dict[int, str] = field(default_factory=dict)
    taken: dict[int, str] = field(default_factory=dict)
    length: int | None = None

    def copy(self) -> "Sheet":
        """The same, to go on from here another way."""
        return Sheet(dict(self.printed), dict(self.taken), self.length)

    @property
    def end(self) -> int:
        """How many lines the reader takes the file to have."""
        return max(self.taken, default=0) if self.length is None else self.length

    def whole(self, total: int) -> dict[int, str]:
        """What a reader understands who is told that the file is unchanged and has so many lines. Raises Misled."""
        seen = {n: self._taken(n, n) for n in range(1, total + 1)}
        if self.length != total:
            told = "nobody told how long it is" if self.length is None else f"was last said to have {self.length} lines"
            beyond = min((n for n in self.taken if n > total), default=None)
            raise MisledReader(f"the file is said to be unchanged, and {told}", beyond)
        return seen

    def in_place(self, first: int, last: int) -> dict[int, str]:
        """What a reader understands who is told that these lines are unchanged: their numbers name them. Raises Misled."""
        seen = self.shown_as(first, last, first)
        for n, text in seen.items():
            if self._taken(n, n) != text:
                raise MisledReader(
                    f"line {n} is said to be unchanged, and other text has moved there since it was shown", n
                )
        return seen

    def shown_as(self, first: int, last: int, start: int) -> dict[int, str]:
        """What a reader understands who is told that these lines were shown under the numbers from `start` on. Raises Misled."""
        seen: dict[int, str] = {}
        for n in range(first, last + 1):
            text = self.printed.get(n - first + start)
            if text is None:
                raise MisledReader(f"line {n - first + start} was never shown", n)
            seen[n] = text
        return seen

    def _taken(self, number: int, line: int) -> str:
        text = self.taken.get(number)
        if text is None:
            raise MisledReader(f"line {number} was never shown", line)
        return text

    def learns(self, seen: Mapping[int, str], total: int) -> None:
        """Objects where a reader who is told that these lines changed takes every one of them to be so already.

        total: the length of the file. A diff of lines up to its end may also say that there were more.
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
        """The reader has understood an answer. seen: the lines that it stands for; printed: those that stand in it as text.

        told: the length of the file, where the answer tells it. reckoned: the length by what was told before and what the answer adds and
        takes away, where it names the new one only in passing. If they differ, the reader does not know where the file ends.
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

    def edits(self, copies: tuple[LineCopy, ...], own: Mapping[int, str], grown: int | None) -> None:
        """The reader itself has edited the file. copies: what the edit left alone; own: its own text; grown: by how many lines.

        Where nobody can tell what it left alone, the reader has lost its place, and is sure of nothing but its own text.
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
        """The reader itself has written the whole file: its lines stand in the call from the first to the last."""
        self.printed |= text
        self.taken, self.length = dict(text), len(text)


def numbers_of(lines: Spans) -> list[int]:
    """The numbers in a set of lines, in order."""
    return [n for first, last in lines for n in range(first, last + 1)]
