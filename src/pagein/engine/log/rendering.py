"""The request as a linked list with a shared beginning.

Each cell is one message after another cell. Branches, epochs and requests with a common beginning share the cells of
that beginning. So one more message costs one more cell, and walking back from two ends finds the place where two
requests differ.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pagein.model.entries import TurnsLeft
from pagein.model.messages import Message


@dataclass(frozen=True, slots=True)
class Absent:
    """Removed messages, replaced by a text in this message.

    left: the journal record of the removal.
    said: first and last number of each run of removed messages.
    """

    left: TurnsLeft
    said: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class WindowPiece:
    """A message in the window, with the facts that the eviction policy needs.

    message: the message as the window shows it.
    tokens: the estimate for each tool result, in order, as received; in a message of the model, for each result of the
        provider's own tools.
    born: the first model call that saw the message; None before.
    said: number of the message in the session, from 1.
    weight: estimated tokens of the whole message, as the window shows it.
    absent: removed messages that a text in this message replaces.
    source: the message before results of the provider's own tools left it; None if none left.
    uncited: whether its citations are not sent, because a result that they may point to left.
    """

    message: Message
    tokens: tuple[int, ...] = ()
    born: int | None = None
    said: int = 0
    weight: int = 0
    absent: tuple[Absent, ...] = ()
    source: Message | None = None
    uncited: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cell:
    """A piece and the cells before it. Identity of cells means equality of requests.

    piece: the last message.
    before: the cell before; None for the first.
    length: number of messages up to here.
    tokens: estimated tokens up to here.
    """

    piece: WindowPiece
    before: "Cell | None"
    length: int
    tokens: int = 0


def push(tip: Cell | None, piece: WindowPiece) -> Cell:
    """Append a message to a request."""
    return Cell(piece, tip, length(tip) + 1, size(tip) + piece.weight)


def length(tip: Cell | None) -> int:
    """Return the number of messages."""
    return 0 if tip is None else tip.length


def size(tip: Cell | None) -> int:
    """Return the estimated tokens of the request."""
    return 0 if tip is None else tip.tokens


def shared_length(one: Cell | None, other: Cell | None) -> int:
    """Return the number of leading messages that two requests share, by identity of cells.

    Costs as much as the requests differ.
    """
    while one is not other:
        if length(one) > length(other):
            one = one.before if one else None
        elif length(other) > length(one):
            other = other.before if other else None
        else:
            one, other = one.before if one else None, other.before if other else None
    return length(one)


def news_of(tip: Cell | None, sent: Cell | None) -> tuple[int, list[WindowPiece]]:
    """Return the estimated tokens that a request shares with an earlier request, and the messages after the shared part."""
    keep = shared_length(tip, sent)
    return size(cut(tip, keep)), pieces_since(tip, keep)


def pieces_since(tip: Cell | None, keep: int) -> list[WindowPiece]:
    """Return the messages after the first `keep`, in order. Costs as much as it returns."""
    found = [cell.piece for cell in _back_to(tip, keep)]
    found.reverse()
    return found


def cells_of(tip: Cell | None) -> list[Cell]:
    """Return the cells of the request in order."""
    found: list[Cell] = []
    while tip is not None:
        found.append(tip)
        tip = tip.before
    found.reverse()
    return found


def cut(tip: Cell | None, keep: int) -> Cell | None:
    """Return the first `keep` messages of a request."""
    while tip is not None and tip.length > keep:
        tip = tip.before
    return tip


def _back_to(tip: Cell | None, keep: int) -> Iterator[Cell]:
    while tip is not None and tip.length > keep:
        yield tip
        tip = tip.before
