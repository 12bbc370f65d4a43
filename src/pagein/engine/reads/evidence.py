"""What of the reads stands in the request: the ground on which markers rest (law 2).

Rules of this file
------------------
1. Reads and writes are journaled when they happen, and found again in the window by the text that was said: an answer in the
   result of a call, written text in the arguments of one. Until the next request what happened counts as visible; from
   then on only what was found counts, for nothing else is in the request.
2. Two states are kept. *Known* is what the policy may rest on: it ends at a compaction, and a refresh takes from it. *Seen*
   is what the window bears out, in the order of its messages: the texts that a compaction kept are in it.
3. When results leave, what rested on them is folded anew without them. What is not proven any more is named (`unproven`),
   and must leave too or be shown in full before the next request.
4. Where it cannot be told which call a text belongs to, it belongs to none: that costs a saving.
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
    """Something that happened to a file, where its text stands: in the result or the arguments of `call` ("": nowhere, a refresh).

    turn: the message that made the call, counted from 1. born: the model call that saw it first. trusted: markers may rest on it.
    """

    told: ReadNote
    call: str
    turn: int
    born: int
    trusted: bool = True

    @property
    def stands_for_more(self) -> bool:
        """Whether it is a marker or a diff, which other text must bear out."""
        event = self.told.event
        return isinstance(event, FileRead) and event.mode not in ("full", "baseline_fallback")


@dataclass(frozen=True, slots=True)
class PendingEvent:
    """Something that happened and was not found in the window yet.

    late: a request left without it. void: not to be trusted once it is found. cuts: refreshes of ranges that came after it: all
    but their lines may be trusted.
    """

    told: ReadNote
    late: bool = False
    void: bool = False
    cuts: tuple[ReadNote, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SharedRow(Generic[_T]):
    """One of a row of things, behind those before it. Rows share their beginnings."""

    last: _T
    before: "SharedRow[_T] | None"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The ground at one point of a branch; see the rules above.

    unproven: calls whose answers the window does not bear out. said: messages so far; turn: the last one of the model's, calls:
    how many of them there were. chains: by path, what stands in the window, and path_of: by call. unsaid: what was not found there
    yet; late: what a request left without, as far as it is remembered.
    open_calls, answered: the calls of the model's last message, without a result and with one.
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
        """All that stands in the window, path by path, in the order of the window."""
        for chain in self.chains.values():
            yield from (one for one in _list_row(chain) if one.call)

    def of_call(self, call: str) -> LocatedEvent | None:
        """What stands in the result or the arguments of a call, None for nothing known."""
        path = self.path_of.get(call)
        chain = None if path is None else self.chains.get(path)
        return next((one for one in _list_row(chain) if one.call == call), None)

    def trusted_pending(self) -> Iterator[ReadNote]:
        """What may be rested on although it was not found in the window yet, each with the refreshes that came after it."""
        for one in _list_row(self.unsaid):
            if not one.void:
                yield one.told
                yield from one.cuts

    def answers_unsaid(self) -> Iterator[ReadNote]:
        """What the model was answered and is not found in the window yet: it counts as visible, whatever was asked to be fresh since."""
        return (one.told for one in _list_row(self.unsaid))

    def pending_events(self) -> list[PendingEvent]:
        """Everything that may be found in the window yet, oldest first."""
        return [*self.late, *_list_row(self.unsaid)]

    def calls_needed_by_young(self, last: int) -> frozenset[str]:
        """Calls that must stay as they are, because a marker that was born behind call `last` may rest on them."""
        held: set[str] = set()
        for chain in self.chains.values():
            everything = _list_row(chain)
            if any(one.stands_for_more and one.born > last for one in everything):
                held.update(one.call for one in everything if one.call)
        return frozenset(held)

    def calls_depending_on(self, leaving: Iterable[str]) -> frozenset[str]:
        """Calls whose answers are not proven once the results of these have left; none of these themselves."""
        gone = frozenset(leaving)
        paths = {path for call in gone if (path := self.path_of.get(call)) is not None}
        rest = (_without_calls(_list_row(self.chains[path]), gone) for path in sorted(paths))
        return frozenset(call for events in rest for call in _fold_events(events)[1]) | (self.unproven - gone)


START: Final = Evidence()


def step(state: Evidence, body: Body) -> Evidence:
    """The ground after one more entry. O(1), but for entries that take something out of the window: they cost what they touch."""
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


# --- what happens to files ---


def _add_event(state: Evidence, told: ReadNote) -> Evidence:
    event = told.event
    state = replace(state, known=with_event(state.known, event))
    if isinstance(event, FileRefresh):
        path = event.path
        link = SharedRow(LocatedEvent(told, "", state.turn, state.calls), state.chains.get(path))
        state = _void_pending(state, path) if event.lines is None else _with_cut(state, told)
        return replace(state, chains=state.chains.put(path, link))
    state = replace(state, unsaid=SharedRow(PendingEvent(told), state.unsaid))
    if isinstance(event, FileWrite):  # a host may tell of it when all has been said
        for call in state.answered:
            state = _found_in_arguments(state, call)
    return state


def _void_pending(state: Evidence, path: str | None = None) -> Evidence:
    """What waits, of this path or of all, is not to be trusted once it is found."""
    return _map_pending(state, lambda one: replace(one, void=True) if path in (None, one.told.event.path) else one)


def _with_cut(state: Evidence, cut: ReadNote) -> Evidence:
    """Of what waits, these lines are not to be trusted once it is found."""
    path = cut.event.path
    return _map_pending(state, lambda one: replace(one, cuts=(*one.cuts, cut)) if one.told.event.path == path else one)


def _map_pending(state: Evidence, change: Callable[[PendingEvent], PendingEvent]) -> Evidence:
    unsaid = _link_row(map(change, _list_row(state.unsaid)))
    return replace(state, unsaid=unsaid, late=tuple(map(change, state.late)))


def _without_the_unfound(state: Evidence) -> Evidence:
    """What was not found in the window is not in the request: it does not count until it is found."""
    unsaid = _list_row(state.unsaid)
    if not unsaid:
        return state
    late = (*state.late, *(replace(one, late=True) for one in unsaid))[-_MOST_LATE:]
    return _refold_paths(replace(state, unsaid=None, late=late), (one.told.event.path for one in unsaid))


# --- what is said ---


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
    # a result without a waiting call does not stand in the request as a result (see `repair`)
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
    """The read that this result is the answer to. Told by the text; of several, by the path in the arguments."""
    trace = trace_of(result.text)
    same = [one for one in waiting if isinstance(one.told.event, FileRead) and one.told.trace == trace]
    same = [one for one in same if not one.late] or same
    if len({one.told.event.path for one in same}) > 1:
        words = tuple(texts_in(call.arguments))
        same = [one for one in same if _is_named(one.told.given, words)]
    return same[0] if len({one.told.event.path for one in same}) == 1 else None


def _found_in_arguments(state: Evidence, call: ToolCall) -> Evidence:
    """The write or edit that this call made, if its text stands in the arguments. Of several by one call none is sure."""
    writes = [one for one in state.pending_events() if isinstance(one.told.event, FileWrite)]
    if not writes or call.id in state.path_of:
        return state
    words = tuple(texts_in(call.arguments))
    traces = {trace_of(text) for text in words}
    made = [one for one in writes if one.told.trace in traces and _is_named(one.told.given, words)]
    return _place_event(state, made[0], call.id) if len(made) == 1 else state


def _place_event(state: Evidence, found: PendingEvent, call: str) -> Evidence:
    if call in state.path_of:  # a name used twice: which of the two a claim would mean cannot be told
        return state
    told = found.told
    path = told.event.path
    unsaid = _list_row(state.unsaid)
    in_order = next((one for one in unsaid if one.told.event.path == path), None) is found
    placed = LocatedEvent(told, call, state.turn, state.calls, trusted=not found.void)
    is_proven = not isinstance(told.event, FileRead) or proven(state.seen, told.event)
    chain = SharedRow(placed, state.chains.get(path))
    for cut in found.cuts:  # said behind the refresh, though it was read before: the refresh still holds for it
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


# --- what leaves ---


def _remove_results(state: Evidence, gone: frozenset[str]) -> Evidence:
    if not gone:
        return state
    paths = {path for call in gone if (path := state.path_of.get(call)) is not None}
    for path in paths:
        state = _with_chain(state, path, _without_calls(_list_row(state.chains[path]), gone))
    # what was not found yet cannot be shown to be untouched
    return _refold_paths(_without_the_unfound(state), paths)


def _apply_compaction(state: Evidence, kept: int) -> Evidence:
    """A strict barrier for what is known. What the host kept is still seen."""
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
    """What is left without the texts of these calls. That a file was changed by one of them stays."""
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
    """Known and seen of these paths, folded anew from what stands in the window."""
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
    """What these texts bear out, in their order, and the calls whose answers are not borne out."""
    seen, wrong = NOTHING, set[str]()
    for one in events:
        event = one.told.event
        if isinstance(event, FileRefresh):
            continue  # asking for a fresh read takes no text away
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
