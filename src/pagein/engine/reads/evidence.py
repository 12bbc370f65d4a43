"""Track which read answers and writes the request shows, as the proof for markers (law 2).

Rules of this file
------------------
1. Reads and writes are journaled when they happen, and then found in the window by their text: an answer in the result
   of a call, written text in the arguments of a call. Until the next request every event counts as visible; from then
   on only found events count, because the request holds nothing else.
2. What was found is a statement in the chains of `files` (`policy.clients.window_files`), which answers what depends on
   what. Two states are folded from it. *Known* is the basis of the policy: it ends at a compaction, and a refresh
   reduces it. *Seen* is everything that the window proves: it includes texts that a compaction kept.
3. When results are evicted, the states of their files are folded anew without them. Answers without proof are listed
   there, and must be evicted too or be shown in full before the next request.
4. A text that could belong to several calls belongs to none: that only costs a saving.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pagein.engine.log.read_notes import trace_of
from pagein.model.arguments import texts_in
from pagein.model.entries import Body, CompactionEntry, EpochEntry, MessageEntry, NoteEntry, PreviewEntry, RequestSent
from pagein.model.journal_notes import ReadNote
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.read_events import FileRead, FileRefresh, FileWrite
from pagein.model.shared_collections import QueueLink, in_order, link_items
from pagein.policy.clients.window_files import NO_CHAINS, FileChains, FileStatement, unproven_calls
from pagein.policy.reads.knowledge import NOTHING, Knowledge, proven, refold_path
from pagein.policy.reads.knowledge import step as with_event

_MOST_LATE: Final = 256


@dataclass(frozen=True, slots=True)
class PendingEvent:
    """A file event that was not found in the window yet.

    told: the journal record.
    late: True if a request was sent without it.
    void: True if it must not be trusted once found.
    cuts: later refreshes of line ranges; the other lines may be trusted.
    """

    told: ReadNote
    late: bool = False
    void: bool = False
    cuts: tuple[ReadNote, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """The proof at one point of a branch; see the rules above.

    known: basis of the policy, by file.
    seen: knowledge that the window proves, by file.
    files: the statements that the window shows.
    said: messages so far.
    turn: number of the last assistant message.
    calls: number of assistant messages.
    unsaid: events not found in the window yet, the last one first.
    late: events that a request was sent without, the newest ones.
    open_calls, answered: calls of the last assistant message without and with a result.
    """

    known: Knowledge = NOTHING
    seen: Knowledge = NOTHING
    files: FileChains = NO_CHAINS
    said: int = 0
    turn: int = 0
    calls: int = 0
    unsaid: QueueLink[PendingEvent] | None = None
    late: tuple[PendingEvent, ...] = ()
    open_calls: tuple[ToolCall, ...] = ()
    answered: tuple[ToolCall, ...] = ()

    def trusted_pending(self) -> Iterator[ReadNote]:
        """Yield the trusted events that are not found in the window yet, each with later refreshes."""
        for one in in_order(self.unsaid):
            if not one.void:
                yield one.told
                yield from one.cuts

    def answers_unsaid(self) -> Iterator[ReadNote]:
        """Yield answers not found in the window yet.

        They count as visible, whatever was refreshed since.
        """
        return (one.told for one in in_order(self.unsaid))

    def pending_events(self) -> list[PendingEvent]:
        """Return the events that may still be found in the window, oldest first."""
        return list(self.late) if self.unsaid is None else [*self.late, *in_order(self.unsaid)]


START: Final = Evidence()


TAKES: Final = (ReadNote, MessageEntry, RequestSent, EpochEntry, PreviewEntry, CompactionEntry)
"""What may change the evidence (see `Fold`)."""


def step(state: Evidence, body: Body) -> Evidence:
    """Return the evidence after a further entry.

    O(1), except for evictions, which cost as much as they change.
    """
    match body:
        case NoteEntry(note=ReadNote() as told):
            return _add_event(state, told)
        case MessageEntry():
            return _add_message(state, body.message)
        case RequestSent():
            return replace(_without_the_unfound(state), open_calls=(), answered=())
        case EpochEntry() | PreviewEntry():
            return _remove_results(state, frozenset(body.calls))
        case CompactionEntry():
            return _apply_compaction(state, body.kept)
        case _:
            return state


# --- file events ---


def _add_event(state: Evidence, told: ReadNote) -> Evidence:
    event = told.event
    state = replace(state, known=with_event(state.known, event))
    if isinstance(event, FileRefresh):
        state = _map_pending(state, lambda one: _refresh(one, told) if one.told.event.path == event.path else one)
        return replace(state, files=state.files.with_statement(event.path, _statement(state, told)))
    state = replace(state, unsaid=QueueLink(PendingEvent(told), state.unsaid))
    if isinstance(event, FileWrite):  # a client may report it after its messages
        for call in state.answered:
            state = _found_in_arguments(state, call)
    return state


def _statement(state: Evidence, told: ReadNote, call: str = "", *, trusted: bool = True) -> FileStatement:
    return FileStatement(
        call, told.event, state.calls, before=told.before, given=told.given, message=state.turn, trusted=trusted
    )


def _refresh(pending: PendingEvent, told: ReadNote) -> PendingEvent:
    """Distrust a pending event, or its refreshed lines."""
    if isinstance(told.event, FileRefresh) and told.event.lines is None:
        return replace(pending, void=True)
    return replace(pending, cuts=(*pending.cuts, told))


def _map_pending(state: Evidence, change: Callable[[PendingEvent], PendingEvent]) -> Evidence:
    unsaid = link_items(map(change, in_order(state.unsaid)))
    return replace(state, unsaid=unsaid, late=tuple(map(change, state.late)))


def _without_the_unfound(state: Evidence) -> Evidence:
    """Set aside events without a match in the window: the request does not show them."""
    if state.unsaid is None:
        return state
    unsaid = in_order(state.unsaid)
    late = (*state.late, *(replace(one, late=True) for one in unsaid))[-_MOST_LATE:]
    return _refold_paths(replace(state, unsaid=None, late=late), (one.told.event.path for one in unsaid))


# --- messages ---


def _add_message(state: Evidence, message: Message) -> Evidence:
    state = replace(state, said=state.said + 1)
    if message.role == "assistant":
        calls = tuple(block for block in message.blocks if isinstance(block, ToolCall))
        return replace(state, turn=state.said, calls=state.calls + 1, open_calls=calls, answered=())
    for block in message.blocks:
        if isinstance(block, ToolResult):
            state = _add_result(state, block)
    return state


def _add_result(state: Evidence, result: ToolResult) -> Evidence:
    # a result without a waiting call is not a result in the request (see `repair`)
    call = next((one for one in state.open_calls if one.id == result.call_id), None)
    if call is None:
        return state
    still_open = tuple(one for one in state.open_calls if one is not call)
    state = replace(state, open_calls=still_open, answered=(*state.answered, call))
    waiting = state.pending_events()
    if not waiting:
        return state
    found = _read_said_in(waiting, call, result)
    return _found_in_arguments(state, call) if found is None else _place_event(state, found, call.id)


def _read_said_in(waiting: Sequence[PendingEvent], call: ToolCall, result: ToolResult) -> PendingEvent | None:
    """Return the read that this result answers. Compares texts; if several match, the path in the arguments decides.

    An answer that never got into the window is no match beside one that may: a refresh stands behind the first.
    """
    trace = trace_of(result.text)
    same = [one for one in waiting if isinstance(one.told.event, FileRead) and one.told.trace == trace]
    same = [one for one in same if not one.late] or same
    same = [one for one in same if not one.void] or same
    if len({one.told.event.path for one in same}) > 1:
        words = tuple(texts_in(call.arguments))
        same = [one for one in same if _is_named(one.told.given, words)]
    return same[0] if len({one.told.event.path for one in same}) == 1 else None


def _found_in_arguments(state: Evidence, call: ToolCall) -> Evidence:
    """Place the write or edit of a call, if the arguments hold the text. An ambiguous match is not placed."""
    writes = [one for one in state.pending_events() if isinstance(one.told.event, FileWrite)]
    if not writes or call.id in state.files.path_of:
        return state
    words = tuple(texts_in(call.arguments))
    traces = {trace_of(text) for text in words}
    made = [one for one in writes if one.told.trace in traces and _is_named(one.told.given, words)]
    return _place_event(state, made[0], call.id) if len(made) == 1 else state


def _place_event(state: Evidence, found: PendingEvent, call: str) -> Evidence:
    files = state.files
    if call in files.path_of:  # a call id used twice: a claim on it would be ambiguous
        return state
    event = found.told.event
    unsaid = in_order(state.unsaid)
    is_next = next((one for one in unsaid if one.told.event.path == event.path), None) is found
    is_proven = not isinstance(event, FileRead) or proven(state.seen, event)
    files = files.with_statement(event.path, _statement(state, found.told, call, trusted=not found.void))
    for cut in found.cuts:  # read before the refresh but in the window after it: the refresh still applies
        files = files.with_statement(event.path, _statement(state, cut))
    state = replace(
        state,
        seen=with_event(state.seen, event),
        files=files if is_proven else replace(files, unproven=files.unproven | {call}),
        unsaid=link_items(one for one in unsaid if one is not found),
        late=tuple(one for one in state.late if one is not found),
    )
    return state if is_next and is_proven and not found.void else _refold_paths(state, [event.path])


# --- evictions ---


def _remove_results(state: Evidence, gone: frozenset[str]) -> Evidence:
    if not gone:
        return state
    paths = state.files.paths_of(gone)
    # events not found yet may be affected
    return _refold_paths(_without_the_unfound(replace(state, files=state.files.without(gone))), paths)


def _apply_compaction(state: Evidence, kept: int) -> Evidence:
    """Reset `known`. Texts that the client kept are still seen."""
    first, files = state.said - kept, state.files
    paths = list(files.chains)
    for path in paths:
        texts = (
            one for one in files.statements(path) if one.message > first and not isinstance(one.event, FileRefresh)
        )
        files = files.with_chain(path, [replace(one, trusted=False) for one in texts])
    state = _without_the_unfound(replace(state, files=files))
    return _refold_paths(replace(_map_pending(state, lambda one: replace(one, void=True)), known=NOTHING), paths)


def _refold_paths(state: Evidence, paths: Iterable[str]) -> Evidence:
    """Fold known and seen of some paths anew from the statements in the window."""
    known, seen, unproven = state.known, state.seen, state.files.unproven
    for path in sorted(set(paths)):
        made = state.files.statements(path)
        visible = (one.event for one in made if not isinstance(one.event, FileRefresh))  # no refresh removes a text
        trusted = (one.event for one in made if one.trusted)
        expected = (one.event for one in state.trusted_pending() if one.event.path == path)
        seen = refold_path(seen, path, visible)
        known = refold_path(known, path, (*trusted, *expected))
        unproven = (unproven - {one.call for one in made}) | unproven_calls(made)
    return replace(state, known=known, seen=seen, files=replace(state.files, unproven=unproven))


def _is_named(given: str, words: Sequence[str]) -> bool:
    name = given.rstrip("/").rpartition("/")[2]
    return any(name in text for text in words)
