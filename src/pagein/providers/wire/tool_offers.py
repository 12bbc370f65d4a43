"""Tools of ours offered beside the client's, and turns that the client did not see put where they stood.

Rules of this file
------------------
1. The client's tools keep their bytes and their order; ours stand behind them, the same bytes in every request.
2. Where the client offers no tools nothing is offered: such a request (a title, a summary) is no turn of an agent. So a
   conversation has ours in all of its requests or in none.
3. A tool whose name the client has taken is not offered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pagein.model.codec import decode_json, encode_json
from pagein.providers.validity.rules import Api
from pagein.providers.wire import json_spans
from pagein.providers.wire.json_values import with_field


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool to offer. schema: of its arguments, a JSON schema of an object."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


def with_tools(fields: Mapping[str, bytes], api: Api, offers: Sequence[ToolOffer]) -> Mapping[str, bytes]:
    """The fields of a request with these tools offered too; the same where there is nothing to add."""
    raw = fields.get("tools")
    if raw is None or not offers or raw.lstrip()[:1] != b"[":  # null among others, which is as good as none
        return fields
    theirs = json_spans.items(raw, "tools")
    taken = _names(raw)
    ours = [encode_json(definition(one, api)) for one in offers if one.name not in taken]
    return fields if not theirs or not ours else {**fields, "tools": json_spans.array_of([*theirs, *ours])}


def with_answers(item: bytes, answers: Sequence[bytes]) -> bytes:
    """A user message of Anthropic's with these result blocks in front of what it holds."""

    def in_front(content: bytes | None) -> bytes:
        raw = (content or b"[]").strip()
        theirs = (
            [json_spans.object_of({"type": b'"text"', "text": raw})]
            if raw[:1] == b'"'
            else json_spans.items(raw, "content")
        )
        return json_spans.array_of([*answers, *theirs])

    return with_field(item, "content", in_front)


def names_of(fields: Mapping[str, bytes]) -> frozenset[str]:
    """The names of the tools that a request offers."""
    return _names(fields.get("tools", b"[]"))


@lru_cache(maxsize=64)
def _names(tools: bytes) -> frozenset[str]:
    """The tools of a client are large, and the same from call to call."""
    value = decode_json(tools)
    rows = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    inner = [one["function"] if isinstance(one.get("function"), dict) else one for one in rows]
    return frozenset(str(one.get("name")) for one in inner)


def definition(offer: ToolOffer, api: Api) -> dict[str, Any]:
    """A tool as it stands among the tools of a request."""
    about = {"name": offer.name, "description": offer.description}
    match api:
        case "anthropic":
            return {**about, "input_schema": offer.schema}
        case "openai_chat":
            return {"type": "function", "function": {**about, "parameters": offer.schema}}
        case "openai_responses":
            return {"type": "function", **about, "parameters": offer.schema, "strict": False}
