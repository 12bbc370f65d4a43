"""Tools in OpenAI Chat Completions."""

from collections.abc import Mapping
from typing import Any, Final

from pagein.model.json_text import array_with
from pagein.providers.wire.json_values import field_value, objects_in
from pagein.providers.wire.openai_shared import is_function
from pagein.providers.wire.wire_format import ToolForm


def definition(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Define a tool."""
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def may_continue(fields: Mapping[str, bytes]) -> bool:
    """Whether recall answers may continue a request: only a request for a single choice."""
    return field_value(fields, "n") in (None, 1)


FORM: Final = ToolForm(definition, objects_in, array_with, is_function, may_continue)
