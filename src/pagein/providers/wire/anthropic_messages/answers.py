"""Answers of Anthropic Messages: the turn in an answer, and the messages that continue it."""

from collections.abc import Collection, Sequence

from pagein.model.json_text import array_of, encode_json
from pagein.providers.wire.anthropic_messages.stream_merge import SEARCH_RESULT
from pagein.providers.wire.json_values import Json, objects_in, with_field
from pagein.providers.wire.message_texts import blocks_of
from pagein.providers.wire.streams.answer_merge import merge_envelopes
from pagein.providers.wire.streams.model_reply import ModelReply
from pagein.providers.wire.streams.model_turn import ModelTurn, OwnCall, OwnToolResult, object_or_empty


def turn(reply: ModelReply, ours: Collection[str]) -> ModelTurn:
    """Separate recall calls from the client's calls."""
    blocks = [one for one in objects_in((reply.message or {}).get("content")) if _stays(one)]
    if not reply.finished:
        blocks = [one for one in blocks if one.get("type") != "tool_use" and one.get("signature") != ""]
    hidden = [one for one in blocks if one.get("type") == "tool_use" and one.get("name") in ours]
    searches = searches_in(blocks, ours) if reply.finished else []
    blocks = [one for one in blocks if one in searches or not _is_search(one, ours)]
    visible = [one for one in blocks if one not in hidden and one not in searches]
    waits = reply.stop == "tool_use" and reply.finished
    own = tuple(OwnCall(str(one.get("id")), str(one["name"]), object_or_empty(one.get("input"))) for one in hidden)
    shown = _assistant(visible)
    return ModelTurn(
        own if waits else (),
        _assistant(blocks if waits else [one for one in blocks if one not in hidden]),
        shown,
        any(one.get("type") == "tool_use" for one in visible),
    )


def searches_in(blocks: Sequence[Json], ours: Collection[str]) -> list[Json]:
    """Return the finished searches for deferred tools, with the results."""
    found = {one.get("tool_use_id") for one in blocks if one.get("type") == SEARCH_RESULT}
    calls = {one.get("id") for one in blocks if _is_search(one, ours)}
    pairs = found & calls
    return [one for one in blocks if _name_of_search(one) in pairs]


def _is_search(block: Json, ours: Collection[str]) -> bool:
    return block.get("type") == "server_tool_use" and block.get("name") in ours


def _name_of_search(block: Json) -> object:
    name = {"server_tool_use": "id", SEARCH_RESULT: "tool_use_id"}.get(str(block.get("type")))
    return block.get(name) if name is not None else None


def _stays(block: Json) -> bool:
    """Return whether a block may be sent back: providers refuse empty texts."""
    return block.get("type") != "text" or bool(block.get("text"))


def _assistant(blocks: Sequence[Json]) -> tuple[bytes, ...]:
    return (encode_json({"role": "assistant", "content": blocks}),) if blocks else ()


def result(one: OwnToolResult) -> Json:
    """A recall result as a block of a user message."""
    block = {"type": "tool_result", "tool_use_id": one.call.id, "content": one.text}
    return {**block, "is_error": True} if one.is_error else block


def results(blocks: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Wrap recall results in one user message."""
    return (b'{"role":"user","content":[' + b",".join(blocks) + b"]}",) if blocks else ()


def with_results(item: bytes, blocks: Sequence[bytes]) -> bytes:
    """Insert result blocks at the start of a user message."""
    return with_field(item, "content", lambda content: array_of([*blocks, *blocks_of(content)]))


def merged(answers: Sequence[Json], ours: Collection[str]) -> Json:
    """Merge answers: the blocks of all, without recall calls."""
    blocks = [block for one in answers for block in objects_in(one.get("content"))]
    searches = searches_in(blocks, ours)
    kept = [one for one in blocks if not (one.get("type") == "tool_use" and one.get("name") in ours)]
    kept = [one for one in kept if one not in searches and not _is_search(one, ours)]
    return merge_envelopes(answers, {"content": kept})
