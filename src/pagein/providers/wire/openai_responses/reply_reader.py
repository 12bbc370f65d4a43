"""Read the stream of an OpenAI Responses answer: the last event contains the complete answer."""

from dataclasses import dataclass, field, replace

from pagein.providers.wire.json_values import Json, count_at, decoded_object, text_at
from pagein.providers.wire.openai_shared import parsed_usage
from pagein.providers.wire.streams.event_stream import Event
from pagein.providers.wire.streams.model_reply import NO_REPLY, ModelReply, error_kind


@dataclass(slots=True)
class ResponsesReader:
    """Reads OpenAI Responses: the last event contains the complete answer."""

    ended: ModelReply = NO_REPLY
    items: dict[int, object] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Read an event."""
        # deltas are most of a stream, and the last event repeats their content
        if event.name.endswith(".delta"):
            return
        value = decoded_object(event.data)
        if value is None:
            return
        kind = text_at(value, "type")
        if kind == "response.output_item.done":
            self.items[count_at(value, "output_index")] = value.get("item")
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            response = value.get("response")
            self.ended = whole(response if isinstance(response, dict) else {})
        elif kind == "error":
            self.ended = ModelReply(error=error_kind(value.get("error", value)))

    def reply(self) -> ModelReply:
        """Return the reply read so far."""
        if self.ended.message is None and self.items:
            output = [item for _, item in sorted(self.items.items())]
            return replace(self.ended, message={"output": output})
        return self.ended


def whole(value: Json) -> ModelReply:
    """Read an answer without streaming, or the last event's answer."""
    status, output = text_at(value, "status"), value.get("output")
    error = value.get("error")
    return ModelReply(
        parsed_usage(value.get("usage")),
        {"output": output} if isinstance(output, list) and output else None,
        status,
        status in ("completed", "incomplete"),
        error_kind(error) if isinstance(error, dict) else "",
    )
