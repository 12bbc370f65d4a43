"""Merge the streams of several turns into a single stream for the client, without recall calls.

Rules of this file
------------------
1. Until its first recall call, the first turn is forwarded with its original bytes, and only scanned for words that identify
   certain frames.
2. In a changed frame, only the necessary fields change.
3. Only the end of a turn with a recall call is held back, because the answer may continue.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from pagein.model.json_text import encode_json
from pagein.providers.wire.json_values import decoded_object
from pagein.providers.wire.streams.event_stream import LONGEST

_BLANK_LINE: Final = re.compile(rb"\n\n|\n\r\n|\r\r")
_BOM: Final = b"\xef\xbb\xbf"
_WRITTEN: Final = ("output_tokens", "completion_tokens")
_PROMPTS: Final = ("prompt_tokens", "input_tokens")
_TAIL: Final = 2
"""Maximum bytes of a blank line before its last byte."""
UNTOLD: Final = "pagein: the model could not go on after it was given what it recalled"


class TooLong(Exception):
    """A frame is too long to be changed."""


class StreamMerger(ABC):
    """Merges the turns of an answer for the client.

    ours: names of the recall tools
    held: whether something was held back, so that the turn must be read at its end
    ended: whether the turn is complete
    failed: whether the provider reported an error in the turn
    later: whether this is not the first turn
    """

    alive: bytes = b": pagein is recalling\n\n"
    """A keep-alive frame without content."""

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
        """Return the bytes for the client. Raises TooLong."""
        if not self._rest and not self._passing and text.endswith(b"\n\n"):  # as in most pieces
            return self._merge_frames(text)
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
            return self._hold_back(text)
        frames, self._rest = b"".join((*self._rest, text[:end])), [text[end:]] if text[end:] else []
        self._tail, self._length = text[end:][-_TAIL:], len(text) - end
        return self._merge_frames(frames)

    def flush(self) -> bytes:
        """Return the rest after the turn's last byte: a frame without a final blank line."""
        rest = self._take_rest()
        return self._frame(rest) if rest else b""

    def _hold_back(self, text: bytes) -> bytes:
        """Return the bytes for the client while no frame is complete.

        Nothing, unless the frame exceeds the size limit.
        """
        self._rest.append(text)
        self._length += len(text)
        tail = (self._tail + text)[-_TAIL:]
        if self._length <= LONGEST:
            self._tail = tail
            return b""
        if self.held:
            raise TooLong
        passed = self._take_rest()
        self._passing, self._tail = True, tail
        return passed

    def _take_rest(self) -> bytes:
        rest = b"".join(self._rest)
        self._rest, self._tail, self._length, self._passing = [], b"", 0, False
        return rest

    def _merge_frames(self, frames: bytes) -> bytes:
        if self._passes(frames):
            return frames
        return b"".join(self._frame(raw) for raw in _cut(frames))

    def begin(self, *, spoke: bool) -> None:
        """Begin another turn.

        spoke: whether the previous turn's text needs a separator
        """
        del spoke
        self.held = self.later = True
        self.ended = self.failed = False
        self._used.append(self._usage)
        self._usage = {}
        self._take_rest()

    @property
    def usage(self) -> dict[str, Any]:
        """Return the usage of every turn, in the provider's form."""
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
        """Return the end of the answer, if held back."""

    @abstractmethod
    def failure(self, body: bytes) -> bytes:
        """Return an error in mid-stream, in the provider's own words if `body`, its answer, contains an error."""

    def broken(self) -> bytes:
        """Return what a client gets in place of the rest of a stream that broke off: the beginning of its last frame."""
        return b"" if self.held else self.flush()

    @abstractmethod
    def _frame(self, raw: bytes) -> bytes:
        """Return the client's bytes for a frame."""


def data_of(raw: bytes) -> bytes:
    """Return the data of a frame, b"" without data."""
    lines = raw.removeprefix(_BOM).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))


def error_in(body: bytes) -> dict[str, Any] | None:
    """Return the error in an answer, in the provider's form, or None."""
    value = decoded_object(body)
    error = value.get("error") if value is not None else None
    return error if isinstance(error, dict) else None


def sum_usage(turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the usage of an answer for the client: output of every turn, and the prompt of the last turn.

    The prompts are not summed, although each was billed: clients read this figure as the fill level of their window,
    and would compact too early.
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
    """Return a frame with a name."""
    return b"event: " + kind.encode() + b"\n" + unnamed_frame(value)


def unnamed_frame(value: Mapping[str, Any]) -> bytes:
    """Return a frame without a name."""
    return b"data: " + encode_json(value) + b"\n\n"


def _is_count(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _end(text: bytes) -> int:
    """Return the end of the last blank line in a text; 0 if there is none."""
    end = text.rfind(b"\n\n") + 2
    if b"\r" in text:
        end = max(end, text.rfind(b"\n\r\n") + 3, text.rfind(b"\r\r") + 2)
    # rfind gives -1 for not found; a text that begins with a blank line has nothing before it to forward
    return end if end > _TAIL else 0


def _cut(frames: bytes) -> Iterator[bytes]:
    start = 0
    for end in _BLANK_LINE.finditer(frames):
        yield frames[start : end.end()]
        start = end.end()
