"""Which tools of ours a conversation has: those of its first request that could have any, for good.

Rules of this file
------------------
1. Tools stand in front of everything that a provider caches. So a conversation has ours in all of its requests, the very same
   bytes also after an upgrade, or in none; what it began with is journaled on its branch.
2. They are offered to agents: to requests that offer functions of their client's, and let the model choose. Titles, searches of
   the provider's and probes have none of that, and settle nothing.
3. A client that brings tools of ours by itself (over MCP, say) is not offered them twice.
4. A response that the provider keeps is gone on with by its id, past us. So none are offered where it is kept.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from pagein.model.codec import decode_json
from pagein.model.entries import Body, Noted, RequestSent
from pagein.providers.validity import Api
from pagein.providers.wire.request import Envelope
from pagein.providers.wire.tools import Offer

KIND: Final = "request.tools"
Settled: TypeAlias = tuple[Offer, ...] | None
"""The tools of ours that a conversation has, None where that is open."""

_OURS: Final = re.compile(r"(^|_)pagein(_|$)|(^|_)rlm_peek$")
_FREE: Final = (None, "auto")


class _Tool(msgspec.Struct, frozen=True):
    name: str
    description: str
    schema: dict[str, Any]


def step(settled: Settled, body: Body) -> Settled:
    """What is settled after one more entry. A request that was sent with nothing settled had none."""
    if isinstance(body, Noted) and body.kind == KIND:
        try:
            tools = msgspec.json.decode(body.data, type=list[_Tool])
        except msgspec.MsgspecError:  # a record of another version
            return settled
        return tuple(Offer(one.name, one.description, one.schema) for one in tools)
    return () if settled is None and isinstance(body, RequestSent) else settled


def encoded(offers: Sequence[Offer]) -> str:
    """As it is journaled."""
    return msgspec.json.encode([_Tool(one.name, one.description, dict(one.schema)) for one in offers]).decode()


def offered(envelope: Envelope, offers: Sequence[Offer], settled: Settled) -> tuple[Offer, ...]:
    """The tools that a request is to have. offers: those that there are; none of them: the user wants none any more."""
    if not offers:
        return ()
    if settled is not None:
        return settled
    return tuple(offers) if _is_agents(envelope) else ()


def _is_agents(envelope: Envelope) -> bool:
    fields, api = envelope.fields, envelope.api
    tools = _value(fields, "tools")
    functions = (
        [one for one in tools if isinstance(one, dict) and _is_function(one, api)] if isinstance(tools, list) else []
    )
    if not functions or any(_OURS.search(_name(one)) for one in functions):
        return False
    choice = _value(fields, "tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    if kind not in _FREE:
        return False
    if api == "openai_responses":
        return _value(fields, "store") is False and not any(fields.get(one, b"null") != b"null" for one in _KEPT)
    return _value(fields, "n") in (None, 1)


_KEPT: Final = ("previous_response_id", "conversation")


def _is_function(tool: Mapping[str, Any], api: Api) -> bool:
    if api == "anthropic":
        return tool.get("type") in (None, "custom") and "input_schema" in tool
    return tool.get("type") == "function"


def _name(tool: Mapping[str, Any]) -> str:
    function = tool.get("function")
    return str((function if isinstance(function, dict) else tool).get("name"))


def _value(fields: Mapping[str, bytes], name: str) -> object:
    raw = fields.get(name)
    return None if raw is None else decode_json(raw)
