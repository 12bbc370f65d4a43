"""Derive the new side of a diff as a reader does: from the hunks, and from the lines seen of the old side."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from pagein.policy.audit.proof_sheets import MisledReader

_HEAD: Final = re.compile(r"--- a/[^\n]*\n\+\+\+ b/[^\n]*\n")
_HUNK: Final = re.compile(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@")


class ShownDiff:
    """A unified diff, applied to the seen lines of its base.

    added, removed: number of lines. Raises MisledReader for a diff that contradicts itself or the seen lines.
    """

    def __init__(self, body: str, old: Mapping[int, str], old_total: int) -> None:
        self.added = 0
        self.removed = 0
        self._old = old
        self._old_total = old_total
        self._new: dict[int, str] = {}
        self._shifts: list[tuple[int, int]] = []
        self._unended: dict[str, bool] = {"-": False, "+": False}
        head = _HEAD.match(body)
        rows = body[head.end() :].split("\n") if head is not None else []
        if not rows or rows.pop():
            raise MisledReader("a diff that is none")
        at = 0
        while at < len(rows):
            at = self._hunk(rows, at)

    def _hunk(self, rows: Sequence[str], at: int) -> int:
        found = _HUNK.fullmatch(rows[at])
        if found is None:
            raise MisledReader("a diff with a hunk that is none")
        old, olds, new, news = (int(number) for number in found.groups())
        old, new = old + (olds == 0), new + (news == 0)
        if not self._shifts:
            self._shifts.append((1, old - new))
        end_old, end_new = old + olds, new + news
        at += 1
        while at < len(rows) and not rows[at].startswith("@@"):
            sign, text = rows[at][:1], rows[at][1:]
            if sign == "\\":
                self._end(rows[at - 1][:1])
            if sign in ("-", " ") and sign:
                if self._old.get(old, text) != text:
                    raise MisledReader("a diff quotes another text than was shown", old)
                old += 1
                self.removed += sign == "-"
            if sign in ("+", " ") and sign:
                self._new[new] = text
                new += 1
                self.added += sign == "+"
            at += 1
        if (old, new) != (end_old, end_new):
            raise MisledReader("a diff whose hunk has another length than it says")
        self._shifts.append((new, old - new))
        return at

    def _end(self, sign: str) -> None:
        for side in "-+" if sign == " " else sign:
            self._unended[side] = True

    def line(self, n: int, total: int) -> str:
        """Return line `n` of the new side, which has `total` lines."""
        if n in self._new:
            return self._new[n]
        shift = self.shift(n)
        text = self._old.get(n + shift)
        if text is None:
            # after a last newline there is an empty line, which no diff shows
            if n == total and n + shift >= self._old_total and not self._unended["+"]:
                return ""
            raise MisledReader(f"line {n + shift} of the base was never shown", n)
        return text

    def shift(self, n: int) -> int:
        """Return how much greater the number of new line `n` was on the old side."""
        shift = 0
        for first, by in self._shifts:
            if first > n:
                break
            shift = by
        return shift

    def length(self) -> int:
        """Return the number of lines of the new side."""
        ended = self._old_total - self._shifts[-1][1] if self._shifts else self._old_total
        # the empty line after the last newline comes or goes with that newline
        return ended + self._unended["-"] - self._unended["+"]
