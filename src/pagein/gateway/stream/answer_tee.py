"""Read an answer in parallel to forwarding it to the client.

Forwarded bytes are only collected, and parsed after the end of the answer, in a worker thread, so that parsing delays no stream. A long
answer is parsed in between, and delays only itself.
"""

from collections.abc import Iterable
from typing import Final

from pagein.gateway.http.content_codings import Decoder, decoder
from pagein.gateway.http.headers import value_of
from pagein.gateway.stream.whole_answer import whole
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.streams.event_stream import LONGEST, EventStream
from pagein.providers.wire.streams.model_reply import NO_REPLY, ModelReply, ReplyReader

_UNREAD: Final = 1 << 20
"""Number of collected bytes that triggers parsing in between."""


class Tee:
    """Reads an answer. A failure ends only the reading.

    lost: why the answer was not read completely, "" if it was
    """

    def __init__(self, api: Api, headers: Iterable[tuple[str, str]]) -> None:
        given = list(headers)
        self._api: Api = api
        self._decoder: Decoder | None = decoder(value_of(given, "content-encoding"))
        self.lost = "" if self._decoder is not None else "coding"
        streams = value_of(given, "content-type").strip().lower().startswith("text/event-stream")
        self._events: EventStream | None = EventStream() if streams else None
        self._reader: ReplyReader = format_named(api).answers.reader()
        self._parts: list[bytes] = []
        self._size = 0
        self._body: list[bytes] = []
        self._length = 0

    def feed(self, part: bytes) -> bool:
        """Collect a part. Return whether `read` should be called before the next part."""
        if self.lost:
            return False
        self._parts.append(part)
        self._size += len(part)
        return self._size > _UNREAD

    def reply(self) -> ModelReply:
        """Return the reply so far. Takes time proportional to the collected bytes."""
        self.read()
        if self._events is not None:
            for event in self._events.end():
                self._reader.take(event)
            return self._reader.reply()
        return NO_REPLY if self.lost else whole(self._api, b"".join(self._body))

    def read(self) -> None:
        """Parse the collected bytes. Call in a worker thread, one call at a time."""
        packed, self._parts, self._size = b"".join(self._parts), [], 0
        if self.lost or self._decoder is None:
            return
        try:
            for text in self._decoder.decode(packed):
                if not self._take(text):
                    self.lost = "size"
                    return
        except ValueError:
            self.lost = "content"
        except Exception as problem:  # noqa: BLE001 -- reading must not affect the forwarded answer (law 7)
            self.lost = type(problem).__name__

    def _take(self, text: bytes) -> bool:
        """Parse decoded text. Return whether the answer is still within the size limit."""
        if self._events is not None:
            for event in self._events.feed(text):
                self._reader.take(event)
            return not self._events.too_long
        self._length += len(text)
        if self._length > LONGEST:
            self._body.clear()
            return False
        self._body.append(text)
        return True
