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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pagein.engine.exchanges import Exchange
from pagein.hosts.gateway.events import Event, read_event
from pagein.hosts.gateway.replies import Reply
from pagein.model.codec import decode_json, encode_json
from pagein.providers.wire import spans

_BLANK_LINE: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")


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
            yield raw, read_event(raw)
        self._held = self._held[start:]

    @property
    def rest(self) -> bytes:
        """What came behind the last event."""
        return self._held


class Answer(Protocol):
    """One answer as the client sees it, over all the turns that it takes.

    own: our calls in the turn that ended last. rounds: what was said in each turn.
    """

    own: list[OwnCall]
    rounds: list[Reply]

    def take(self, raw: bytes, event: Event | None) -> bytes:
        """What the client is sent for an event of a stream."""

    def over(self) -> None:
        """The stream of this turn is over."""

    def tail(self) -> bytes:
        """What the client is sent at the end of the answer."""

    def take_whole(self, body: bytes) -> bytes:
        """What the client is sent for a turn that is no stream, where the answer ends with it."""

    @property
    def goes_on(self) -> bool:
        """Whether the model waits for our results and for nothing else."""

    @property
    def is_spliced(self) -> bool:
        """Whether the client sees something else than what was said."""

    def go_on(self, body: bytes, results: Sequence[Result]) -> bytes:
        """The request that goes on with our results. body: the one that was answered."""

    def exchange(self, results: Sequence[Result]) -> Exchange:
        """What the client's message will stand for. results: of our calls beside the client's, in the last turn."""


def extended(body: bytes, name: str, more: Sequence[bytes]) -> bytes:
    """A request with more messages. name: the field that holds them."""
    fields = spans.fields(body, "the request")
    given = fields.get(name, b"[]")
    if given.lstrip()[:1] == b'"':  # a bare string is short for one message of the user's
        given = b'[{"role":"user","content":' + given + b"}]"
    return spans.object_of({**fields, name: spans.array_of([*spans.items(given, name), *more])})


def object_in(text: bytes) -> dict[str, Any] | None:
    """The object that this JSON is, None where it is none."""
    try:
        value = decode_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def output_of(rounds: Sequence[Reply]) -> int:
    """The tokens that the model wrote in all turns."""
    return sum(one.usage.output for one in rounds if one.usage is not None)


def event(value: Mapping[str, Any], name: object = None) -> bytes:
    """An event of a stream. name: None for events without one."""
    first = b"" if name is None else b"event: " + str(name).encode() + b"\n"
    return first + b"data: " + encode_json(value) + b"\n\n"
