"""Track reads by a client's own tools: the shown texts, and shorter texts in place of repeated reads.

Rules of this file
------------------
1. Everything follows from the entries of the branch (law 6): the client profile is noted, and the entry of a stand-in
   has its text.
2. A read counts once a request holds its result, or the model went on after it; until then the result waits, because
   another text may still enter in its place.
3. Only a result that no request has held may be replaced (law 4), and only after it was stored (law 1).
4. Nothing can rest on the results of a client that prove nothing (`Profile.proves`). Of such a client only the calls
   without a result yet are remembered, because results are read with their calls.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from pagein.engine.log.journal import Fold, Journal
from pagein.engine.log.pageout import Pager, PreviewCandidate, StandIn
from pagein.engine.log.state import Rules, State
from pagein.errors import NotRecallable, StoreError
from pagein.model.entries import (
    Body,
    CompactionEntry,
    EntryId,
    EpochEntry,
    InsertEntry,
    MessageEntry,
    NoteEntry,
    PagedOut,
    PreviewEntry,
    RequestSent,
)
from pagein.model.journal_notes import ClientNote
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.shared_collections import SharedMap
from pagein.policy.clients.client_reads import START, ClientReads, restore_results, without
from pagein.policy.clients.client_rereads import RereadRules, answer, lost_base, with_message
from pagein.policy.clients.echo_notice import echo_hit, facts_in
from pagein.policy.clients.profile import Profile
from pagein.policy.clients.profiles import OTHER, PROFILES
from pagein.policy.privacy.exclusions import EXCLUDED
from pagein.policy.reads.echo_forms import may_echo
from pagein.policy.reads.echo_guard import Facts, OwnTexts

ECHO: Final = "echo"
"""Kind of the inserted text that reports an echo."""


@dataclass(frozen=True, slots=True)
class KnownMarkers:
    """Markers reduced to their facts. Adding a marker costs one step, however many there are."""

    _known: SharedMap[Facts] = field(default_factory=SharedMap)

    def __contains__(self, facts: object) -> bool:
        return repr(facts) in self._known

    def with_stubs(self, paged: Iterable[PagedOut]) -> "KnownMarkers":
        """Add the markers in the given stubs."""
        known = self._known
        for facts in facts_in(one.stub for one in paged):
            known = known.put(repr(facts), facts)
        return self if known is self._known else KnownMarkers(known)


@dataclass(frozen=True, slots=True)
class ClientReadState:
    """Texts shown by the client's reads at one point of a branch.

    profile: client profile; None for an unknown client, whose reads are not tracked.
    reads: texts shown by reads.
    waiting: messages since the last assistant message that no request has held.
    stands: texts in place of their results, by call.
    served: markers in place of results so far.
    """

    profile: Profile | None = None
    reads: ClientReads = START
    waiting: tuple[Message, ...] = ()
    stands: Mapping[str, str] = field(default_factory=dict)
    served: KnownMarkers = KnownMarkers()

    def settle(self, excluded: tuple[str, ...] = EXCLUDED) -> "ClientReadState":
        """Return the state once a request holds the waiting messages."""
        if self.profile is None or not self.waiting:
            return self
        reads = self.reads
        for message in self.waiting:
            reads = _with_message(reads, self.profile, excluded, message, self.stands)
        return replace(self, reads=reads, waiting=(), stands={})


NOBODY: Final = ClientReadState()


_TAKES: Final = (ClientNote, PreviewEntry, EpochEntry, MessageEntry, RequestSent, CompactionEntry)
Settle: TypeAlias = Callable[[ClientReadState], ClientReadState]


def step(
    seen: ClientReadState, body: Body, excluded: tuple[str, ...] = EXCLUDED, settle: Settle | None = None
) -> ClientReadState:
    """Return the state after a further entry.

    settle: `ClientReadState.settle`, or a version with a memory.
    """
    settle = settle or (lambda one: one.settle(excluded))
    if isinstance(body, NoteEntry):
        return _set_profile(seen, body.note) if isinstance(body.note, ClientNote) else seen
    if isinstance(body, PreviewEntry | EpochEntry):
        served = seen.served.with_stubs(body.paged)
        seen = seen if served is seen.served else replace(seen, served=served)
    if seen.profile is None:
        return seen
    match body:
        case MessageEntry():
            return _add_message(seen, body.message, excluded, settle)
        case PreviewEntry(paged=paged):
            seen = replace(seen, stands={**seen.stands, **{one.call_id: one.stub for one in paged}})
        case EpochEntry():
            stands = {**seen.stands, **{one.call_id: one.stub for one in body.paged}}
            reads = without(seen.reads, body.calls)
            seen = replace(seen, stands=stands, reads=restore_results(reads, (one.call_id for one in body.restored)))
        case RequestSent():
            seen = settle(seen)
        case CompactionEntry():
            seen = ClientReadState(seen.profile, served=seen.served)
        case _:
            pass
    return seen


def _add_message(seen: ClientReadState, message: Message, excluded: tuple[str, ...], settle: Settle) -> ClientReadState:
    if message.role != "assistant":
        return replace(seen, waiting=(*seen.waiting, message))
    here = settle(seen)
    if here.profile is None:
        return here
    return replace(here, reads=_with_message(here.reads, here.profile, excluded, message))


def _with_message(
    reads: ClientReads,
    profile: Profile,
    excluded: tuple[str, ...],
    message: Message,
    stands: Mapping[str, str] | None = None,
) -> ClientReads:
    """Return the reads after another message (see `with_message`); only its calls where no result proves anything."""
    if profile.proves:
        return with_message(reads, RereadRules(profile, excluded=excluded), message, stands)
    calls = reads.calls
    for block in message.blocks:
        if isinstance(block, ToolCall) and message.role == "assistant":
            calls = calls.put(block.id, block)
        elif isinstance(block, ToolResult) and message.role != "assistant":
            calls = calls.without(block.call_id)
    return reads if calls is reads.calls else replace(reads, calls=calls)


def _set_profile(seen: ClientReadState, note: ClientNote) -> ClientReadState:
    profile = PROFILES.get(note.profile, OTHER)
    return seen if profile is seen.profile else ClientReadState(profile, served=seen.served)


def reread_stand_ins(
    state: State, seen: ClientReadState, rules: Rules, recall: Callable[[PagedOut], str | None]
) -> tuple[list[StandIn], ClientReads]:
    """Return the texts to enter in place of repeated reads, in order of the results, and the reads with them.

    recall: returns an evicted text; None if unavailable.
    """
    found: list[StandIn] = []
    if seen.profile is None:
        return found, seen.reads
    reads, reader = seen.reads, RereadRules(seen.profile, excluded=rules.excluded)
    places = _places(state)
    for message in seen.waiting:
        for block in message.blocks:
            one = replace(message, blocks=(block,))
            made = (
                _make_stand_in(state, reads, reader, block, places, recall) if isinstance(block, ToolResult) else None
            )
            if made is None:
                reads = with_message(reads, reader, one)
            else:
                found.append(made)
                reads = with_message(reads, reader, one, {made.entering.result.call_id: made.text})
    return found, reads


def _make_stand_in(
    state: State,
    reads: ClientReads,
    reader: RereadRules,
    result: ToolResult,
    places: Mapping[str, PreviewCandidate],
    recall: Callable[[PagedOut], str | None],
) -> StandIn | None:
    entering = places.get(result.call_id)
    if entering is None or entering.result.text != result.text or result.images:
        return None
    shorter = answer(reads, reader, result) if entering.tokens else None
    if shorter is not None:
        return StandIn(entering, shorter.text)
    base = lost_base(reads, reader, result)
    away = None if base is None else state.hand.away.get(base)
    text = None if away is None else recall(away)
    return None if away is None or text is None else StandIn(entering, text, away.stub)


def _places(state: State) -> dict[str, PreviewCandidate]:
    """Return the results that no request has held, by call; repeated call ids are omitted."""
    found: dict[str, PreviewCandidate] = {}
    twice: set[str] = set()
    for result in _results(state):
        name = result.result.call_id
        twice.update({name} & found.keys())
        found[name] = result
    return {name: one for name, one in found.items() if name not in twice}


def _results(state: State) -> Iterator[PreviewCandidate]:
    for place, piece in state.draft.news:
        counts = iter(piece.tokens)
        for index, block in enumerate(piece.message.blocks):
            if isinstance(block, ToolResult):
                yield PreviewCandidate(block, block.name, next(counts, 0), (place, index))


class ClientRereads:
    """The client's reads of a session.

    states: the state at each entry.
    """

    def __init__(self, journal: Journal[State], rules: Rules, pager: Pager, count: Callable[[str], float]) -> None:
        self.states: Fold[ClientReadState] = Fold(
            journal, NOBODY, lambda seen, body: step(seen, body, rules.excluded, self._settle), "rereads", takes=_TAKES
        )
        self._last: tuple[ClientReadState, ClientReadState] | None = None
        self._journal = journal
        self._rules = rules
        self._pager = pager
        self._count = count

    def state_at_request(self, leaf: EntryId | None) -> ClientReads:
        """Return the client's reads once a request holds the messages up to this entry."""
        return self._settle(self.states[leaf]).reads

    def _settle(self, seen: ClientReadState) -> ClientReadState:
        """Return the settled state, remembered because it is needed before and after a request."""
        last = self._last
        if last is None or last[0] is not seen:
            last = self._last = (seen, seen.settle(self._rules.excluded))
        return last[1]

    def stand_ins(self, leaf: EntryId | None) -> list[StandIn]:
        """Return the texts to enter in place of repeated reads since the last request (see `reread_stand_ins`)."""
        seen = self.states[leaf]
        if seen.profile is None or not seen.waiting:
            return []
        found, reads = reread_stand_ins(self._journal.states[leaf], seen, self._rules, self._recall_text)
        if not found and not seen.stands:  # then the request will hold the results as they came
            self._last = seen, replace(seen, reads=reads, waiting=(), stands={})
        return found

    def notices(self, leaf: EntryId | None, whole: Callable[[Message], Message]) -> Iterator[InsertEntry]:
        """Yield notices to the model about calls since the last request that wrote pagein's text into a file (law 8).

        whole: returns a message with its redacted texts.
        """
        seen = self.states[leaf]
        if seen.profile is None:
            return
        results = [block for one in seen.waiting for block in one.blocks if isinstance(block, ToolResult)]
        calls = [
            (asked, one)
            for one in results
            if (call := seen.reads.calls.get(one.call_id)) is not None
            for asked in ((call,) if call.withheld is None else whole(Message("assistant", (call,))).blocks)
            if isinstance(asked, ToolCall)
        ]
        if not any(may_echo(call.arguments) for call, _ in calls):
            return
        owned = OwnTexts(self._pager.is_made_here, seen.served)
        for call, result in calls:
            found = echo_hit(seen.profile, call, result, owned)
            if found is not None:
                notice = found.notice()
                yield InsertEntry(ECHO, notice, math.ceil(self._count(notice)), (call.id,))

    def _recall_text(self, away: PagedOut) -> str | None:
        try:
            return self._pager.recall(away.object_id)
        except (NotRecallable, StoreError):  # then the client's own marker stays, as without pagein
            return None
