"""Track which read answers and writes the request shows, as the proof for markers (law 2).

Rules of this file
------------------
1. Reads and writes are journaled when they happen, and then found in the window by their text: an answer in the result
   of a call, written text in the arguments of a call. Until the next request every event counts as visible; from then
   on only found events count, because the request holds nothing else.
2. There are two states. *Known* is the basis of the policy: it ends at a compaction, and a refresh reduces it. *Seen*
   is everything that the window proves, in the order of its messages: it includes texts that a compaction kept.
3. When results are evicted, the states of their files are folded anew without them. Answers without proof are listed
   (`unproven`), and must be evicted too or be shown in full before the next request.
4. A text that could belong to several calls belongs to none: that only costs a saving.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final, Generic, TypeVar

from pagein.engine.log import read_notes
from pagein.engine.log.read_notes import ReadNote, trace_of
from pagein.model.arguments import texts_in
from pagein.model.entries import Body, CompactionEntry, EpochEntry, MessageEntry, NoteEntry, PreviewEntry, RequestSent
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.read_events import FileRead, FileRefresh, FileWrite
from pagein.model.shared_map import SharedMap
from pagein.policy.reads.knowledge import NOTHING, Knowledge, proven
from pagein.policy.reads.knowledge import step as with_event

_MOST_LATE: Final = 256
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class LocatedEvent:
    """A file event with its place in the window.

    told: the journal record.
    call: the call whose result or arguments hold the text; "" for a refresh.
    turn: number of the message with the call, from 1.
    born: the first model call that saw it.
    trusted: True if markers may depend on it.
    """

    told: ReadNote
    call: str
    turn: int
    born: int
    trusted: bool = True

    @property
    def stands_for_more(self) -> bool:
        """True for a marker or a diff, which needs proof by further text."""
        event = self.told.event
        return isinstance(event, FileRead) and event.mode not in ("full", "baseline_fallback")


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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SharedRow(Generic[_T]):
    """A linked list with a shared beginning.

    last: the last item.
    before: the items before; None for the first.
    """

    last: _T
    before: "SharedRow[_T] | None"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The proof at one point of a branch; see the rules above.

    known: basis of the policy, by file.
    seen: knowledge that the window proves, by file.
    unproven: calls whose answers the window does not prove.
    said: messages so far.
    turn: number of the last assistant message.
    calls: number of assistant messages.
    chains: events in the window, by path.
    path_of: path, by call.
    unsaid: events not found in the window yet.
    late: events that a request was sent without, the newest ones.
    open_calls, answered: calls of the last assistant message without and with a result.
    """

    known: Knowledge = NOTHING
    seen: Knowledge = NOTHING
    unproven: frozenset[str] = frozenset()
    said: int = 0
    turn: int = 0
    calls: int = 0
    chains: SharedMap[SharedRow[LocatedEvent]] = field(default_factory=SharedMap)
    path_of: SharedMap[str] = field(default_factory=SharedMap)
    unsaid: SharedRow[PendingEvent] | None = None
    late: tuple[PendingEvent, ...] = ()
    open_calls: tuple[ToolCall, ...] = ()
    answered: tuple[ToolCall, ...] = ()

    def events_in_window(self) -> Iterator[LocatedEvent]:
        """Yield the events in the window, path by path, in window order."""
        for chain in self.chains.values():
            yield from (one for one in _list_row(chain) if one.call)

    def of_call(self, call: str) -> LocatedEvent | None:
        """Return the event in the result or the arguments of a call; None if absent."""
        path = self.path_of.get(call)
        chain = None if path is None else self.chains.get(path)
        return next((one for one in _list_row(chain) if one.call == call), None)

    def trusted_pending(self) -> Iterator[ReadNote]:
        """Yield the trusted events that are not found in the window yet, each with later refreshes."""
        for one in _list_row(self.unsaid):
            if not one.void:
                yield one.told
                yield from one.cuts

    def answers_unsaid(self) -> Iterator[ReadNote]:
        """Yield answers not found in the window yet.

        They count as visible, whatever was refreshed since.
        """
        return (one.told for one in _list_row(self.unsaid))

    def pending_events(self) -> list[PendingEvent]:
        """Return the events that may still be found in the window, oldest first."""
        return [*self.late, *_list_row(self.unsaid)]

    def calls_needed_by_young(self, last: int) -> frozenset[str]:
        """Return the calls on which a marker first seen after call `last` may depend."""
        held: set[str] = set()
        for chain in self.chains.values():
            everything = _list_row(chain)
            if any(one.stands_for_more and one.born > last for one in everything):
                held.update(one.call for one in everything if one.call)
        return frozenset(held)

    def calls_depending_on(self, leaving: Iterable[str]) -> frozenset[str]:
        """Return further calls whose answers lose their proof with the eviction of the given calls."""
        gone = frozenset(leaving)
        paths = {path for call in gone if (path := self.path_of.get(call)) is not None}
        rest = (_without_calls(_list_row(self.chains[path]), gone) for path in sorted(paths))
        return frozenset(call for events in rest for call in _fold_events(events)[1]) | (self.unproven - gone)


START: Final = Evidence()


def step(state: Evidence, body: Body) -> Evidence:
    """Return the evidence after a further entry.

    O(1), except for evictions, which cost as much as they change.
    """
    match body:
        case NoteEntry():
            told = read_notes.read_note_of(body)
            return state if told is None else _add_event(state, told)
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
        path = event.path
        link = SharedRow(LocatedEvent(told, "", state.turn, state.calls), state.chains.get(path))
        state = _void_pending(state, path) if event.lines is None else _with_cut(state, told)
        return replace(state, chains=state.chains.put(path, link))
    state = replace(state, unsaid=SharedRow(PendingEvent(told), state.unsaid))
    if isinstance(event, FileWrite):  # a client may report it after its messages
        for call in state.answered:
            state = _found_in_arguments(state, call)
    return state


def _void_pending(state: Evidence, path: str | None = None) -> Evidence:
    """Distrust pending events of a path; None means every path."""
    return _map_pending(state, lambda one: replace(one, void=True) if path in (None, one.told.event.path) else one)


def _with_cut(state: Evidence, cut: ReadNote) -> Evidence:
    """Distrust the refreshed lines of pending events."""
    path = cut.event.path
    return _map_pending(state, lambda one: replace(one, cuts=(*one.cuts, cut)) if one.told.event.path == path else one)


def _map_pending(state: Evidence, change: Callable[[PendingEvent], PendingEvent]) -> Evidence:
    unsaid = _link_row(map(change, _list_row(state.unsaid)))
    return replace(state, unsaid=unsaid, late=tuple(map(change, state.late)))


def _without_the_unfound(state: Evidence) -> Evidence:
    """Set aside events that were not found in the window, because the request does not hold them."""
    unsaid = _list_row(state.unsaid)
    if not unsaid:
        return state
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
    """Return the read that this result answers. Compares texts; if several match, the path in the arguments decides."""
    trace = trace_of(result.text)
    same = [one for one in waiting if isinstance(one.told.event, FileRead) and one.told.trace == trace]
    same = [one for one in same if not one.late] or same
    if len({one.told.event.path for one in same}) > 1:
        words = tuple(texts_in(call.arguments))
        same = [one for one in same if _is_named(one.told.given, words)]
    return same[0] if len({one.told.event.path for one in same}) == 1 else None


def _found_in_arguments(state: Evidence, call: ToolCall) -> Evidence:
    """Place the write or edit of a call, if the arguments hold the text. An ambiguous match is not placed."""
    writes = [one for one in state.pending_events() if isinstance(one.told.event, FileWrite)]
    if not writes or call.id in state.path_of:
        return state
    words = tuple(texts_in(call.arguments))
    traces = {trace_of(text) for text in words}
    made = [one for one in writes if one.told.trace in traces and _is_named(one.told.given, words)]
    return _place_event(state, made[0], call.id) if len(made) == 1 else state


def _place_event(state: Evidence, found: PendingEvent, call: str) -> Evidence:
    if call in state.path_of:  # a call id used twice: a claim on it would be ambiguous
        return state
    told = found.told
    path = told.event.path
    unsaid = _list_row(state.unsaid)
    in_order = next((one for one in unsaid if one.told.event.path == path), None) is found
    placed = LocatedEvent(told, call, state.turn, state.calls, trusted=not found.void)
    is_proven = not isinstance(told.event, FileRead) or proven(state.seen, told.event)
    chain = SharedRow(placed, state.chains.get(path))
    for cut in found.cuts:  # read before the refresh but in the window after it: the refresh still applies
        chain = SharedRow(LocatedEvent(cut, "", state.turn, state.calls), chain)
    state = replace(
        state,
        seen=with_event(state.seen, told.event),
        unproven=state.unproven if is_proven else state.unproven | {call},
        chains=state.chains.put(path, chain),
        path_of=state.path_of.put(call, path),
        unsaid=_link_row(one for one in unsaid if one is not found),
        late=tuple(one for one in state.late if one is not found),
    )
    return state if in_order and is_proven and placed.trusted else _refold_paths(state, [path])


# --- evictions ---


def _remove_results(state: Evidence, gone: frozenset[str]) -> Evidence:
    if not gone:
        return state
    paths = {path for call in gone if (path := state.path_of.get(call)) is not None}
    for path in paths:
        state = _with_chain(state, path, _without_calls(_list_row(state.chains[path]), gone))
    # events not found yet may be affected
    return _refold_paths(_without_the_unfound(state), paths)


def _apply_compaction(state: Evidence, kept: int) -> Evidence:
    """Reset `known`. Texts that the client kept are still seen."""
    first = state.said - kept
    paths = list(state.chains)
    for path in paths:
        stays = [
            replace(one, trusted=False)
            for one in _list_row(state.chains[path])
            if one.turn > first and not isinstance(one.told.event, FileRefresh)
        ]
        state = _with_chain(state, path, stays)
    return _refold_paths(replace(_void_pending(_without_the_unfound(state)), known=NOTHING), paths)


def _without_calls(events: Iterable[LocatedEvent], gone: frozenset[str]) -> list[LocatedEvent]:
    """Return the events without the texts of these calls. A change of a file remains an event."""
    left: list[LocatedEvent] = []
    for one in events:
        event = one.told.event
        if one.call not in gone:
            left.append(one)
        elif isinstance(event, FileWrite):
            left.append(replace(one, call="", told=replace(one.told, event=event.unseen)))
    return left


def _with_chain(state: Evidence, path: str, events: Sequence[LocatedEvent]) -> Evidence:
    gone = {one.call for one in _list_row(state.chains.get(path))} - {one.call for one in events}
    paths = state.path_of
    for call in gone:
        paths = paths.without(call)
    chain = _link_row(events)
    chains = state.chains.without(path) if chain is None else state.chains.put(path, chain)
    return replace(state, chains=chains, path_of=paths, unproven=state.unproven - gone)


def _refold_paths(state: Evidence, paths: Iterable[str]) -> Evidence:
    """Fold known and seen of some paths anew from the events in the window."""
    known, seen, unproven = state.known, state.seen, state.unproven
    for path in sorted(set(paths)):
        events = _list_row(state.chains.get(path))
        visible, wrong = _fold_events(events)
        trusted = [one.told.event for one in events if one.trusted]
        expected = [one.event for one in state.trusted_pending() if one.event.path == path]
        seen = _with_path(seen, path, visible)
        known = _with_path(known, path, reduce(with_event, (*trusted, *expected), NOTHING))
        unproven = (unproven - {one.call for one in events}) | wrong
    return replace(state, known=known, seen=seen, unproven=unproven)


def _fold_events(events: Iterable[LocatedEvent]) -> tuple[Knowledge, frozenset[str]]:
    """Return the knowledge that a list of events proves, and the calls with unproven answers."""
    seen, wrong = NOTHING, set[str]()
    for one in events:
        event = one.told.event
        if isinstance(event, FileRefresh):
            continue  # a refresh removes no text from the window
        if isinstance(event, FileRead) and not proven(seen, event):
            wrong.add(one.call)
        seen = with_event(seen, event)
    return seen, frozenset(wrong)


def _with_path(state: Knowledge, path: str, folded: Knowledge) -> Knowledge:
    known = folded.paths.get(path)
    paths = state.paths.without(path) if known is None else state.paths.put(path, known)
    return Knowledge(paths, max(state.seq, folded.seq))


def _list_row(chain: SharedRow[_T] | None) -> list[_T]:
    found: list[_T] = []
    while chain is not None:
        found.append(chain.last)
        chain = chain.before
    found.reverse()
    return found


def _link_row(things: Iterable[_T]) -> SharedRow[_T] | None:
    chain: SharedRow[_T] | None = None
    for one in things:
        chain = SharedRow(one, chain)
    return chain


def _is_named(given: str, words: Sequence[str]) -> bool:
    name = given.rstrip("/").rpartition("/")[2]
    return any(name in text for text in words)
