"""Convert OpenAI Responses bodies to turns, the input of the validity rules."""

from collections.abc import Sequence
from typing import Final

from pagein.providers.validity.turns import PromptTurn, TurnPart, Turns, Wire, padded_objects, text_at
from pagein.providers.wire.openai_shared import content_parts

_CALLS: Final = ("function_call", "custom_tool_call", "local_shell_call")


def turns(body: Wire) -> Turns:
    """Convert a Responses body. Each item is a separate turn."""
    said = [
        PromptTurn("assistant" if _is_model_item(item) else "user", place, _item(item, place))
        for place, item in enumerate(padded_objects(body.get("input")))
    ]
    return Turns(said, fields=body, from_wire=True)


def with_answer(body: Wire, answer: Sequence[Wire]) -> Wire:
    """Return a body with an answer behind it, given as items."""
    given = body.get("input")
    return {**body, "input": [*(given if isinstance(given, list) else ()), *answer]}


def _is_model_item(item: Wire) -> bool:
    kind = text_at(item, "type")
    return item.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")


def _item(item: Wire, place: int) -> list[TurnPart]:
    kind = text_at(item, "type") or "message"
    if kind.endswith("_call_output"):
        return [TurnPart("result", place, 0, id=text_at(item, "call_id") or text_at(item, "id"), source=item)]
    if kind.endswith("_call") and text_at(item, "call_id"):
        # The provider itself may answer calls of further kinds.
        return [
            TurnPart("call" if kind in _CALLS else "server_call", place, 0, id=text_at(item, "call_id"), source=item)
        ]
    if kind == "reasoning":
        return [TurnPart("thinking", place, 0, id=text_at(item, "id"), source=item)]
    if kind == "message":
        return content_parts(item, place) or [TurnPart("text", place, 0, source=item)]
    return [TurnPart("other", place, 0, source=item)]
