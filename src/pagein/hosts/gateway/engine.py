"""The engine as a curator."""

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Final

from pagein.engine.engine import Engine
from pagein.engine.exchanges import Exchange
from pagein.engine.requests import PreparedRequest
from pagein.errors import BadSetting, HostError
from pagein.hosts.gateway.curating import Asked, Curated, Noted
from pagein.hosts.gateway.hints import from_fields
from pagein.hosts.gateway.recalls import OwnCall, Result
from pagein.hosts.gateway.replies import Reply
from pagein.model.codec import decode_json
from pagein.policy.economics import Account
from pagein.providers.prices import Prices, cost, prices
from pagein.providers.wire import spans
from pagein.providers.wire.tools import Offer
from pagein.tools.calls import Call
from pagein.tools.catalogue import answer
from pagein.tools.peek import PEEK
from pagein.tools.search import SEARCH

_SESSIONS: Final = 500
_NOT_SHORT: Final = ("none", "first")


class EngineCurator:
    """Asks an engine. Closing it closes the engine."""

    def __init__(self, engine: Engine, *, recall: bool = True) -> None:
        self._engine = engine
        self._recall = recall
        self._saved: OrderedDict[str, float] = OrderedDict()
        self._lock = Lock()

    def prepare(self, asked: Asked) -> Curated:
        """The request as the engine would have it. Raises BadInput for a body that no provider would read."""
        fields = spans.fields(asked.body, "the request body")
        hint = asked.hint or from_fields(fields)
        offers = _offers(fields) if self._recall else ()
        prepared = self._engine.prepare(
            asked.body,
            asked.api,
            at=asked.at,
            hint=hint.key if hint is not None else None,
            context=asked.context,
            offers=offers,
        )
        return Curated(
            prepared.body,
            prepared.session,
            _text(fields, "model"),
            prepared.failure or "",
            (prepared.opened.reason or "epoch") if prepared.opened is not None else "",
            ", ".join(prepared.changed_by_client),
            prepared.replaced,
            len(asked.body) - len(prepared.body),
            tools=_standing(prepared, offers),
            ticket=_Ticket(prepared, self._account(prepared)),
        )

    def observe(self, curated: Curated, reply: Reply, at: float) -> Noted:
        """Tell the engine what the provider said of the request."""
        del at
        ticket, usage = curated.ticket, reply.first or reply.usage
        if not isinstance(ticket, _Ticket) or usage is None:
            return Noted()
        paid = _prices(curated.model)
        spent = cost(reply.usage or usage, paid, ticket.prepared.at) if paid is not None else None
        observed = self._engine.observe(ticket.prepared, usage)
        diagnosis = observed.diagnosis
        short = diagnosis.shortfall > 0 and diagnosis.cause not in _NOT_SHORT
        return Noted(
            spent,
            self._gain(ticket),
            diagnosis.shortfall if short else 0,
            diagnosis.words if short else "",
            diagnosis.cause if short else "",
            diagnosis.who if short else "",
            observed.failure or "",
        )

    def recall(self, curated: Curated, call: OwnCall) -> Result:
        """Answer a call by the session's own store."""
        session = self._engine.session(curated.session)
        found = answer(session, call.name, Call(call.arguments, id=call.id))
        return Result(call, found.text, found.is_error)

    def spliced(self, curated: Curated, exchange: Exchange) -> str:
        """Have the turns put in place of the client's message from now on."""
        ticket = curated.ticket
        if not isinstance(ticket, _Ticket):
            return "the request was not prepared here"
        return self._engine.spliced(ticket.prepared, exchange) or ""

    def close(self) -> None:
        """Let go of the store."""
        self._engine.close()

    def _account(self, prepared: PreparedRequest) -> Account | None:
        """What the session cost and saved up to this request, as the engine reckons it."""
        if prepared.entry is None:
            return None
        try:
            return self._engine.session(prepared.session).journal.state_at(prepared.entry).account
        except HostError:
            return None

    def _gain(self, ticket: "_Ticket") -> float | None:
        """What this session saved since it was last asked about."""
        if ticket.account is None:
            return None
        name, saved = ticket.prepared.session, ticket.account.saved
        with self._lock:
            before = self._saved.pop(name, 0.0)
            self._saved[name] = saved
            if len(self._saved) > _SESSIONS:
                self._saved.popitem(last=False)
        return saved - before


@dataclass(frozen=True, slots=True)
class _Ticket:
    prepared: PreparedRequest
    account: Account | None


def _offers(fields: Mapping[str, bytes]) -> tuple[Offer, ...]:
    """The recall tools to offer beside the client's: none where it offers none itself, or has ours by way of MCP."""
    theirs = _tool_names(fields.get("tools", b"[]"))
    if not theirs or any("pagein" in name for name in theirs):
        return ()
    return tuple(Offer(tool.name, tool.description, tool.schema) for tool in (PEEK, SEARCH) if tool.name not in theirs)


def _standing(prepared: PreparedRequest, offers: Sequence[Offer]) -> frozenset[str]:
    """The names of those that the request does offer: what goes out after a failure may be the client's own."""
    asked = frozenset(one.name for one in offers)
    if not asked or not prepared.is_changed or prepared.failure is None:
        return asked if prepared.is_changed else frozenset()
    return asked & _tool_names(spans.fields(prepared.body, "the request body").get("tools", b"[]"))


@lru_cache(maxsize=64)
def _tool_names(tools: bytes) -> frozenset[str]:
    try:
        value = decode_json(tools)
    except ValueError:
        return frozenset()
    rows = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    inner = [one["function"] if isinstance(one.get("function"), dict) else one for one in rows]
    return frozenset(str(one.get("name")) for one in inner)


@lru_cache(maxsize=256)
def _prices(model: str) -> Prices | None:
    try:
        return prices(model)
    except BadSetting:
        return None


def _text(fields: Mapping[str, bytes], name: str) -> str:
    try:
        value = json.loads(fields.get(name, b'""'))
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""
