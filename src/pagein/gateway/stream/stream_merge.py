"""A stream on its way to the client, out of which calls of our own tools are taken, and behind which later turns are put.

Rules of this file
------------------
1. As long as nothing of ours was called in it, the first turn passes as the very bytes it came as, looked at no closer than for
   words that only certain frames hold.
2. Of a frame that must be changed only the fields that must change do.
3. The end of a turn in which something of ours was called is held back: the answer may go on. Nothing else is.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from pagein.gateway.http.event_stream import LONGEST
from pagein.model.codec import decode_json, encode_json

_BLANK_LINE: Final = re.compile(rb"\n\n|\n\r\n|\r\r")
_BOM: Final = b"\xef\xbb\xbf"
_WRITTEN: Final = ("output_tokens", "completion_tokens")
_PROMPTS: Final = ("prompt_tokens", "input_tokens")
_TAIL: Final = 2
"""Bytes of a blank line that may have come before its last."""
UNTOLD: Final = "pagein: the model could not go on after it was given what it recalled"


class TooLong(Exception):
    """A frame is too long to be changed, where frames have to be."""


class Weaver(ABC):
    """What the client sees of one answer, over all its turns. ours: names of our tools.

    held: whether something was held back, so that the turn must be looked at when it is over. ended: the turn came to its proper
    end. failed: the provider told of an error in it. later: it is not the first turn.
    """

    alive: bytes = b": pagein is recalling\n\n"
    """A frame that says nothing."""

    def __init__(self, ours: Collection[str], triggers: Sequence[bytes]) -> None:
        self.ours = ours
        self.held = False
        self.ended = False
        self.failed = False
        self.later = False
        self._triggers = triggers
        self._usage: dict[str, Any] = {}
        self._used: list[Mapping[str, Any]] = []
        self._rest: list[bytes] = []
        self._tail = b""
        self._length = 0
        self._passing = False

    def take(self, text: bytes) -> bytes:
        """What the client is sent for these bytes. Raises TooLong."""
        if not self._rest and not self._passing and text.endswith(b"\n\n"):  # as most pieces do
            return self._woven(text)
        if self._passing:
            found = _BLANK_LINE.search(self._tail + text)
            if found is None:
                self._tail = (self._tail + text)[-_TAIL:]
                return text
            end = found.end() - len(self._tail)
            self._passing, self._tail = False, b""
            return text[:end] + (self.take(text[end:]) if text[end:] else b"")
        end = _end(self._tail + text) - len(self._tail)
        if end <= 0:
            return self._held_back(text)
        frames, self._rest = b"".join((*self._rest, text[:end])), [text[end:]] if text[end:] else []
        self._tail, self._length = text[end:][-_TAIL:], len(text) - end
        return self._woven(frames)

    def flush(self) -> bytes:
        """What is left when the turn's bytes are over: a frame without the blank line behind it."""
        rest = self._taken()
        return self._frame(rest) if rest else b""

    def _held_back(self, text: bytes) -> bytes:
        """What the client is sent where no frame has come to its end: nothing, but for one that is longer than any that is looked at."""
        self._rest.append(text)
        self._length += len(text)
        tail = (self._tail + text)[-_TAIL:]
        if self._length <= LONGEST:
            self._tail = tail
            return b""
        if self.held:
            raise TooLong
        passed = self._taken()
        self._passing, self._tail = True, tail
        return passed

    def _taken(self) -> bytes:
        rest = b"".join(self._rest)
        self._rest, self._tail, self._length, self._passing = [], b"", 0, False
        return rest

    def _woven(self, frames: bytes) -> bytes:
        if self._passes(frames):
            return frames
        return b"".join(self._frame(raw) for raw in _cut(frames))

    def begin(self, *, spoke: bool) -> None:
        """Another turn begins. spoke: the one before ended with text that more would run into."""
        del spoke
        self.held = self.later = True
        self.ended = self.failed = False
        self._used.append(self._usage)
        self._usage = {}
        self._taken()

    @property
    def usage(self) -> dict[str, Any]:
        """What all turns used, in the provider's words."""
        return sum_usage([*self._used, self._usage])

    def _passes(self, frames: bytes) -> bool:
        if self.held:
            return False
        for one in self._triggers:  # noqa: SIM110 -- for each piece of each stream: a generator takes twice as long
            if one in frames:
                return False
        return True

    @abstractmethod
    def end_frames(self) -> bytes:
        """The end of the answer, where it was held back."""

    @abstractmethod
    def failure(self, body: bytes) -> bytes:
        """An error in mid-stream, in the provider's own words where `body`, its answer, has any."""

    @abstractmethod
    def _frame(self, raw: bytes) -> bytes:
        """What the client is sent for one frame."""


def data_of(raw: bytes) -> bytes:
    """The data of a frame, b"" where it has none."""
    lines = raw.removeprefix(_BOM).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))


def object_in(text: bytes) -> dict[str, Any] | None:
    """The JSON object in a text, None where there is none."""
    try:
        value = decode_json(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def error_in(body: bytes) -> dict[str, Any] | None:
    """The error that an answer tells of, as its provider words it."""
    value = object_in(body)
    error = value.get("error") if value is not None else None
    return error if isinstance(error, dict) else None


def sum_usage(turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What an answer used, as clients are told it: what was written in all of its turns, behind the prompt of the last.

    The prompts are not added up, though each was billed: clients take what is told here for how full their window is, and compact
    at twice the half of it.
    """
    made = dict(turns[-1]) if turns else {}
    for name in _WRITTEN:
        counts = [one[name] for one in turns if _is_count(one.get(name))]
        if counts:
            made[name] = sum(counts)
    prompt = next((made[name] for name in _PROMPTS if _is_count(made.get(name))), None)
    if "total_tokens" in made and prompt is not None:
        made["total_tokens"] = prompt + next(made[name] for name in _WRITTEN if _is_count(made.get(name)))
    return made


def named_frame(kind: str, value: Mapping[str, Any]) -> bytes:
    """A frame with a name."""
    return b"event: " + kind.encode() + b"\n" + unnamed_frame(value)


def unnamed_frame(value: Mapping[str, Any]) -> bytes:
    """A frame without one."""
    return b"data: " + encode_json(value) + b"\n\n"


def _is_count(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _end(text: bytes) -> int:
    """Where the last blank line of a text ends; 0 where there is none."""
    end = text.rfind(b"\n\n") + 2
    if b"\r" in text:
        end = max(end, text.rfind(b"\n\r\n") + 3, text.rfind(b"\r\r") + 2)
    # what is not found stands at -1; a text that begins with a blank line has nothing in front of it to pass
    return end if end > _TAIL else 0


def _cut(frames: bytes) -> Iterator[bytes]:
    start = 0
    for end in _BLANK_LINE.finditer(frames):
        yield frames[start : end.end()]
        start = end.end()
