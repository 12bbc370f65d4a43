"""Convert Gemini bodies to turns, the input of the validity rules."""

from collections.abc import Sequence
from typing import Final

from pagein.providers.validity.turns import PartKind, PromptTurn, TurnPart, Turns, Wire, padded_objects, text_at

FILLER: Final = "skip_thought_signature_validator"
"""What clients write in place of a signature that they do not have. Google documents it for answers of other models."""


def turns(body: Wire) -> Turns:
    """Convert a body. Each content is one turn."""
    said = [
        PromptTurn("assistant" if one.get("role") == "model" else "user", place, _parts(one, place))
        for place, one in enumerate(padded_objects(body.get("contents")))
    ]
    return Turns(said, fields=body, from_wire=True)


def with_answer(body: Wire, answer: Sequence[Wire]) -> Wire:
    """Return a body with an answer behind it, given as parts."""
    return {**body, "contents": [*body.get("contents", ()), {"role": "model", "parts": list(answer)}]}


def _parts(content: Wire, message: int) -> list[TurnPart]:
    found: list[TurnPart] = []
    for place, part in enumerate(padded_objects(content.get("parts"))):
        signature = text_at(part, "thoughtSignature")
        if signature not in ("", FILLER) and part.get("thought") is not True:  # the thought itself is not sent back
            found.append(TurnPart("thinking", message, place, signature, source={"data": signature}))
        found.append(_part(part, message, place))
    return found


def _part(part: Wire, message: int, place: int) -> TurnPart:
    kind = _kind(part)
    inner = part.get("functionCall" if kind == "call" else "functionResponse")
    name = text_at(inner, "id") if isinstance(inner, dict) else ""
    if kind == "thinking":
        name = text_at(part, "thoughtSignature")
    return TurnPart(kind, message, place, name, text_at(part, "text"), source=part)


def _kind(part: Wire) -> PartKind:
    if isinstance(part.get("functionCall"), dict):
        return "call"
    if isinstance(part.get("functionResponse"), dict):
        return "result"
    if isinstance(part.get("text"), str):
        return "thinking" if part.get("thought") is True else "text"
    return "image" if "inlineData" in part or "fileData" in part else "other"
