"""Insert texts at the end of the window: pinned texts, and pages of the manifest.

Rules of this file
------------------
1. A text enters once, with a request that holds something new, as a separate block after the newest message; then it is
   part of the window.
2. A pinned text enters again, verbatim, after the client compacted it away.
3. A manifest page is written only at an epoch's edge, and lists new objects. After the client compacted the pages away,
   the next edge lists everything on one page (`policy.stubs.manifest`).
"""

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Final

from pagein.engine.log.holdings import Holdings
from pagein.engine.log.pin_state import MANIFEST, PINNED
from pagein.engine.log.request_draft import pieces_since, shared_length
from pagein.engine.log.state import State
from pagein.model.entries import InsertEntry
from pagein.model.messages import ToolCall
from pagein.policy.stubs.manifest import BUDGET, Manifest, ManifestRow
from pagein.policy.stubs.recall_ways import TOOLS, Way

_SAID: Final = "[pagein: pinned by the user, holds for the whole session]"


@dataclass(frozen=True, slots=True)
class ManifestSource:
    """The source of the manifest.

    held: objects of the branch outside the window; None without a manifest.
    count: returns the tokens of a text.
    budget: most tokens of one page.
    way: how the model recalls.
    """

    held: Holdings | None
    count: Callable[[str], float]
    budget: int = BUDGET
    way: Way = TOOLS


def insertions(state: State, told: ManifestSource) -> Iterator[InsertEntry]:
    """Yield the texts to insert with the next request, in order."""
    tip = state.draft.ready.tip
    kept = shared_length(state.sent, tip)
    if tip is None or kept == tip.length:
        return  # the same request again
    is_edge = state.sent is not None and kept < state.sent.length
    if told.held is not None and is_edge:
        yield from _page(state, told.held, told)
    if not state.hand.off:
        for name, text in state.hand.unsaid:
            said = f"{_SAID}\n{text}"
            yield InsertEntry(PINNED, said, math.ceil(told.count(said)), (name,))


def _paths(state: State, calls: Collection[str]) -> dict[str, str]:
    """Return the files of these calls by call id, for calls in the window."""
    made = (
        block
        for piece in pieces_since(state.draft.ready.tip, 0)
        for block in piece.message.blocks
        if isinstance(block, ToolCall) and block.id in calls
    )
    return {call.id: call.accesses[0].path for call in made if call.accesses}


def _page(state: State, held: Holdings, told: ManifestSource) -> Iterator[InsertEntry]:
    hand = state.hand
    objects = list(held.newest_first())
    objects.reverse()
    rows = [ManifestRow(one.object_id, one.kind, one.tokens, one.description, one.path or "") for one in objects]
    fresh = [row for row in rows if row.object_id not in hand.listed]
    paths = _paths(state, {hand.calls[row.object_id] for row in fresh if row.object_id in hand.calls})
    fresh = [replace(row, path=row.path or paths.get(hand.calls.get(row.object_id, ""), "")) for row in fresh]
    tokens = sum(row.tokens for row in rows if row.object_id in hand.listed)
    _, page = Manifest(len(hand.listed), tokens, hand.pages).at_edge(fresh, budget=told.budget, way=told.way)
    if page is not None:
        yield InsertEntry(MANIFEST, page.text, math.ceil(told.count(page.text)), tuple(row.object_id for row in fresh))
