"""Tools in OpenAI Responses."""

from collections.abc import Mapping
from typing import Any, Final

from pagein.model.json_text import array_with
from pagein.providers.wire.json_values import field_value, objects_in
from pagein.providers.wire.openai_shared import is_function
from pagein.providers.wire.wire_format import ToolForm

_KEPT: Final = ("previous_response_id", "conversation")


def definition(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Define a tool."""
    return {"type": "function", "name": name, "description": description, "parameters": schema, "strict": False}


def may_continue(fields: Mapping[str, bytes]) -> bool:
    """Whether recall answers may continue a request: the provider keeps nothing of the conversation."""
    return field_value(fields, "store") is False and not any(fields.get(one, b"null") != b"null" for one in _KEPT)


FORM: Final = ToolForm(definition, objects_in, array_with, is_function, may_continue)
