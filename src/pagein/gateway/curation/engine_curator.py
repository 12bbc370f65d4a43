"""A curator backed by the engine."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pagein.engine.cache.prompt_layout import SentRequest
from pagein.engine.engine import Engine
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.errors import BadInput
from pagein.gateway.curation.guarded_curator import CuratedRequest, CurationRequest, KeepAlivePlan, UsageAccount
from pagein.gateway.curation.session_hints import from_fields
from pagein.model.entries import RequestSent
from pagein.model.messages import Usage
from pagein.providers.prices.price_lookup import cost, newest_prices
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.streams.model_reply import ModelReply
from pagein.providers.wire.streams.model_turn import OwnCall, OwnToolResult
from pagein.tools.brief import OFFERS, answer_call

_NO_TOOLS: Final = (b"", b"[]", b"null")
_PATIENCE: Final = 0.2  # seconds to wait for a busy session; the request has waited before
_NOT_SHORT: Final = ("none", "first")


class EngineCurator:
    """Asks an engine for decisions. Closing the curator closes the engine."""

    def __init__(self, engine: Engine, *, recall: bool = True) -> None:
        self._engine = engine
        self._recall = recall

    def prepare(self, asked: CurationRequest) -> CuratedRequest:
        """Return the request as decided by the engine.

        Raises BadInput for a body that providers would refuse to parse.
        """
        named = asked.hint.key if asked.hint is not None else None
        envelope = self._engine.parse_body(asked.body, asked.api, named, asked.model)
        fields = envelope.fields
        hint = asked.hint or from_fields(fields)
        prepared = self._engine.prepare(
            asked.body,
            asked.api,
            at=asked.at,
            hint=hint.key if hint is not None else None,
            context=asked.context,
            offers=OFFERS if self._recall else (),
            envelope=envelope,
            lasting=asked.lasting,
            claim=asked.claim,
        )
        return _curated_request(asked, prepared, fields, self._gain(prepared))

    def forward(self, asked: CurationRequest) -> CuratedRequest:
        """Return the request as last sent by the engine, with new messages appended."""
        try:
            envelope = self._engine.parse_body(
                asked.body, asked.api, asked.hint.key if asked.hint is not None else None, asked.model
            )
        except BadInput:
            return CuratedRequest(asked.body)
        hint = asked.hint or from_fields(envelope.fields)
        prepared = self._engine.forward(
            asked.body,
            asked.api,
            at=asked.at,
            hint=hint.key if hint is not None else None,
            context=asked.context,
            envelope=envelope,
            claim=asked.claim,
        )
        return _curated_request(asked, prepared, envelope.fields, None)

    def observe(self, curated: CuratedRequest, reply: ModelReply, at: float) -> UsageAccount:
        """Report the provider's usage of a request to the engine."""
        del at
        ticket, usage = curated.ticket, reply.first or reply.usage
        if not isinstance(ticket, _Ticket) or usage is None:
            return UsageAccount()
        paid = newest_prices(curated.model)
        spent = cost(reply.usage or usage, paid, ticket.prepared.at) if paid is not None else None
        observed = self._engine.observe(ticket.prepared, usage)
        diagnosis, keep = observed.diagnosis, observed.keep
        short = diagnosis.shortfall > 0 and diagnosis.cause not in _NOT_SHORT
        return UsageAccount(
            spent,
            ticket.gained,
            diagnosis.shortfall if short else 0,
            diagnosis.words if short else "",
            diagnosis.cause if short else "",
            diagnosis.who if short else "",
            observed.failure or "",
            KeepAlivePlan(keep.at, keep.price, keep.kept, keep.spent) if keep is not None else None,
        )

    def note_keepalive(self, curated: CuratedRequest, usage: Usage, at: float) -> float | None:
        """Charge a keep-alive request to its session."""
        ticket = curated.ticket
        return self._engine.note_keepalive(ticket.prepared, usage, at) if isinstance(ticket, _Ticket) else None

    def recall(self, curated: CuratedRequest, call: OwnCall) -> OwnToolResult:
        """Answer a recall call with content evicted from the session's window, on the branch of the request."""
        ticket = curated.ticket
        if not isinstance(ticket, _Ticket):
            return OwnToolResult(call, "There is nothing to recall here.", is_error=True)
        found = self._engine.behind(
            ticket.prepared, lambda session: answer_call(session, call.name, call.arguments, call.id)
        )
        return OwnToolResult(call, found.text, found.is_error)

    def splice_answer(self, curated: CuratedRequest, exchange: RecallExchange) -> str:
        """Record the turns that replace the client's message from now on."""
        ticket = curated.ticket
        if not isinstance(ticket, _Ticket):
            return "the request was not prepared here"
        return self._engine.splice_answer(ticket.prepared, exchange) or ""

    def unchanged_request(self, asked: CurationRequest) -> bytes:
        """Return the client's bytes, without thinking bound to a window of pagein."""
        hint = asked.hint
        if hint is None and format_named(asked.api).validity.binds_thinking:
            hint = from_fields(self._engine.parse_body(asked.body, asked.api).fields)
        return self._engine.unchanged_request(
            asked.body, asked.api, hint.key if hint is not None else None, patience=_PATIENCE
        )

    def settle(self) -> bool:
        """Store pending journal entries of the engine."""
        return self._engine.settle()

    def close(self) -> None:
        """Close the engine and the store."""
        self._engine.close()

    def _gain(self, prepared: PreparedRequest) -> float | None:
        """Return the session's savings by this request: the account after it minus the account before it.

        Both are on the request's branch, so the result is independent of restarts, forks and other processes.
        """
        here = prepared.entry
        try:
            journal = self._engine.session(prepared.session).journal
            while here is not None:
                entry = journal.entry(here)
                if isinstance(entry.body, RequestSent):
                    return entry.body.saved - journal.state_at(entry.parent).account.saved
                here = entry.parent
        except Exception:  # noqa: BLE001 -- law 7: a figure for the page costs no decision that was made
            return None
        return None


@dataclass(frozen=True, slots=True)
class _Ticket:
    prepared: PreparedRequest
    gained: float | None


def _curated_request(
    asked: CurationRequest, prepared: PreparedRequest, fields: Mapping[str, bytes], gained: float | None
) -> CuratedRequest:
    return CuratedRequest(
        prepared.body,
        prepared.session,
        asked.model or _text(fields, "model"),
        prepared.failure or "",
        (prepared.opened.reason or "epoch") if prepared.opened is not None else "",
        ", ".join(prepared.changed_by_client),
        prepared.replaced,
        len(asked.body) - len(prepared.body),
        tools=frozenset(prepared.offered),
        crowded=prepared.crowded,
        conversation=_conversation(prepared) if asked.lasting else "",
        ticket=_Ticket(prepared, gained),
    )


def _conversation(prepared: PreparedRequest) -> str:
    """Return the identity of a conversation: session, tools and instructions.

    "" for a request without tools, which is not an agent's.
    """
    sent = prepared.ticket
    if not isinstance(sent, SentRequest) or sent.fields.get("tools", b"").strip() in _NO_TOOLS:
        return ""
    return "/".join((prepared.session, *sent.head.conversation))


def _text(fields: Mapping[str, bytes], name: str) -> str:
    try:
        value = json.loads(fields.get(name, b'""'))
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""
