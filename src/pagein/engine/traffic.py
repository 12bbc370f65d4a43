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
from threading import RLock
from typing import TypeVar

from pagein.engine import answered, leasing
from pagein.engine.calling import Call
from pagein.engine.chain import transcript
from pagein.engine.exchanges import Exchange, encoded
from pagein.engine.forecast import Forecast, Forecasts
from pagein.engine.given import Request, body_of
from pagein.engine.heads import head_of, model_in
from pagein.engine.laying import IN_FRONT, Sent
from pagein.engine.marked import WITH_MARKS, Marks
from pagein.engine.opening import Opener
from pagein.engine.outgoing import thoughtless
from pagein.engine.places import EXCHANGE
from pagein.engine.placing import NOWHERE, Placing, Stood
from pagein.engine.requests import Observed, PreparedRequest
from pagein.engine.state import State
from pagein.engine.talking import Reply, Talk, usage_of
from pagein.errors import HostError, StoreError
from pagein.model.entries import EntryId
from pagein.model.messages import Usage
from pagein.providers.validity import Api
from pagein.providers.wire.request import Envelope
from pagein.providers.wire.telling import api_of
from pagein.providers.wire.tools import Offer

T = TypeVar("T")


class Traffic:
    """The requests of one session. Any number of threads may call it; they take turns.

    begins_anew: whether a request that has nothing in common with those before, but the same tools and instructions, is the same
    conversation after a compaction by the client. So it is where clients name their sessions.
    marks: what is set for cache marks of ours beside the client's. opener: what takes bodies apart, None: one of its own.
    """

    def __init__(
        self, talk: Talk, *, begins_anew: bool = True, marks: Marks = WITH_MARKS, opener: Opener | None = None
    ) -> None:
        self._talk = talk
        self.largest = 0  # bytes of a request
        self._opener = opener or Opener()
        self._lock = RLock()
        self._placing = Placing(talk, begins_anew=begins_anew, marks=marks)
        self._forecasts = Forecasts()
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
            script = self._placing.listening.read(envelope)
            asked = PreparedRequest(body, script.api, at, self._talk.name, messages=len(script.units), original=body)
            if not script.units:
                return asked
            call: Call | None = None  # as far as it came
            try:
                self._talk.model = model_in(envelope) or self._talk.model
                head = head_of(envelope, script, context)
                call = Call(script, envelope, body, head, offers, envelope, body, lasting)
                self._placing.learn()
                call = self._placing.offering(call, self._placing.known(script.units))
                stood = self._placing.placed(call, at)
                if stood is None:
                    return replace(asked, body=call.body, offered=call.offered, changed_by_client=("messages",))
                return self._told(replace(asked, offered=stood.call.offered), stood)
            except Exception as problem:  # noqa: BLE001 -- law 7: what fails in here is ours, and the agent must not pay for it
                failure = f"{type(problem).__name__}: {problem}"
                return replace(asked, failure=failure) if call is None else self._fallen_back(asked, call, failure)

    def untouched(self, body: bytes, envelope: Envelope, patience: float) -> bytes:
        """The request as it came, for when nothing is to be decided; without thinking that our renderings made invalid. Raises BadInput.

        patience: seconds to wait for those who decide. Where they take longer all thinking goes: nobody can say which of it is valid.
        """
        if not self._lock.acquire(timeout=patience):
            script = transcript(envelope.items, envelope.api)
            self._placing.given_up.update(unit.name for unit in script.units[-1:])
            return thoughtless(Call(script, envelope, body, head_of(envelope, script), None, envelope, body))
        try:
            script = self._placing.listening.read(envelope)
            call = Call(script, envelope, body, head_of(envelope, script), None, envelope, body)
            with contextlib.suppress(StoreError), self._talk.turn():
                self._placing.learn()
            self._placing.passed(call)
            return self._placing.outgoing.cleaned(call)
        finally:
            self._lock.release()

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
                    self._placing.noted_behind(prepared.entry, answered.KIND, answered.encoded(usage))
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
        self._placing.noted_behind(entry, leasing.KIND, leasing.encoded(held))
        return self._placing.leases.due(held, terms, usage, entry)

    def kept(self, prepared: PreparedRequest, usage: Usage, at: float) -> float | None:
        """A window was kept alive as `observe` asked for, by a request that went out at this time. Returns what it cost, BIT; None
        where that is not known. Raises HostError, StoreError.
        """
        with self._lock:
            if prepared.entry is None or prepared.terms is None:
                return None
            behind = self._placing.places.stand(self._placing.places.owner(prepared.entry))
            model = self._placing.heads.at(prepared.entry).model
            found = self._placing.leases.kept(behind, prepared.terms, model, usage, at)
            if found is None:
                return None
            held, cost = found
            self._placing.noted_behind(prepared.entry, leasing.KIND, leasing.encoded(held))
        return cost

    def spliced(self, prepared: PreparedRequest, exchange: Exchange) -> str | None:
        """The answer to a request, as the client saw it, stands for turns that it did not see: from now on these are sent in its place.

        To be told before the client can answer. Returns why that could not be kept, None where it was; raises nothing.
        """
        with self._lock:
            try:
                if prepared.entry is None:
                    return NOWHERE
                self._placing.noted_behind(prepared.entry, EXCHANGE, encoded(exchange, prepared.api))
            except Exception as problem:  # noqa: BLE001 -- law 7: the caller goes on without
                return f"{type(problem).__name__}: {problem}"
        return None

    def behind(self, prepared: PreparedRequest, work: Callable[[], T]) -> T:
        """Do something with the session where it stands behind a request. Raises HostError where that stands nowhere, StoreError."""
        with self._lock:
            self._placing.stand_behind(prepared.entry)
            found = work()
            self._placing.learn()
        return found

    def _told(self, asked: PreparedRequest, stood: Stood) -> PreparedRequest:
        call, prepared, made = stood.call, stood.prepared, stood.made
        fields = call.envelope.fields if made.fields is None else made.fields
        front = {name: fields[name] for name in IN_FRONT if name in fields}
        return replace(
            asked,
            ticket=Sent(call.script.api, front, made.items, call.script.names, call.head, asked.at or 0.0),
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

    def _fallen_back(self, asked: PreparedRequest, call: Call, failure: str) -> PreparedRequest:
        """The request as its branch was rendered last, with what the client said since as it came; else as it came, without thinking that
        is no longer valid.
        """
        try:
            self._placing.passed(call)
            made = self._placing.outgoing.rendered_last(call, failure)
        except Exception as problem:  # noqa: BLE001 -- the last net of law 7: the original goes out
            return replace(asked, failure=f"{failure}; {type(problem).__name__}: {problem}")
        has_tools = made.fields is call.envelope.fields
        offered = call.offered if has_tools else ()
        return replace(
            asked, body=made.body, replaced=made.replaced, shared=made.used, offered=offered, failure=made.why
        )

    def _state(self, entry: EntryId | None) -> State:
        return self._talk.journal.state_at(entry)
