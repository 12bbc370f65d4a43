"""What leaves the window takes with it what rested on it (law 2)."""

from collections.abc import Sequence
from typing import Final

from pagein.engine.log.pageout import Leaving
from pagein.engine.log.rendering import pieces_since
from pagein.engine.log.state import State
from pagein.engine.reads import evidence
from pagein.engine.reads.evidence import Evidence
from pagein.engine.reads.testimony import Stored, told_to_witness, window
from pagein.engine.window.decision_inputs import leaving_by
from pagein.model.entries import RequestSent
from pagein.model.messages import ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.policy.clients.window_files import START, ClientReads
from pagein.policy.economics.rewrite_cost import Moment
from pagein.policy.eviction.dependencies import sparing
from pagein.policy.eviction.residency import Plan, Residency, Resident

UNPROVEN: Final = "unproven"
"""The reason of an epoch that was opened only because answers were not borne out any more."""


def spared(
    planned: Plan,
    state: State,
    evidence: Evidence,
    settings: Residency,
    moment: Moment,
    also: frozenset[str] = frozenset(),
) -> Plan:
    """The plan without results on which a recent answer rests: these stay for as long as that answer. also: calls whose results stay too."""
    if planned.epoch is None:
        return planned
    last = state.draft.calls - max(settings.reads_wait, 1)
    return sparing(planned, evidence.held_by_young(last) | also, state.standing, settings, moment)


def leaving_soundly(
    state: State,
    ground: Evidence,
    planned: Plan,
    stored: Stored | None,
    reads: ClientReads = START,
    whole: frozenset[str] = frozenset(),
) -> tuple[list[Leaving], str | None]:
    """What leaves by this plan, with what rested on it, in the order of the window; and what the witness objected to.

    stored: where the witness finds versions; None where it is not asked. What it objects to leaves as well. reads: what reads by the
    client's own tools have shown. whole: calls of turns that leave whole.
    """
    chosen = [] if planned.epoch is None else leaving_by(state, planned.epoch)
    leaving = [*chosen, *_resting(state, ground, reads, chosen, whole)]
    said: dict[str, None] = {}
    if stored is not None:
        told = told_to_witness(evidence.step(ground, RequestSent(0, 0)), window(state), stored)
        told.claims |= reads.claims()
        stored = _either(reads.versions().get, stored)
        while True:
            for call in ({one.resident.call_id for one in leaving} | whole) & set(told.claims):
                del told.claims[call]
            objections = told.objections(stored)
            said |= dict.fromkeys(f"{one.call_id}: {one.why}" for one in objections)
            more = _found(state, frozenset(one.call_id for one in objections) - whole)
            if not more:
                break
            leaving += more
            leaving += _resting(state, ground, reads, leaving, whole)
    leaving.sort(key=lambda one: (one.resident.message, one.resident.block))
    return leaving, "the witness objected to " + "; ".join(said) if said else None


def _either(first: Stored, then: Stored) -> Stored:
    def stored(version: ContentHash) -> bytes | None:
        found = first(version)
        return then(version) if found is None else found

    return stored


def _resting(
    state: State, ground: Evidence, reads: ClientReads, leaving: Sequence[Leaving], whole: frozenset[str]
) -> list[Leaving]:
    """Answers that the window does not bear out once these results, and all of these calls, have left."""
    calls = [*(one.resident.call_id for one in leaving), *whole]
    return _found(state, (ground.resting_on(calls) | reads.resting_on(calls)) - whole)


def _found(state: State, calls: frozenset[str]) -> list[Leaving]:
    """The results of these calls, where they will stand in the request."""
    found: list[Leaving] = []
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
                # what stands in place of a result that is kept already leaves as that result
                kept = state.hand.stands_for(block)
                resident = Resident(block.call_id, place, index, tokens, piece.born or 0, kept=kept)
                found.append(Leaving(resident, block, block.name or tools.get(block.call_id, "")))
    return found
