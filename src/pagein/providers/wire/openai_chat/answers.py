"""Answers of OpenAI Chat Completions: the turn in an answer, and the messages that continue it."""

from collections.abc import Collection, Sequence

from pagein.model.json_text import encode_json
from pagein.providers.validity.turns import object_at
from pagein.providers.wire.json_values import Json, objects_in
from pagein.providers.wire.streams.answer_merge import merge_envelopes
from pagein.providers.wire.streams.model_reply import ModelReply
from pagein.providers.wire.streams.model_turn import GAP, ModelTurn, OwnCall, OwnToolResult, arguments_in, not_done


def turn(reply: ModelReply, ours: Collection[str]) -> ModelTurn:
    """Separate recall calls from the client's calls."""
    message = dict(reply.message or {})
    calls = objects_in(message.pop("tool_calls", None))
    if not reply.stop:  # some servers do not send [DONE]
        calls = []
    hidden = [one for one in calls if _function(one).get("name") in ours]
    visible = [one for one in calls if one not in hidden]
    waits = reply.stop in ("tool_calls", "stop", "function_call")
    own = tuple(
        OwnCall(str(one.get("id")), str(_function(one)["name"]), arguments_in(_function(one))) for one in hidden
    )
    message.setdefault("role", "assistant")
    shown = _spoken(message, visible)
    return ModelTurn(
        own if waits else (),
        _spoken(message, calls) if waits else shown,
        shown,
        bool(visible),
        not_done(message.get("content")),
    )


def _spoken(message: Json, calls: Sequence[Json]) -> tuple[bytes, ...]:
    if not calls and not message.get("content"):
        return ()
    return (encode_json({**message, "tool_calls": calls} if calls else message),)


def _function(call: Json) -> Json:
    return object_at(call, "function")


def result(one: OwnToolResult) -> Json:
    """A recall result as a message."""
    return {"role": "tool", "tool_call_id": one.call.id, "content": one.text}


def merged(answers: Sequence[Json], ours: Collection[str]) -> Json:
    """Merge answers: the texts and the calls of all, without recall calls."""
    choices = [choice for one in answers for choice in objects_in(one.get("choices"))[:1]]
    said = [choice["message"] for choice in choices if isinstance(choice.get("message"), dict)]
    if not said:
        return merge_envelopes(answers, {})
    calls = [
        call for one in said for call in objects_in(one.get("tool_calls")) if _function(call).get("name") not in ours
    ]
    text = ""
    for one in said:
        more = one.get("content")
        text += (GAP if more and not_done(text) else "") + (more if isinstance(more, str) else "")
    message = {name: value for name, value in said[-1].items() if name != "tool_calls"} | {"content": text or None}
    choice = {**choices[-1], "message": message | ({"tool_calls": calls} if calls else {})}
    return merge_envelopes(answers, {"choices": [choice]})
