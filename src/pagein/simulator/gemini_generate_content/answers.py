"""Answers of the simulated provider as Gemini. Only a thought's signature binds: it stands on the first call."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pagein.model.json_text import encode_json
from pagein.simulator.neutral_answer import ReplyCall, ReplyText, ReplyThought, SimulatedReply

_STATUSES: Final[Mapping[int, str]] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_WORDS: Final[Mapping[int, str]] = {
    429: "Resource has been exhausted (e.g. check quota).",
    500: "An internal error has occurred.",
    503: "The model is overloaded. Please try again later.",
    529: "The model is overloaded. Please try again later.",
}
_STOPS: Final[Mapping[str, str]] = {"max_tokens": "MAX_TOKENS", "end_turn": "STOP", "tool_use": "STOP"}


def whole(reply: SimulatedReply) -> dict[str, Any]:
    """The body of a complete answer."""
    return _answer(reply, _parts(reply), _stop(reply))


def events(reply: SimulatedReply) -> Iterator[bytes]:
    """The answer as the events of a stream. The last one has the reason for the end, and no content."""
    for part in _parts(reply):
        text = part.get("text")
        pieces = reply.chunks(text) if isinstance(text, str) and text else []
        for piece in pieces[:-1]:
            yield _frame(_answer(reply, [{**part, "text": piece}]))
        yield _frame(_answer(reply, [{**part, "text": pieces[-1]} if pieces else part]))
    yield _frame(_answer(reply, [], _stop(reply)))


def error(status: int, message: str | None = None, kind: str | None = None) -> dict[str, Any]:
    """The body of an error. kind: its status in words."""
    words = message or _WORDS.get(status, "Error")
    return {"error": {"code": status, "message": words, "status": kind or _STATUSES.get(status, "UNKNOWN")}}


def error_event(status: int, message: str | None = None, kind: str | None = None) -> bytes:
    """An error in the middle of a stream."""
    return _frame(error(status, message, kind))


def _frame(value: Mapping[str, Any]) -> bytes:
    return b"data: " + encode_json(value) + b"\r\n\r\n"


def _answer(reply: SimulatedReply, parts: list[dict[str, Any]], stop: str = "") -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", **({"parts": parts} if parts else {})}}
    if stop:
        candidate["finishReason"] = stop
    return {
        "candidates": [{**candidate, "index": 0}],
        "usageMetadata": _usage(reply),
        "modelVersion": reply.model,
        "responseId": f"resp_{reply.tag}",
    }


def _parts(reply: SimulatedReply) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for block in reply.blocks:
        match block:
            case ReplyText():
                parts.append({"text": block.text})
            case ReplyThought(redacted=False):
                parts.append({"text": block.text, "thought": True})
            case ReplyCall():
                parts.append({"functionCall": {"name": block.name, "args": block.input, "id": f"call_{block.id}"}})
            case _:
                pass
    signatures = [block.signature for block in reply.blocks if isinstance(block, ReplyThought)]
    if signatures and parts:
        calls = [place for place, part in enumerate(parts) if "functionCall" in part]
        parts[calls[0] if calls else -1]["thoughtSignature"] = signatures[-1]
    return parts


def _usage(reply: SimulatedReply) -> dict[str, Any]:
    usage = reply.usage
    thoughts = min(reply.reasoning, usage.output)
    told = {
        "promptTokenCount": usage.prompt,
        "candidatesTokenCount": usage.output - thoughts,
        "totalTokenCount": usage.prompt + usage.output,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": usage.prompt}],
    }
    if usage.read:
        told |= {"cachedContentTokenCount": usage.read}
    return {**told, "thoughtsTokenCount": thoughts} if thoughts else told


def _stop(reply: SimulatedReply) -> str:
    return _STOPS.get(reply.stop, reply.stop) if reply.stop else "STOP"
