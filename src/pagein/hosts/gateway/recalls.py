"""Calls of our own tools, answered within one request of the client (DESIGN, section 11). Pure but for what it holds back.

Rules of this file
------------------
1. An answer without such a call passes as the very bytes it came as.
2. The client never sees a call of ours: its blocks are left out, and those behind it move up. What goes on after our results is
   put behind what the client saw, as one answer, while it comes.
3. The end of a turn is held until it is known whether the answer goes on.
4. Calls of the client's in the same turn end the answer: the client has to be asked. Our results then wait for its own.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pagein.engine.exchanges import Exchange
from pagein.hosts.gateway.events import Event, EventStream
from pagein.hosts.gateway.replies import Reply, reader, whole
from pagein.model.codec import decode_json, encode_json
from pagein.providers.wire import spans

_BLANK_LINE: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_CALLED: Final = "tool_use"


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call of a tool of ours."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """What a call is answered with."""

    call: OwnCall
    text: str
    is_error: bool = False


class RawEvents:
    """The events of a stream, each with the bytes it came as."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, part: bytes) -> Iterator[tuple[bytes, Event | None]]:
        """The events that these bytes complete; None for bytes that hold none, such as comments."""
        self._held += part
        start = 0
        for end in _BLANK_LINE.finditer(self._held):
            raw, start = self._held[start : end.end()], end.end()
            events = EventStream().feed(raw)
            yield raw, events[0] if events else None
        self._held = self._held[start:]

    @property
    def rest(self) -> bytes:
        """What came behind the last event."""
        return self._held


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
    _reading: Any = field(default_factory=lambda: reader("anthropic"))
    _places: dict[int, int | None] = field(default_factory=dict)
    _count: int = 0
    _tail: list[tuple[bytes, dict[str, Any]]] = field(default_factory=list)

    # --- a stream ---

    def take(self, raw: bytes, event: Event | None) -> bytes:
        """What the client is sent for an event."""
        value = None if event is None else _object(event.data)
        if value is None or event is None:
            return raw
        self._reading.take(event)
        kind = value.get("type")
        if kind == "message_start":
            return b"" if self.rounds else raw
        if kind in ("content_block_start", "content_block_delta", "content_block_stop"):
            return self._block(raw, value)
        if kind in ("message_delta", "message_stop"):
            self._tail.append((raw, value))
            if kind == "message_stop":
                self._end(self._reading.reply())
            return b""
        return raw

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
            self._count += not hidden
        place = self._places.get(index, index)
        if place is None:
            return b""
        return raw if place == index else _event(value | {"index": place})

    def _ending(self, raw: bytes, value: dict[str, Any]) -> bytes:
        usage = value.get("usage")
        if len(self.rounds) < 2 or value.get("type") != "message_delta" or not isinstance(usage, dict):  # noqa: PLR2004 -- the first turn tells for itself
            return raw
        output = sum(one.usage.output for one in self.rounds if one.usage is not None)
        return _event(value | {"usage": usage | {"output_tokens": output}})

    # --- an answer that is no stream ---

    def take_whole(self, body: bytes) -> bytes:
        """What the client is sent for a turn, where the answer ends with it."""
        value = _object(body)
        if value is None or value.get("type") != "message":
            return body
        self._end(whole("anthropic", body))
        if self._shown == value.get("content"):
            return body
        output = sum(one.usage.output for one in self.rounds if one.usage is not None)
        usage = value.get("usage")
        told = usage | {"output_tokens": output} if isinstance(usage, dict) else usage
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
        self._tail, self._places, self.ended = [], {}, False
        self._reading = reader("anthropic")
        fields = spans.fields(body, "the request")
        items = spans.items(fields["messages"], "messages")
        return spans.object_of({**fields, "messages": spans.array_of([*items, said, answer])})

    def exchange(self, results: Sequence[Result] = ()) -> Exchange:
        """What the client's message will stand for. results: of our calls beside the client's, in the last turn."""
        merged = encode_json({"role": "assistant", "content": self._shown})
        answers = tuple(encode_json(_result(one)) for one in results)
        return Exchange((merged,), (*self._actual, encode_json(self._said)), answers)


def _result(one: Result) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": one.call.id, "content": one.text}
    return block | {"is_error": True} if one.is_error else block


def _event(value: dict[str, Any]) -> bytes:
    return b"event: " + str(value["type"]).encode() + b"\ndata: " + encode_json(value) + b"\n\n"


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        value = decode_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


Answering = Callable[[OwnCall], Result]
