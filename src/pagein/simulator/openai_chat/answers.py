"""Answers of the simulated provider as OpenAI Chat Completions. Thinking is only counted, never shown."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pagein.simulator.event_frames import data
from pagein.simulator.neutral_answer import ReplyCall, ReplyText, SimulatedReply

_KINDS: Final[Mapping[int, tuple[str, str | None]]] = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", None),
    413: ("invalid_request_error", "request_too_large"),
    429: ("requests", "rate_limit_exceeded"),
    500: ("server_error", None),
    503: ("server_error", None),
}
_WORDS: Final[Mapping[int, str]] = {
    429: "Rate limit reached for requests. Please try again later.",
    500: "The server had an error while processing your request. Sorry about that!",
    503: "The engine is currently overloaded, please try again later",
    529: "The engine is currently overloaded, please try again later",
}
_STOPS: Final[Mapping[str, str]] = {"max_tokens": "length", "end_turn": "stop", "tool_use": "tool_calls"}


def whole(reply: SimulatedReply) -> dict[str, Any]:
    """The body of a complete answer."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.calls:
        message["tool_calls"] = [_call(call, call.arguments) for call in reply.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _stop(reply)}
    return {**_head(reply, "chat.completion"), "choices": [choice], "usage": _usage(reply)}


def events(reply: SimulatedReply) -> Iterator[bytes]:
    """The answer as the events of a stream."""
    head = _head(reply, "chat.completion.chunk")

    def chunk(delta: Mapping[str, Any], stop: str | None = None) -> bytes:
        return data({**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": stop}]})

    yield chunk({"role": "assistant", "content": "" if reply.text or not reply.calls else None})
    index = 0
    for block in reply.blocks:
        if isinstance(block, ReplyText):
            yield from (chunk({"content": part}) for part in reply.chunks(block.text))
        elif isinstance(block, ReplyCall):
            yield chunk({"tool_calls": [{"index": index, **_call(block, "")}]})
            for part in reply.chunks(block.arguments):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
            index += 1
    yield chunk({}, _stop(reply))
    if reply.reports_usage:
        yield data({**head, "choices": [], "usage": _usage(reply)})
    yield b"data: [DONE]\n\n"


def error(status: int, message: str | None = None, kind: str | None = None) -> dict[str, Any]:
    """The body of an error. kind: its code."""
    type_, code = _KINDS.get(status, ("invalid_request_error" if status < 500 else "server_error", None))  # noqa: PLR2004 - HTTP's classes
    words = message or _WORDS.get(status, "Error")
    return {"error": {"message": words, "type": type_, "param": None, "code": kind or code}}


def error_event(status: int, message: str | None = None, kind: str | None = None) -> bytes:
    """An error in the middle of a stream."""
    return data(error(status, message, kind))


def _head(reply: SimulatedReply, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{reply.tag}",
        "object": kind,
        "created": reply.created,
        "model": reply.model,
        "service_tier": "default",
        "system_fingerprint": "fp_simulated",
    }


def _call(call: ReplyCall, arguments: str) -> dict[str, Any]:
    return {"id": f"call_{call.id}", "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _usage(reply: SimulatedReply) -> dict[str, Any]:
    usage = reply.usage
    details = {"cached_tokens": usage.read, "audio_tokens": 0}
    if reply.reports_writes:
        details["cache_write_tokens"] = usage.written
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": details,
        "completion_tokens_details": {"reasoning_tokens": reply.reasoning},
    }


def _stop(reply: SimulatedReply) -> str:
    return _STOPS.get(reply.stop, reply.stop) if reply.stop else ("tool_calls" if reply.calls else "stop")
