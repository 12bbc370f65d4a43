"""A curator backed by the engine."""

from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Final

from pagein.engine.cache.cache_evidence import words_of
from pagein.engine.conversation import ClientAnswer
from pagein.engine.engine import Engine, Hint
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.send.call import RequestFacts
from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.gateway.curation.agent_work import AgentWork
from pagein.gateway.curation.guarded_curator import CuratedRequest, CurationRequest, UsageAccount
from pagein.model.journal_notes import FurtherUsageNote
from pagein.model.messages import Usage
from pagein.policy.pools.pool_fold import CONTEXT_TOOLS
from pagein.providers.prices.price_lookup import cost, newest_prices
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.session_names import session_name_in
from pagein.providers.wire.streams.model_reply import ModelReply
from pagein.providers.wire.streams.model_turn import OwnCall, OwnToolResult
from pagein.providers.wire.tool_offers import ToolOffer, has_tools
from pagein.tools.brief import answer_call, offers
from pagein.tools.short_pool_tools import OFFERS as POOL_OFFERS
from pagein.tools.short_pool_tools import answer_pool_call

_PATIENCE: Final = 0.2  # seconds to wait for a busy session; the request has waited before


@dataclass(frozen=True, slots=True)
class ToolTerms:
    """Which of pagein's tools the model of a curated request is offered.

    everything: whether recall reaches what other sessions stored
    notes: whether the tools also tell the model to write notes
    pooled: whether new conversations may be pooled, so that the tools for pools are offered
    children: further tools, for requests whose model may ask child models
    """

    everything: bool = False
    notes: bool = False
    pooled: bool = False
    children: tuple[ToolOffer, ...] = ()


class EngineCurator:
    """Asks an engine for decisions. Closing the curator closes the engine.

    recall: whether the model is offered any tools of pagein
    tools: which
    work: told of each request and of each answer; None for nobody
    names_answers: whether the provider's names of answers are journaled, for questions why its cache was missed
    guarded: tells of an agent's session whether a hook stops calls in it that would write a mask into a file
    budget: seconds for a decision; half of them may be waited for the report of an answer
    """

    def __init__(
        self,
        engine: Engine,
        *,
        recall: bool = True,
        tools: ToolTerms = ToolTerms(),
        work: AgentWork | None = None,
        guarded: Callable[[str], bool] = lambda _: False,
        names_answers: bool = False,
        budget: float = 2.0,
    ) -> None:
        self._engine = engine
        self._is_guarded = guarded
        self._names_answers = names_answers
        self._patience = budget / 2
        self._work = work
        self._everything = tools.everything
        pool_offers = POOL_OFFERS if tools.pooled else ()
        usual = offers(everything=tools.everything, notes=tools.notes)
        self._offers = (*usual, *pool_offers) if recall else ()
        self._children = tools.children if recall else ()

    def prepare(self, asked: CurationRequest) -> CuratedRequest:
        """Return the request as decided by the engine.

        Raises BadInput for a body that providers would refuse to parse.
        """
        is_guarded = asked.hint is not None and self._is_guarded(asked.hint.name)
        prepared = self._engine.prepare(
            asked.body,
            asked.api,
            at=asked.at,
            hint=_hint_of(asked),
            context=asked.context,
            offers=self._offers_for(asked),
            path_model=asked.model,
            lasting=asked.lasting,
            facts=RequestFacts(asked.documented, is_guarded, asked.curates, reported=True, patience=self._patience),
            claim=asked.claim,
        )
        self._tell_of(asked, prepared)
        return _curated_request(asked, prepared)

    def _offers_for(self, asked: CurationRequest) -> tuple[ToolOffer, ...]:
        if not asked.curates:
            return ()
        return (*self._offers, *self._children) if asked.children else self._offers

    def _tell_of(self, asked: CurationRequest, prepared: PreparedRequest) -> None:
        if self._work is not None and prepared.session and (conversation := _conversation(prepared)):
            self._work.note_request(prepared.session, conversation, asked.at, is_near=asked.is_near)

    def forward(self, asked: CurationRequest) -> CuratedRequest:
        """Return the request as last sent by the engine, with new messages appended."""
        prepared = self._engine.forward(
            asked.body,
            asked.api,
            at=asked.at,
            hint=_hint_of(asked),
            context=asked.context,
            path_model=asked.model,
            claim=asked.claim,
        )
        self._tell_of(asked, prepared)
        return _curated_request(asked, prepared)

    def observe(self, curated: CuratedRequest, reply: ModelReply) -> UsageAccount:
        """Report the answer to a request, and the provider's usage, to the engine."""
        account = self._account(curated, reply)
        if self._work is not None and curated.prepared is not None and reply.finished:
            calls = format_named(curated.prepared.api).answers.turn(reply, ()).calls_client
            self._work.note_answer(_conversation(curated.prepared), calls=calls)
        return account

    def _account(self, curated: CuratedRequest, reply: ModelReply) -> UsageAccount:
        prepared, usage = curated.prepared, reply.first or reply.usage
        if prepared is None:
            return UsageAccount()
        shown = format_named(prepared.api).answers.turn(reply, ()).shown if reply.shown is None else reply.shown
        further, name = _further(reply), reply.id if self._names_answers else ""
        answer = ClientAnswer(usage, shown, reply.finished and not reply.error, further, reply.miss, name)
        observed = self._engine.observe(prepared, answer)
        if usage is None:
            return UsageAccount(failure=observed.failure or "")
        paid = newest_prices(curated.model)
        # each request by itself: where a long prompt has a higher price, a sum of prompts must not have it
        spent = cost(usage, paid, prepared.at) if paid is not None else None
        recalling = 0.0
        for one in further:
            price = cost(one.usage, paid, prepared.at) if paid is not None else 0.0
            spent = None if spent is None else spent + price
            recalling += price if one.reason == "recall" else 0.0
        diagnosis = observed.diagnosis
        short = diagnosis.is_miss
        return UsageAccount(
            spent,
            None if prepared.gained is None else prepared.gained - recalling,
            diagnosis.shortfall if short else 0,
            diagnosis.words if short else "",
            diagnosis.cause if short else "",
            diagnosis.who if short else "",
            observed.failure or "",
            observed.keep,
            "" if (found := observed.verdict) is None else words_of(found, self._engine.evidence.trust(found.model)),
        )

    def note_keepalive(self, curated: CuratedRequest, usage: Usage, at: float) -> float | None:
        """Charge a keep-alive request to its session."""
        prepared = curated.prepared
        return None if prepared is None else self._engine.note_keepalive(prepared, usage, at)

    def recall(self, curated: CuratedRequest, call: OwnCall) -> OwnToolResult:
        """Answer a recall call with content evicted from the session's window, on the branch of the request."""
        prepared = curated.prepared
        if prepared is None:
            return OwnToolResult(call, "There is nothing to recall here.", is_error=True)
        found = self._engine.behind(
            prepared,
            lambda session: (
                answer_pool_call(session, call.name, call.arguments)
                if call.name in CONTEXT_TOOLS
                else answer_call(session, call.name, call.arguments, call.id, everything=self._everything)
            ),
        )
        return OwnToolResult(call, found.text, found.is_error)

    def splice_answer(self, curated: CuratedRequest, exchange: RecallExchange) -> str:
        """Record the turns that replace the client's message from now on."""
        prepared = curated.prepared
        if prepared is None:
            return "the request was not prepared here"
        return self._engine.splice_answer(prepared, exchange) or ""

    def unchanged_request(self, asked: CurationRequest) -> bytes:
        """Return the client's bytes, without thinking bound to a window of pagein."""
        return self._engine.unchanged_request(asked.body, asked.api, _hint_of(asked), patience=_PATIENCE)

    def settle(self) -> bool:
        """Store pending journal entries of the engine."""
        return self._engine.settle()

    def close(self) -> None:
        """Close the engine and the store."""
        self._engine.close()


def _further(reply: ModelReply) -> tuple[FurtherUsageNote, ...]:
    """Return the usage billed for an answer beside the first turn."""
    recalled = tuple(FurtherUsageNote("recall", one) for one in reply.further)
    if reply.usage is None or reply.first is None:
        return recalled
    around = reply.usage - sum(reply.further, reply.first)
    is_billed = around != Usage() and min(astuple(around)) >= 0  # some upstreams tell less at the end than in between
    return (FurtherUsageNote("provider", around), *recalled) if is_billed else recalled


def _hint_of(asked: CurationRequest) -> Hint:
    """Return the session's name in the headers, or the function that finds it in the body."""
    return session_name_in if asked.hint is None else asked.hint.key


def _curated_request(asked: CurationRequest, prepared: PreparedRequest) -> CuratedRequest:
    return CuratedRequest(
        prepared.body,
        prepared.session,
        prepared.model,
        prepared.failure or "",
        (prepared.opened.reason or "epoch") if prepared.opened is not None else "",
        ", ".join(prepared.changed_by_client),
        prepared.replaced,
        len(asked.body) - len(prepared.body),
        tools=frozenset(prepared.offered),
        crowded=prepared.crowded,
        conversation=_conversation(prepared) if asked.lasting else "",
        prepared=prepared,
    )


def _conversation(prepared: PreparedRequest) -> str:
    """Return the identity of a conversation: session, tools and instructions.

    "" for a request without tools, which is not an agent's.
    """
    sent = prepared.sent
    if sent is None or not has_tools(sent.fields):
        return ""
    return "/".join((prepared.session, *sent.head.conversation))
