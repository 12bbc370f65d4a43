"""Merge streams of Gemini: one id, one end, and the parts of all turns without recall calls."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from pagein.providers.wire.gemini_generate_content.answers import call_in, with_gap
from pagein.providers.wire.gemini_generate_content.reply_reader import first_candidate, parts_of, stop_of
from pagein.providers.wire.gemini_generate_content.usage import FIELD, sum_usage
from pagein.providers.wire.json_values import Json, decoded_object
from pagein.providers.wire.streams.model_turn import GAP
from pagein.providers.wire.streams.stream_merge import UNTOLD, StreamMerger, data_of, error_in, unnamed_frame

TORN: Final = "pagein: the answer broke off upstream"
_TRIGGERS: Final = (b'"functionCall"', b'"finishReason"', b'"promptFeedback"', b'"error"')


class GeminiMerger(StreamMerger):
    """Merges the turns of an answer for the client (first candidate only)."""

    def __init__(self, ours: Collection[str]) -> None:
        super().__init__(ours, _TRIGGERS)
        self._first_id: object = None
        self._end: dict[str, Any] | None = None
        self._gap = ""

    def begin(self, *, spoke: bool) -> None:
        """Begin another turn."""
        super().begin(spoke=spoke)
        self._end, self._gap = None, GAP if spoke else ""

    @property
    def usage(self) -> dict[str, Any]:
        """The usage of every turn."""
        return sum_usage([one for one in (*self._used, self._usage) if one])

    def end_frames(self) -> bytes:
        """Return the end of the answer."""
        if self._end is None:
            return b""
        return unnamed_frame({**self._end, FIELD: self.usage} if self.usage else self._end)

    def failure(self, body: bytes) -> bytes:
        """Return an error in mid-stream. Clients of Google take a broken connection for final, and repeat after this."""
        return unnamed_frame({"error": error_in(body) or _unavailable(UNTOLD)})

    def broken(self) -> bytes:
        """Return an error in place of a torn frame, which clients of Google could not read, and after which none repeats."""
        if self.ended or self._passing:
            return super().broken()
        return unnamed_frame({"error": _unavailable(TORN)})

    def _passes(self, frames: bytes) -> bool:
        return self._first_id is not None and super()._passes(frames)

    def _frame(self, raw: bytes) -> bytes:
        value = decoded_object(data_of(raw))
        if value is None:
            return raw
        if isinstance(value.get("error"), dict):
            self.failed = True
            return raw
        if self._first_id is None:
            self._first_id = value.get("responseId", "")
        if isinstance(told := value.get(FIELD), dict):
            self._usage = told
        parts = parts_of(value)
        kept = [one for one in parts if call_in(one).get("name") not in self.ours]
        self.held |= len(kept) < len(parts)
        self.ended |= bool(stop_of(value))
        if not self.held:
            return raw
        value = {**value, "responseId": self._first_id} if "responseId" in value else value
        if stop_of(value) or not parts:
            self._end = _with_parts(value, [])
            return unnamed_frame(_without_end(_with_parts(value, self._spaced(kept)))) if kept else b""
        return unnamed_frame(_with_parts(value, self._spaced(kept))) if kept else b""

    def _spaced(self, parts: Sequence[Json]) -> Sequence[Json]:
        """The parts with the separator in front of the first text of the turn."""
        made = with_gap(parts, self._gap)
        if made != parts:
            self._gap = ""
        return made


def _unavailable(message: str) -> dict[str, Any]:
    return {"code": 503, "message": message, "status": "UNAVAILABLE"}


def _with_parts(value: Json, parts: Sequence[Json]) -> dict[str, Any]:
    candidate = first_candidate(value)
    if not candidate:
        return dict(value)
    content = {**candidate["content"], "parts": parts} if isinstance(candidate.get("content"), dict) else None
    bare = {name: one for name, one in candidate.items() if name != "content"}
    return {**value, "candidates": [{**({"content": content} if content and parts else {}), **bare}]}


def _without_end(value: Json) -> dict[str, Any]:
    candidate = {
        name: one for name, one in first_candidate(value).items() if name not in ("finishReason", "finishMessage")
    }
    return {**{name: one for name, one in value.items() if name != FIELD}, "candidates": [candidate]}
