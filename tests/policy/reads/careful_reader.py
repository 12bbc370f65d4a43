"""A careful reader: what somebody takes a file to look like who has nothing but the messages, line by line.

Independent on purpose: no part of the policy, its fold, its matching or the witness is used here. The reader keeps, for one file,
which text stood last under which number, what it takes to stand under each number by now, and how long it was told the file is. It is
given each answer together with the file as it really is, and raises `MisledReader` where the answer says what the reader would get wrong.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

WHOLE = re.compile(r"\[readcache: unchanged, (\d+) lines\]")
PLACE = re.compile(r"\[readcache: unchanged in lines (\d+)-(\d+)(?: of (\d+)|(; changes exist outside this range))?\]")
MOVED = re.compile(
    r"\[readcache: lines (\d+)-(\d+)(?: of (\d+))? unchanged, shown (earlier|before this answer) as lines (\d+)-(\d+)\]"
)
CHANGED = re.compile(r"\[readcache: (\d+) lines changed (?:of (\d+)|in lines (\d+)-(\d+)(?: of (\d+))?)\]")
HUNK = re.compile(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@")


class Misled(AssertionError):
    """An answer says something that is not so, as this reader understands it."""


class Patch:
    """What the hunks of a diff show. old, new: lines by their numbers before and after. ends: whether it speaks of the last newline."""

    def __init__(self, rows: Sequence[str]) -> None:
        self.old: dict[int, str] = {}
        self.new: dict[int, str] = {}
        self.added = self.removed = 0
        self.ends = False
        self._shifts: list[tuple[int, int]] = []
        old = new = 0
        for row in rows:
            sign, text = row[:1], row[1:]
            hunk = HUNK.fullmatch(row)
            if hunk is not None:
                old, new = self._begun(hunk)
                continue
            self.ends = self.ends or sign == "\\"
            if sign in ("-", " "):
                self.old[old] = text
                old, self.removed = old + 1, self.removed + (sign == "-")
            if sign in ("+", " "):
                self.new[new] = text
                new, self.added = new + 1, self.added + (sign == "+")

    def _begun(self, hunk: re.Match[str]) -> tuple[int, int]:
        at, olds, to, news = (int(number) for number in hunk.groups())
        old, new = at + (olds == 0), to + (news == 0)
        self._shifts = self._shifts or [(1, old - new)]
        self._shifts.append((new + news, old + olds - new - news))
        return old, new

    def shift(self, n: int) -> int:
        """How much further down line `n` stood before, if no hunk shows it."""
        return [by for first, by in self._shifts if first <= n][-1]


@dataclass
class CarefulReader:
    """What one reader holds of one file.

    printed: by number, the text that stood last under it. taken: by number, the line that is taken to stand there. lost: whether an
    edit of the reader's own has moved lines by it does not know how much. length: lines of the file by what was told last.
    """

    printed: dict[int, str] = field(default_factory=dict)
    taken: dict[int, str] = field(default_factory=dict)
    length: int | None = None
    lost: bool = False

    def copy(self) -> "CarefulReader":
        return CarefulReader(dict(self.printed), dict(self.taken), self.length, self.lost)

    # --- answers to reads ---

    def answered(self, rows: Sequence[str], first: int, last: int, truth: Sequence[str], *, tells: bool = True) -> None:
        """An answer to a read of lines `first` to `last`, without gutters and notices. tells: whether it shows where the file ends."""
        whole = first == 1 and last == len(truth)
        length, reckoned = self.length, None
        said = CHANGED.fullmatch(rows[0]) if len(rows) > 1 else None
        if said is not None and rows[1].startswith("--- a/") and truth[first - 1] != rows[0]:
            reckoned = self._patched(rows, said, first, last, truth)
        elif len(rows) == 1 and WHOLE.fullmatch(rows[0]) and truth[first - 1 : last] != [rows[0]]:
            self._whole(rows[0], truth, asked_whole=whole)
        else:
            tells = self._in_order(rows, first, truth) and tells
            reckoned = length if len(rows) == 1 and PLACE.fullmatch(rows[0]) else None
        if tells:
            self.length = len(truth)
            self.taken = {n: text for n, text in self.taken.items() if n <= len(truth)}
            if last < len(truth) and reckoned not in (None, len(truth)):
                self.taken.pop(
                    len(truth), None
                )  # it was told a new length in passing, and of no line that went or came

    def _whole(self, row: str, truth: Sequence[str], *, asked_whole: bool) -> None:
        found = WHOLE.fullmatch(row)
        assert found is not None
        if not asked_whole or int(found[1]) != len(truth):
            raise Misled(f"{row}: the file has {len(truth)} lines")
        if self.length != len(truth) and not (self.lost and self.length is None):
            raise Misled(f"{row}: it was last said to have {self.length}")
        for n, text in enumerate(truth, 1):
            if self.taken.get(n, text if self.lost else None) != text:
                raise Misled(f"{row}: line {n} is taken for {self.taken.get(n)!r} and is {text!r}")

    def _in_order(self, rows: Sequence[str], first: int, truth: Sequence[str]) -> bool:
        """Text and markers, from line `first` on. Returns whether it tells the length of the file."""
        before, texts, pointed = dict(self.printed), dict[int, str](), list[tuple[str, int, int]]()
        n, tells = first, True
        for row in rows:
            place, moved = PLACE.fullmatch(row), MOVED.fullmatch(row)
            if n <= len(truth) and row == truth[n - 1]:
                texts[n] = row
                n += 1
            elif place is not None:
                tells = tells and place[4] is None
                n = self._stays(place, n, truth)
            elif moved is not None:
                low, high, start = int(moved[1]), int(moved[2]), int(moved[5])
                n = self._moves(moved, n, truth)
                if moved[4] == "earlier":
                    pointed.append((row, start, start + high - low))
            else:
                raise Misled(f"line {n} is {truth[n - 1 : n]}, not {row!r}")
        for row, low, high in pointed:
            again = next((k for k in range(low, high + 1) if texts.get(k, before[k]) != before[k]), None)
            if again is not None:
                raise Misled(f"{row}: this answer shows another line {again}")
        self.printed |= texts
        self.taken |= {k: truth[k - 1] for k in range(first, n)}
        return tells

    def _stays(self, place: re.Match[str], n: int, truth: Sequence[str]) -> int:
        """Lines that are said to be where they were. Returns the line behind them."""
        row, low, high = place[0], int(place[1]), int(place[2])
        self._check_numbers(row, n, low, high, place[3], truth)
        for k in range(low, high + 1):
            self._same(row, k, self.printed.get(k), truth)
            if self.taken.get(k, truth[k - 1] if self.lost else None) != truth[k - 1]:
                raise Misled(f"{row}: line {k} was taken for {self.taken.get(k)!r} by then")
        return high + 1

    def _moves(self, moved: re.Match[str], n: int, truth: Sequence[str]) -> int:
        """Lines that are said to have been shown under other numbers. Returns the line behind them."""
        row, low, high, start = moved[0], int(moved[1]), int(moved[2]), int(moved[5])
        self._check_numbers(row, n, low, high, moved[3], truth)
        if int(moved[6]) - start != high - low:
            raise Misled(f"{row}: two ranges of different length")
        for k in range(low, high + 1):
            self._same(row, k, self.printed.get(start + k - low), truth)
        return high + 1

    def _check_numbers(self, row: str, n: int, low: int, high: int, total: str | None, truth: Sequence[str]) -> None:
        if low != n or not low <= high <= len(truth) or (total is not None and int(total) != len(truth)):
            raise Misled(f"{row}: at line {n} of {len(truth)}")

    def _same(self, row: str, n: int, shown: str | None, truth: Sequence[str]) -> None:
        if shown != truth[n - 1]:
            raise Misled(f"{row}: line {n} is {truth[n - 1]!r}, and what is pointed to is {shown!r}")

    def _patched(
        self, rows: Sequence[str], said: re.Match[str], first: int, last: int, truth: Sequence[str]
    ) -> int | None:
        """A diff: laid over what the reader takes the file for, it must give the lines that were asked for. Returns how long the file
        must be by it, where that can be said.
        """
        if said[2] is None and (int(said[3]), int(said[4])) != (first, last):
            raise Misled(f"{rows[0]}: lines {first}-{last} were asked for")
        if int(said[2] or said[5] or len(truth)) != len(truth):
            raise Misled(f"{rows[0]}: the file has {len(truth)} lines")
        patch = Patch(rows[3:])
        surprising = next(
            (n for n in patch.old if self.taken.get(n, patch.old[n] if self.lost else None) != patch.old[n]), None
        )
        if surprising is not None:
            raise Misled(f"{rows[0]}: line {surprising} was last {self.taken.get(surprising)!r}, not as quoted")
        if int(said[1]) != max(patch.added, patch.removed):
            raise Misled(f"{rows[0]}: {patch.added} added, {patch.removed} removed")
        for n in range(first, last + 1):
            found = patch.new.get(n, self.taken.get(n + patch.shift(n)))
            if found is None and (self.lost or (n == len(truth) and truth[n - 1] == "")):
                continue  # the empty line behind the last newline is no line of a diff
            if found != truth[n - 1]:
                raise Misled(f"{rows[0]}: line {n} is {truth[n - 1]!r}, and would be {found!r}")
        if said[2] is not None:
            lost = self.lost and self.length is None
            if not patch.ends and not lost and self.length != len(truth) + patch.shift(len(truth)):
                raise Misled(f"{rows[0]}: the file was last said to have {self.length} lines")
            self.taken = {}
        else:  # what stands behind the diff moves as the diff says
            by = patch.shift(last + 1)
            here = {n: text for n, text in self.taken.items() if n <= min(last, last + by)}
            self.taken = here | {n - by: text for n, text in self.taken.items() if n > last + by}
        self.printed |= patch.new
        self.taken |= {n: truth[n - 1] for n in range(first, last + 1)}
        return None if self.length is None or patch.ends else self.length - patch.shift(len(truth))

    # --- what the reader does itself ---

    def wrote(self, text: str) -> None:
        """The whole file, in the reader's own words."""
        lines = dict(enumerate(text.split("\n"), 1))
        self.printed |= lines
        self.taken, self.length, self.lost = dict(lines), len(lines), False

    def edited(self, old: str, new: str, before: str) -> None:
        """An edit that succeeded, of the file `before`. The reader knows its place where nothing about the file would surprise it, or where
        it has just that text in mind where it stands. Else it has lost its place, and is sure of nothing but what it reads.
        """
        lines = before.split("\n")
        end = max([*self.taken, self.length or 0, 1])
        at = before.index(old)
        first, last = before.count("\n", 0, at) + 1, before.count("\n", 0, at + len(old)) + 1
        surprised = self.length not in (None, len(lines)) or any(
            n > len(lines) or lines[n - 1] != text for n, text in self.taken.items()
        )
        in_mind = all(self.taken.get(n) == lines[n - 1] for n in range(first, last + 1))
        text = "\n".join(self.taken.get(n, f"\0{n}") for n in range(1, end + 1))
        if text.count(old) == 1 and not (surprised or self.lost):
            at = text.index(old)
            first, last = text.count("\n", 0, at) + 1, text.count("\n", 0, at + len(old)) + 1
        elif in_mind or not (surprised or self.lost):
            text = before
        else:
            self.taken, self.length, self.lost = {}, None, True
            return
        grown = new.count("\n") - old.count("\n")
        after = (text[:at] + new + text[at + len(old) :]).split("\n")
        if self.length is not None:
            self.length += grown
        taken = {n: line for n, line in self.taken.items() if n < first}
        taken |= {n + grown: line for n, line in self.taken.items() if n > last}
        # and the lines of the edit itself, but for one of which only a part was ever seen
        self.taken = taken | {n: after[n - 1] for n in range(first, last + grown + 1) if "\0" not in after[n - 1]}

    def forgot(self) -> None:
        """A compaction: nothing of it is in the window any more."""
        self.printed, self.taken, self.length, self.lost = {}, {}, None, False
