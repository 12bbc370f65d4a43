"""Results shown in a single request: their choice for a request, and their stubs in the next request.

Rules of this file
------------------
1. The choice is journaled after the request, and only if its last cache breakpoint stands in front of the results.
2. The next request of the branch evicts them. If anything else happened in between that may have cached them (a keep-alive
   request, a retry that was forwarded unmodified), they stay as ordinary residents.
3. A request that returns to another model reads up to what that model's last request left in front of its own results.
   The client's breakpoints may be too far behind it (A3).
4. Reads of files stay: an edit may quote them. So do pinned and recently recalled results.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pagein.engine.log.journal import Fold, Journal
from pagein.engine.log.request_draft import Cell, WindowPiece, length
from pagein.engine.log.state import State
from pagein.model.entries import SHOWN_ONCE, Body, CompactionEntry, EntryId, NoteEntry, RequestSent
from pagein.model.journal_notes import CachedPrefixNote, PassthroughNote, PrefixDigests, ShownOnceNote
from pagein.model.messages import ToolCall, ToolResult
from pagein.policy.economics.rewrite_cost import Moment
from pagein.policy.eviction.residency import Epoch, EpochPlan, Residency
from pagein.policy.eviction.results_shown_once import ResultsShownOnce, TailBlock, results_shown_once

_MOST_ENTRIES: Final = 400
"""Entries that are looked through: 20 blocks are at most 20 messages, with their requests and notes."""

TAKES: Final = (ShownOnceNote, RequestSent, CachedPrefixNote, PassthroughNote, CompactionEntry)


@dataclass(frozen=True, slots=True)
class ShownOnce:
    """The results that the last request of a branch showed once.

    note: None without any.
    kept: keep-alive requests so far.
    is_kept: whether a keep-alive or an unmodified request may have cached the model's answer since the last request.
    """

    note: ShownOnceNote | None = None
    kept: int = 0
    is_kept: bool = False


NOTHING_SHOWN: Final = ShownOnce()


def step(shown: ShownOnce, body: Body) -> ShownOnce:
    """Return what was shown once after a further entry."""
    match body:
        case NoteEntry(note=ShownOnceNote() as note):
            return replace(shown, note=note)
        case NoteEntry(note=CachedPrefixNote(kept=kept)):
            changed = ShownOnce(None, kept, is_kept=True) if kept > shown.kept else replace(shown, kept=kept)
            return shown if kept == shown.kept else changed
        case RequestSent():
            return ShownOnce(None, shown.kept) if shown.note is not None or shown.is_kept else shown
        case NoteEntry(note=PassthroughNote()):
            return ShownOnce(None, shown.kept, is_kept=True)
        case CompactionEntry():
            return shown if shown.note is None else replace(shown, note=None)
        case _:
            return shown


def calls_shown_last(journal: Journal[State], heads: Fold[PrefixDigests], leaf: EntryId, model: str) -> Sequence[str]:
    """Return the calls whose results the last request to a model showed once, on the branch of `leaf`.

    The cache has the end of that request in front of these results. Empty without any, and where the request is more
    entries away than a look-back reaches.
    """
    calls: Sequence[str] = ()
    name: EntryId | None = leaf
    for _ in range(_MOST_ENTRIES):
        if name is None:
            break
        entry = journal.entry(name)
        match entry.body:
            case CompactionEntry():
                break
            case NoteEntry(note=ShownOnceNote(calls=shown)):
                calls = shown
            case RequestSent():
                if heads[name].model == model:
                    return calls
                calls = ()
            case _:
                pass
        name = entry.parent
    return ()


def choose_shown_once(
    state: State, residency: Residency, moment: Moment, stays: Collection[str], *, unseen: float = 0.0
) -> ResultsShownOnce | None:
    """Choose the results that the last journaled request shows once.

    state: the state after the request.
    moment: the call as the policy saw it.
    stays: calls whose results stay in any case.
    unseen: tokens at the end of the request that no message shows.
    """
    least, economics = residency.shown_once, residency.economics
    if least is None or economics is None or state.hand.off:
        return None
    cell, pieces = state.sent, list[WindowPiece]()
    while cell is not None and cell.piece.message.role != "assistant":
        pieces.insert(0, cell.piece)
        cell = cell.before
    start = length(cell)
    single = {
        one.place: one
        for one in state.standing.all()
        if one.message >= start
        and one.form == one.kind == "result"
        and one.tokens >= least
        and one.call_id not in stays
    }
    if not single:
        return None
    tail: list[TailBlock] = []
    for number, piece in enumerate(pieces, start):
        counts, left = iter(piece.tokens), piece.weight
        for place, block in enumerate(piece.message.blocks):
            if isinstance(block, ToolResult):
                tokens, one = next(counts, 0), single.get((number, place))
                tokens = tokens if one is None else one.tokens
                tail.append(TailBlock(tokens, one))
                left -= tokens
        tail.append(TailBlock(max(0, left)))
    tail.append(TailBlock(math.ceil(unseen / moment.scale)))
    return results_shown_once(tail, moment, economics, state.account)


def with_shown_once(planned: EpochPlan, shown: ShownOnceNote, state: State, stays: Collection[str]) -> EpochPlan:
    """Add the results that the last request showed once to a plan. Nothing cached changes, so they cost nothing.

    A result that no answer followed was not seen, and stays.

    stays: calls whose results stay in any case.
    """
    wanted = set(shown.calls).difference(stays)
    answered = (one for one in state.standing.all() if one.form == "result" and one.born < state.draft.calls)
    newest = {one.call_id: one for one in answered if one.call_id in wanted}
    going = () if planned.epoch is None else planned.epoch.page_out
    gone = {one.place for one in going}
    more = [one for one in newest.values() if one.place not in gone]
    if not more:
        return planned
    page_out = tuple(sorted((*going, *more), key=lambda one: one.place))
    reason = SHOWN_ONCE if planned.epoch is None else planned.epoch.reason
    epoch = Epoch(page_out[0].message, page_out, reason, frozenset(one.call_id for one in more))
    gain, account = sum(one.gain for one in more), planned.account
    account = replace(account, saved=account.saved + shown.saved, absent=account.absent + gain)
    return replace(planned, epoch=epoch, account=account)


def ends_with_output(tip: Cell | None, least: int) -> bool:
    """Return whether a request ends with an output of at least this many tokens that is no read of a file."""
    big: set[str] = set()
    while tip is not None and tip.piece.message.role != "assistant":
        results = (block.call_id for block in tip.piece.message.blocks if isinstance(block, ToolResult))
        big.update(name for name, tokens in zip(results, tip.piece.tokens, strict=False) if tokens >= least)
        tip = tip.before
    asked = tip.piece.message.blocks if tip is not None and big else ()
    calls = (block for block in asked if isinstance(block, ToolCall) and block.id in big)
    return any(all(access.op != "read" for access in one.accesses) for one in calls)
