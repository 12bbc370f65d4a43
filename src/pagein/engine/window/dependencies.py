"""Evict dependent results together (law 2)."""

from collections.abc import Sequence
from typing import Final

from pagein.engine.log.pageout import EvictionCandidate
from pagein.engine.log.request_draft import pieces_since
from pagein.engine.log.state import State
from pagein.engine.reads.testimony import Stored, Testimony, window
from pagein.engine.window.decision_inputs import eviction_candidates
from pagein.model.messages import ToolCall, ToolResult
from pagein.policy.clients.window_files import WindowFiles
from pagein.policy.eviction.residency import EpochPlan, Resident

UNPROVEN: Final = "unproven"
"""Reason of an epoch that was opened only because the window no longer proved some answers."""


def sound_evictions(
    state: State,
    files: WindowFiles,
    planned: EpochPlan,
    stored: Stored | None,
    whole: frozenset[str] = frozenset(),
) -> tuple[list[EvictionCandidate], str | None]:
    """Return the evictions of a plan with their dependents, in window order, and the objections of the witness.

    Results to which the witness objects are evicted too.

    files: what the window shows of files.
    stored: returns stored versions for the witness; None to skip the witness.
    whole: calls of turns that are evicted whole.
    """
    chosen = [] if planned.epoch is None else eviction_candidates(state, planned.epoch)
    leaving = [*chosen, *_dependent_answers(state, files, chosen, whole)]
    said: dict[str, None] = {}
    if stored is not None:
        told, texts = Testimony(window(state), files.claims()), files.versions()
        while True:
            for call in ({one.resident.call_id for one in leaving} | whole) & set(told.claims):
                del told.claims[call]
            objections = told.objections(lambda version: texts[version] if version in texts else stored(version))
            said |= dict.fromkeys(f"{one.call_id}: {one.why}" for one in objections)
            more = _find_results(state, frozenset(one.call_id for one in objections) - whole)
            if not more:
                break
            leaving += more
            leaving += _dependent_answers(state, files, leaving, whole)
    leaving.sort(key=lambda one: (one.resident.message, one.resident.block))
    return leaving, "the witness objected to " + "; ".join(said) if said else None


def _dependent_answers(
    state: State, files: WindowFiles, leaving: Sequence[EvictionCandidate], whole: frozenset[str]
) -> list[EvictionCandidate]:
    """Return the answers that the window no longer proves after the evictions."""
    calls = [*(one.resident.call_id for one in leaving), *whole]
    return _find_results(state, files.calls_depending_on(calls) - whole)


def _find_results(state: State, calls: frozenset[str]) -> list[EvictionCandidate]:
    """Return the results of the calls, with places in the request."""
    found: list[EvictionCandidate] = []
    tools: dict[str, str] = {}
    for place, piece in enumerate(pieces_since(state.draft.ready.tip, 0) if calls else ()):
        counts = iter(piece.tokens)
        for index, block in enumerate(piece.message.blocks):
            if isinstance(block, ToolCall):
                tools[block.id] = block.name
            if not isinstance(block, ToolResult):
                continue
            tokens = next(counts, 0)
            if block.call_id in calls:
                # a preview is evicted as the stored result behind it
                kept = state.hand.stands_for(block)
                resident = Resident(block.call_id, place, index, tokens, piece.born or 0, kept=kept)
                found.append(EvictionCandidate(resident, block, block.name or tools.get(block.call_id, "")))
    return found
