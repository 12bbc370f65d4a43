"""The file view: the model's idea of a file, line by line, with the line numbers in the window.

Rules of this file
------------------
1. A line that was shown has two numbers: its present number in the model's view, and the number under which its text is
   in the window. The model's own edits and the diffs that it was shown move the first. Nothing moves the second.
2. Another text under a number hides the earlier one: a reader who looks for the line under that number finds the later
   text.
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
    """Lines `first` to `last` of the file in the model's view, equal to the lines from `start` on of version `source`.

    shown: whether that text is in the window under the numbers from `start` on, and no other text was shown under these
        since.
    told: the latest version of which the model was told that these are its lines `first` to `last`; None for no
        version.
    """

    first: int
    last: int
    source: ContentHash
    start: int
    told: ContentHash | None
    shown: bool = True

    @property
    def count(self) -> int:
        """Number of lines."""
        return self.last - self.first + 1

    @property
    def in_place(self) -> bool:
        """Whether the text is in the window under the lines' present numbers."""
        return self.shown and self.start == self.first

    def part(self, first: int, last: int) -> "ViewPiece":
        """Return the lines `first` to `last` of this piece."""
        return replace(self, first=first, last=last, start=self.start + first - self.first)

    def at(self, first: int, told: ContentHash | None) -> "ViewPiece":
        """Return the same text at another place of the file."""
        return replace(self, first=first, last=first + self.count - 1, told=told)

    def is_of(self, version: ContentHash) -> bool:
        """Return whether the model was shown these lines, under the same numbers, for this version."""
        return self.told == version or (self.source == version and self.start == self.first)


View: TypeAlias = tuple[ViewPiece, ...]
"""Pieces in ascending order, without overlap."""


def view_of_text(version: ContentHash, lines: Spans, *, numbered: bool = True) -> View:
    """Return a view of a version's lines that are in the window as text.

    numbered: whether a reader can tell their numbers there.
    """
    return tuple(ViewPiece(first, last, version, first, version, shown=numbered) for first, last in lines)


def lines_where(view: View, holds: Callable[[ViewPiece], bool]) -> Spans:
    """Return the lines of the pieces that satisfy a condition."""
    return Spans.of(*((piece.first, piece.last) for piece in view if holds(piece)))


def copy_pieces(view: View, copy: LineCopy, told: ContentHash) -> list[ViewPiece]:
    """Return the lines of a copy at their new place, as far as the view holds their text.

    Text that a marker can still name comes first.
    """
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
    """Return the lines of a copy at their new place, where the model believed them equal to the edited version."""
    lines = Spans.of((copy.first, copy.first + copy.count - 1))
    return [
        piece.part(first, last).at(copy.at + first - copy.first, told)
        for piece, first, last in _parts(view, lines)
        if piece.is_of(copy.base)
    ]


def with_pieces(view: View, new: Iterable[ViewPiece]) -> View:
    """Return the view with new pieces over the old ones, merged and bounded in number."""
    added = list(new)
    rest = cut(view, drop=lines_where(tuple(added), lambda _: True))
    return _bound_view(_merge_pieces(sorted((*rest, *added), key=lambda piece: piece.first)))


def hidden(view: Iterable[ViewPiece], numbers: Spans, version: ContentHash) -> View:
    """Return the view after these numbers showed the text of this version, hiding any different text."""
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
    """Return the view after the model was told of unchanged lines in this version."""
    return with_pieces(
        view,
        [replace(piece.part(first, last), told=version) for piece, first, last in _parts(view, lines)],
    )


def shifted(view: View, last: int, now: int | None) -> View:
    """Return the view after a diff of lines up to the old line `last`, which has the number `now` in the new file; without
    the lines behind where the new number is unknown.
    """
    if now == last:
        return view
    end = max((piece.last for piece in view), default=0)
    behind = Spans.of((last + 1, end))
    rest = cut(view, drop=behind)
    if now is None:
        return rest
    moved = [piece.part(first, end).at(first + now - last, None) for piece, first, end in _parts(view, behind)]
    return with_pieces(cut(rest, drop=Spans.of((now + 1, last))), moved)


def cut(view: View, *, drop: Spans = NO_LINES) -> View:
    """Return the view without these lines."""
    if not drop:
        return view
    out: list[ViewPiece] = []
    for piece in view:
        # most pieces are not affected; comparing two numbers keeps a step cheap on files read in many parts
        if piece.last < drop.runs[0][0] or piece.first > drop.runs[-1][1]:
            out.append(piece)
        else:
            out += [piece.part(first, last) for first, last in Spans(((piece.first, piece.last),)).subtract(drop)]
    return tuple(out)


def forget_version(view: View, version: ContentHash) -> View:
    """Return the view without any knowledge of this version."""
    kept = (piece for piece in view if piece.source != version)
    return tuple(replace(piece, told=None) if piece.told == version else piece for piece in kept)


def numbered_pieces(view: View) -> list[ViewPiece]:
    """Return the pieces that the numbers in the window name, sorted by `start`, without a repeated number."""
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
        # malformed records may list a line twice
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
