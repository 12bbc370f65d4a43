"""Convert OpenAI Chat bodies to turns, the input of the validity rules."""

from collections.abc import Sequence

from pagein.providers.validity.turns import PromptTurn, TurnPart, Turns, Wire, padded_objects, text_at
from pagein.providers.wire.openai_shared import content_parts


def turns(body: Wire) -> Turns:
    """Convert a Chat body. Consecutive tool messages are one turn."""
    said: list[PromptTurn] = []
    for place, message in enumerate(padded_objects(body.get("messages"))):
        role = message.get("role")
        if role == "tool":
            part = TurnPart("result", place, 0, id=text_at(message, "tool_call_id"), source=message)
            if said and said[-1].parts and said[-1].parts[0].kind == "result":
                said[-1].parts.append(part)
            else:
                said.append(PromptTurn("user", place, [part]))
        elif role == "assistant":
            calls = [
                TurnPart("call", place, index, id=text_at(call, "id"), source=call)
                for index, call in enumerate(padded_objects(message.get("tool_calls")))
            ]
            said.append(PromptTurn("assistant", place, [*content_parts(message, place), *calls]))
        else:
            said.append(PromptTurn("user", place, content_parts(message, place) or [TurnPart("text", place, 0)]))
    return Turns(said, fields=body, from_wire=True)


def with_answer(body: Wire, answer: Sequence[Wire]) -> Wire:
    """Return a body with an answer behind it, given as the parts of its content."""
    said = {"role": "assistant", "content": list(answer)}
    return {**body, "messages": [*body.get("messages", ()), said]}
