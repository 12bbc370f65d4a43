"""Bodies taken apart that begin as one before did: only what is new is read, the rest is compared.

Rules of this file
------------------
1. A body says what it says: where any of this does not hold it is read whole. The parts are those that `opened` gives.
2. What begins as a body before did, byte by byte up to the end of a message, has the messages of that one up to there. The rest is
   read with a word in their place that does not occur in it, so that a list that stands twice in a body is noticed.
3. Memory is bounded: bodies are kept up to `MOST_KEPT` bytes in all, those that were asked for last.
"""

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

from pagein.errors import BadInput
from pagein.providers.validity.rules import Api
from pagein.providers.wire import json_spans
from pagein.providers.wire.request_body import Envelope, items_key, open_body

MOST_KEPT: Final = 64 << 20
"""Bytes of bodies that an opener keeps (their messages are held once more, by the sessions that they are of)."""
_BRANCHES: Final = 8
_MOVED: Final = 3  # messages at the end of a body that its successor may hold with other marks
_CHUNK: Final = 64 << 10
_KNOWN: Final = b'"pagein: messages as before"'
_TRIES: Final = 4
_NEAR: Final = 1 << 10


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Bytes of a body from the end of one message to the end of another. end: where it ends in the body; count: messages up to there."""

    text: bytes
    end: int
    count: int


@dataclass(frozen=True, slots=True)
class _Layout:
    """A body that was taken apart. front: up to its list, the bracket included. ends: where each message ends in the body."""

    api: Api
    front: bytes
    items: Sequence[bytes]
    ends: Sequence[int]
    chunks: Sequence[_Chunk]

    @property
    def size(self) -> int:
        return self.ends[-1] if self.ends else len(self.front)


class Opener:
    """Takes bodies apart. Any number of threads may use it."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, bytes], tuple[_Layout, ...]] = OrderedDict()
        self._bytes = 0

    @property
    def size(self) -> int:
        """Bytes of the bodies that are kept."""
        return self._bytes

    def parse(self, body: bytes, api: Api, hint: str | None = None) -> Envelope:
        """The parts of a body, as `request.opened` gives them. hint: a name of its session, which tells where to look for those before.

        Raises BadInput where it is no JSON object with a list of messages.
        """
        key = (hint, b"") if hint else ("", body[:_NEAR])
        with self._lock:
            layouts = self._kept.get(key, ())
        before, same = _most_alike(body, api, layouts)
        envelope = None if before is None else _gone_on(body, before, same)
        if envelope is None:
            before, same, envelope = None, 0, open_body(body, api)
        laid = _laid_out(body, envelope, before, same)
        if laid is not None and laid.size <= self._most:
            self._keep(key, laid, before if before is not None and same >= len(before.items) - _MOVED else None)
        return envelope

    def _keep(self, key: tuple[str, bytes], laid: _Layout, instead: _Layout | None) -> None:
        with self._lock:
            there = self._kept.pop(key, ())
            now = (laid, *[one for one in there if one is not instead][: _BRANCHES - 1])
            self._bytes += sum(one.size for one in now) - sum(one.size for one in there)
            self._kept[key] = now
            while self._bytes > self._most and len(self._kept) > 1:
                self._bytes -= sum(one.size for one in self._kept.popitem(last=False)[1])
            while self._bytes > self._most and len(now) > 1:
                self._bytes -= now[-1].size
                now = self._kept[key] = now[:-1]


def _most_alike(body: bytes, api: Api, layouts: Sequence[_Layout]) -> tuple[_Layout | None, int]:
    best, most = None, 0
    for one in layouts:
        same = _shared_items(body, one) if one.api == api else 0
        if same > most:
            best, most = one, same
        if same and same >= len(one.items) - _MOVED:
            break
    return best, most


def _shared_items(body: bytes, known: _Layout) -> int:
    """How many messages a body has in common with one before, all in front of them being the same."""
    if not body.startswith(known.front):
        return 0
    at, count = len(known.front), 0
    for chunk in known.chunks:
        if not body.startswith(chunk.text, at):
            return _shared_in(body, known, chunk, at, count)
        at, count = chunk.end, chunk.count
    return count


def _shared_in(body: bytes, known: _Layout, chunk: _Chunk, at: int, count: int) -> int:
    """How many messages a body has in common that differs from one before within this piece of it, which begins at `at`."""

    def differs(place: int) -> bool:
        return not body.startswith(chunk.text[: known.ends[place] - at], at)

    return count + bisect_left(range(count, chunk.count), x=True, key=differs)


def _gone_on(body: bytes, before: _Layout, same: int) -> Envelope | None:
    """The parts of a body whose first messages are known; None where it is to be read whole."""
    rest = body[before.ends[same - 1] :]
    key = items_key(before.api)
    if _KNOWN in rest or _KNOWN in before.front:
        return None
    try:
        fields = json_spans.fields(before.front + _KNOWN + rest, "the request body")
        given = json_spans.items(fields.get(key, b""), key)
    except BadInput:
        return None
    if not given or given[0] != _KNOWN:
        return None
    return Envelope(before.api, {**fields, key: b"[]"}, [*before.items[:same], *given[1:]])


def _laid_out(body: bytes, envelope: Envelope, before: _Layout | None, same: int) -> _Layout | None:
    """Where the messages of a body end. before: one that it has the first `same` messages in common with."""
    start = len(before.front) if before is not None else _start(body, envelope)
    if start is None:
        return None
    ends = list(before.ends[:same]) if before is not None else []
    at = ends[-1] if ends else start
    for raw in envelope.items[same:]:
        begins = body.find(
            raw, at
        )  # in front of it there is no more than a comma and white space, so the first place is the one
        if begins < 0 or body[at:begins].strip() != (b"," if ends else b""):
            return None
        at = begins + len(raw)
        ends.append(at)
    chunks = [one for one in before.chunks if one.count <= same] if before is not None else []
    while chunks and len(chunks[-1].text) < _CHUNK:
        chunks.pop()
    at, count = (chunks[-1].end, chunks[-1].count) if chunks else (start, 0)
    while count < len(ends):
        count = min(max(bisect_right(ends, at + _CHUNK), count) + 1, len(ends))
        chunks.append(_Chunk(body[at : ends[count - 1]], ends[count - 1], count))
        at = ends[count - 1]
    front = before.front if before is not None else body[:start]
    return _Layout(envelope.api, front, envelope.items, ends, chunks)


def _start(body: bytes, envelope: Envelope) -> int | None:
    """Where the list of messages begins in a body, behind the bracket; None where that is hard to say."""
    if not envelope.items:
        return None
    name, at = b'"%s"' % items_key(envelope.api).encode(), 0
    for _ in range(_TRIES):
        at = body.find(name, at) + 1
        if not at:
            return None
        bracket = body.find(b"[", at)
        first = body.find(envelope.items[0], bracket + 1)
        if 0 <= bracket < first and not body[bracket + 1 : first].strip():
            return bracket + 1
    return None
