"""Results of the provider's own tools as residents of the window.

Rules of this file
------------------
1. Such a result becomes a resident when the user speaks next: until then its turn is open, and its message may have to
   stay as it came. Its age begins with the first call that saw it, like that of any result.
2. A message that was joined with another for the provider's rules (`repair`) is left alone: no single message of the
   client's holds it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from pagein.engine.log.request_draft import Cell, WindowPiece, size
from pagein.engine.log.turn_removal import is_spoken
from pagein.model.entries import PagedOut, Restoration
from pagein.model.messages import Message, Other
from pagein.model.server_results import ServerResult, stub_block, stub_of
from pagein.policy.eviction.residency import Residency, kinds_of_server_result
from pagein.policy.eviction.residents import Resident
from pagein.policy.stubs.result_stubs import LONGEST
from pagein.providers.wire.formats import server_results_of

SERVER: Final = "server"


def residents_of_finished_turns(tip: Cell | None, known: int, settings: Residency) -> Iterator[Resident]:
    """Yield the server results of the turns that end behind the first `known` messages, newest first."""
    finished, born = False, None
    while tip is not None:
        piece = tip.piece
        if is_spoken(piece.message):
            if finished and tip.length <= known:
                return
            finished = True
        elif finished and born is not None and piece.message.role == "assistant" and not _is_joined(tip):
            yield from _residents(piece, tip.length - 1, born, size(tip.before), settings)
        born = piece.born
        tip = tip.before


def _is_joined(cell: Cell) -> bool:
    before = cell.before.piece.said if cell.before is not None else 0
    return cell.piece.said - before > 1


def _residents(piece: WindowPiece, place: int, born: int, before: int, settings: Residency) -> Iterator[Resident]:
    for one, tokens in weighed_results(piece):
        kinds = kinds_of_server_result(one.tool, is_error=one.is_error)
        kind = next((each for each in kinds if settings.rules.of(each)), None)
        is_big = tokens >= max(settings.min_tokens, 1) and len(one.text) + one.sealed > LONGEST
        if is_big and settings.rules.lets_go(kind) and kind is not None:
            yield Resident(one.call_id, place, one.place, tokens, born, before, kind=kind, form=SERVER)


def results_of(piece: WindowPiece) -> tuple[ServerResult, ...]:
    """Return the server results of a message, including the evicted results."""
    return server_results_of(piece.source or piece.message)


def weighed_results(piece: WindowPiece) -> list[tuple[ServerResult, int]]:
    """Return the server results that a message of the window shows whole, with their tokens."""
    found = results_of(piece)
    shown = {one.call_id for one in server_results_of(piece.message)} if piece.source is not None else None
    weighed = zip(found, piece.tokens, strict=False)
    return [(one, tokens) for one, tokens in weighed if shown is None or one.call_id in shown]


def result_of(piece: WindowPiece, call_id: str) -> ServerResult | None:
    """Return the result of a call in a message, whether the window shows it or not."""
    return next((one for one in results_of(piece) if one.call_id == call_id), None)


def with_change(piece: WindowPiece, change: PagedOut | Restoration) -> WindowPiece:
    """Put a stub in place of a server result, or the result in place of its stub."""
    source = piece.source or piece.message
    found = result_of(piece, change.call_id)
    if found is None:
        return piece
    blocks = list(piece.message.blocks)
    for place in found.places:
        text = change.stub if isinstance(change, PagedOut) and place == found.place else ""
        blocks[place] = source.blocks[place] if isinstance(change, Restoration) else stub_block(found.call_id, text)
    uncited = piece.uncited or isinstance(change, PagedOut)
    return replace(piece, message=replace(piece.message, blocks=tuple(blocks)), source=source, uncited=uncited)


def stubs_in(message: Message) -> Mapping[str, str]:
    """Return the stubs of server results in a message, by call."""
    stubs = (stub_of(block) for block in message.blocks if isinstance(block, Other))
    return {call: text for call, text in (stub for stub in stubs if stub is not None) if text}
