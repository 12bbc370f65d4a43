"""Answers of OpenAI Responses: the turn in an answer, and the items that continue it."""

from collections.abc import Collection, Sequence
from typing import Final

from pagein.model.json_text import encode_json
from pagein.providers.wire.json_values import Json, objects_in
from pagein.providers.wire.streams.answer_merge import merge_envelopes
from pagein.providers.wire.streams.model_reply import ModelReply
from pagein.providers.wire.streams.model_turn import ModelTurn, OwnCall, OwnToolResult, arguments_in

# Items that wait for an answer by the client.
_WAITING: Final = (
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
    "mcp_approval_request",
)


def is_own_call(item: Json, ours: Collection[str]) -> bool:
    """Return whether an item calls one of our tools. A tool of the same name in a namespace is the client's, such as that of an MCP server."""
    return item.get("type") == "function_call" and item.get("name") in ours and not item.get("namespace")


def turn(reply: ModelReply, ours: Collection[str]) -> ModelTurn:
    """Separate recall calls from the client's calls."""
    items = objects_in((reply.message or {}).get("output"))
    hidden = [one for one in items if is_own_call(one, ours)]
    waits = reply.stop == "completed"
    own = tuple(OwnCall(str(one.get("call_id")), str(one["name"]), arguments_in(one)) for one in hidden)
    visible = [one for one in items if one not in hidden]
    shown = _resent(visible)
    return ModelTurn(
        own if waits else (),
        _resent(items) if waits else shown,
        shown,
        any(one.get("type") in _WAITING for one in visible),
    )


def _resent(items: Sequence[Json]) -> tuple[bytes, ...]:
    """Return the items in a form accepted by the provider.

    Incomplete thinking is removed, together with ids that refer to it.
    """
    if all(one.get("encrypted_content") for one in items if one.get("type") == "reasoning"):
        return tuple(encode_json(one) for one in items)
    kept = [one for one in items if one.get("type") != "reasoning"]
    return tuple(encode_json({name: value for name, value in one.items() if name != "id"}) for one in kept)


def result(one: OwnToolResult) -> Json:
    """A recall result as an item."""
    return {"type": "function_call_output", "call_id": one.call.id, "output": one.text}


def merged(answers: Sequence[Json], ours: Collection[str]) -> Json:
    """Merge answers: the items of all, without recall calls."""
    items = [item for one in answers for item in objects_in(one.get("output"))]
    kept = [one for one in items if not is_own_call(one, ours)]
    return merge_envelopes(answers, {"output": kept})
