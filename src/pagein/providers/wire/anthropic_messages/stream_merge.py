"""Merge streams of Anthropic Messages.

Blocks of recall calls are removed, and so are searches for tools that pagein deferred, with their results: most clients know no
such blocks. The remaining blocks are numbered consecutively over every turn.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from pagein.providers.wire.json_values import decoded_object
from pagein.providers.wire.streams.stream_merge import UNTOLD, StreamMerger, data_of, error_in, named_frame

SEARCH_RESULT: Final = "tool_search_tool_result"
"""Type of the block with what a search for deferred tools found."""
_WRITTEN: Final = ("output_tokens",)
# Every frame except deltas and ends of blocks, which keep their bytes until something is held back.
_TRIGGERS: Final = (b"content_block_start", b"message_", b'"error"')


class MessagesMerger(StreamMerger):
    """Merges the turns of an answer in Anthropic's format for the client."""

    alive = b'event: ping\ndata: {"type": "ping"}\n\n'

    def __init__(self, ours: Collection[str]) -> None:
        super().__init__(ours, _TRIGGERS)
        self._places: dict[int, int | None] = {}
        self._searches: set[object] = set()
        self._count = 0
        self._end: list[tuple[bytes, dict[str, Any]]] = []

    def begin(self, *, spoke: bool) -> None:
        """Begin another turn."""
        super().begin(spoke=spoke)
        self._places, self._end = {}, []

    def end_frames(self) -> bytes:
        """Return the end of the answer."""
        return b"".join(self._end_frame(raw, value) for raw, value in self._end)

    def failure(self, body: bytes) -> bytes:
        """Return an error in mid-stream."""
        error = error_in(body) or {"type": "api_error", "message": UNTOLD}
        return named_frame("error", {"type": "error", "error": error})

    def _frame(self, raw: bytes) -> bytes:
        value = decoded_object(data_of(raw))
        match value.get("type") if value is not None else None:
            case "content_block_start" | "content_block_delta" | "content_block_stop":
                return self._block(raw, value or {})
            case "message_start":
                self._add_usage((value or {}).get("message"))
                return b"" if self.later else raw
            case "message_delta":
                self._add_usage(value)
                return self._hold_end(raw, value or {})
            case "message_stop":
                self.ended = True
                return self._hold_end(raw, value or {})
            case "error":
                self.failed = True
        return raw

    def _add_usage(self, value: Mapping[str, Any] | None) -> None:
        usage = value.get("usage") if isinstance(value, dict) else None
        if isinstance(usage, dict):
            self._usage.update({name: one for name, one in self._told(usage).items() if one is not None})

    def _told(self, usage: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return usage for the client. Behind a hidden search it counts the prompt twice, and clients read the fill level from it."""
        hides = bool(self._searches) and bool(self._usage)
        return {name: one for name, one in usage.items() if name in _WRITTEN} if hides else usage

    def _block(self, raw: bytes, value: dict[str, Any]) -> bytes:
        index = value.get("index")
        if not isinstance(index, int):
            return raw
        if value["type"] == "content_block_start":
            block = value.get("content_block")
            ours = isinstance(block, dict) and self._is_ours(block)
            self._places[index] = None if ours else self._count
            self._count += not ours
            self.held |= ours
        place = self._places.get(index, index)
        if place is None:
            return b""
        return raw if place == index else named_frame(value["type"], {**value, "index": place})

    def _is_ours(self, block: Mapping[str, Any]) -> bool:
        if block.get("type") == "server_tool_use" and block.get("name") in self.ours:
            self._searches.add(block.get("id"))
            return True
        if block.get("type") == SEARCH_RESULT:
            return block.get("tool_use_id") in self._searches
        return block.get("type") == "tool_use" and block.get("name") in self.ours

    def _hold_end(self, raw: bytes, value: dict[str, Any]) -> bytes:
        if not self.held:
            return raw
        self._end.append((raw, value))
        return b""

    def _end_frame(self, raw: bytes, value: dict[str, Any]) -> bytes:
        if not isinstance(value.get("usage"), dict) or not (self.later or self._searches):
            return raw
        return named_frame(str(value["type"]), {**value, "usage": self.usage})
