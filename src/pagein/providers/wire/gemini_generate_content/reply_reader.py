"""Read the stream of a Gemini answer: the first candidate. The reason for its end also ends the answer."""

from dataclasses import dataclass, field
from typing import Any

from pagein.model.messages import Usage
from pagein.providers.validity.turns import object_at
from pagein.providers.wire.gemini_generate_content.usage import FIELD, usage_from
from pagein.providers.wire.json_values import Json, decoded_object, first_object, objects_in, text_at
from pagein.providers.wire.streams.event_stream import Event
from pagein.providers.wire.streams.model_reply import ModelReply, error_kind


@dataclass(slots=True)
class GeminiReader:
    """Reads `streamGenerateContent?alt=sse`. Usage counts grow from event to event, so the last ones count."""

    usage: Usage | None = None
    parts: list[dict[str, Any]] = field(default_factory=list)
    stop: str = ""
    error: str = ""

    def take(self, event: Event) -> None:
        """Read an event."""
        value = decoded_object(event.data)
        if value is None:
            return
        if isinstance(value.get("error"), dict):
            self.error = text_at(value["error"], "status") or error_kind(value["error"])
        told = value.get(FIELD)
        if isinstance(told, dict):
            self.usage = usage_from(told)
        for part in parts_of(value):
            self._add(dict(part))
        self.stop = stop_of(value) or self.stop

    def _add(self, part: dict[str, Any]) -> None:
        last = self.parts[-1] if self.parts else {}
        if isinstance(part.get("text"), str) and _is_bare_text(part) and _is_bare_text(last) and _same(last, part):
            last["text"] += part["text"]
        else:
            self.parts.append(part)

    def reply(self) -> ModelReply:
        """Return the reply read so far."""
        message = {"role": "model", "parts": self.parts} if self.parts else None
        return ModelReply(self.usage, message, self.stop, bool(self.stop), self.error)


def _is_bare_text(part: Json) -> bool:
    """Whether a part is only text, which may be joined. A signature stays on its part."""
    return isinstance(part.get("text"), str) and not part.keys() - {"text", "thought"}


def _same(one: Json, other: Json) -> bool:
    return one.get("thought") == other.get("thought")


def first_candidate(value: Json) -> Json:
    """The first candidate of an answer or event."""
    return first_object(value.get("candidates")) or {}


def parts_of(value: Json) -> list[Json]:
    """The parts of the first candidate."""
    return objects_in(object_at(first_candidate(value), "content").get("parts"))


def stop_of(value: Json) -> str:
    """Why the answer ended; for a prompt that was blocked, why."""
    return text_at(first_candidate(value), "finishReason") or text_at(value.get("promptFeedback"), "blockReason")


def whole(value: Json) -> ModelReply:
    """Read an answer without streaming."""
    told, stop, parts = value.get(FIELD), stop_of(value), parts_of(value)
    usage = usage_from(told) if isinstance(told, dict) else None
    return ModelReply(usage, {"role": "model", "parts": parts} if parts else None, stop, bool(stop))
