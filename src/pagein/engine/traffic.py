"""Requests of a provider, placed in the journal of a session: what goes on, what is said again, what parts from it.

Rules of this file
------------------
1. A message is known by its name, which stands for all that was said before it (`chain`). What of a request is known already
   is where its branch goes on.
2. What was sent once is sent again: a request whose last message ended one before is not decided anew, whoever sent it.
3. All of it happens in one turn of the session: two processes on one store decide once.
4. What fails is taken back whole. The request then goes out as its branch was rendered last, with the client's news behind it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import RLock
from typing import TypeVar

from pagein.engine import answered, heads, leasing, offering, rereading
from pagein.engine.calling import Call
from pagein.engine.chain import Transcript, Unit
from pagein.engine.exchanges import Exchange, encoded
from pagein.engine.folds import Fold
from pagein.engine.forecast import Forecast, Forecasts
from pagein.engine.given import Request, body_of
from pagein.engine.heads import NO_HEAD, Fronts, Head, head_of, model_in, profile_in
from pagein.engine.laying import IN_FRONT, Sent
from pagein.engine.listening import Listening
from pagein.engine.opening import Opener
from pagein.engine.outgoing import Bytes, Outgoing
from pagein.engine.places import EXCHANGE, Places
from pagein.engine.pricing import asks_long, economics_for
from pagein.engine.rendering import cut
from pagein.engine.requests import CLOSED_GATE, OPEN_GATE, Gate, Observed, Part, Placed, Prepared, PreparedRequest
from pagein.engine.showing import binds_thinking, carries_thinking
from pagein.engine.state import State
from pagein.engine.talking import Reply, Talk, usage_of
from pagein.errors import HostError
from pagein.model.entries import EntryId, RequestSent
from pagein.model.messages import ToolResult, Usage
from pagein.policy.clients.profile import Profile
from pagein.providers.validity import Api
from pagein.providers.wire.request import Envelope
from pagein.providers.wire.telling import api_of
from pagein.providers.wire.tools import Offer

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Stood:
    """Where a request stands after it was placed, and what was decided for it. call: as it goes out. made: its bytes, where they were looked at."""

    call: Call
    placed: Placed
    shared: int
    entry: EntryId
    prepared: Prepared | None = None
    changes: tuple[Part, ...] = ()
    repaired: bool = False
    made: Bytes | None = None
    terms: leasing.Terms | None = None


class Traffic:
    """The requests of one session. Any number of threads may call it; they take turns.

    begins_anew: whether a request that has nothing in common with those before, but the same tools and instructions, is the same
    conversation after a compaction by the client. So it is where clients name their sessions.
    marks: whether cache marks of ours are added to the client's where an epoch opens. opener: what takes bodies apart, None: one of its own.
    """

    def __init__(
        self, talk: Talk, *, begins_anew: bool = True, marks: bool = True, opener: Opener | None = None
    ) -> None:
        self._talk = talk
        self._begins_anew = begins_anew
        self.largest = 0  # bytes of a request
        self._opener = opener or Opener()
        self._lock = RLock()
        self._places = Places()
        self._heads = Fold(talk.journal, NO_HEAD, heads.step)
        self._settled: Fold[offering.Settled] = Fold(talk.journal, None, offering.step)
        self._newest: dict[tuple[str, str], EntryId] = {}
        self._listening = Listening()
        self._outgoing = Outgoing(talk.journal, self._heads, self._places, marks=marks)
        self._forecasts = Forecasts()
        self._leases = leasing.Leases(talk.journal)
        self._fronts = Fronts(talk.journal)
        self._last: PreparedRequest | None = None

    def asked(self, request: Request, api: Api | None, at: float | None) -> PreparedRequest:
        """The request to send for one of the library, given as its fields or its bytes. Raises as `prepare` does."""
        body = body_of(request)
        self._last = self.prepare(body, self._opener.opened(body, api or api_of(body), self._talk.name), at)
        return self._last

    def prepare(
        self,
        body: bytes,
        envelope: Envelope,
        at: float | None,
        context: str = "",
        offers: Sequence[Offer] | None = None,
        *,
        lasting: float = 0.0,
    ) -> PreparedRequest:
        """The request to send for this one. offers: tools of ours beside the client's, None: the caller sees to recall. lasting: what it
        may spend on keeping the window alive as `observe` says, BIT, so that marks may ask for less than the client's.

        Raises BadInput where no provider would read it, and nothing else.
        """
        with self._lock:
            self.largest = max(self.largest, len(body))
            script = self._listening.read(envelope)
            asked = PreparedRequest(body, script.api, at, self._talk.name, messages=len(script.units), original=body)
            if not script.units:
                return asked
            call: Call | None = None
            try:
                self._talk.model = model_in(envelope) or self._talk.model
                head = head_of(envelope, script, context)
                call = Call(script, envelope, body, head, offers, envelope, body, lasting)
                self._learn()
                call = self._offering(call, self._known(script.units))
                stood = self._placed(call, at)
                asked = replace(asked, offered=call.offered)
                if stood is None:
                    return replace(asked, body=call.body, changed_by_client=("messages",))
                made = stood.made or self._outgoing.rendered(stood.call.body, stood.call.envelope, script, stood.entry)
                return self._told(replace(asked, offered=stood.call.offered), stood, made)
            except Exception as problem:  # noqa: BLE001 -- law 7: what fails in here is ours, and the agent must not pay for it
                failure = f"{type(problem).__name__}: {problem}"
                if call is None:
                    return self._fallen_back(asked, body, script, failure)
                return self._fallen_back(replace(asked, offered=call.offered), call.body, script, failure)

    def answered(self, reply: Reply, prepared: PreparedRequest | None) -> Observed:
        """What the reply to a request of `asked` tells, None: to the last one. Raises HostError where there was none."""
        of = self._last if prepared is None else prepared
        if of is None:
            raise HostError("a reply was observed before any request was prepared")
        return self.observe(of, reply)

    def observe(self, prepared: PreparedRequest, reply: Reply) -> Observed:
        """What a reply tells of its request: journaled on its branch, and compared with what the cache was expected to do.

        reply: the provider's own, whole, as its fields or as an object of its SDK; or the usage alone. Raises nothing.
        """
        failure: str | None = None
        forecast: Forecast | None = None
        usage = keep = None
        with self._lock:
            try:
                usage = usage_of(reply, prepared.api)
                if usage is not None and prepared.entry is not None:
                    self._noted_behind(prepared.entry, answered.KIND, answered.encoded(usage))
                    keep = self._held(prepared.entry, prepared, usage)
            except Exception as problem:  # noqa: BLE001 -- law 7: nothing of ours fails a call that was answered
                failure = f"{type(problem).__name__}: {problem}"
        try:  # requests of this session need not wait for it
            if usage is not None and isinstance(prepared.ticket, Sent):
                forecast = self._forecasts.answered(prepared.ticket, usage)
        except Exception as problem:  # noqa: BLE001 -- as above
            failure = failure or f"{type(problem).__name__}: {problem}"
        if forecast is None:
            return Observed(usage, failure=failure, keep=keep)
        return Observed(usage, forecast.expected, forecast.predicted, forecast.diagnosis, failure, keep)

    def _held(self, entry: EntryId, prepared: PreparedRequest, usage: Usage) -> leasing.Due | None:
        """Journal what the cache holds now; when that is to be kept alive."""
        terms = prepared.terms
        if terms is None:
            return None
        held = leasing.answered(terms, usage, rewritten=prepared.opened is not None)
        self._noted_behind(entry, leasing.KIND, leasing.encoded(held))
        return self._leases.due(held, terms, usage, entry)

    def kept(self, prepared: PreparedRequest, usage: Usage, at: float) -> float | None:
        """A window was kept alive as `observe` asked for, by a request that went out at this time. Returns what it cost, BIT; None
        where that is not known. Raises HostError, StoreError.
        """
        with self._lock:
            if prepared.entry is None or prepared.terms is None:
                return None
            behind = self._places.stand(self._places.owner(prepared.entry))
            model = self._heads.at(prepared.entry).model
            found = self._leases.kept(behind, prepared.terms, model, usage, at)
            if found is None:
                return None
            held, cost = found
            self._noted_behind(prepared.entry, leasing.KIND, leasing.encoded(held))
        return cost

    def spliced(self, prepared: PreparedRequest, exchange: Exchange) -> str | None:
        """The answer to a request, as the client saw it, stands for turns that it did not see: from now on these are sent in its place.

        To be told before the client can answer. Returns why that could not be kept, None where it was; raises nothing.
        """
        with self._lock:
            try:
                if prepared.entry is None:
                    return "the request stands in no session"
                self._noted_behind(prepared.entry, EXCHANGE, encoded(exchange, prepared.api))
            except Exception as problem:  # noqa: BLE001 -- law 7: the caller goes on without
                return f"{type(problem).__name__}: {problem}"
        return None

    def _noted_behind(self, entry: EntryId, kind: str, data: str) -> None:
        """Journal a fact behind a request."""
        with self._talk.turn():
            self._learn()
            self._talk.move(self._places.stand(self._places.owner(entry)))
            self._talk.note(kind, data)
        self._learn()

    def behind(self, prepared: PreparedRequest, work: Callable[[], T]) -> T:
        """Do something with the session where it stands behind a request. Raises HostError where that stands nowhere, StoreError."""
        with self._lock:
            self._stand_behind(prepared.entry)
            found = work()
            self._learn()
        return found

    def _stand_behind(self, entry: EntryId | None) -> None:
        if entry is None:
            raise HostError("the request stands in no session")
        with self._talk.turn():
            self._learn()
            self._talk.move(self._places.stand(self._places.owner(entry)))

    # --- where it stands ---

    def _placed(self, call: Call, at: float | None) -> _Stood | None:
        """Where a request stands from now on, None for one that is passed as it is."""
        talk, units, head = self._talk, call.script.units, call.head
        with talk.turn():
            self._learn()
            known = self._known(units)
            call = self._offering(call, known)
            sent = self._places.sent(units[-1].name) if known == len(units) else None
            if sent is not None:
                return _Stood(call, "retried", known, sent, terms=self._terms(call, sent, sent, at, "retried"))
            if self._listening.is_retold(units, known):
                return None
            placed, parent = self._parent(units, known, head)
            talk.move(parent)
            if placed == "compacted":
                parent = talk.compacted()
            before = self._state(parent)
            self._introduced(profile_in(call.envelope))
            for unit in units[known:]:
                talk.append(unit.message, name=unit.name)
            changes = self._noted(head, parent)
            for kind, data in call.recall.notes:
                talk.note(kind, data)
            repaired = self._state(talk.leaf).draft.ready().repairs != before.draft.repairs
            gate = self._gate(call.script, head, repaired=repaired)
            economics = economics_for(head.model, call.envelope.fields, call.script, at)
            terms = self._terms(call, parent, talk.leaf, at, placed)
            if terms is not None and economics is not None:
                economics = leasing.economics(economics, terms)
            if economics is not None and self._fronts.is_new(parent, head, call.script.api):
                economics = replace(economics, void=True)
            recall = call.recall
            prepared = talk.advance(at, replace(gate, economics=economics, way=recall.way, begins=recall.begins))
            if talk.leaf is None:
                raise HostError("a session stands nowhere after it advanced")
            call = call.begun(self._settled.at(talk.leaf))
            made = None
            if prepared.opened is not None or prepared.previewed:
                made = self._outgoing.rendered(call.body, call.envelope, call.script, talk.leaf)
                self._outgoing.hold(call.envelope, made)
            parts: tuple[Part, ...] = (*changes, "messages") if placed == "forked" else changes
            stood = _Stood(call, placed, known, talk.leaf, prepared, parts, repaired, made, terms)
        self._learn()
        return stood

    def _terms(
        self, call: Call, parent: EntryId | None, here: EntryId | None, at: float | None, placed: Placed
    ) -> leasing.Terms | None:
        """What the cache is asked for with a request, None where that is left to the client."""
        script, model = call.script, call.head.model
        if call.lasting <= 0 or script.api != "anthropic":
            return None
        long = asks_long(call.envelope.fields, script)
        return self._leases.terms(
            parent, here, leasing.Asking(model, long, call.lasting), at, anew=placed in ("new", "compacted")
        )

    def _known(self, units: Sequence[Unit]) -> int:
        """How many messages were said before, behind each other."""
        return next((count for count in range(len(units), 0, -1) if units[count - 1].name in self._places), 0)

    def _parent(self, units: Sequence[Unit], known: int, head: Head) -> tuple[Placed, EntryId | None]:
        if known:
            name = units[known - 1].name
            return ("forked" if self._places.goes_on(name) else "continued"), self._places.stand(name)
        last = self._newest.get(head.conversation) if self._begins_anew else None
        if last is not None:
            return "compacted", self._places.stand(last)
        return "new", self._places.root

    def _noted(self, head: Head, parent: EntryId | None) -> tuple[Part, ...]:
        """What stands in front of the conversation, journaled where it is not what it was; and what of it the client changed."""
        before = self._heads.at(parent)
        if before == head:
            return ()
        self._talk.note(heads.KIND, heads.encoded(head))
        return () if before == NO_HEAD else before.differs_in(head)

    def _offering(self, call: Call, known: int) -> Call:
        """The call as it stands to recall where its first so many messages are known."""
        if call.offers is None:
            return call
        _, parent = self._parent(call.script.units, known, call.head)
        settled = self._settled.at(parent)
        if call.recall.settled == settled is not None:
            return call
        return call.offering(offering.recall_of(call.theirs, call.script, call.offers, settled))

    def _introduced(self, profile: Profile | None) -> None:
        """Which client it is, journaled where nobody said so yet. A request without tools does not tell."""
        if profile is not None and self._talk.client is not profile:
            self._talk.note(rereading.KIND, rereading.noted(profile))

    def _learn(self) -> None:
        fresh = self._talk.journal.newest(len(self._talk.journal) - len(self._places))
        self._places.learn(fresh)
        for entry in fresh:
            if isinstance(entry.body, RequestSent):
                self._newest[self._heads.at(entry.id).conversation] = self._places.owner(entry.id)

    def _gate(self, script: Transcript, head: Head, *, repaired: bool) -> Gate:
        """What may be decided for a request: nothing where it is not valid by itself; no epoch in front of bound thinking, but where
        the user has the word: then that thinking may go (T8, M10). Arguments are never masked where thinking may be bound to them.
        """
        if repaired:
            return CLOSED_GATE
        units = script.units
        answer = next(
            (place for place in range(len(units) - 1, -1, -1) if units[place].message.role == "assistant"), -1
        )
        in_loop = any(isinstance(block, ToolResult) for unit in units[answer + 1 :] for block in unit.message.blocks)
        if not binds_thinking(head, script.api):
            return Gate(thinking=None) if carries_thinking(head, script.api) else OPEN_GATE
        if not in_loop:
            return Gate(arguments=False, thinking="leaves")
        # what stands in an exchange may have thinking anywhere
        last = len(units) - 1 if self._places.exchanges else units[-1].thought
        if last < 0:
            return Gate(arguments=False, thinking="leaves")

        def opens(frontier: int) -> bool:
            draft = self._state(self._talk.leaf).draft
            first = cut(draft.ready().tip, frontier + 1)
            return first is None or first.piece.said - (draft.said - len(units) + 1) > last

        return Gate(opens=opens, arguments=False, thinking="leaves")

    # --- what it is sent as ---

    def _told(self, asked: PreparedRequest, stood: _Stood, made: Bytes) -> PreparedRequest:
        call, prepared, terms, fields = stood.call, stood.prepared, stood.terms, stood.call.envelope.fields
        if terms is not None:
            marked = leasing.applied(terms, call.envelope, made.items)
            if marked.changed:
                fields = marked.fields
                made = replace(made, body=call.envelope.body(marked.items, fields), items=marked.items)
        front = {name: fields[name] for name in IN_FRONT if name in fields}
        return replace(
            asked,
            ticket=Sent(call.script.api, front, made.items, call.script.names, call.head, asked.at or 0.0),
            body=made.body,
            terms=terms,
            entry=stood.entry,
            placed=stood.placed,
            shared=stood.shared,
            epoch=self._state(stood.entry).epoch,
            opened=prepared.opened if prepared else None,
            previewed=prepared.previewed if prepared else (),
            replaced=made.replaced,
            changed_by_client=stood.changes,
            crowded=prepared is not None and prepared.crowded,
            repaired=stood.repaired,
            failure=prepared.failure if prepared else None,
        )

    def _fallen_back(
        self, asked: PreparedRequest, original: bytes, script: Transcript, failure: str
    ) -> PreparedRequest:
        """The request as its branch was rendered last, with what the client said since as it came; else as it came."""
        try:
            made = self._outgoing.rendered_last(original, script, failure)
        except Exception as problem:  # noqa: BLE001 -- the last net of law 7: the original goes out
            return replace(asked, offered=(), failure=f"{failure}; {type(problem).__name__}: {problem}")
        if made is None:
            return replace(asked, body=original, failure=failure)
        return replace(asked, body=made.body, replaced=made.replaced, shared=made.used, failure=made.why)

    def _state(self, entry: EntryId | None) -> State:
        return self._talk.journal.state_at(entry)
