"""Parse server-sent events from bytes in arbitrary pieces."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_BOM: Final = b"\xef\xbb\xbf"
LONGEST: Final = 16 << 20
"""Maximum size in bytes of an event, or of an answer without streaming. A longer one is not read: it contains no recall call."""


@dataclass(frozen=True, slots=True)
class Event:
    """A server-sent event.

    name: "" if it has none
    data: its data lines, joined by newlines; bytes, because the encoding may be invalid
    """

    name: str
    data: bytes


class EventStream:
    """Parses a single stream. Line ends may be LF, CRLF or CR; comments and unknown fields are skipped.

    An event without data is ignored, and so is an incomplete event after the last blank line.
    """

    __slots__ = ("_held", "_started", "too_long")

    def __init__(self) -> None:
        self._held = b""
        self._started = False
        self.too_long = False

    def feed(self, part: bytes) -> list[Event]:
        """Return the events completed by this part."""
        if self.too_long:
            return []
        text = self._held + part
        if not self._started:
            if len(text) < len(_BOM) and _BOM.startswith(text):
                self._held = text
                return []
            self._started, text = True, text.removeprefix(_BOM)
        carried = b""
        if b"\r" in text:
            # a CR at the end may be half of a line end
            if text.endswith(b"\r"):
                text, carried = text[:-1], b"\r"
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        whole, blank, rest = text.rpartition(b"\n\n")
        self._held = rest + carried
        if len(self._held) > LONGEST:
            self.too_long, self._held = True, b""
        return list(_events(whole)) if blank else []

    def end(self) -> list[Event]:
        """Return the events completed by the end of the stream: a final CR was a line end."""
        return self.feed(b"\n") if self._held.endswith(b"\r") else []


def _events(text: bytes) -> Iterator[Event]:
    for block in text.split(b"\n\n"):
        name, data = "", []
        for line in block.split(b"\n"):
            if line.startswith(b"data:"):
                data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif line.startswith(b"event:"):
                name = line[6:].strip().decode("utf-8", "replace")
            elif line == b"data":
                data.append(b"")
        if data:
            yield Event(name, data[0] if len(data) == 1 else b"\n".join(data))
