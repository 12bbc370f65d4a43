"""Server-sent events out of bytes as they come, cut anywhere. Pure but for what it holds back."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_BOM: Final = b"\xef\xbb\xbf"
LONGEST: Final = 16 << 20
"""Bytes of one event, or of an answer that is no stream, above which it is not read: nothing of ours is in what is so long."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event. name: "" where it has none. data: its data lines, joined by newlines; bytes, as a character may be anything."""

    name: str
    data: bytes


class EventStream:
    """Reads one stream. Line ends may be LF, CRLF or CR; comments and unknown fields are left out.

    An event without data is none, and what follows the last blank line is not told: it was never finished.
    """

    __slots__ = ("_held", "_started", "too_long")

    def __init__(self) -> None:
        self._held = b""
        self._started = False
        self.too_long = False

    def feed(self, part: bytes) -> list[Event]:
        """The events that these bytes complete."""
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
        """The events that the end of the stream completes: a CR that was its last byte was a line end of its own."""
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
