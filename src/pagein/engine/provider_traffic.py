"""Prepare and observe the provider requests of a session.

Rules of this file
------------------
1. The branch and the decision of a request are made in one turn (`call_stages`).
2. A failure takes back everything. Then the last rendering of the branch is sent with the client's new messages; else
   the client's request without invalid thinking (law 7).
3. Requests of a session run one at a time.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from threading import RLock
from typing import TypeVar

from pagein.engine.branch_index import NOWHERE, BranchIndex
from pagein.engine.cache import cache_ttl
from pagein.engine.cache.cache_breakpoints import AS_THE_CLIENT, BreakpointSettings
from pagein.engine.cache.cache_forecast import Forecast, Forecasts
from pagein.engine.cache.cache_inputs import head_of
from pagein.engine.cache.cached_prefix import note_of
from pagein.engine.call_stages import CallStages
from pagein.engine.conversation import Reply, answer_of, usage_of
from pagein.engine.engine_resources import EngineResources
from pagein.engine.expected_reports import ExpectedReports
from pagein.engine.intake.message_chain import transcript
from pagein.engine.intake.recall_tools import split_offers
from pagein.engine.intake.request_fields import Request, body_of
from pagein.engine.log.answer_notes import answer_note
from pagein.engine.log.backlog import Fact, UndecidedRequest
from pagein.engine.prepared_request import Observation, PreparedRequest
from pagein.engine.send import recall_exchanges
from pagein.engine.send.call import NO_FACTS, PendingCall, RequestFacts
from pagein.engine.send.outgoing_body import without_thinking
from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.engine.send.rendered_bytes import Bytes
from pagein.engine.send.request_call import DecisionClaim, GivenUp, prepared_request
from pagein.engine.window_stages import WindowStages
from pagein.errors import HostError, StoreError
from pagein.model.cache_notes import CacheVerdictNote
from pagein.model.entries import EntryId
from pagein.model.journal_notes import BreakpointChoice, FurtherUsageNote, Note, PassthroughNote, UsageNote
from pagein.model.messages import Usage
from pagein.model.note_forms import encode_note
from pagein.policy.layouts.pooled_branch import PooledBranch
from pagein.providers.validity import Api
from pagein.providers.wire.formats import api_of
from pagein.providers.wire.request_body import Envelope, model_in
from pagein.providers.wire.tool_offers import ToolOffer

T = TypeVar("T")


class Traffic:
    """The requests of a session. Thread-safe; threads take turns.

    largest: bytes of the largest request.
    """

    def __init__(self, window: WindowStages) -> None:
        parts = window.parts
        self.largest = 0
        self._window = window
        self._log = window.log
        self._shared = parts.shared or EngineResources()
        self._lock = RLock()
        self._reports = ExpectedReports(self._lock, self._shared.waiting)
        self._index = BranchIndex(window)
        self._stages = CallStages(
            window,
            self._index,
            BreakpointSettings(parts.marks, parts.residency.arguments is not None),
            self._shared.evidence,
        )
        self._forecasts = Forecasts()
        self._last: PreparedRequest | None = None

    def prepare_fields(self, request: Request, api: Api | None, at: float | None, model: str = "") -> PreparedRequest:
        """Prepare a request of the library, given as fields or as bytes. Raises as `prepare` does.

        model: the model's name, if the request does not hold it.
        """
        body = body_of(request)
        self._last = self.prepare(body, self._shared.opener.parse(body, api or api_of(body), self._log.name, model), at)
        return self._last

    def prepare(  # noqa: PLR0913 -- as `Engine.prepare`
        self,
        body: bytes,
        envelope: Envelope,
        at: float | None,
        context: str = "",
        offers: Sequence[ToolOffer] | None = None,
        *,
        lasting: float | None = None,
        facts: RequestFacts = NO_FACTS,
        claim: DecisionClaim | None = None,
    ) -> PreparedRequest:
        """Return the request to send for a client's request.

        offers: recall tools; None if recall is the caller's own business.
        lasting: most that a keep-alive request may cost, in BIT; 0 for none; None to leave the cache TTLs to the client.
        facts: what the caller knows of the request beside its body.
        claim: lets the caller give up the decision; None if the caller waits.

        Raises BadInput for a body that no provider would read, and GivenUp if the caller gave up. Other failures are
        reported in `failure`.
        """
        with self._lock:
            if claim is not None and claim.is_given_up:
                raise GivenUp
            problem = self._settle_debts()
            self.largest = max(self.largest, len(body))
            script = self._index.reader.read(envelope)
            if self._reports.wait_for_answers(script, facts.patience):  # other requests had their turns meanwhile
                problem, script = self._settle_debts(), self._index.reader.read(envelope)
            last, count = (script.units[-1].name, len(script.units)) if script.units else ("", 0)
            model, name = model_in(envelope) or "", self._log.name
            asked = PreparedRequest(body, script.api, at, model, name, messages=count, original=body, last=last)
            if not script.units:
                return asked
            pending: PendingCall | None = None  # the call as far as it was built
            try:
                self._window.model = asked.model or self._window.model
                inline, pools = (offers, ()) if self._window.parts.pooled is None else split_offers(offers)
                pending = PendingCall(
                    script,
                    theirs=envelope,
                    original=body,
                    head=head_of(envelope, script, context),
                    offers=inline,
                    envelope=envelope,
                    body=body,
                    lasting=lasting,
                    facts=facts,
                    context=context,
                    pool_offers=pools,
                )
                pending = replace(pending, script=self._index.restore_lost(script, envelope))
                asked = replace(asked, last=pending.script.units[-1].name)
                if problem is not None:  # another attempt would wait for the store again
                    return self._fall_back(asked, pending, _problem_words(problem))
                return self._decide(asked, pending, claim)
            except GivenUp:
                self._settle_debts()  # record the request that was sent instead
                raise
            except Exception as problem:  # noqa: BLE001 -- law 7: a failure of pagein must not reach the agent
                failure = _problem_words(problem)
                return replace(asked, failure=failure) if pending is None else self._fall_back(asked, pending, failure)

    def _decide(self, asked: PreparedRequest, pending: PendingCall, claim: DecisionClaim | None) -> PreparedRequest:
        """Return the request to send, after the stages of its call."""
        call = self._stages.run(pending, asked.at, claim)
        if call.placed == "passed":
            offered = call.pending.own_tool_names
            return replace(asked, body=call.pending.body, offered=offered, changed_by_client=("messages",))
        self._note_sent(call.pending, call.made, call.chosen)
        if pending.facts.reported and call.entry is not None:
            self._reports.expect(call.entry, asked)
        return replace(prepared_request(asked, call), before=self._index.answered_before(call))

    def unchanged_request(self, body: bytes, envelope: Envelope, patience: float) -> bytes:
        """Return the client's request without a decision and without invalid thinking. Raises BadInput.

        patience: seconds to wait for a running decision; after that, every thinking block is removed, because their
            validity is unknown.
        """
        if not self._lock.acquire(timeout=patience):
            script = transcript(envelope.items, envelope.api)
            for unit in script.units[-1:]:
                self._shared.owed.add(self._log.name, Fact(PassthroughNote(), None, unit.name))
            return without_thinking(PendingCall.unchanged(script, envelope, body, head_of(envelope, script)))
        try:
            script = self._index.reader.read(envelope)
            call = PendingCall.unchanged(script, envelope, body, head_of(envelope, script))
            with contextlib.suppress(StoreError), self._log.turn():
                self._index.learn()
            self._index.note_passthrough(call)
            self._shared.forwarding.forget(self._log.name)
            return self._stages.renderer.clean(call, self._index.last_sent(script.units))
        finally:
            self._lock.release()

    def observe_reply(self, reply: Reply, prepared: PreparedRequest | None) -> Observation:
        """Observe the reply to a prepared request; None means the last request. Raises HostError without a request."""
        of = self._last if prepared is None else prepared
        if of is None:
            raise HostError("a reply was observed before any request was prepared")
        return self.observe(of, reply)

    def observe(self, prepared: PreparedRequest, reply: Reply) -> Observation:
        """Journal a reply on the branch of the request, and compare the cache use with the prediction. Raises nothing.

        reply: the provider's whole reply, as fields or as an SDK object; or the usage alone.
        """
        keep = verdict = None
        # outside the lock: the next request need not wait
        usage, notes, forecast, failure = self._read_reply(prepared, reply)
        entry: EntryId | None = None
        snapshot: Callable[[], None] | None = None
        with self._lock:
            try:
                entry = self._entry_of(prepared) if notes else None
                if notes and (entry is not None or prepared.last):
                    is_alone = not self.owes  # otherwise these facts are settled with the rest
                    self._owe(prepared, *notes)
                    if entry is not None and usage is not None:
                        keep, verdict = self._note_cached_prefix(entry, prepared, usage)
                    if is_alone:
                        self._settle()
                if entry is not None:
                    snapshot = self._log.snapshot(entry, partial(self._stages.snapshot_values, entry))
            except Exception as problem:  # noqa: BLE001 -- law 7: a failure of pagein must not fail an answered call
                failure = _problem_words(problem)
            self._reports.note_report(prepared.entry)
        with contextlib.suppress(Exception):  # a snapshot only saves time later
            if snapshot is not None:
                snapshot()
        if forecast is None:
            return Observation(usage, failure=failure, keep=keep, verdict=verdict)
        return Observation(usage, forecast.expected, forecast.predicted, forecast.diagnosis, failure, keep, verdict)

    def _read_reply(
        self, prepared: PreparedRequest, reply: Reply
    ) -> tuple[Usage | None, list[Note], Forecast | None, str | None]:
        """Return the usage of a reply, what is journaled of it, the compared forecast, and the failure, if any. Raises nothing."""
        notes: list[Note] = []
        usage: Usage | None = None
        forecast: Forecast | None = None
        api, place, model, outside = prepared.api, prepared.messages, prepared.model, self._window.parts.outside
        try:
            usage = usage_of(reply, api)
            seen = answer_of(reply, api)
            notes += [] if usage is None else [UsageNote(usage, seen.name)]
            notes += seen.further
            now = prepared.at if outside is None else outside.now()
            note = answer_note(seen.messages, api, self._log.privacy, place, model, at=now, is_whole=seen.is_whole)
            notes += [] if note is None else [note]
            if usage is not None and prepared.sent is not None:
                forecast = self._forecasts.take_usage(prepared.sent, usage, prepared.extended)
                notes += forecast.notes(seen.told)
        except Exception as problem:  # noqa: BLE001 -- law 7: a failure of pagein must not fail an answered call
            return usage, notes, forecast, _problem_words(problem)
        return usage, notes, forecast, None

    @property
    def pooled(self) -> PooledBranch | None:
        """The pooled window of the last request on the branch; None for another layout."""
        return self._stages.pools.at(self._log.leaf)

    @property
    def owes(self) -> bool:
        """True if the session has a backlog."""
        return bool(self._shared.owed.of(self._log.name))

    def settle(self) -> bool:
        """Journal the backlog. Returns whether it is empty now; raises nothing."""
        with self._lock:
            self._settle_debts()
        return not self.owes

    def _settle_debts(self) -> StoreError | None:
        """Journal the backlog. Returns the store's failure or None."""
        try:
            self._settle()
        except StoreError as problem:
            return problem
        except Exception:  # noqa: BLE001 -- a failed item must not block the next request
            return None
        return None

    def _settle(self) -> None:
        owed, name = self._shared.owed, self._log.name
        if name not in owed.waiting:
            return
        debts = owed.of(name)
        try:
            self._stages.settle(debts)
        except StoreError:
            raise
        except Exception:  # an item that cannot be journaled is dropped
            owed.settle(name, debts)
            raise
        owed.settle(name, debts)

    def _owe(self, prepared: PreparedRequest, *notes: Note) -> None:
        for note in notes:
            self._shared.owed.add(self._log.name, Fact(note, prepared.entry, prepared.last))

    def _entry_of(self, prepared: PreparedRequest) -> EntryId | None:
        """Return the entry of a request, if the journal was not removed since; for an undecided request, once it was journaled."""
        if prepared.entry is None:
            return self._index.places.request_at(prepared.last) if prepared.last else None
        return prepared.entry if prepared.entry in self._log.journal else None

    def _note_cached_prefix(
        self, entry: EntryId, prepared: PreparedRequest, usage: Usage
    ) -> tuple[cache_ttl.KeepAlivePlan | None, CacheVerdictNote | None]:
        """Journal the cached prefix, and return the next keep-alive request, and news about the provider's cache."""
        terms, leases, keep = prepared.terms, self._stages.leases, None
        verdict = leases.renewal_shown(entry, usage) if prepared.is_unsure else None
        if terms is not None:
            held = cache_ttl.prefix_after_answer(
                terms, usage, rewritten=prepared.rewrites, messages=prepared.sent_messages
            )
            self._owe(prepared, note_of(held))
            leases.share_savings(held, terms, (model := self._index.heads[entry].model), entry)
            if not prepared.rewrites and not prepared.changed_by_client:
                verdict = cache_ttl.verdict_of(terms, usage, model) or verdict
            keep = leases.due(held, terms, usage, model, entry)
        news = verdict if verdict is not None and self._shared.evidence.add(verdict) else None
        if news is not None:
            self._owe(prepared, news)
        return keep, news

    def note_keepalive(self, prepared: PreparedRequest, usage: Usage, at: float) -> float | None:
        """Record a keep-alive request sent at time `at`. Returns the cost in BIT, or None if unknown.

        Raises HostError, StoreError.
        """
        with self._lock:
            entry = self._entry_of(prepared)
            if entry is None or prepared.terms is None:
                return None
            behind = self._index.places.stand(self._index.places.owner(entry))
            model = self._index.heads[entry].model
            messages = prepared.sent_messages
            found = self._stages.leases.after_keepalive(behind, prepared.terms, model, usage, at, messages)
            if found is None:
                return None
            held, cost = found
            self._index.note_behind(entry, note_of(held))
            self._index.note_behind(entry, FurtherUsageNote("keep_alive", usage))
        return cost

    def splice_answer(self, prepared: PreparedRequest, exchange: RecallExchange) -> str | None:
        """Record the recall exchange behind a client's answer, for use in later requests.

        Call it before the client can reply. Returns the reason of a failure; None without one. Raises nothing.
        """
        with self._lock:
            try:
                self._settle_debts()
                entry = self._entry_of(prepared)
                if entry is None:
                    return NOWHERE
                note = recall_exchanges.note_of(exchange, prepared.api)
                if self._log.privacy.is_private(encode_note(note)[1]):  # it would have to be repeated word for word
                    return "it holds a key, which must not be stored"
                self._index.note_behind(entry, note)
            except Exception as problem:  # noqa: BLE001 -- law 7: the caller continues without it
                return _problem_words(problem)
        return None

    def behind(self, prepared: PreparedRequest, work: Callable[[], T]) -> T:
        """Run a function at the session's entry after a request. Raises HostError for a request without an entry, and
        StoreError.
        """
        with self._lock:
            self._settle_debts()
            self._index.stand_behind(self._entry_of(prepared))
            found = work()
            self._index.learn()
        return found

    def _fall_back(self, asked: PreparedRequest, call: PendingCall, failure: str) -> PreparedRequest:
        """Return the last rendering of the branch with the client's new messages; else the client's request without
        invalid thinking.
        """
        try:
            self._index.learn()
            known = self._index.known_length(call.script.units)
            call = self._index.with_offer(call, *self._index.parent(call.script.units, known, call.head))
            self._index.note_passthrough(call)
            made = self._stages.renderer.render_last(call, self._index.last_sent(call.script.units), failure)
        except Exception as problem:  # noqa: BLE001 -- last resort of law 7: the original is sent
            self._shared.forwarding.forget(self._log.name)
            return replace(asked, failure=f"{failure}; {_problem_words(problem)}")
        sent = UndecidedRequest(call.original, call.theirs, call.context, asked.at, is_last=made.is_last)
        self._shared.owed.add(self._log.name, sent)
        has_tools = made.fields is call.envelope.fields
        if made.is_last:
            self._note_sent(call, made, AS_THE_CLIENT)
        else:
            self._shared.forwarding.forget(self._log.name)
        offered = call.own_tool_names if has_tools else ()
        return replace(
            asked, body=made.body, replaced=made.replaced, shared=made.used, offered=offered, failure=made.why
        )

    def _note_sent(self, call: PendingCall, made: Bytes, chosen: BreakpointChoice) -> None:
        """Remember a request as the last of its branch, for requests that are sent without a decision."""
        self._shared.forwarding.note_rendering(self._log.name, call, made, self._index.places.exchanges, chosen)


def _problem_words(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"
