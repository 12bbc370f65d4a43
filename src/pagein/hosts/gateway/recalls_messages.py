"""Answers of Anthropic's Messages in which our tools are called (see `recalls`)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pagein.engine.exchanges import Exchange
from pagein.hosts.gateway.events import Event
from pagein.hosts.gateway.recalls import OwnCall, Result, event, extended, object_in, output_of
from pagein.hosts.gateway.replies import Reader, Reply, reader, whole
from pagein.model.codec import encode_json

_CALLED: Final = "tool_use"


@dataclass(slots=True)
class MessagesAnswer:
    """One answer of Anthropic's as the client sees it, over all the turns that it takes. ours: names of our tools."""

    ours: Collection[str]
    own: list[OwnCall] = field(default_factory=list)
    calls_client: bool = False
    ended: bool = False
    stop: str = ""
    rounds: list[Reply] = field(default_factory=list)
    _shown: list[dict[str, Any]] = field(default_factory=list)
    _actual: list[bytes] = field(default_factory=list)
    _said: Mapping[str, Any] = field(default_factory=dict)
    _reading: Reader = field(default_factory=lambda: reader("anthropic"))
    _places: dict[int, int | None] = field(default_factory=dict)
    _count: int = 0
    _moved: bool = False
    _unread: list[Event] = field(default_factory=list)
    _tail: list[tuple[bytes, dict[str, Any]]] = field(default_factory=list)

    # --- a stream ---

    def take(self, raw: bytes, one: Event | None) -> bytes:
        """What the client is sent for an event."""
        if one is None:
            return raw
        self._unread.append(one)
        if one.name == "content_block_delta" and not self._moved:
            return raw  # most of a stream; it is read when the turn is over
        value = object_in(one.data)
        return raw if value is None else self._passed(raw, value)

    def _passed(self, raw: bytes, value: dict[str, Any]) -> bytes:
        kind = value.get("type")
        if kind == "message_start":
            return b"" if self.rounds else raw
        if kind in ("content_block_start", "content_block_delta", "content_block_stop"):
            return self._block(raw, value)
        if kind in ("message_delta", "message_stop"):
            self._tail.append((raw, value))
            if kind == "message_stop":
                for unread in self._unread:
                    self._reading.take(unread)
                self._end(self._reading.reply())
            return b""
        return raw

    def over(self) -> None:
        """A turn that did not end itself is not at its end."""

    def tail(self) -> bytes:
        """The end of the answer."""
        return b"".join(self._ending(raw, value) for raw, value in self._tail)

    def _block(self, raw: bytes, value: dict[str, Any]) -> bytes:
        index = value.get("index")
        if not isinstance(index, int):
            return raw
        if value["type"] == "content_block_start":
            block = value.get("content_block")
            hidden = isinstance(block, dict) and block.get("type") == _CALLED and block.get("name") in self.ours
            self._places[index] = None if hidden else self._count
            self._moved = self._moved or hidden or self._count != index
            self._count += not hidden
        place = self._places.get(index, index)
        if place is None:
            return b""
        return raw if place == index else event(value | {"index": place}, value["type"])

    def _ending(self, raw: bytes, value: dict[str, Any]) -> bytes:
        usage = value.get("usage")
        if len(self.rounds) < 2 or value.get("type") != "message_delta" or not isinstance(usage, dict):  # noqa: PLR2004 -- the first turn tells for itself
            return raw
        told = usage | {"output_tokens": output_of(self.rounds)}
        return event(value | {"usage": told}, "message_delta")

    # --- an answer that is no stream ---

    def take_whole(self, body: bytes) -> bytes:
        """What the client is sent for a turn, where the answer ends with it."""
        value = object_in(body)
        if value is None or value.get("type") != "message":
            return body
        self._end(whole("anthropic", body))
        if self._shown == value.get("content"):
            return body
        usage = value.get("usage")
        told = usage | {"output_tokens": output_of(self.rounds)} if isinstance(usage, dict) else usage
        return encode_json(value | {"content": self._shown, "usage": told})

    # --- between the turns ---

    def _end(self, reply: Reply) -> None:
        blocks = list((reply.message or {}).get("content") or ())
        hidden = [one for one in blocks if one.get("type") == _CALLED and one.get("name") in self.ours]
        visible = [one for one in blocks if one not in hidden]
        self.rounds.append(reply)
        self._shown += visible
        self._said = {"role": "assistant", "content": [one for one in blocks if one.get("text") != ""]}
        self.own = [OwnCall(str(one.get("id")), str(one["name"]), one.get("input") or {}) for one in hidden]
        self.calls_client = any(one.get("type") == _CALLED for one in visible)
        self.stop, self.ended = reply.stop, True

    @property
    def goes_on(self) -> bool:
        """Whether the model waits for our results and for nothing else."""
        return self.ended and bool(self.own) and self.stop == _CALLED and not self.calls_client

    @property
    def is_spliced(self) -> bool:
        """Whether the client sees something else than what was said."""
        return bool(self._actual) or (bool(self.own) and self.stop == _CALLED)

    def go_on(self, body: bytes, results: Sequence[Result]) -> bytes:
        """The request that goes on with our results. body: the one that was answered."""
        said = encode_json(self._said)
        answer = encode_json({"role": "user", "content": [_result(one) for one in results]})
        self._actual += [said, answer]
        self._tail, self._places, self._unread, self.ended = [], {}, [], False
        self._reading = reader("anthropic")
        return extended(body, "messages", [said, answer])

    def exchange(self, results: Sequence[Result] = ()) -> Exchange:
        """What the client's message will stand for. results: of our calls beside the client's, in the last turn."""
        merged = encode_json({"role": "assistant", "content": self._shown})
        answers = tuple(encode_json(_result(one)) for one in results)
        return Exchange((merged,), (*self._actual, encode_json(self._said)), answers)


def _result(one: Result) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": one.call.id, "content": one.text}
    return block | {"is_error": True} if one.is_error else block
