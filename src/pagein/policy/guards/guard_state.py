"""The state of a session's guards: a fold over the entries of a branch."""

from dataclasses import dataclass, replace
from typing import Final

from pagein.model.entries import Body, CompactionEntry, MessageEntry, NoteEntry
from pagein.model.guard_notes import ReadMeasureNote, SearchMeasureNote
from pagein.model.shared_collections import SharedMap
from pagein.policy.clients.client_prompts import user_words
from pagein.policy.guards.aggregation import EMPTY, Bundle
from pagein.policy.guards.budgets import UNSPENT, Spent, narrows
from pagein.policy.guards.metrics import NO_METRICS, ReadMetrics

NO_FILES: Final = SharedMap[bool]()


@dataclass(frozen=True, slots=True)
class GuardState:
    """The guards' knowledge at a point of a branch.

    metrics: counts over the whole branch.
    spent: what was spent since the budget was last restored.
    search: the last search since then; None without a search.
    bundle: the reads since the last search, words of a user, or compaction.
    since: number of those reads.
    files: path keys of the files that were read since the last compaction.
    """

    metrics: ReadMetrics = NO_METRICS
    spent: Spent = UNSPENT
    search: SearchMeasureNote | None = None
    bundle: Bundle = EMPTY
    since: int = 0
    files: SharedMap[bool] = NO_FILES


START: Final = GuardState()
TAKES: Final = (ReadMeasureNote, SearchMeasureNote, MessageEntry, CompactionEntry)
"""What may change the state."""


def step(state: GuardState, body: Body) -> GuardState:
    """Return the state after a further entry."""
    match body:
        case NoteEntry(note=ReadMeasureNote() as read):
            return replace(
                state,
                metrics=state.metrics.with_read(read),
                spent=state.spent.with_read(read),
                bundle=state.bundle.with_read(read),
                since=state.since + 1,
                files=state.files.put(read.path, value=True) if read.path not in state.files else state.files,
            )
        case NoteEntry(note=SearchMeasureNote() as search):
            spent = UNSPENT if narrows(state.search, search) else state.spent
            return GuardState(state.metrics.with_search(search), spent, search, files=state.files)
        case CompactionEntry():
            return GuardState(state.metrics)
        case MessageEntry(message=message) if state is not START and user_words(message):
            return GuardState(state.metrics, files=state.files)
        case _:
            return state
