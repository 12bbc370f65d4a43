"""Read the stream of an Anthropic Messages answer. State is kept by block index, because blocks may be interleaved."""

from dataclasses import dataclass, field, replace
from typing import Any, Final

from pagein.providers.wire.anthropic_messages.usage import usage_from
from pagein.providers.wire.json_values import Json, count_at, decoded_object, text_at
from pagein.providers.wire.streams.event_stream import Event
from pagein.providers.wire.streams.model_reply import NO_REPLY, ModelReply, error_kind

_LONGEST_REASON: Final = 60


@dataclass(slots=True)
class MessagesReader:
    """Reads Anthropic Messages."""

    usage: dict[str, Any] = field(default_factory=dict)
    began: dict[str, Any] = field(default_factory=dict)
    blocks: dict[int, dict[str, Any]] = field(default_factory=dict)
    pieces: dict[int, dict[str, list[str]]] = field(default_factory=dict)
    stop: str = ""
    finished: bool = False
    error: str = ""
    miss: str = ""
    id: str = ""

    def take(self, event: Event) -> None:
        """Read an event."""
        value = decoded_object(event.data)
        if value is None:
            return
        kind = value.get("type")
        if kind == "content_block_delta":
            self._delta(count_at(value, "index"), value.get("delta"))
        elif kind == "content_block_start":
            block = value.get("content_block")
            self.blocks[count_at(value, "index")] = dict(block) if isinstance(block, dict) else {}
        elif kind == "message_start":
            message = value.get("message")
            self._add_usage(message.get("usage") if isinstance(message, dict) else None)
            self.began = dict(self.usage)
            self.miss, self.id = _cache_miss(message), text_at(message, "id")
        elif kind == "message_delta":
            self._add_usage(value.get("usage"))
            self.stop = text_at(value.get("delta"), "stop_reason") or self.stop
        elif kind == "message_stop":
            self.finished = True
        elif kind == "error":
            self.error = error_kind(value.get("error"))

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
        """Return the reply read so far."""
        blocks = [self._block(index) for index in sorted(self.blocks)]
        usage = usage_from(self.usage) if self.usage else None
        # after each result of a tool of the provider the model reads the prompt again, and the usage at the end is the sum
        is_sum = bool(self.began) and any(one.get("type") == "server_tool_use" for one in blocks)
        first = replace(usage_from(self.began), output=usage.output) if is_sum and usage is not None else None
        return ModelReply(
            usage,
            _assistant(blocks) if blocks else None,
            self.stop,
            self.finished,
            self.error,
            first,
            miss=self.miss,
            id=self.id,
        )

    def _block(self, index: int) -> dict[str, Any]:
        block = dict(self.blocks[index])
        for name, pieces in self.pieces.get(index, {}).items():
            text = "".join(pieces)
            if name == "partial_json":
                block["input"] = decoded_object(text.encode("utf-8", "surrogatepass")) or {}
            else:
                block[name] = str(block.get(name) or "") + text
        return block


_DELTAS: Final = {
    "text_delta": "text",
    "input_json_delta": "partial_json",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}


def _assistant(content: object) -> Json | None:
    return {"role": "assistant", "content": content} if isinstance(content, list) else None


def whole(value: Json) -> ModelReply:
    """Read an answer without streaming."""
    if value.get("type") != "message":
        return NO_REPLY
    usage = value.get("usage")
    told = usage_from(usage) if isinstance(usage, dict) else None
    return ModelReply(
        told,
        _assistant(value.get("content")),
        text_at(value, "stop_reason"),
        finished=True,
        miss=_cache_miss(value),
        id=text_at(value, "id"),
    )


def _cache_miss(message: object) -> str:
    """Return the reason in an answer to a request with `diagnostics`: `tools changed, 5120 tokens`; "" without one."""
    asked = message.get("diagnostics") if isinstance(message, dict) else None
    found = asked.get("cache_miss_reason") if isinstance(asked, dict) else None
    if not isinstance(found, dict) or not isinstance(kind := found.get("type"), str):
        return ""
    tokens = found.get("cache_missed_input_tokens")
    words = kind[:_LONGEST_REASON].replace("_", " ")
    return f"{words}, {tokens} tokens" if isinstance(tokens, int) else words
