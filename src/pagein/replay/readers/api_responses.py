"""Convert a response of a model API, whole or as a recorded event stream, to one assistant message with its usage."""

from collections.abc import Iterator

from pagein.model.messages import Message, Usage
from pagein.replay.readers.blocks import ToolCallIndex, anthropic_usage
from pagein.replay.readers.request_units import blocks
from pagein.replay.readers.row_fields import Row, count, number, object_at, objects, text
from pagein.replay.readers.rows import decode_json


def answer(response: object, calls: ToolCallIndex, at: float | None, model: str | None) -> Message | None:
    """Return the assistant message of a response; None for other input.

    response: an object, JSON text, or the text of an event stream.
    """
    row = _whole(response)
    if not row:
        return None
    if object_at(row, "error"):
        return Message("assistant", (), at, text(row, "model") or model, stop="error")
    said = row
    stop = text(row, "stop_reason", "status")
    rows: list[Row] = [{"role": "assistant", "content": row.get("content")}]
    choice = next(objects(row.get("choices")), None)
    if choice is not None:
        said, stop = object_at(choice, "message"), text(choice, "finish_reason")
        rows = [{**said, "role": "assistant"}]
    elif isinstance(row.get("output"), list):
        rows = list(objects(row.get("output")))
    return Message(
        role="assistant",
        blocks=tuple(block for unit in rows for block in blocks(unit, calls)),
        at=at,
        model=text(row, "model") or model,
        usage=usage(object_at(row, "usage")),
        stop=stop,
        id=text(row, "id"),
    )


def usage(row: Row) -> Usage | None:
    """Return the usage in any of the three wire formats; OpenAI counts cached tokens in the prompt, Anthropic apart
    from it.
    """
    if not row:
        return None
    details = object_at(row, "prompt_tokens_details") or object_at(row, "input_tokens_details")
    if "prompt_tokens" not in row and not details and "total_tokens" not in row:
        return anthropic_usage(row)
    read = number(details, "cached_tokens") or count(row, "prompt_cache_hit_tokens")
    written = count(details, "cache_write_tokens", "cache_creation_tokens")
    prompt = count(row, "prompt_tokens", "input_tokens")
    output = count(row, "completion_tokens", "output_tokens")
    return Usage(fresh=max(0, prompt - read - written), read=read, written=written, output=output)


def _whole(response: object) -> Row:
    if isinstance(response, dict):
        return object_at(response, "body") or object_at(response, "response") or response
    if not isinstance(response, str):
        return {}
    try:
        row = decode_json(response.encode())
    except ValueError:
        return _join_stream(list(_events(response)))
    return row if isinstance(row, dict) else {}


def _events(stream: str) -> Iterator[Row]:
    for line in stream.splitlines():
        if line.startswith("data:"):
            try:
                row = decode_json(line[len("data:") :].encode())
            except ValueError:
                continue
            if isinstance(row, dict):
                yield row


def _join_stream(events: list[Row]) -> Row:
    """Return the response of an event stream; for a torn stream, as far as received."""
    done = [
        object_at(event, "response")
        for event in events
        if text(event, "type") in ("response.completed", "response.done")
    ]
    if done:
        return done[-1]
    if any(event.get("type") == "message_start" for event in events):
        return _anthropic_stream(events)
    return _chat_stream(events) if any("choices" in event for event in events) else {}


def _anthropic_stream(events: list[Row]) -> Row:
    message: dict[str, object] = {}
    told: dict[str, object] = {}
    content: dict[int, dict[str, object]] = {}
    for event in events:
        delta = object_at(event, "delta")
        if event.get("type") == "message_start":
            message = dict(object_at(event, "message"))
            told.update(object_at(message, "usage"))
        elif event.get("type") == "content_block_start":
            content[count(event, "index")] = dict(object_at(event, "content_block"))
        elif event.get("type") == "content_block_delta":
            _grow(content.setdefault(count(event, "index"), {"type": "text"}), delta)
        elif event.get("type") == "message_delta":
            message["stop_reason"] = delta.get("stop_reason")
            told.update({key: value for key, value in object_at(event, "usage").items() if value is not None})
    rows = [_finish_block(content[index]) for index in sorted(content)]
    return {**message, "content": rows, "usage": told}


def _grow(block: dict[str, object], delta: Row) -> None:
    for key, field in (
        ("text", "text"),
        ("thinking", "thinking"),
        ("signature", "signature"),
        ("partial_json", "json"),
    ):
        piece = text(delta, key)
        if piece is not None:
            block[field] = str(block.get(field) or "") + piece


def _finish_block(block: dict[str, object]) -> Row:
    spelled = block.pop("json", None)
    if isinstance(spelled, str):
        try:
            block["input"] = decode_json(spelled.encode())
        except ValueError:
            block["input"] = {"torn": spelled}
    return block


def _chat_stream(events: list[Row]) -> Row:
    words: list[str] = []
    calls: dict[int, dict[str, str]] = {}
    stop: str | None = None
    for event in events:
        for choice in objects(event.get("choices")):
            delta = object_at(choice, "delta")
            words.append(text(delta, "content") or "")
            stop = text(choice, "finish_reason") or stop
            for piece in objects(delta.get("tool_calls")):
                call = calls.setdefault(count(piece, "index"), {"id": "", "name": "", "arguments": ""})
                call["id"] = text(piece, "id") or call["id"]
                call["name"] += text(object_at(piece, "function"), "name") or ""
                call["arguments"] += text(object_at(piece, "function"), "arguments") or ""
    told = next((object_at(event, "usage") for event in reversed(events) if object_at(event, "usage")), {})
    asked = [{"id": call["id"], "function": call} for call in calls.values()]
    message = {"content": "".join(words), "tool_calls": asked}
    model = next((text(event, "model") for event in events if text(event, "model")), None)
    return {"model": model, "usage": told, "choices": [{"message": message, "finish_reason": stop}]}
