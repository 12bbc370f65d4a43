"""What the model takes a file to look like, line by line, and under which numbers it was shown that.

Rules of this file
------------------
1. Two numbers belong to a line that was shown: the one under which the model takes it to stand by now, and the one under which its
   text stands in the window. The model's own edits and the diffs that it was shown move the first. Nothing moves the second.
2. Another text under a number hides the earlier one: who looks for what was shown under that number finds the later text.
3. A line whose place cannot be followed is left out. That costs a saving and is never wrong.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from pagein.model.names import ContentHash
from pagein.model.read_events import LineCopy
from pagein.model.spans import NO_LINES, Spans

_MAX_PIECES: Final = 128


@dataclass(frozen=True, slots=True)
class ViewPiece:
    """The model takes lines `first` to `last` of the file to be the lines from `start` on of version `source`.

    shown: whether that text stands in the window under the numbers from `start` on, and no other text was shown under these since.
    told: the latest version of which the model was told that they are its lines `first` to `last`; None for none.
    """

    first: int
    last: int
    source: ContentHash
    start: int
    told: ContentHash | None
    shown: bool = True

    @property
    def count(self) -> int:
        """How many lines they are."""
        return self.last - self.first + 1

    @property
    def in_place(self) -> bool:
        """Whether the text stands in the window under the numbers that the lines have."""
        return self.shown and self.start == self.first

    def part(self, first: int, last: int) -> "ViewPiece":
        """The lines `first` to `last` of these."""
        return replace(self, first=first, last=last, start=self.start + first - self.first)

    def at(self, first: int, told: ContentHash | None) -> "ViewPiece":
        """The same text in another place of the file."""
        return replace(self, first=first, last=first + self.count - 1, told=told)

    def is_of(self, version: ContentHash) -> bool:
        """Whether the model was told that these are the lines of this version that have these numbers."""
        return self.told == version or (self.source == version and self.start == self.first)


View: TypeAlias = tuple[ViewPiece, ...]
"""Pieces in ascending order, without overlap."""


def view_of_text(version: ContentHash, lines: Spans, *, numbered: bool = True) -> View:
    """Lines of a version that stand as text in the window. numbered: whether a reader can tell their numbers there."""
    return tuple(ViewPiece(first, last, version, first, version, shown=numbered) for first, last in lines)


def lines_where(view: View, holds: Callable[[ViewPiece], bool]) -> Spans:
    """The lines of the pieces of which this holds."""
    return Spans.of(*((piece.first, piece.last) for piece in view if holds(piece)))


def copy_pieces(view: View, copy: LineCopy, told: ContentHash) -> list[ViewPiece]:
    """The lines of a copy, in their new place, as far as the view holds their text. Text that can still be named comes first."""
    lines = Spans.of((copy.first, copy.first + copy.count - 1))
    found: list[ViewPiece] = []
    for candidates in (
        ((piece.start, piece) for piece in view if piece.source == copy.base and piece.shown),
        ((piece.first, piece) for piece in view if piece.told == copy.base),
        ((piece.start, piece) for piece in view if piece.source == copy.base),
    ):
        for number, piece in candidates:
            theirs = lines.clamp(number, number + piece.count - 1)
            for first, last in theirs:
                part = piece.part(piece.first + first - number, piece.first + last - number)
                found.append(part.at(copy.at + first - copy.first, told))
            lines = lines.subtract(theirs)
    return found


def move_pieces(view: View, copy: LineCopy, told: ContentHash) -> list[ViewPiece]:
    """The lines of a copy of the version that was edited, in their new place, where the model took them to be as in that version."""
    lines = Spans.of((copy.first, copy.first + copy.count - 1))
    return [
        piece.part(first, last).at(copy.at + first - copy.first, told)
        for piece, first, last in _parts(view, lines)
        if piece.is_of(copy.base)
    ]


def with_pieces(view: View, new: Iterable[ViewPiece]) -> View:
    """The view with these in place of what stood there, in normal form and bounded."""
    added = list(new)
    rest = cut(view, drop=lines_where(tuple(added), lambda _: True))
    return _bound_view(_merge_pieces(sorted((*rest, *added), key=lambda piece: piece.first)))


def hidden(view: Iterable[ViewPiece], numbers: Spans, version: ContentHash) -> View:
    """The view once the text of this version was shown under these numbers: no other text can be named by them."""
    out: list[ViewPiece] = []
    for piece in view:
        over = numbers.clamp(piece.start, piece.start + piece.count - 1)
        if not piece.shown or not over or piece.source == version:
            out.append(piece)
            continue
        by = piece.first - piece.start
        lines = Spans(((piece.first, piece.last),))
        out += [replace(piece.part(first, last), shown=False) for first, last in over.shift(by)]
        out += [piece.part(first, last) for first, last in lines.subtract(over.shift(by))]
    return tuple(sorted(out, key=lambda piece: piece.first))


def retold(view: View, lines: Spans, version: ContentHash) -> View:
    """The view once the model was told that these lines stand so in this version."""
    return with_pieces(
        view,
        [replace(piece.part(first, last), told=version) for piece, first, last in _parts(view, lines)],
    )


def cut(view: View, *, drop: Spans = NO_LINES) -> View:
    """The view without these lines."""
    if not drop:
        return view
    out: list[ViewPiece] = []
    for piece in view:
        # most pieces are not concerned; telling so by two numbers keeps a step cheap on files read in many parts
        if piece.last < drop.runs[0][0] or piece.first > drop.runs[-1][1]:
            out.append(piece)
        else:
            out += [piece.part(first, last) for first, last in Spans(((piece.first, piece.last),)).subtract(drop)]
    return tuple(out)


def forget_version(view: View, version: ContentHash) -> View:
    """The view where nothing is known of this version any more."""
    kept = (piece for piece in view if piece.source != version)
    return tuple(replace(piece, told=None) if piece.told == version else piece for piece in kept)


def numbered_pieces(view: View) -> list[ViewPiece]:
    """What the numbers in the window name, in their order: each piece by `start`. No number twice."""
    found: list[ViewPiece] = []
    behind = 1  # the first number that nothing names yet
    for piece in sorted((piece for piece in view if piece.shown), key=lambda piece: piece.start):
        new = max(behind - piece.start, 0)
        if new < piece.count:
            found.append(piece.part(piece.first + new, piece.last))
            behind = piece.start + piece.count
    return found


def _parts(view: View, lines: Spans) -> Iterator[tuple[ViewPiece, int, int]]:
    for piece in view:
        for first, last in lines.clamp(piece.first, piece.last):
            yield piece, first, last


def _merge_pieces(pieces: Iterable[ViewPiece]) -> list[ViewPiece]:
    out: list[ViewPiece] = []
    for each in pieces:
        # strange records may tell of a line twice
        piece = each.part(max(each.first, out[-1].last + 1), each.last) if out else each
        if out and _follows(out[-1], piece):
            out[-1] = replace(out[-1], last=piece.last)
        elif piece.count > 0:
            out.append(piece)
    return out


def _follows(before: ViewPiece, piece: ViewPiece) -> bool:
    return (
        before.last + 1 == piece.first
        and before.start + before.count == piece.start
        and (before.source, before.told, before.shown) == (piece.source, piece.told, piece.shown)
    )


def _bound_view(pieces: list[ViewPiece]) -> View:
    if len(pieces) <= _MAX_PIECES:
        return tuple(pieces)
    longest = sorted(pieces, key=lambda piece: (-piece.count, piece.first))[:_MAX_PIECES]
    return tuple(sorted(longest, key=lambda piece: piece.first))
