"""Read the stream of an OpenAI Chat Completions answer: the first choice."""

from dataclasses import dataclass, field
from typing import Any

from pagein.model.messages import Usage
from pagein.providers.wire.json_values import Json, count_at, decoded_object, first_object, objects_in, text_at
from pagein.providers.wire.openai_shared import parsed_usage
from pagein.providers.wire.streams.event_stream import Event
from pagein.providers.wire.streams.model_reply import ModelReply, error_kind


@dataclass(slots=True)
class ChatReader:
    """Reads OpenAI Chat Completions: the first choice."""

    usage: Usage | None = None
    content: list[str] = field(default_factory=list)
    calls: dict[int, dict[str, Any]] = field(default_factory=dict)
    stop: str = ""
    finished: bool = False
    error: str = ""

    def take(self, event: Event) -> None:
        """Read an event."""
        if event.data.strip() == b"[DONE]":
            self.finished = True
            return
        value = decoded_object(event.data)
        if value is None:
            return
        if isinstance(value.get("error"), dict):
            self.error = error_kind(value["error"])
        self.usage = parsed_usage(value.get("usage")) or self.usage
        choice = first_object(value.get("choices")) or {}
        self.stop = text_at(choice, "finish_reason") or self.stop
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._delta(delta)

    def _delta(self, delta: Json) -> None:
        if piece := text_at(delta, "content"):
            self.content.append(piece)
        for one in objects_in(delta.get("tool_calls")):
            call = self.calls.setdefault(count_at(one, "index"), {"id": "", "name": "", "arguments": []})
            function = one.get("function")
            call["id"] = text_at(one, "id") or call["id"]
            call["name"] += text_at(function, "name")
            call["arguments"].append(text_at(function, "arguments"))

    def reply(self) -> ModelReply:
        """Return the reply read so far."""
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


def whole(value: Json) -> ModelReply:
    """Read an answer without streaming."""
    first = first_object(value.get("choices")) or {}
    message, stop = first.get("message"), text_at(first, "finish_reason")
    said = message if isinstance(message, dict) else None
    return ModelReply(parsed_usage(value.get("usage")), said, stop, bool(stop))
