"""Evict dependent results together (law 2)."""

from collections.abc import Sequence
from typing import Final

from pagein.engine.log.pageout import EvictionCandidate
from pagein.engine.log.rendering import pieces_since
from pagein.engine.log.state import State
from pagein.engine.reads import evidence
from pagein.engine.reads.evidence import Evidence
from pagein.engine.reads.testimony import Stored, make_testimony, window
from pagein.engine.window.decision_inputs import eviction_candidates
from pagein.model.entries import RequestSent
from pagein.model.messages import ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.policy.clients.window_files import START, ClientReads
from pagein.policy.economics.rewrite_cost import Moment
from pagein.policy.eviction.dependencies import plan_without
from pagein.policy.eviction.residency import EpochPlan, Residency, Resident

UNPROVEN: Final = "unproven"
"""Reason of an epoch that was opened only because the window no longer proved some answers."""


def plan_without_dependencies(
    planned: EpochPlan,
    state: State,
    evidence: Evidence,
    settings: Residency,
    moment: Moment,
    also: frozenset[str] = frozenset(),
) -> EpochPlan:
    """Return the plan without results on which a recent answer depends.

    The results stay as long as the answer.

    also: further calls whose results stay.
    """
    if planned.epoch is None:
        return planned
    last = state.draft.calls - max(settings.reads_wait, 1)
    return plan_without(planned, evidence.calls_needed_by_young(last) | also, state.standing, settings, moment)


def sound_evictions(
    state: State,
    ground: Evidence,
    planned: EpochPlan,
    stored: Stored | None,
    reads: ClientReads = START,
    whole: frozenset[str] = frozenset(),
) -> tuple[list[EvictionCandidate], str | None]:
    """Return the evictions of a plan with their dependents, in window order, and the objections of the witness.

    Results to which the witness objects are evicted too.

    stored: returns stored versions for the witness; None to skip the witness.
    reads: file texts shown by the client's own read tools.
    whole: calls of turns that are evicted whole.
    """
    chosen = [] if planned.epoch is None else eviction_candidates(state, planned.epoch)
    leaving = [*chosen, *_dependent_answers(state, ground, reads, chosen, whole)]
    said: dict[str, None] = {}
    if stored is not None:
        told = make_testimony(evidence.step(ground, RequestSent(0, 0)), window(state), stored)
        told.claims |= reads.claims()
        stored = _either(reads.versions().get, stored)
        while True:
            for call in ({one.resident.call_id for one in leaving} | whole) & set(told.claims):
                del told.claims[call]
            objections = told.objections(stored)
            said |= dict.fromkeys(f"{one.call_id}: {one.why}" for one in objections)
            more = _find_results(state, frozenset(one.call_id for one in objections) - whole)
            if not more:
                break
            leaving += more
            leaving += _dependent_answers(state, ground, reads, leaving, whole)
    leaving.sort(key=lambda one: (one.resident.message, one.resident.block))
    return leaving, "the witness objected to " + "; ".join(said) if said else None


def _either(first: Stored, then: Stored) -> Stored:
    def stored(version: ContentHash) -> bytes | None:
        found = first(version)
        return then(version) if found is None else found

    return stored


def _dependent_answers(
    state: State, ground: Evidence, reads: ClientReads, leaving: Sequence[EvictionCandidate], whole: frozenset[str]
) -> list[EvictionCandidate]:
    """Return the answers that the window no longer proves after the evictions."""
    calls = [*(one.resident.call_id for one in leaving), *whole]
    return _find_results(state, (ground.calls_depending_on(calls) | reads.calls_depending_on(calls)) - whole)


def _find_results(state: State, calls: frozenset[str]) -> list[EvictionCandidate]:
    """Return the results of the calls, with places in the request."""
    found: list[EvictionCandidate] = []
    tools: dict[str, str] = {}
    for place, piece in enumerate(pieces_since(state.draft.ready().tip, 0) if calls else ()):
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
