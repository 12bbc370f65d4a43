"""The value that the stages of a provider's request share, and the request to send without a decision (law 7).

Rules of this file
------------------
1. A decision and its caller race for a request: the first to claim it wins (`DecisionClaim`). So a decision after the
   caller gave up is dropped, and a caller waits for a decision that is being stored.
2. The last sent requests are stored apart from the sessions, so that they are available while another thread decides in
   a session, however long that takes.
3. Messages that a request shares with a sent one are sent as before; the rest is sent unchanged. The bytes are checked
   like any other request; if a provider would refuse them, the next best candidate is sent (`fallback`).
4. Memory is bounded: up to `MOST_KEPT` bytes of messages are remembered, the most recently used conversations, at least
   one.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Final, Literal, TypeAlias

from pagein.engine.cache.cache_breakpoints import AS_THE_CLIENT
from pagein.engine.cache.cache_inputs import Part, head_of
from pagein.engine.cache.cache_ttl import TtlTerms
from pagein.engine.cache.prompt_layout import IN_FRONT, SentRequest
from pagein.engine.intake.message_chain import Transcript, alike, transcript
from pagein.engine.intake.recall_tools import RecallOffer
from pagein.engine.prepared_request import OPEN_GATE, Gate, Placed, PreparedRequest, WindowCall
from pagein.engine.send.call import PendingCall
from pagein.engine.send.message_changes import MessageChange
from pagein.engine.send.outgoing_body import (
    LastWindow,
    answer_start,
    body_of_last,
    with_breakpoints,
    with_news,
)
from pagein.engine.send.recall_exchanges import Exchanges
from pagein.engine.send.rendered_bytes import Bytes, check_bytes
from pagein.engine.send.sent_changes import WindowLayout
from pagein.engine.send.splice import Splicer
from pagein.errors import HostError
from pagein.model.entries import EntryId
from pagein.model.journal_notes import BreakpointChoice, ExchangeNote
from pagein.providers.wire.request_body import Envelope
from pagein.providers.wire.tool_offers import ToolOffer

MOST_KEPT: Final = 64 << 20
"""Limit of the remembered requests, in bytes of the clients' messages."""
_BRANCHES: Final = 8
_MOVED: Final = 3
_NO_BYTES: Final = Bytes(b"")
_Whose: TypeAlias = Literal["nobody", "decision", "caller"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCall(WindowCall):
    """A provider's request in the making.

    pending: the client's request, and the recall tools that enter it.
    asked_at: time of the request, in seconds since 1970; None if unknown.
    most: the decisions that the caller allows.
    known: number of leading messages that the journal has.
    placed: relation to earlier requests.
    parent: the entry that the request continues.
    changes: parts of the prompt prefix that the client changed.
    repaired: True if the request had to be repaired.
    is_unread: True if the cache holds nothing of the request.
    marks: True if the conversation may be cached: it has cache breakpoints, or needs none.
    is_new_prefix: True if no earlier request of the branch had its prompt prefix.
    terms: its cache terms; None if left to the client.
    split: the block behind which the short TTL begins; None for one TTL.
    layout: the window beside the client's messages.
    made: its bytes.
    chosen: its cache breakpoints.
    is_pooled: True if its window is of the pooled layout.
    """

    pending: PendingCall
    asked_at: float | None = None
    most: Gate = OPEN_GATE
    known: int = 0
    placed: Placed = "passed"
    parent: EntryId | None = None
    changes: tuple[Part, ...] = ()
    repaired: bool = False
    is_unread: bool = False
    marks: bool = True
    is_new_prefix: bool = False
    terms: TtlTerms | None = None
    split: tuple[int, int] | None = None
    layout: WindowLayout | None = None
    made: Bytes = _NO_BYTES
    chosen: BreakpointChoice = AS_THE_CLIENT
    is_pooled: bool = False

    @property
    def decided(self) -> bool:
        """True if a decision changed the request."""
        return self.opened is not None or bool(self.previewed) or self.is_pooled


def prepared_request(asked: PreparedRequest, call: RequestCall) -> PreparedRequest:
    """Return the request to send, as the stages made it."""
    pending, made = call.pending, call.made
    return replace(
        asked,
        body=made.body,
        sent=_sent_request(pending, made, asked.at),
        terms=call.terms,
        is_unsure=call.gate.economics is not None and call.gate.economics.sure_from > 0,
        entry=call.entry,
        placed=call.placed,
        shared=call.known,
        epoch=call.epoch,
        opened=call.opened,
        previewed=call.previewed,
        replaced=made.replaced,
        changed_by_client=call.changes,
        crowded=call.crowded,
        repaired=call.repaired,
        failure=call.failure,
        gained=call.gained,
        offered=pending.own_tool_names,
        deferred=pending.recall.deferred,
    )


class GivenUp(Exception):
    """Raised when the caller no longer waits for a decision, to prevent its storage."""


class DecisionClaim:
    """The claim on one request, shared by the deciding thread and the waiting thread.

    is_given_up: True when the caller no longer waits. Read it only.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self.is_given_up = False
        self._whose: _Whose = "nobody"

    def take(self) -> None:
        """Claim the request for the decision before storing it. Raises GivenUp if the caller no longer waits."""
        if not self._has("decision"):
            raise GivenUp

    def give_up(self) -> bool:
        """Claim the request for the caller. Returns False if the decision is being stored and will arrive soon."""
        self.is_given_up = self._has("caller")
        return self.is_given_up

    def _has(self, who: _Whose) -> bool:
        with self._lock:
            if self._whose == "nobody":
                self._whose = who
            return self._whose == who


# --- requests without a decision ---


@dataclass(frozen=True, slots=True)
class LastSent:
    """The last sent request of a conversation.

    script: the client's messages.
    changes: differences from them, by the number of the message.
    size: bytes of the request.
    exchanges: records of recall exchanges, by the message before; the session adds to them.
    tools: recall tools of the request.
    deferred: names of its deferred tools.
    chosen: its added cache breakpoints.
    """

    script: Transcript
    changes: Mapping[int, MessageChange]
    size: int
    exchanges: Mapping[EntryId, Sequence[ExchangeNote]] = field(default_factory=dict)
    tools: tuple[ToolOffer, ...] = ()
    chosen: BreakpointChoice = AS_THE_CLIENT
    deferred: tuple[str, ...] = ()


class UndecidedRequests:
    """The last sent requests, by session. Thread-safe."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._lock = Lock()
        self._kept: OrderedDict[str, tuple[LastSent, ...]] = OrderedDict()
        self.size = 0  # bytes of the remembered requests

    def note_rendering(
        self,
        session: str,
        call: PendingCall,
        made: Bytes,
        exchanges: Mapping[EntryId, Sequence[ExchangeNote]],
        chosen: BreakpointChoice,
    ) -> None:
        """Remember a sent request by its rendering and its cache breakpoints.

        exchanges: as in `LastSent`.
        """
        tools = call.recall.tools if call.own_tool_names else ()
        size, deferred = len(call.original), call.recall.deferred
        self.note_sent(session, LastSent(call.script, made.changes, size, exchanges, tools, chosen, deferred))

    def note_sent(self, session: str, last: LastSent) -> None:
        """Remember a sent request."""
        with self._lock:
            there = self._kept.pop(session, ())
            now = (last, *[one for one in there if not _goes_on(last, one)][: _BRANCHES - 1])
            self._kept[session] = now
            self.size += _size(now) - _size(there)
            while self.size > self._most and len(self._kept) > 1:
                self.size -= _size(self._kept.popitem(last=False)[1])
            while self.size > self._most and len(now) > 1:
                self.size -= now[-1].size
                now = self._kept[session] = now[:-1]

    def forget(self, session: str) -> None:
        """Forget the last sent requests of a session, because another body was sent."""
        with self._lock:
            self.size -= _size(self._kept.pop(session, ()))

    def forward(self, session: str, body: bytes, envelope: Envelope, context: str) -> tuple[PendingCall, Bytes] | None:
        """Render a request without a decision. Raises BadInput.

        None if the conversation is unknown.
        """
        last = self._nearest(session, envelope)
        if last is None:
            return None
        script = transcript(envelope.items, envelope.api, last.script)
        count = _shared_messages(script, last.script)
        if not count:
            return None
        call = PendingCall.unchanged(script, envelope, body, head_of(envelope, script, context))
        call = call.with_recall(RecallOffer(tools=last.tools, deferred=last.deferred))
        changes = {place: one for place, one in last.changes.items() if place < count}  # later messages differ
        sent = LastWindow(changes, count, Exchanges().of(script, last.exchanges, call.envelope))
        found = with_news(call, sent, had_tools=bool(last.tools or last.deferred), was_passed=False)
        is_again = count == len(script.units) == len(last.script.units)
        made = _make_bytes(call, found, last.chosen if is_again else AS_THE_CLIENT)
        if made.is_last:
            self.note_sent(session, replace(last, script=script, changes=found.changes, size=len(body)))
        else:
            self.forget(session)
        return call, made

    def _nearest(self, session: str, envelope: Envelope) -> LastSent | None:
        with self._lock:
            there = self._kept.get(session, ())
            if there:
                self._kept.move_to_end(session)
        same = [one for one in there if one.script.api == envelope.api]
        return max(same, key=lambda one: alike(envelope.items, one.script.raws), default=None)


def _size(kept: Sequence[LastSent]) -> int:
    return sum(one.size for one in kept)


def _goes_on(now: LastSent, before: LastSent) -> bool:
    """Return whether a request continues another, apart from moved cache breakpoints at the end."""
    raws, script = before.script.raws, now.script
    shared = script.shared if script.follows is raws else alike(raws, script.raws)
    return shared >= len(raws) - _MOVED


def _shared_messages(script: Transcript, before: Transcript) -> int:
    """Return the number of leading messages that two requests share."""
    count = min(len(script.units), len(before.units))
    while count and script.units[count - 1].name != before.units[count - 1].name:
        count -= 1
    return count


def _make_bytes(call: PendingCall, found: LastWindow, chosen: BreakpointChoice) -> Bytes:
    """Return the checked bytes of a request."""
    envelope, changes = call.envelope, found.with_exchanges
    if not changes and envelope is call.theirs and chosen == AS_THE_CLIENT:
        return Bytes(call.original, envelope.items, envelope.fields, used=found.count)
    splicer = Splicer()
    try:
        items: Sequence[bytes] = splicer.items(call.script, changes)
        start = answer_start(call.script, found.count)
        news = splicer.ends[start - 1] if start else 0, start
        made = Bytes(envelope.body(items), items, envelope.fields, 0, found.count, news=news, changes=found.changes)
        made, _ = with_breakpoints(call, made, chosen)
        check_bytes(call, made, decided=False)
    except HostError as problem:
        return body_of_last(call, found, str(problem))
    return made


def undecided_request(asked: PreparedRequest, session: str, call: PendingCall, made: Bytes) -> PreparedRequest:
    """Return the prepared request for an undecided request."""
    has_tools = made.fields is None or made.fields is call.envelope.fields
    units = call.script.units
    return replace(
        asked,
        body=made.body,
        session=session,
        messages=len(units),
        shared=made.used,
        replaced=made.replaced or sum(len(one.texts) + len(one.arguments) for one in made.changes.values()),
        offered=call.own_tool_names if has_tools else (),
        sent=_sent_request(call, made, asked.at),
        last=units[-1].name,
    )


def _sent_request(call: PendingCall, made: Bytes, at: float | None) -> SentRequest:
    fields = call.envelope.fields if made.fields is None else made.fields
    front = {name: fields[name] for name in IN_FRONT if name in fields}
    return SentRequest(call.script.api, front, made.items, call.script.names, call.head, at or 0.0)
