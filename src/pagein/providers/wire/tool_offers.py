"""Offer recall tools beside the client's tools, and restore turns hidden from the client.

Rules of this file
------------------
1. The client's tools keep their bytes and their order; recall tools come after them, with the same bytes in every
   request.
2. If the client offers no tools, no recall tools are offered: such a request (a title, a summary) is not an agent's
   turn. So a conversation has recall tools in every request or never.
3. A recall tool is not offered if the client uses its name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pagein.model.json_text import decode_json, encode_json
from pagein.providers.validity.rules import Api
from pagein.providers.wire import json_spans
from pagein.providers.wire.json_values import with_field


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool to offer.

    schema: JSON schema of its arguments, an object.
    """

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


def with_tools(fields: Mapping[str, bytes], api: Api, offers: Sequence[ToolOffer]) -> Mapping[str, bytes]:
    """Add tools to the fields of a request. Without a tool to add, return the same fields."""
    raw = fields.get("tools")
    if raw is None or not offers or raw.lstrip()[:1] != b"[":  # `null` counts as no tools
        return fields
    theirs = json_spans.items(raw, "tools")
    taken = _names(raw)
    ours = [encode_json(definition(one, api)) for one in offers if one.name not in taken]
    return fields if not theirs or not ours else {**fields, "tools": json_spans.array_of([*theirs, *ours])}


def with_answers(item: bytes, answers: Sequence[bytes]) -> bytes:
    """Insert result blocks at the start of an Anthropic user message."""

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
    """The names of the tools in a request."""
    return _names(fields.get("tools", b"[]"))


@lru_cache(maxsize=64)
def _names(tools: bytes) -> frozenset[str]:
    """The names of some tools, cached: a client's tools are large, and equal from call to call."""
    value = decode_json(tools)
    rows = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    inner = [one["function"] if isinstance(one.get("function"), dict) else one for one in rows]
    return frozenset(str(one.get("name")) for one in inner)


def definition(offer: ToolOffer, api: Api) -> dict[str, Any]:
    """Define a tool in the form of a wire format."""
    about = {"name": offer.name, "description": offer.description}
    match api:
        case "anthropic":
            return {**about, "input_schema": offer.schema}
        case "openai_chat":
            return {"type": "function", "function": {**about, "parameters": offer.schema}}
        case "openai_responses":
            return {"type": "function", **about, "parameters": offer.schema, "strict": False}
