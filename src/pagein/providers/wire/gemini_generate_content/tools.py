"""Tools in Gemini: lists of function declarations, beside tools that Google runs."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pagein.model.json_text import array_items, array_of, array_with, object_of
from pagein.providers.wire.gemini_generate_content.cache import EXPLICIT
from pagein.providers.wire.json_values import Json, field_value, objects_in, parse_item, with_field
from pagein.providers.wire.wire_format import ToolForm

_FUNCTIONS: Final = "functionDeclarations"
_SCHEMAS: Final = ("parametersJsonSchema", "parameters")


def definition(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Define a tool."""
    return {"name": name, "description": description, "parametersJsonSchema": schema}


def definitions(tools: object) -> list[Json]:
    """The functions one by one. Tools that Google runs have no definition."""
    return [_definition_of(one) for tool in objects_in(tools) for one in objects_in(tool.get(_FUNCTIONS))]


def _definition_of(function: Json) -> Json:
    schema: object = next((function[name] for name in _SCHEMAS if name in function), {})
    return {**{name: part for name, part in function.items() if name not in _SCHEMAS}, "parameters": schema}


def offered(tools: bytes, more: Sequence[bytes]) -> bytes:
    """Add functions after the client's own; in a tool of their own if the client has none."""
    items = array_items(tools, "tools")
    for place, item in enumerate(items):
        if isinstance(parse_item(item).get(_FUNCTIONS), list):
            items[place] = with_field(item, _FUNCTIONS, lambda raw: array_with(raw or b"[]", more))
            return array_of(items)
    return array_of([*items, object_of({_FUNCTIONS: array_of(more)})])


def is_function(tool: Json) -> bool:
    """Whether a tool's definition is a function of the client."""
    return "parameters" in tool


def may_continue(fields: Mapping[str, bytes]) -> bool:
    """Whether recall answers may continue a request: one candidate, calls at the model's choice, no named cache."""
    settings, config = field_value(fields, "generationConfig"), field_value(fields, "toolConfig")
    count = settings.get("candidateCount") if isinstance(settings, dict) else None
    calling = config.get("functionCallingConfig") if isinstance(config, dict) else None
    mode = calling.get("mode") if isinstance(calling, dict) else None
    return count in (None, 1) and mode in (None, "AUTO", "MODE_UNSPECIFIED") and EXPLICIT.field not in fields


FORM: Final = ToolForm(definition, definitions, offered, is_function, may_continue)
