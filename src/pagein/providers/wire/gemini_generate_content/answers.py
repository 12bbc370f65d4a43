"""Answers of Gemini: the turn in an answer, and the contents that continue it."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from pagein.model.json_text import array_items, array_of, encode_json
from pagein.providers.validity.turns import object_at
from pagein.providers.wire.gemini_generate_content.reply_reader import first_candidate, parts_of
from pagein.providers.wire.gemini_generate_content.usage import FIELD, sum_usage
from pagein.providers.wire.json_values import Json, objects_in, text_at, with_field
from pagein.providers.wire.streams.model_reply import ModelReply
from pagein.providers.wire.streams.model_turn import GAP, ModelTurn, OwnCall, OwnToolResult, not_done

_STOP: Final = "STOP"
"""The reason for the end of a turn with calls, too: there is no reason of its own for them."""


def call_in(part: Json) -> Json:
    """The call in a part; an empty object for another part."""
    return object_at(part, "functionCall")


def turn(reply: ModelReply, ours: Collection[str]) -> ModelTurn:
    """Separate recall calls from the client's calls. Parts that go back keep their bytes and signatures."""
    parts = [one for one in objects_in((reply.message or {}).get("parts")) if _stays(one)]
    if not reply.finished:
        parts = [one for one in parts if not call_in(one)]
    hidden = [one for one in parts if call_in(one).get("name") in ours]
    visible = [one for one in parts if one not in hidden]
    waits = reply.finished and reply.stop == _STOP
    own = tuple(_own_call(call_in(one)) for one in hidden)
    shown = _content(visible)
    texts = [one["text"] for one in visible if isinstance(one.get("text"), str)]
    return ModelTurn(
        own if waits else (),
        _content(parts) if waits else shown,
        shown,
        any(call_in(one) for one in visible),
        not_done(texts[-1]) if texts else False,
    )


def _own_call(call: Json) -> OwnCall:
    return OwnCall(text_at(call, "id"), str(call["name"]), object_at(call, "args"))


def _stays(part: Json) -> bool:
    """Whether a part goes back: summaries of thoughts do not, and empty texts only with a signature."""
    return part.get("thought") is not True and (part.get("text") != "" or "thoughtSignature" in part)


def _content(parts: Sequence[Json]) -> tuple[bytes, ...]:
    return (encode_json({"role": "model", "parts": parts}),) if parts else ()


def result(one: OwnToolResult) -> Json:
    """A recall result as a part. It has an id if the call had one."""
    told = {"name": one.call.name, "response": {"error" if one.is_error else "output": one.text}}
    return {"functionResponse": {**told, "id": one.call.id} if one.call.id else told}


def results(parts: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Wrap recall results in one content of the user."""
    return (b'{"role":"user","parts":[' + b",".join(parts) + b"]}",) if parts else ()


def with_results(item: bytes, parts: Sequence[bytes]) -> bytes:
    """Insert results at the start of a user's content."""
    return with_field(item, "parts", lambda raw: array_of([*parts, *array_items(raw or b"[]", "parts")]))


def merged(answers: Sequence[Json], ours: Collection[str]) -> Json:
    """Merge answers: the parts of all, without recall calls."""
    parts: list[Json] = []
    for one in answers:
        before = next((part.get("text") for part in reversed(parts) if part.get("thought") is not True), None)
        parts += with_gap(parts_of(one), GAP if not_done(before) else "")
    kept = [one for one in parts if call_in(one).get("name") not in ours]
    told = [one[FIELD] for one in answers if isinstance(one.get(FIELD), dict)]
    made: dict[str, Any] = dict(answers[-1])
    if kept:
        candidate = {**first_candidate(answers[-1]), "content": {"role": "model", "parts": kept}}
        made["candidates"] = [candidate]
    if "responseId" in answers[0]:
        made["responseId"] = answers[0]["responseId"]
    return {**made, FIELD: sum_usage(told)} if told else made


def with_gap(parts: Sequence[Json], gap: str) -> list[Json]:
    """The parts with a separator in front of their first text."""
    made = list(parts)
    place = next((at for at, one in enumerate(made) if one.get("text") and one.get("thought") is not True), None)
    if gap and place is not None:
        made[place] = {**made[place], "text": gap + str(made[place]["text"])}
    return made
