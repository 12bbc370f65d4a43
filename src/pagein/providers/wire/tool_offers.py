"""Offer recall tools beside the client's tools, defer tools of the client, and restore turns hidden from the client.

Rules of this file
------------------
1. The client's tools keep their bytes and their order; recall tools come after them, with the same bytes in every
   request.
2. If the client offers no tools, no recall tools are offered: such a request (a title, a summary) is not an agent's
   turn. So a conversation has recall tools in every request or never.
3. A recall tool is not offered if the client uses its name.
4. A deferred tool keeps its place and its bytes, but for the mark; the tool that searches comes last.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from pagein.model.json_text import array_items, array_of, decode_json, encode_json
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named

_NO_TOOLS: Final = (b"", b"[]", b"null")


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool to offer.

    schema: JSON schema of its arguments, an object. It takes no part in the hash, as mappings have none.
    """

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}}, hash=False)


def with_tools(fields: Mapping[str, bytes], api: Api, offers: Sequence[ToolOffer]) -> Mapping[str, bytes]:
    """Add tools to the fields of a request. Without a tool to add, return the same fields."""
    raw = fields.get("tools")
    if raw is None or not offers or raw.lstrip()[:1] != b"[":  # `null` counts as no tools
        return fields
    theirs = array_items(raw, "tools")
    taken = _names(raw, api)
    ours = [encode_json(definition(one, api)) for one in offers if one.name not in taken]
    return fields if not theirs or not ours else {**fields, "tools": format_named(api).tools.offered(raw, ours)}


def with_deferral(fields: Mapping[str, bytes], api: Api, names: Collection[str]) -> Mapping[str, bytes]:
    """Defer the client's tools with the given names, and add the provider's search tool.

    The same fields without a tool to defer, and for the tool that the request forces. A deferred tool keeps its place.
    """
    form, raw = format_named(api).tools, fields.get("tools")
    if raw is None or form.deferral is None or not names or raw.lstrip()[:1] != b"[":
        return fields
    made = _deferred(raw, api, frozenset(names) - {forced_tool(fields)})
    return fields if made is None else {**fields, "tools": made}


@lru_cache(maxsize=64)
def _deferred(raw: bytes, api: Api, names: frozenset[str]) -> bytes | None:
    """The bytes of some tools with deferred ones, cached: they are large, and equal from call to call."""
    form = format_named(api).tools
    rows = form.definitions(decode_json(raw))
    if form.deferral is None:
        return None
    items, changed = array_items(raw, "tools"), False
    for place, (row, item) in enumerate(zip(rows, items, strict=True)):
        if row.get("name") in names and form.deferral.may_defer(row):
            items[place], changed = form.deferral.deferred(item), True
    if not changed:
        return None
    search = form.deferral.search
    has_search = any(row.get("name") == search["name"] for row in rows)
    return array_of(items if has_search else [*items, encode_json(search)])


def deferred_names(fields: Mapping[str, bytes], api: Api) -> frozenset[str]:
    """The names of the deferred tools in a request."""
    return _names_of_deferred(fields.get("tools", b"[]"), api)


@lru_cache(maxsize=64)
def _names_of_deferred(tools: bytes, api: Api) -> frozenset[str]:
    rows = format_named(api).tools.definitions(decode_json(tools))
    return frozenset(str(one.get("name")) for one in rows if one.get("defer_loading") is True)


def search_tool(fields: Mapping[str, bytes], api: Api) -> str:
    """The name of the provider's search tool among the tools; "" without a search tool."""
    deferral = format_named(api).tools.deferral
    name = "" if deferral is None else str(deferral.search["name"])
    return name if name in names_of(fields, api) else ""


def forced_tool(fields: Mapping[str, bytes]) -> str:
    """The name of the tool that a request forces the model to call; "" without one."""
    raw = fields.get("tool_choice")
    choice = None if raw is None else decode_json(raw)
    return str(choice.get("name") or "") if isinstance(choice, dict) else ""


def with_answers(item: bytes, api: Api, answers: Sequence[bytes]) -> bytes:
    """Insert recall results at the start of the client's message, in a format whose messages hold several results."""
    insert = format_named(api).answers.with_results
    return item if insert is None else insert(item, answers)


def has_tools(fields: Mapping[str, bytes]) -> bool:
    """Whether a request has tools: one without is not an agent's turn."""
    return fields.get("tools", b"").strip() not in _NO_TOOLS


def names_of(fields: Mapping[str, bytes], api: Api) -> frozenset[str]:
    """The names of the tools in a request."""
    return _names(fields.get("tools", b"[]"), api)


@lru_cache(maxsize=64)
def _names(tools: bytes, api: Api) -> frozenset[str]:
    """The names of some tools, cached: a client's tools are large, and equal from call to call."""
    rows = format_named(api).tools.definitions(decode_json(tools))
    inner = [one["function"] if isinstance(one.get("function"), dict) else one for one in rows]
    return frozenset(str(one.get("name")) for one in inner)


def definition(offer: ToolOffer, api: Api) -> dict[str, Any]:
    """Define a tool in the form of a wire format."""
    return format_named(api).tools.definition(offer.name, offer.description, offer.schema)
