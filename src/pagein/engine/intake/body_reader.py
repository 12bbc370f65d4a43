"""Parse request bodies incrementally: compare a body with an earlier one, and parse only the new part.

Rules of this file
------------------
1. The result equals a full parse by `open_body`. If any step fails, the body is parsed whole.
2. A body that equals an earlier one, byte by byte up to the end of a message, has the messages of the earlier one up to
   there. The rest is parsed with a placeholder in their place. The placeholder must not occur in the rest, so that a
   duplicate message list is noticed.
3. Memory is bounded: up to `MOST_KEPT` bytes of bodies are remembered, the most recently used ones.
"""

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Final

from pagein.errors import BadInput
from pagein.model.json_text import array_items, object_fields
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.request_body import Envelope, open_body

MOST_KEPT: Final = 64 << 20
"""Bytes of bodies that an opener remembers (the sessions hold the messages a second time)."""
_BRANCHES: Final = 8
_MOVED: Final = 3  # messages at the end of a body whose cache breakpoints the next body may change
_CHUNK: Final = 64 << 10
_KNOWN: Final = b'"pagein: messages as before"'
_TRIES: Final = 4
_NEAR: Final = 1 << 10


@dataclass(frozen=True, slots=True)
class _Chunk:
    """The bytes of a body between the ends of two messages.

    text: the bytes.
    end: offset of their end in the body.
    count: messages up to there.
    """

    text: bytes
    end: int
    count: int


@dataclass(frozen=True, slots=True)
class _Layout:
    """A parsed body.

    front: bytes up to the message list, with its bracket.
    ends: offset of the end of each message.
    """

    api: Api
    front: bytes
    items: Sequence[bytes]
    ends: Sequence[int]
    chunks: Sequence[_Chunk]

    @property
    def size(self) -> int:
        return self.ends[-1] if self.ends else len(self.front)


class Opener:
    """Parse request bodies. Thread-safe."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, bytes], tuple[_Layout, ...]] = OrderedDict()
        self._bytes = 0

    @property
    def size(self) -> int:
        """Bytes of the remembered bodies."""
        return self._bytes

    def parse(self, body: bytes, api: Api, hint: str | None = None, path_model: str = "") -> Envelope:
        """Parse a body into the envelope of `request_body.open_body`. Raises BadInput for a body without a list of
        messages.

        hint: the name of the session, to find its earlier bodies.
        path_model: the model's name, if the path of the request has it.
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
        return replace(envelope, path_model=path_model) if path_model else envelope

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
    """Return the number of leading messages that a body shares with an earlier body."""
    if not body.startswith(known.front):
        return 0
    at, count = len(known.front), 0
    for chunk in known.chunks:
        if not body.startswith(chunk.text, at):
            return _shared_in(body, known, chunk, at, count)
        at, count = chunk.end, chunk.count
    return count


def _shared_in(body: bytes, known: _Layout, chunk: _Chunk, at: int, count: int) -> int:
    """Return the number of shared messages of a body by the chunk with the first difference, which begins at `at`."""

    def differs(place: int) -> bool:
        return not body.startswith(chunk.text[: known.ends[place] - at], at)

    return count + bisect_left(range(count, chunk.count), x=True, key=differs)


def _gone_on(body: bytes, before: _Layout, same: int) -> Envelope | None:
    """Parse a body whose first messages are known.

    None if the body needs a full parse.
    """
    rest = body[before.ends[same - 1] :]
    key = format_named(before.api).requests.items
    if _KNOWN in rest or _KNOWN in before.front:
        return None
    try:
        fields = object_fields(before.front + _KNOWN + rest, "the request body")
        given = array_items(fields.get(key, b""), key)
    except BadInput:
        return None
    if not given or given[0] != _KNOWN:
        return None
    return Envelope(before.api, {**fields, key: b"[]"}, [*before.items[:same], *given[1:]])


def _laid_out(body: bytes, envelope: Envelope, before: _Layout | None, same: int) -> _Layout | None:
    """Return the layout of a body.

    before: an earlier layout with the same first `same` messages.
    """
    start = len(before.front) if before is not None else _start(body, envelope)
    if start is None:
        return None
    ends = list(before.ends[:same]) if before is not None else []
    at = ends[-1] if ends else start
    for raw in envelope.items[same:]:
        begins = body.find(raw, at)  # only a comma and white space come before it, so the first match is the message
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
    """Return the offset after the bracket of the message list.

    None if the position is unclear.
    """
    if not envelope.items:
        return None
    name, at = b'"%s"' % format_named(envelope.api).requests.items.encode(), 0
    for _ in range(_TRIES):
        at = body.find(name, at) + 1
        if not at:
            return None
        bracket = body.find(b"[", at)
        first = body.find(envelope.items[0], bracket + 1)
        if 0 <= bracket < first and not body[bracket + 1 : first].strip():
            return bracket + 1
    return None
