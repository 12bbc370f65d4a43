"""Diffs by whole hunks: the headers of all hunks first, then as many hunks as fit, and what is left out.

Rules of this file
------------------
1. A hunk is shown whole or not at all.
2. Every hunk is named with its lines and its counts, as long as there is room for the names.
3. What is left out is told with the number from which to go on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pagein.policy.reads.line_diff import LineChange, changes, hunk_groups, split_lines, unified_diff

_CONTEXT: Final = 3
_NAMES_SHARE: Final = 3  # a third of the room, at most, is for the list of the hunks


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk of a diff.

    number: from 1. head: its line with the places. text: that line and the lines below.
    first, last: its lines of the new side; `first - 1` as last for none.
    """

    number: int
    head: str
    text: str
    added: int
    removed: int
    first: int
    last: int

    @property
    def row(self) -> str:
        """The hunk in the list of hunks."""
        return f"{self.number}. {self.head} +{self.added} -{self.removed}\n"


@dataclass(frozen=True, slots=True)
class HunkChoice:
    """The hunks of a diff that fit into a size.

    listed: the list of hunks, if there are several. text: the hunks shown.
    shown: these hunks. left: numbers of the others, from the wanted one on.
    next_offset: the hunk to go on with; None if none is left.
    """

    listed: str = ""
    text: str = ""
    shown: tuple[Hunk, ...] = ()
    left: tuple[int, ...] = ()
    next_offset: int | None = None


def hunks_of(old: str, new: str) -> tuple[Hunk, ...]:
    """Return the hunks of the diff of two texts."""
    before, after = split_lines(old), split_lines(new)
    frame = LineChange(0, len(before), 0, len(after))
    made: list[Hunk] = []
    for number, group in enumerate(hunk_groups(changes(before, after), _CONTEXT), 1):
        diff = unified_diff(before, after, "", group, frame, _CONTEXT)
        text = diff.text.split("\n", 2)[2]
        head = text.partition("\n")[0]
        first, last = diff.shown[0] if diff.shown else (group[0].j1 + 1, group[0].j1)
        made.append(Hunk(number, head, text, diff.added, diff.removed, first, last))
    return tuple(made)


def choose_hunks(hunks: Sequence[Hunk], offset: int, limit: int | None, room: int) -> HunkChoice:
    """Return as many hunks as fit, from a number on.

    limit: most hunks to show; None for all. room: characters for the list and the hunks.
    """
    listed = _listed(hunks, room // _NAMES_SHARE) if len(hunks) > 1 else ""
    spare = room - len(listed)
    shown: list[Hunk] = []
    for hunk in hunks[offset - 1 :]:
        if (limit is not None and len(shown) >= limit) or len(hunk.text) > spare:
            break
        shown.append(hunk)
        spare -= len(hunk.text)
    following = offset + len(shown)
    left = tuple(range(following, len(hunks) + 1))
    return HunkChoice(listed, "".join(one.text for one in shown), tuple(shown), left, following if left else None)


def _listed(hunks: Sequence[Hunk], room: int) -> str:
    rows: list[str] = []
    used = 0
    for hunk in hunks:
        used += len(hunk.row)
        if used > room:
            rows.append(f"... and {len(hunks) - len(rows)} more hunks\n")
            break
        rows.append(hunk.row)
    return "".join(rows)
