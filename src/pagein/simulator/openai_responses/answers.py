"""Answers of the simulated provider as OpenAI Responses."""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from pagein.errors import HostError
from pagein.simulator.event_frames import event_frame
from pagein.simulator.neutral_answer import ReplyCall, ReplyText, ReplyThought, SimulatedReply, Spoken
from pagein.simulator.openai_chat.answers import error

__all__ = ["error", "error_event", "events", "items", "whole"]


def whole(reply: SimulatedReply) -> dict[str, Any]:
    """The body of a complete answer."""
    incomplete = reply.stop in ("max_tokens", "max_output_tokens")
    return {
        **_head(reply),
        "status": "incomplete" if incomplete else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if incomplete else None,
        "output": items(reply),
        "usage": _usage(reply),
    }


def items(reply: SimulatedReply) -> list[dict[str, Any]]:
    """The items of an answer, in the form of later requests."""
    return [_item(reply, place, block) for place, block in enumerate(reply.blocks)]


def events(reply: SimulatedReply) -> Iterator[bytes]:
    """The answer as the events of a stream."""
    numbers = count()
    for event in _events(reply):
        yield event_frame({**event, "sequence_number": next(numbers)})


def error_event(status: int, message: str | None = None, kind: str | None = None) -> bytes:
    """An error in the middle of a stream."""
    told = error(status, message, kind)["error"]
    return event_frame(
        {"type": "error", "code": told["code"] or told["type"], "message": told["message"], "param": None}
    )


def _events(reply: SimulatedReply) -> Iterator[dict[str, Any]]:
    begun = {**_head(reply), "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for place, block in enumerate(reply.blocks):
        item = _item(reply, place, block)
        yield {"type": "response.output_item.added", "output_index": place, "item": _empty_item(item)}
        spot = {"item_id": item["id"], "output_index": place}
        yield from ({**event, **spot} for event in _inside(reply, block, item))
        yield {"type": "response.output_item.done", "output_index": place, "item": item}
    done = whole(reply)
    yield {"type": f"response.{done['status']}", "response": done}


def _empty_item(item: Mapping[str, Any]) -> dict[str, Any]:
    fields: tuple[tuple[str, object], ...] = (("content", []), ("summary", []), ("arguments", ""), ("input", ""))
    empty = {name: value for name, value in fields if name in item}
    return {**item, "status": "in_progress", **empty}


def _inside(reply: SimulatedReply, block: Spoken, item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    match block:
        case ReplyText():
            part = {"type": "output_text", "text": "", "annotations": []}
            yield {"type": "response.content_part.added", "content_index": 0, "part": part}
            for text in reply.chunks(block.text):
                yield {"type": "response.output_text.delta", "content_index": 0, "delta": text}
            yield {"type": "response.output_text.done", "content_index": 0, "text": block.text}
            yield {"type": "response.content_part.done", "content_index": 0, "part": {**part, "text": block.text}}
        case ReplyThought():
            for part in item["summary"]:
                empty = {**part, "text": ""}
                yield {"type": "response.reasoning_summary_part.added", "summary_index": 0, "part": empty}
                for text in reply.chunks(part["text"]):
                    yield {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": text}
                yield {"type": "response.reasoning_summary_text.done", "summary_index": 0, "text": part["text"]}
                yield {"type": "response.reasoning_summary_part.done", "summary_index": 0, "part": part}
        case ReplyCall():
            kind = "response.custom_tool_call_input" if block.is_free else "response.function_call_arguments"
            field = "input" if block.is_free else "arguments"
            for text in reply.chunks(block.arguments):
                yield {"type": f"{kind}.delta", "delta": text}
            yield {"type": f"{kind}.done", field: block.arguments}


def _item(reply: SimulatedReply, place: int, block: Spoken) -> dict[str, Any]:
    name = f"{reply.tag}_{place}"
    match block:
        case ReplyText():
            content = [{"type": "output_text", "text": block.text, "annotations": []}]
            return {
                "id": f"msg_{name}",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": content,
            }
        case ReplyThought():
            summary = [] if block.redacted else [{"type": "summary_text", "text": block.text}]
            return {
                "id": f"rs_{name}",
                "type": "reasoning",
                "summary": summary,
                "encrypted_content": block.signature,
            }
        case ReplyCall():
            return _call(name, block)
        case _:
            raise HostError("in Responses the provider finds no deferred tools")


def _call(name: str, call: ReplyCall) -> dict[str, Any]:
    kind = (
        {"id": f"ctc_{name}", "type": "custom_tool_call"}
        if call.is_free
        else {"id": f"fc_{name}", "type": "function_call"}
    )
    said = {"input": call.arguments} if call.is_free else {"arguments": call.arguments}
    where = {} if call.namespace is None else {"namespace": call.namespace}
    return {**kind, "status": "completed", "call_id": f"call_{call.id}", "name": call.name, **where, **said}


def _head(reply: SimulatedReply) -> dict[str, Any]:
    return {
        "id": f"resp_{reply.tag}",
        "object": "response",
        "created_at": reply.created,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": reply.model,
        "parallel_tool_calls": True,
    }


def _usage(reply: SimulatedReply) -> dict[str, Any]:
    usage = reply.usage
    details = {"cached_tokens": usage.read}
    if reply.reports_writes:
        details["cache_write_tokens"] = usage.written
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": details,
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": reply.reasoning},
        "total_tokens": usage.prompt + usage.output,
    }
