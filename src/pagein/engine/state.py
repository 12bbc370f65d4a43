"""The state of a session at a leaf: a fold over the entries of its branch (law 6).

`step` is the only way in which state comes about. It looks at nothing but the state before and the entry; what it keeps it
shares with the state before.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.engine.rendering import Cell, Piece, cut, length, pieces_since, pushed
from pagein.engine.repair import Draft
from pagein.model.entries import Body, Compacted, EpochOpened, PagedOut, RequestSent, Said
from pagein.model.messages import Block, ToolCall, ToolResult
from pagein.policy.exclusions import may_show_excluded
from pagein.policy.residency import EMPTY, Residency, Resident, Standing, removable


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class State:
    """What a session is at one entry.

    draft: the next request in the making. standing: what in it may be paged out. epoch: how many times the window was rewritten, by
    us or by the host. sent: the last request that left, None before the first.
    """

    draft: Draft = field(default_factory=Draft)
    standing: Standing = EMPTY
    epoch: int = 0
    sent: Cell | None = None


START: Final = State()


def step(state: State, body: Body, settings: Residency) -> State:
    """The state after one more entry. O(1) amortised; opening an epoch and compacting cost what they rewrite."""
    match body:
        case Said():
            moved = _with_draft(state, state.draft.with_said(body.message, body.result_tokens), settings)
            return replace(moved, standing=moved.standing.at_call(moved.draft.calls, settings))
        case RequestSent():
            ready = _with_draft(state, state.draft.ready(), settings)
            return replace(ready, sent=ready.draft.tip)
        case EpochOpened():
            return _paged_out(state, body)
        case Compacted():
            return _compacted(state, body.kept, settings)
        case _:
            return state


def _with_draft(state: State, draft: Draft, settings: Residency) -> State:
    """The draft moved on: results that were settled by that are resident from now on."""
    before = state.draft.tip
    if draft.tip is before:
        return replace(state, draft=draft)
    calls = {
        block.id: block for block in (before.piece.message.blocks if before else ()) if isinstance(block, ToolCall)
    }
    standing = state.standing
    # The message at the old end may have been merged with the next; it is an assistant's and holds no result.
    known = length(before)
    for place, piece in enumerate(pieces_since(draft.tip, known), start=known):
        for resident in _residents(place, piece, calls, settings):
            standing = standing.born(resident)
    return replace(state, draft=draft, standing=standing)


def _residents(place: int, piece: Piece, calls: dict[str, ToolCall], settings: Residency) -> Iterable[Resident]:
    if piece.born is None:
        return
    tokens = iter(piece.tokens)
    for index, block in enumerate(piece.message.blocks):
        if not isinstance(block, ToolResult):
            continue
        count = next(tokens, 0)
        call = calls.get(block.call_id)
        if call is not None and removable(block, count, settings) and not may_show_excluded(call):
            yield Resident(block.call_id, place, index, count, piece.born)


def _paged_out(state: State, epoch: EpochOpened) -> State:
    draft = state.draft
    gone = {(one.message, one.block): one for one in epoch.paged}
    tip = cut(draft.tip, epoch.frontier)
    for place, piece in enumerate(pieces_since(draft.tip, epoch.frontier), start=epoch.frontier):
        tip = pushed(tip, _stubbed(place, piece, gone))
    standing = state.standing.without(gone)
    return replace(state, draft=replace(draft, tip=tip), standing=standing, epoch=epoch.number)


def _stubbed(place: int, piece: Piece, gone: dict[tuple[int, int], PagedOut]) -> Piece:
    if not any((place, index) in gone for index in range(len(piece.message.blocks))):
        return piece
    # A stub is too short to leave again, so its place in `tokens` may stay as it is.
    blocks = tuple(_replaced(block, gone.get((place, index))) for index, block in enumerate(piece.message.blocks))
    return replace(piece, message=replace(piece.message, blocks=blocks))


def _replaced(block: Block, paged: PagedOut | None) -> Block:
    return replace(block, text=paged.stub, shown=None) if paged and isinstance(block, ToolResult) else block


def _compacted(state: State, kept: int, settings: Residency) -> State:
    """The window begins anew behind its leading system messages. What was kept stays as it was rendered, stubs and all."""
    old = state.draft
    first_kept = old.said - kept
    pieces = [*pieces_since(old.tip, old.head), *old.held()]
    tip = cut(old.tip, old.head)
    draft = Draft(tip, old.head, old.said, old.calls, old.repairs)
    fresh = replace(state, draft=draft, standing=EMPTY, epoch=state.epoch + 1)
    for piece in pieces:
        if piece.said > first_kept:
            fresh = _with_draft(fresh, fresh.draft.with_piece(piece), settings)
    return replace(fresh, standing=fresh.standing.at_call(fresh.draft.calls, settings))
