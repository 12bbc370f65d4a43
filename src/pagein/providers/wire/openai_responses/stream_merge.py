"""Merge streams of OpenAI Responses: consecutive items and events, and a single response with the visible items."""

from collections.abc import Collection
from typing import Any, Final

from pagein.providers.wire.json_values import count_at, decoded_object
from pagein.providers.wire.openai_responses.answers import is_own_call
from pagein.providers.wire.streams.stream_merge import UNTOLD, StreamMerger, data_of, error_in, named_frame

_TRIGGERS: Final = (
    b"output_item",
    b"response.created",
    b"response.completed",
    b"response.incomplete",
    b"response.failed",
    b'"error"',
)
_ENDS: Final = ("response.completed", "response.incomplete")
_BEGINS: Final = ("response.created", "response.in_progress", "response.queued")


class ResponsesMerger(StreamMerger):
    """Merges the turns of an answer in the format of Responses for the client."""

    def __init__(self, ours: Collection[str]) -> None:
        super().__init__(ours, _TRIGGERS)
        self._response: dict[str, Any] = {}
        self._shown: list[object] = []
        self._places: dict[int, int | None] = {}
        self._count = 0
        self._dropped = 0
        self._number = 0
        self._last: tuple[str, dict[str, Any]] | None = None

    def begin(self, *, spoke: bool) -> None:
        """Begin another turn."""
        super().begin(spoke=spoke)
        self._places, self._last = {}, None

    def end_frames(self) -> bytes:
        """Return the end of the answer."""
        if self._last is None:
            return b""
        kind, value = self._last
        response = value.get("response")
        whole = dict(response) if isinstance(response, dict) else {}
        whole |= {"id": self._response.get("id", whole.get("id")), "output": self._shown}
        if isinstance(whole.get("usage"), dict):
            whole["usage"] = self.usage
        return named_frame(kind, {**value, "response": whole, "sequence_number": self._number})

    def failure(self, body: bytes) -> bytes:
        """Return an error in mid-stream."""
        told = error_in(body) or {"code": "server_error", "message": UNTOLD}
        error = {
            "code": told.get("code") or told.get("type") or "server_error",
            "message": told.get("message") or UNTOLD,
        }
        response = {**self._response, "status": "failed", "error": error, "output": self._shown}
        kind = "response.failed"
        return named_frame(kind, {"type": kind, "response": response, "sequence_number": self._number})

    def _frame(self, raw: bytes) -> bytes:
        value = decoded_object(data_of(raw))
        kind = value.get("type") if value is not None else None
        if value is None or not isinstance(kind, str):
            return raw
        if kind in _BEGINS:
            return self._begin_response(raw, value)
        if kind in _ENDS:
            return self._hold_end(raw, kind, value)
        if kind in ("error", "response.failed"):
            self.failed = True
        place = self._place(kind, value)
        if place is None:
            self._dropped += 1
            return b""
        return self._renumber(raw, kind, value, place)

    def _begin_response(self, raw: bytes, value: dict[str, Any]) -> bytes:
        if self.later:
            return b""
        response = value.get("response")
        self._response = response if isinstance(response, dict) else {}
        return raw

    def _hold_end(self, raw: bytes, kind: str, value: dict[str, Any]) -> bytes:
        response = value.get("response")
        usage = response.get("usage") if isinstance(response, dict) else None
        self._usage = usage if isinstance(usage, dict) else {}
        self.ended = True
        if not self.held:
            return raw
        if not self.later:
            self._number = count_at(value, "sequence_number") - self._dropped
        self._last = (kind, value)
        return b""

    def _place(self, kind: str, value: dict[str, Any]) -> int | None:
        """Return the client's index of a frame's item; -1 for a frame without item, None for a hidden item."""
        index = value.get("output_index")
        if not isinstance(index, int):
            return -1
        item = value.get("item")
        if kind == "response.output_item.added" or index not in self._places:
            ours = isinstance(item, dict) and is_own_call(item, self.ours)
            self._places[index] = None if ours else self._count
            self._count += not ours
            self.held |= ours
        place = self._places[index]
        if kind == "response.output_item.done" and place is not None:
            self._shown.append(item)
        return place

    def _renumber(self, raw: bytes, kind: str, value: dict[str, Any], place: int) -> bytes:
        if not self.held:
            return raw
        number = self._number if self.later else count_at(value, "sequence_number") - self._dropped
        self._number = number + 1
        made = dict(value)
        if place >= 0:
            made["output_index"] = place
        if "sequence_number" in made:
            made["sequence_number"] = number
        if isinstance(response := made.get("response"), dict) and self._response:
            made["response"] = {**response, "id": self._response.get("id")}
        return raw if made == value else named_frame(kind, made)
