"""Answers of the simulated provider as Anthropic Messages."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pagein.model.json_text import encode_json
from pagein.model.messages import Usage
from pagein.simulator.event_frames import event_frame
from pagein.simulator.neutral_answer import (
    FoundTools,
    ReplyCall,
    ReplySearch,
    ReplyText,
    ReplyThought,
    SimulatedReply,
    Spoken,
)

_KINDS: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_WORDS: Final[Mapping[int, str]] = {
    429: "This request would exceed your organization's rate limit.",
    500: "Internal server error",
    529: "Overloaded",
}


def whole(reply: SimulatedReply) -> dict[str, Any]:
    """The body of a complete answer."""
    return {
        **_head(reply),
        "content": [wire_block(block) for block in reply.blocks],
        "stop_reason": _stop(reply),
        "usage": _usage(reply.usage, reply.usage.output),
        **_edits(reply),
    }


def events(reply: SimulatedReply) -> Iterator[bytes]:
    """The answer as the events of a stream."""
    yield event_frame({"type": "message_start", "message": {**_head(reply), "usage": _start_usage(reply)}})
    yield event_frame({"type": "ping"})
    for index, block in enumerate(reply.blocks):
        yield event_frame({"type": "content_block_start", "index": index, "content_block": _empty_block(block)})
        for delta in _deltas(reply, block):
            yield event_frame({"type": "content_block_delta", "index": index, "delta": delta})
        yield event_frame({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": _stop(reply), "stop_sequence": None}
    # cumulative: the prompt's figures come again where a tool of the provider made it be read again
    usage = {"output_tokens": reply.usage.output} if reply.first is None else _usage(reply.usage, reply.usage.output)
    yield event_frame({"type": "message_delta", "delta": delta, "usage": usage, **_edits(reply)})
    yield event_frame({"type": "message_stop"})


def error(status: int, message: str | None = None, kind: str | None = None) -> dict[str, Any]:
    """The body of an error."""
    kind = kind or _KINDS.get(status, "invalid_request_error" if status < 500 else "api_error")  # noqa: PLR2004 - HTTP's classes
    return {"type": "error", "error": {"type": kind, "message": message or _WORDS.get(status, "Error")}}


def error_event(status: int, message: str | None = None, kind: str | None = None) -> bytes:
    """An error in the middle of a stream."""
    return event_frame(error(status, message, kind))


def wire_block(block: Spoken) -> dict[str, Any]:
    """A block of an answer, in the form of later requests."""
    match block:
        case ReplyText():
            return {"type": "text", "text": block.text}
        case ReplyThought(redacted=True):
            return {"type": "redacted_thinking", "data": block.signature}
        case ReplyThought():
            return {"type": "thinking", "thinking": block.text, "signature": block.signature}
        case ReplyCall():
            return {"type": "tool_use", "id": f"toolu_{block.id}", "name": block.name, "input": block.input}
        case ReplySearch():
            asked = {"pattern": block.query}
            return {"type": "server_tool_use", "id": f"srvtoolu_{block.id}", "name": block.name, "input": asked}
        case FoundTools():
            found = [{"type": "tool_reference", "tool_name": name} for name in block.names]
            content = {"type": "tool_search_tool_search_result", "tool_references": found}
            return {"type": "tool_search_tool_result", "tool_use_id": f"srvtoolu_{block.id}", "content": content}


def _head(reply: SimulatedReply) -> dict[str, Any]:
    return {
        "id": f"msg_{reply.tag}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        **({"input_transformations": list(reply.dropped)} if reply.dropped else {}),
        **reply.diagnosis,
    }


def _edits(reply: SimulatedReply) -> dict[str, Any]:
    return {} if reply.applied is None else {"context_management": {"applied_edits": list(reply.applied)}}


def _empty_block(block: Spoken) -> dict[str, Any]:
    match block:
        case ReplyText():
            return {"type": "text", "text": ""}
        case ReplyThought(redacted=False):
            return {"type": "thinking", "thinking": "", "signature": ""}
        case ReplyCall() | ReplySearch():
            return {**wire_block(block), "input": {}}
        case _:
            return wire_block(block)


def _deltas(reply: SimulatedReply, block: Spoken) -> Iterator[dict[str, Any]]:
    match block:
        case ReplyText():
            yield from ({"type": "text_delta", "text": part} for part in reply.chunks(block.text))
        case ReplyThought(redacted=False):
            yield from ({"type": "thinking_delta", "thinking": part} for part in reply.chunks(block.text))
            yield {"type": "signature_delta", "signature": block.signature}
        case ReplyCall():
            text = encode_json(block.input).decode() if block.is_free else block.arguments
            parts = ["", *reply.chunks(text)]
            yield from ({"type": "input_json_delta", "partial_json": part} for part in parts)
        case ReplySearch():
            text = encode_json({"pattern": block.query}).decode()
            yield from ({"type": "input_json_delta", "partial_json": part} for part in ["", *reply.chunks(text)])
        case _:
            return


def _start_usage(reply: SimulatedReply) -> dict[str, Any]:
    return _usage(reply.first or reply.usage, min(reply.usage.output, 1))


def _usage(usage: Usage, output: int) -> dict[str, Any]:
    return {
        "input_tokens": usage.fresh,
        "cache_creation_input_tokens": usage.written,
        "cache_read_input_tokens": usage.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.written - usage.written_1h,
            "ephemeral_1h_input_tokens": usage.written_1h,
        },
        "output_tokens": output,
        "service_tier": "standard",
    }


def _stop(reply: SimulatedReply) -> str:
    return reply.stop or ("tool_use" if reply.calls else "end_turn")
