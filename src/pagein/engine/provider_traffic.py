"""Requests of a provider in a session: what goes out for them, what their answers tell, and what happens behind them.

Rules of this file
------------------
1. Where a request stands, and what becomes of it, is decided in one turn (`placing`).
2. What fails is taken back whole. The request then goes out as its branch was rendered last, with the client's news behind it; else as
   it came, without thinking that is no longer valid (law 7).
3. Requests of a session take turns.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from threading import RLock
from typing import TypeVar

from pagein.engine.branch_resolution import NOWHERE, BranchResolver, ResolvedRequest
from pagein.engine.cache import cache_ttl
from pagein.engine.cache.cache_breakpoints import AS_THE_CLIENT, WITH_MARKS, BreakpointChoice, BreakpointSettings
from pagein.engine.cache.cache_forecast import Forecast, Forecasts
from pagein.engine.cache.prompt_layout import IN_FRONT, SentRequest
from pagein.engine.cache.prompt_prefix import head_of, model_in
from pagein.engine.conversation import Reply, Talk, usage_of
from pagein.engine.engine_resources import EngineResources
from pagein.engine.intake.message_chain import transcript
from pagein.engine.intake.request_fields import Request, body_of
from pagein.engine.log import reply_notes
from pagein.engine.log.backlog import Fact, UndecidedRequest
from pagein.engine.log.message_index import EXCHANGE
from pagein.engine.log.state import State
from pagein.engine.prepared_request import Observation, PreparedRequest
from pagein.engine.send import passthrough
from pagein.engine.send.call import PendingCall
from pagein.engine.send.claim import DecisionClaim, GivenUp
from pagein.engine.send.outgoing_body import Bytes, thoughtless
from pagein.engine.send.recall_exchanges import RecallExchange, encode_exchange
from pagein.engine.send.undecided_requests import LastSent
from pagein.errors import HostError, StoreError
from pagein.model.entries import EntryId
from pagein.model.messages import Usage
from pagein.providers.validity import Api
from pagein.providers.wire.format_detection import api_of
from pagein.providers.wire.request_body import Envelope
from pagein.providers.wire.tool_offers import ToolOffer

T = TypeVar("T")


class Traffic:
    """The requests of one session. Any number of threads may call it; they take turns.

    begins_anew: whether a request that has nothing in common with those before, but the same tools and instructions, is the same
    conversation after a compaction by the client. So it is where clients name their sessions.
    marks: what is set for cache marks of ours beside the client's. shared: what it has in common with other sessions, None: nothing.
    """

    def __init__(
        self,
        talk: Talk,
        *,
        begins_anew: bool = True,
        marks: BreakpointSettings = WITH_MARKS,
        shared: EngineResources | None = None,
    ) -> None:
        self._talk = talk
        self.largest = 0  # bytes of a request
        self._shared = shared or EngineResources()
        self._lock = RLock()
        self._placing = BranchResolver(talk, begins_anew=begins_anew, marks=marks)
        self._forecasts = Forecasts()
        self._last: PreparedRequest | None = None

    def prepare_fields(self, request: Request, api: Api | None, at: float | None) -> PreparedRequest:
        """The request to send for one of the library, given as its fields or its bytes. Raises as `prepare` does."""
        body = body_of(request)
        self._last = self.prepare(body, self._shared.opener.parse(body, api or api_of(body), self._talk.name), at)
        return self._last

    def prepare(
        self,
        body: bytes,
        envelope: Envelope,
        at: float | None,
        context: str = "",
        offers: Sequence[ToolOffer] | None = None,
        *,
        lasting: float = 0.0,
        claim: DecisionClaim | None = None,
    ) -> PreparedRequest:
        """The request to send for this one. offers: tools of ours beside the client's, None: the caller sees to recall. lasting: what it
        may spend on keeping the window alive as `observe` says, BIT, so that marks may ask for less than the client's.
        claim: by which the caller may give the decision up, None: the caller waits.

        Raises BadInput where no provider would read it, GivenUp where the caller gave it up, and nothing else.
        """
        with self._lock:
            if claim is not None and claim.is_given_up:
                raise GivenUp
            problem = self._settle_debts()
            self.largest = max(self.largest, len(body))
            script = self._placing.listening.read(envelope)
            last = script.units[-1].name if script.units else ""
            asked = PreparedRequest(
                body, script.api, at, self._talk.name, messages=len(script.units), original=body, last=last
            )
            if not script.units:
                return asked
            call: PendingCall | None = None  # as far as it came
            try:
                self._talk.model = model_in(envelope) or self._talk.model
                head = head_of(envelope, script, context)
                call = PendingCall(script, envelope, body, head, offers, envelope, body, lasting, context=context)
                self._placing.learn()
                script = self._placing.mended(script, envelope)
                asked = replace(asked, last=script.units[-1].name)
                call = replace(call, script=script)
                call = self._placing.resolve_offer(call, self._placing.known_length(script.units))
                if problem is not None:  # asked again, the store would have us wait again
                    return self._fallen_back(asked, call, _problem_words(problem))
                stood = self._placing.resolve(call, at, claim)
                if stood is None:
                    return replace(asked, body=call.body, offered=call.own_tool_names, changed_by_client=("messages",))
                self._shared.forwarding.note_sent(self._talk.name, _as_sent(stood, self._placing))
                return self._learn_usage(replace(asked, offered=stood.call.own_tool_names), stood)
            except GivenUp:
                self._settle_debts()  # what went out instead
                raise
            except Exception as problem:  # noqa: BLE001 -- law 7: what fails in here is ours, and the agent must not pay for it
                failure = _problem_words(problem)
                return replace(asked, failure=failure) if call is None else self._fallen_back(asked, call, failure)

    def unchanged_request(self, body: bytes, envelope: Envelope, patience: float) -> bytes:
        """The request as it came, for when nothing is to be decided; without thinking that our renderings made invalid. Raises BadInput.

        patience: seconds to wait for those who decide. Where they take longer all thinking goes: nobody can say which of it is valid.
        """
        if not self._lock.acquire(timeout=patience):
            script = transcript(envelope.items, envelope.api)
            for unit in script.units[-1:]:
                self._shared.owed.add(self._talk.name, Fact(passthrough.KIND, passthrough.DATA, None, unit.name))
            return thoughtless(PendingCall(script, envelope, body, head_of(envelope, script), None, envelope, body))
        try:
            script = self._placing.listening.read(envelope)
            call = PendingCall(script, envelope, body, head_of(envelope, script), None, envelope, body)
            with contextlib.suppress(StoreError), self._talk.turn():
                self._placing.learn()
            self._placing.note_passthrough(call)
            self._shared.forwarding.forget(self._talk.name)
            return self._placing.outgoing.clean(call)
        finally:
            self._lock.release()

    def observe_reply(self, reply: Reply, prepared: PreparedRequest | None) -> Observation:
        """What the reply to a request of `asked` tells, None: to the last one. Raises HostError where there was none."""
        of = self._last if prepared is None else prepared
        if of is None:
            raise HostError("a reply was observed before any request was prepared")
        return self.observe(of, reply)

    def observe(self, prepared: PreparedRequest, reply: Reply) -> Observation:
        """What a reply tells of its request: journaled on its branch, and compared with what the cache was expected to do.

        reply: the provider's own, whole, as its fields or as an object of its SDK; or the usage alone. Raises nothing.
        """
        failure: str | None = None
        forecast: Forecast | None = None
        usage = keep = None
        entry: EntryId | None = None
        snapshot: Callable[[], None] | None = None
        with self._lock:
            try:
                usage = usage_of(reply, prepared.api)
                entry = self._entry_of(prepared) if usage is not None else None
                if usage is not None and (entry is not None or prepared.last):
                    is_alone = not self.owes  # else whoever settles the rest does so with this
                    self._owe(prepared, reply_notes.KIND, reply_notes.encode_usage(usage))
                    keep = None if entry is None else self._note_cached_prefix(entry, prepared, usage)
                    if is_alone:
                        self._settle()
                if entry is not None:
                    snapshot = self._talk.snapshot(entry, partial(self._placing.snapshot_values, entry))
            except Exception as problem:  # noqa: BLE001 -- law 7: nothing of ours fails a call that was answered
                failure = _problem_words(problem)
        with contextlib.suppress(Exception):  # it only saves time, later
            if snapshot is not None:
                snapshot()
        try:  # requests of this session need not wait for it
            if usage is not None and isinstance(prepared.ticket, SentRequest):
                forecast = self._forecasts.take_usage(prepared.ticket, usage)
        except Exception as problem:  # noqa: BLE001 -- as above
            failure = failure or _problem_words(problem)
        if forecast is None:
            return Observation(usage, failure=failure, keep=keep)
        return Observation(usage, forecast.expected, forecast.predicted, forecast.diagnosis, failure, keep)

    @property
    def owes(self) -> bool:
        """Whether its journal is owed something."""
        return bool(self._shared.owed.of(self._talk.name))

    def settle(self) -> bool:
        """Journal what is owed. Whether nothing is owed any more; raises nothing."""
        with self._lock:
            self._settle_debts()
        return not self.owes

    def _settle_debts(self) -> StoreError | None:
        """Journal what is owed. Returns why the store could not be written, None where it could."""
        try:
            self._settle()
        except StoreError as problem:
            return problem
        except Exception:  # noqa: BLE001 -- it must keep nobody from what comes next
            return None
        return None

    def _settle(self) -> None:
        owed, name = self._shared.owed, self._talk.name
        debts = owed.of(name)
        if not debts:
            return
        try:
            self._placing.settle(debts)
        except StoreError:
            raise
        except Exception:  # one that can never be journaled is not tried for ever
            owed.settle(name, debts)
            raise
        owed.settle(name, debts)

    def _owe(self, prepared: PreparedRequest, kind: str, data: str) -> None:
        self._shared.owed.add(self._talk.name, Fact(kind, data, prepared.entry, prepared.last))

    def _entry_of(self, prepared: PreparedRequest) -> EntryId | None:
        """Where a request stands; one that went out without a decision, since that was journaled."""
        if prepared.entry is None and prepared.last:
            return self._placing.places.request_at(prepared.last)
        return prepared.entry

    def _note_cached_prefix(self, entry: EntryId, prepared: PreparedRequest, usage: Usage) -> cache_ttl.Due | None:
        """Journal what the cache holds now; when that is to be kept alive."""
        terms = prepared.terms
        if terms is None:
            return None
        held = cache_ttl.prefix_after_answer(
            terms, usage, rewritten=prepared.opened is not None, messages=_messages_of(prepared)
        )
        self._owe(prepared, cache_ttl.KIND, cache_ttl.encode_cached_prefix(held))
        model = self._placing.heads.at(entry).model
        return self._placing.leases.due(held, terms, usage, model, entry)

    def note_keepalive(self, prepared: PreparedRequest, usage: Usage, at: float) -> float | None:
        """A window was kept alive as `observe` asked for, by a request that went out at this time. Returns what it cost, BIT; None
        where that is not known. Raises HostError, StoreError.
        """
        with self._lock:
            if prepared.entry is None or prepared.terms is None:
                return None
            behind = self._placing.places.stand(self._placing.places.owner(prepared.entry))
            model = self._placing.heads.at(prepared.entry).model
            messages = _messages_of(prepared)
            found = self._placing.leases.after_keepalive(behind, prepared.terms, model, usage, at, messages)
            if found is None:
                return None
            held, cost = found
            self._placing.note_behind(prepared.entry, cache_ttl.KIND, cache_ttl.encode_cached_prefix(held))
        return cost

    def splice_answer(self, prepared: PreparedRequest, exchange: RecallExchange) -> str | None:
        """The answer to a request, as the client saw it, stands for turns that it did not see: from now on these are sent in its place.

        To be told before the client can answer. Returns why that could not be kept, None where it was; raises nothing.
        """
        with self._lock:
            try:
                self._settle_debts()
                entry = self._entry_of(prepared)
                if entry is None:
                    return NOWHERE
                data = encode_exchange(exchange, prepared.api)
                if self._talk.is_private(data):  # it would have to be said again word for word
                    return "it holds a key, which must not be stored"
                self._placing.note_behind(entry, EXCHANGE, data)
            except Exception as problem:  # noqa: BLE001 -- law 7: the caller goes on without
                return _problem_words(problem)
        return None

    def behind(self, prepared: PreparedRequest, work: Callable[[], T]) -> T:
        """Do something with the session where it stands behind a request. Raises HostError where that stands nowhere, StoreError."""
        with self._lock:
            self._settle_debts()
            self._placing.stand_behind(self._entry_of(prepared))
            found = work()
            self._placing.learn()
        return found

    def _learn_usage(self, asked: PreparedRequest, stood: ResolvedRequest) -> PreparedRequest:
        call, prepared, made = stood.call, stood.prepared, stood.made
        fields = call.envelope.fields if made.fields is None else made.fields
        front = {name: fields[name] for name in IN_FRONT if name in fields}
        return replace(
            asked,
            ticket=SentRequest(call.script.api, front, made.items, call.script.names, call.head, asked.at or 0.0),
            body=made.body,
            terms=stood.terms,
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

    def _fallen_back(self, asked: PreparedRequest, call: PendingCall, failure: str) -> PreparedRequest:
        """The request as its branch was rendered last, with what the client said since as it came; else as it came, without thinking that
        is no longer valid.
        """
        try:
            self._placing.note_passthrough(call)
            made = self._placing.outgoing.render_last(call, failure)
        except Exception as problem:  # noqa: BLE001 -- the last net of law 7: the original goes out
            self._shared.forwarding.forget(self._talk.name)
            return replace(asked, failure=f"{failure}; {_problem_words(problem)}")
        sent = UndecidedRequest(call.original, call.theirs, call.context, asked.at, is_last=made.is_last)
        self._shared.owed.add(self._talk.name, sent)
        has_tools = made.fields is call.envelope.fields
        if made.is_last:
            last = _last_rendered(call, made, self._placing, AS_THE_CLIENT)
            self._shared.forwarding.note_sent(self._talk.name, last)
        else:
            self._shared.forwarding.forget(self._talk.name)
        offered = call.own_tool_names if has_tools else ()
        return replace(
            asked, body=made.body, replaced=made.replaced, shared=made.used, offered=offered, failure=made.why
        )

    def _state(self, entry: EntryId | None) -> State:
        return self._talk.journal.state_at(entry)


def _problem_words(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"


def _as_sent(stood: ResolvedRequest, placing: BranchResolver) -> LastSent:
    return _last_rendered(stood.call, stood.made, placing, stood.chosen)


def _last_rendered(call: PendingCall, made: Bytes, placing: BranchResolver, chosen: BreakpointChoice) -> LastSent:
    tools = call.recall.tools if call.own_tool_names else ()
    return LastSent(call.script, made.changes, len(call.original), placing.places.exchanges, tools, chosen)


def _messages_of(prepared: PreparedRequest) -> int:
    """How many messages went out, those among them that the client did not see; none where that is not known."""
    return len(prepared.ticket.items) if isinstance(prepared.ticket, SentRequest) else 0
