"""Consecutive reads as one bundle: named by the files shown, with each line counted once.

Rules of this file
------------------
1. A bundle holds the reads since the last search, words of a user, or compaction.
2. The same read twice is one item, whatever the second answer looks like: an item is named by the content that an
   answer stands for, not by the marker that was sent for it.
3. Names depend on nothing but content, so the same reads have the same names in every process.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from pagein.model.guard_notes import ReadMeasureNote, ReadMode
from pagein.model.spans import NO_LINES, Spans

MOST_ITEMS: Final = 128
"""Most items of a bundle; the oldest are dropped."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The consecutive reads at one point of a branch.

    items: names of the items, in the order of their first read.
    lines: the lines that they stand for, by path key.
    sent: lines that were sent for them.
    """

    items: tuple[str, ...] = ()
    lines: tuple[tuple[str, Spans], ...] = ()
    sent: int = 0

    @property
    def id(self) -> str:
        """The name of the bundle; "" for an empty one."""
        return bundle_id(self.items)

    @property
    def distinct(self) -> int:
        """Number of lines that the items stand for, each counted once."""
        return sum(spans.count for _, spans in self.lines)

    def with_read(self, note: ReadMeasureNote) -> "Bundle":
        """Return the bundle after a further read."""
        if not note.item:
            return self
        items = self.items if note.item in self.items else (*self.items, note.item)[-MOST_ITEMS:]
        known = dict(self.lines)
        if note.path and note.first > 0:
            known[note.path] = known.pop(note.path, NO_LINES).unite(note.stands)
        return replace(self, items=items, lines=(*known.items(),)[-MOST_ITEMS:], sent=self.sent + note.lines)


EMPTY: Final = Bundle()


def item_id(mode: ReadMode, path: str, text: str) -> str:
    """Return the name of an answer.

    path: as shown to the model.
    text: the content that the answer stands for, without markers.
    """
    return _digest(f"{mode}\n{path}\n{text}")


def bundle_id(items: Iterable[str]) -> str:
    """Return the name of a bundle of items; "" without items."""
    joined = ",".join(items)
    return _digest(joined) if joined else ""


def candidate_id(query: str, path: str, index: int) -> str:
    """Return the name of a place that a search found.

    path: the file, as shown to the model.
    index: position of the place in the answer, from 0.
    """
    name = path.rpartition("/")[2]
    return "cand_" + _digest(f"{query}|{path}|{name}|{index}")[:12]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
