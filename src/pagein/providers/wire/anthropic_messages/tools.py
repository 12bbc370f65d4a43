"""Tools in Anthropic Messages."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pagein.model.json_text import array_with
from pagein.providers.validity.request_settings import is_search_tool
from pagein.providers.wire.json_values import Json, field_value, objects_in
from pagein.providers.wire.wire_format import DeferralForm, ToolForm

SEARCH: Final = "tool_search_tool_regex"
"""Name of the provider's tool that searches, by regular expressions."""
_OWN_WAYS: Final = ("cache_control", "defer_loading")
# Claude Code's `ToolSearch` answers with references to tools that it then declares as deferred.
_SEARCHES: Final = re.compile(r"tool_?search", re.IGNORECASE)


def definition(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Define a tool."""
    return {"name": name, "description": description, "input_schema": schema}


def is_function(tool: Json) -> bool:
    """Whether a tool's definition is a function of the client."""
    return tool.get("type") in (None, "custom") and "input_schema" in tool


def may_continue(fields: Mapping[str, bytes]) -> bool:
    """Whether recall answers may continue a request."""
    return field_value(fields, "n") in (None, 1)


def _may_defer(tool: Json) -> bool:
    return is_function(tool) and bool(tool.get("name")) and not any(one in tool for one in _OWN_WAYS)


def _is_free(tools: Sequence[Json]) -> bool:
    return not any(
        is_search_tool(one)
        or "defer_loading" in one
        or "input_examples" in one
        or _SEARCHES.search(str(one.get("name")))
        for one in tools
    )


def _deferred(tool: bytes) -> bytes:
    return tool.rstrip()[:-1] + b',"defer_loading":true}'


# Sources: the vendor's page on the tool search tool, as of 2026-10: generally available, in no beta; the size of the tool from the
# announcement of advanced tool use, 2025-11-24 ("about 500 tokens").
_DEFERRAL: Final = DeferralForm(
    {"type": "tool_search_tool_regex_20251119", "name": SEARCH}, 500, _may_defer, _is_free, _deferred
)
FORM: Final = ToolForm(definition, objects_in, array_with, is_function, may_continue, _DEFERRAL)
