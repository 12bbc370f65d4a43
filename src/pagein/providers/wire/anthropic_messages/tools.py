"""Tools in Anthropic Messages."""

from collections.abc import Mapping
from typing import Any, Final

from pagein.providers.wire import json_spans
from pagein.providers.wire.json_values import Json, field_value, objects_in
from pagein.providers.wire.wire_format import ToolForm


def definition(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Define a tool."""
    return {"name": name, "description": description, "input_schema": schema}


def is_function(tool: Json) -> bool:
    """Whether a tool's definition is a function of the client."""
    return tool.get("type") in (None, "custom") and "input_schema" in tool


def may_continue(fields: Mapping[str, bytes]) -> bool:
    """Whether recall answers may continue a request."""
    return "n" not in fields or field_value(fields, "n") in (None, 1)


FORM: Final = ToolForm(definition, objects_in, json_spans.array_with, is_function, may_continue)
