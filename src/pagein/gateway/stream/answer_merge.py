"""Merge answers without streaming into a single answer for the client.

Recall calls are removed, and every turn's content is included.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from pagein.gateway.stream.chat_stream_merge import GAP
from pagein.gateway.stream.model_turns import not_done
from pagein.gateway.stream.stream_merge import sum_usage
from pagein.model.json_text import encode_json
from pagein.providers.validity.rules import Api

Json: TypeAlias = Mapping[str, Any]


def merge_answers(api: Api, answers: Sequence[Json], ours: Collection[str]) -> bytes:
    """Merge consecutive answers into a single answer.

    ours: names of the recall tools
    """
    first, last = answers[0], answers[-1]
    made = {**last, "id": first.get("id"), **_MERGERS[api](answers, ours)}
    usages = [one["usage"] for one in answers if isinstance(one.get("usage"), dict)]
    return encode_json({**made, "usage": sum_usage(usages)} if usages else made)


def _messages(answers: Sequence[Json], ours: Collection[str]) -> Json:
    blocks = [block for one in answers for block in _objects(one.get("content"))]
    return {"content": [one for one in blocks if not (one.get("type") == "tool_use" and one.get("name") in ours)]}


def _chat(answers: Sequence[Json], ours: Collection[str]) -> Json:
    choices = [choice for one in answers for choice in _objects(one.get("choices"))[:1]]
    said = [choice["message"] for choice in choices if isinstance(choice.get("message"), dict)]
    if not said:
        return {}
    calls = [call for one in said for call in _objects(one.get("tool_calls")) if _name(call) not in ours]
    text = ""
    for one in said:
        more = one.get("content")
        text += (GAP if more and not_done(text) else "") + (more if isinstance(more, str) else "")
    message = {name: value for name, value in said[-1].items() if name != "tool_calls"} | {"content": text or None}
    return {"choices": [{**choices[-1], "message": message | ({"tool_calls": calls} if calls else {})}]}


def _responses(answers: Sequence[Json], ours: Collection[str]) -> Json:
    items = [item for one in answers for item in _objects(one.get("output"))]
    return {"output": [one for one in items if not (one.get("type") == "function_call" and one.get("name") in ours)]}


def _objects(values: object) -> list[dict[str, Any]]:
    return list(_only_objects(values)) if isinstance(values, list) else []


def _only_objects(values: list[object]) -> Iterator[dict[str, Any]]:
    for one in values:
        if isinstance(one, dict):
            yield one


def _name(call: Json) -> object:
    function = call.get("function")
    return function.get("name") if isinstance(function, dict) else None


_MERGERS: Final[Mapping[Api, Callable[[Sequence[Json], Collection[str]], Json]]] = {
    "anthropic": _messages,
    "openai_chat": _chat,
    "openai_responses": _responses,
}
