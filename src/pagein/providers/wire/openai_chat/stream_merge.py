"""Merge streams of OpenAI Chat Completions: a single id, consecutive call indexes, a single end."""

from collections.abc import Collection
from typing import Any, Final

from pagein.providers.wire.json_values import Json, decoded_object, first_object
from pagein.providers.wire.streams.model_turn import GAP
from pagein.providers.wire.streams.stream_merge import UNTOLD, StreamMerger, data_of, error_in, unnamed_frame

_TRIGGERS: Final = (
    b'"tool_calls"',
    b'"finish_reason":"',
    b'"finish_reason": "',
    b'"usage":{',
    b'"usage": {',
    b"[DONE]",
    b'"error"',
)
_ONE_ANSWER: Final = ("id", "created")


class ChatMerger(StreamMerger):
    """Merges the turns of a Chat Completions answer for the client (first choice only)."""

    def __init__(self, ours: Collection[str]) -> None:
        super().__init__(ours, _TRIGGERS)
        self._head: dict[str, Any] | None = None
        self._places: dict[int, int | None] = {}
        self._count = 0
        self._finish: dict[str, Any] | None = None
        self._counted: dict[str, Any] | None = None
        self._done = b""
        self._gap = ""

    def begin(self, *, spoke: bool) -> None:
        """Begin another turn."""
        super().begin(spoke=spoke)
        self._places, self._finish, self._counted, self._done = {}, None, None, b""
        self._gap = GAP if spoke else ""

    def end_frames(self) -> bytes:
        """Return the end of the answer."""
        ends = [value for value in (self._finish, self._counted) if value is not None]
        usage = self.usage
        told = [{**value, "usage": usage} if isinstance(value.get("usage"), dict) else value for value in ends]
        return b"".join([*(unnamed_frame(value) for value in told), self._done])

    def failure(self, body: bytes) -> bytes:
        """Return an error in mid-stream."""
        error = error_in(body) or {"message": UNTOLD, "type": "server_error", "param": None, "code": None}
        return unnamed_frame({"error": error})

    def _passes(self, frames: bytes) -> bool:
        return self._head is not None and super()._passes(frames)

    def _frame(self, raw: bytes) -> bytes:
        data = data_of(raw)
        if data.strip() == b"[DONE]":
            self.ended = True
            self._done = raw
            return b"" if self.held else raw
        value = decoded_object(data)
        if value is None:
            return raw
        if isinstance(value.get("error"), dict):
            self.failed = True
            return raw
        if self._head is None:
            self._head = {name: value[name] for name in _ONE_ANSWER if name in value}
        return self._chunk(raw, value)

    def _chunk(self, raw: bytes, value: dict[str, Any]) -> bytes:
        if isinstance(usage := value.get("usage"), dict):
            self._usage = usage
        choice = first_object(value.get("choices"))
        if choice is None:
            if not self.held or not isinstance(usage, dict):
                return raw
            self._counted = {**value, **(self._head or {})}
            return b""
        delta = choice.get("delta")
        made = self._delta(delta) if isinstance(delta, dict) else {}
        finish = choice.get("finish_reason")
        if finish is not None:
            self.ended = True
        if not self.held:
            return raw if made == delta else unnamed_frame(_with(value, choice, made))
        value = {**value, **(self._head or {})}
        if finish is not None:
            self._finish = _with(value, choice, {})
            value, choice = {**value, "usage": None}, {**choice, "finish_reason": None}
        return unnamed_frame(_with(value, choice, made)) if _says(made) else b""

    def _delta(self, delta: dict[str, Any]) -> dict[str, Any]:
        """Return the delta without recall calls."""
        made = dict(delta)
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            kept = [one for one in (self._call(call) for call in calls) if one is not None]
            made = {**made, "tool_calls": kept} if kept else {k: v for k, v in made.items() if k != "tool_calls"}
        if self.later:
            made.pop("role", None)
            if self._gap and made.get("content"):
                made["content"], self._gap = self._gap + str(made["content"]), ""
        return made

    def _call(self, call: object) -> object:
        if not isinstance(call, dict):
            return call
        index, function = call.get("index"), call.get("function")
        if not isinstance(index, int):
            index = 0
        name = function.get("name") if isinstance(function, dict) else None
        if index not in self._places:
            ours = name in self.ours
            self._places[index] = None if ours else self._count
            self._count += not ours
            self.held |= ours
        place = self._places[index]
        return None if place is None else {**call, "index": place}


def _with(value: Json, choice: Json, delta: Json) -> dict[str, Any]:
    return {**value, "choices": [{**choice, "delta": delta}]}


def _says(delta: dict[str, Any]) -> bool:
    """Return whether a delta adds anything."""
    return any(one not in (None, "", []) for name, one in delta.items() if name != "role")
