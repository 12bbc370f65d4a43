"""Parse a model's answer in parallel to its stream: usage, blocks, and completeness.

Parsing never affects the forwarded bytes; unknown parts are skipped. State is kept by block index, because blocks may be
interleaved.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from pagein.gateway.http.event_stream import Event
from pagein.model.messages import Usage
from pagein.providers.validity.rules import Api
from pagein.providers.wire.usage import parse_usage

Json: TypeAlias = Mapping[str, Any]

_DECODER: Final = msgspec.json.Decoder()
_MOST: Final = 1 << 50


@dataclass(frozen=True, slots=True)
class ModelReply:
    """An answer.

    usage: None if not reported; the sum over several turns
    message: the answer in the provider's form, as a client would send it back, or None
    finished: whether the answer is complete
    error: kind of an error reported in the answer, "" for none
    first: usage of the first turn, if recall calls led to several turns
    recalls: number of answered recall calls
    """

    usage: Usage | None = None
    message: Json | None = None
    stop: str = ""
    finished: bool = False
    error: str = ""
    first: Usage | None = None
    recalls: int = 0


NO_REPLY: Final = ModelReply()


class ReplyReader(Protocol):
    """Reads the events of a stream."""

    def take(self, event: Event) -> None:
        """Read an event."""

    def reply(self) -> ModelReply:
        """Return the reply read so far."""


def reader(api: Api) -> ReplyReader:
    """Return a reader for a stream of this wire format."""
    match api:
        case "anthropic":
            return _Messages()
        case "openai_chat":
            return _Chat()
        case "openai_responses":
            return _Responses()


def whole(api: Api, body: bytes) -> ModelReply:
    """Return the reply in a body without streaming."""
    value = _object(body)
    if value is None:
        return NO_REPLY
    error = value.get("error")
    if isinstance(error, dict):
        return ModelReply(error=_kind(error), usage=parse_usage(value.get("usage"), api))
    if api == "anthropic":
        if value.get("type") != "message":
            return NO_REPLY
        usage, said = parse_usage(value.get("usage"), api), _assistant(value.get("content"))
        return ModelReply(usage, said, _text(value, "stop_reason"), finished=True)
    if api == "openai_chat":
        first = _first(value.get("choices"))
        message, stop = first.get("message"), _text(first, "finish_reason")
        said = message if isinstance(message, dict) else None
        return ModelReply(parse_usage(value.get("usage"), api), said, stop, bool(stop))
    return _response(value)


@dataclass(slots=True)
class _Messages:
    """Reads Anthropic Messages."""

    usage: dict[str, Any] = field(default_factory=dict)
    blocks: dict[int, dict[str, Any]] = field(default_factory=dict)
    pieces: dict[int, dict[str, list[str]]] = field(default_factory=dict)
    stop: str = ""
    finished: bool = False
    error: str = ""

    def take(self, event: Event) -> None:
        value = _object(event.data)
        if value is None:
            return
        kind = value.get("type")
        if kind == "content_block_delta":
            self._delta(_count(value, "index"), value.get("delta"))
        elif kind == "content_block_start":
            block = value.get("content_block")
            self.blocks[_count(value, "index")] = dict(block) if isinstance(block, dict) else {}
        elif kind == "message_start":
            message = value.get("message")
            self._add_usage(message.get("usage") if isinstance(message, dict) else None)
        elif kind == "message_delta":
            self._add_usage(value.get("usage"))
            self.stop = _text(value.get("delta"), "stop_reason") or self.stop
        elif kind == "message_stop":
            self.finished = True
        elif kind == "error":
            self.error = _kind(value.get("error"))

    def _add_usage(self, usage: object) -> None:
        if isinstance(usage, dict):
            self.usage.update({name: count for name, count in usage.items() if count is not None})

    def _delta(self, index: int, delta: object) -> None:
        if not isinstance(delta, dict):
            return
        name = _DELTAS.get(str(delta.get("type")))
        if name is not None and isinstance(piece := delta.get(name), str):
            self.pieces.setdefault(index, {}).setdefault(name, []).append(piece)
        elif delta.get("type") == "citations_delta":
            self.blocks.setdefault(index, {}).setdefault("citations", []).append(delta.get("citation"))

    def reply(self) -> ModelReply:
        blocks = [self._block(index) for index in sorted(self.blocks)]
        usage = parse_usage(self.usage, "anthropic") if self.usage else None
        return ModelReply(usage, _assistant(blocks) if blocks else None, self.stop, self.finished, self.error)

    def _block(self, index: int) -> dict[str, Any]:
        block = dict(self.blocks[index])
        for name, pieces in self.pieces.get(index, {}).items():
            text = "".join(pieces)
            if name == "partial_json":
                block["input"] = _object(text.encode("utf-8", "surrogatepass")) or {}
            else:
                block[name] = str(block.get(name) or "") + text
        return block


_DELTAS: Final = {
    "text_delta": "text",
    "input_json_delta": "partial_json",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}


@dataclass(slots=True)
class _Chat:
    """Reads OpenAI Chat Completions: the first choice."""

    usage: Usage | None = None
    content: list[str] = field(default_factory=list)
    calls: dict[int, dict[str, Any]] = field(default_factory=dict)
    stop: str = ""
    finished: bool = False
    error: str = ""

    def take(self, event: Event) -> None:
        if event.data.strip() == b"[DONE]":
            self.finished = True
            return
        value = _object(event.data)
        if value is None:
            return
        if isinstance(value.get("error"), dict):
            self.error = _kind(value["error"])
        self.usage = parse_usage(value.get("usage"), "openai_chat") or self.usage
        choice = _first(value.get("choices"))
        self.stop = _text(choice, "finish_reason") or self.stop
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._delta(delta)

    def _delta(self, delta: Json) -> None:
        if piece := _text(delta, "content"):
            self.content.append(piece)
        calls = delta.get("tool_calls")
        for one in calls if isinstance(calls, list) else ():
            if not isinstance(one, dict):
                continue
            call = self.calls.setdefault(_count(one, "index"), {"id": "", "name": "", "arguments": []})
            function = one.get("function")
            call["id"] = _text(one, "id") or call["id"]
            call["name"] += _text(function, "name")
            call["arguments"].append(_text(function, "arguments"))

    def reply(self) -> ModelReply:
        calls = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": "".join(call["arguments"])},
            }
            for _, call in sorted(self.calls.items())
        ]
        said: dict[str, Any] = {"role": "assistant", "content": "".join(self.content) or None}
        if calls:
            said["tool_calls"] = calls
        message = said if calls or self.content else None
        return ModelReply(self.usage, message, self.stop, self.finished, self.error)


@dataclass(slots=True)
class _Responses:
    """Reads OpenAI Responses: the last event contains the complete answer."""

    ended: ModelReply = NO_REPLY
    items: dict[int, object] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        # deltas are most of a stream, and the last event repeats their content
        if event.name.endswith(".delta"):
            return
        value = _object(event.data)
        if value is None:
            return
        kind = _text(value, "type")
        if kind == "response.output_item.done":
            self.items[_count(value, "output_index")] = value.get("item")
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            response = value.get("response")
            self.ended = _response(response if isinstance(response, dict) else {})
        elif kind == "error":
            self.ended = ModelReply(error=_kind(value.get("error", value)))

    def reply(self) -> ModelReply:
        if self.ended.message is None and self.items:
            output = [item for _, item in sorted(self.items.items())]
            return replace(self.ended, message={"output": output})
        return self.ended


def _response(value: Json) -> ModelReply:
    status, output = _text(value, "status"), value.get("output")
    error = value.get("error")
    return ModelReply(
        parse_usage(value.get("usage"), "openai_responses"),
        {"output": output} if isinstance(output, list) and output else None,
        status,
        status in ("completed", "incomplete"),
        _kind(error) if isinstance(error, dict) else "",
    )


def _assistant(content: object) -> Json | None:
    return {"role": "assistant", "content": content} if isinstance(content, list) else None


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _first(choices: object) -> dict[str, Any]:
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _kind(error: object) -> str:
    return (_text(error, "type") or _text(error, "code") or "error") if isinstance(error, dict) else "error"


def _text(value: object, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def _count(value: object, name: str) -> int:
    """Return a count; providers also write whole numbers as 12.0."""
    found = value.get(name) if isinstance(value, dict) else None
    return int(found) if isinstance(found, int | float) and 0 <= found < _MOST else 0
