"""The request as a list that shares its beginning.

Each cell is one message after another cell. Branches, epochs and requests that begin alike share the cells of that
beginning, so one more message costs one more cell, and where two requests part is found by walking back from their ends.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pagein.model.entries import TurnsLeft
from pagein.model.messages import Message


@dataclass(frozen=True, slots=True)
class Absent:
    """Messages that left whole, for which a text in this message stands. said: the first and the last number of each run of them."""

    left: TurnsLeft
    said: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class WindowPiece:
    """A message in the window, with what residency must know of it.

    tokens: the estimate for each tool result in it, in order, as it came. weight: for all of it, as it stands.
    born: the model call that first saw it, None until one did. said: how many messages had been said when it was.
    absent: what left whole and is told of in it.
    """

    message: Message
    tokens: tuple[int, ...] = ()
    born: int | None = None
    said: int = 0
    weight: int = 0
    absent: tuple[Absent, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cell:
    """A piece after all those before it. `length` and `tokens` count it. Two cells are the same request only if they are the same cell."""

    piece: WindowPiece
    before: "Cell | None"
    length: int
    tokens: int = 0


def push(tip: Cell | None, piece: WindowPiece) -> Cell:
    """The request with one message more."""
    return Cell(piece, tip, length(tip) + 1, size(tip) + piece.weight)


def length(tip: Cell | None) -> int:
    """How many messages the request has."""
    return 0 if tip is None else tip.length


def size(tip: Cell | None) -> int:
    """Tokens of the request, estimated."""
    return 0 if tip is None else tip.tokens


def shared_length(one: Cell | None, other: Cell | None) -> int:
    """How many messages two requests have in common from their beginning, by identity of cells. Costs what they differ in."""
    while one is not other:
        if length(one) > length(other):
            one = one.before if one else None
        elif length(other) > length(one):
            other = other.before if other else None
        else:
            one, other = one.before if one else None, other.before if other else None
    return length(one)


def pieces_since(tip: Cell | None, keep: int) -> list[WindowPiece]:
    """What stands behind the first `keep` messages, in order. Costs what it returns."""
    found = [cell.piece for cell in _back_to(tip, keep)]
    found.reverse()
    return found


def cells_of(tip: Cell | None) -> list[Cell]:
    """The request, cell by cell in order."""
    found: list[Cell] = []
    while tip is not None:
        found.append(tip)
        tip = tip.before
    found.reverse()
    return found


def cut(tip: Cell | None, keep: int) -> Cell | None:
    """The request that has only the first `keep` messages."""
    while tip is not None and tip.length > keep:
        tip = tip.before
    return tip


def _back_to(tip: Cell | None, keep: int) -> Iterator[Cell]:
    while tip is not None and tip.length > keep:
        yield tip
        tip = tip.before
