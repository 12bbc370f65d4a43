"""Read pages of a SQLite file without SQLite, because SQLite refuses a whole file or table for a single damaged page.

The format is documented by SQLite (Database File Format). This module reads the subset used by a store: tables with row ids, their
indexes, overflow pages, the list of free pages, and the write-ahead log.

Rules of this file
------------------
1. Nothing is written. Reading ends for any input, at a cost proportional to the file's length.
2. The log's pages count as far as SQLite itself would apply them: frames with correct checksums, up to the last commit. Frames after a
   damaged frame are kept separately, in `late`.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from mmap import mmap
from typing import Final, TypeAlias

Value: TypeAlias = int | float | str | bytes | None
Row: TypeAlias = tuple[int, list[Value]]
"""A row's id and its columns."""

Bytes: TypeAlias = bytes | mmap | memoryview

MAGIC: Final = b"SQLite format 3\0"
_USUAL: Final = 4096
_TABLE_LEAF, _TABLE_INNER, _INDEX_LEAF, _INDEX_INNER = 0x0D, 0x05, 0x0A, 0x02
_LOG_HEADER, _FRAME_HEADER = 32, 24
_LOG_MAGIC: Final = {0x377F0682: "<", 0x377F0683: ">"}
_LONGEST_VARINT: Final = 9
_BLOBS, _TEXTS = 12, 13


class Nonsense(ValueError):
    """Malformed bytes."""


@dataclass(slots=True)
class BTreeWalk:
    """Result of a walk through the b-tree of a table or index.

    leaves: pages with rows
    gaps: ranges of row ids (above, up to) with unreadable pages
    inner: inner pages
    """

    leaves: list[int] = field(default_factory=list)
    gaps: list[tuple[int | None, int | None]] = field(default_factory=list)
    inner: list[int] = field(default_factory=list)


class Pages:
    """A file with its log, page by page, counted from 1."""

    def __init__(self, file: Bytes, log: Bytes) -> None:
        self._file, self._log = memoryview(file), memoryview(log)
        self.size = _page_size(bytes(self._file[:100]))
        self._frames: dict[int, int] = {}
        self.late: list[tuple[int, int]] = []
        """Pages in log frames after a damaged frame, with their offsets in the log, in order."""
        self._read_log()
        held = -(-len(self._file) // self.size)
        self.count = max(held, *self._frames, 0)
        head = self.page(1)
        self.promised = struct.unpack(">I", head[28:32])[0] if head is not None else 0
        """Number of pages according to the file's header."""

    def later(self) -> "Pages | None":
        """Return the pages including the frames after the damaged frame, or None if the log has no frames there."""
        if not self.late:
            return None
        made = object.__new__(Pages)
        made.size, made._file, made._log, made.late = self.size, self._file, self._log, []
        made._frames = self._frames | dict(self.late)
        made.count, made.promised = max(self.count, *made._frames), self.promised
        return made

    def page(self, number: int) -> memoryview | None:
        """Return the current content of a page, padded with zeros if cut off, as SQLite does.

        Return None for a missing page.
        """
        if number in self._frames:
            start = self._frames[number]
            return self._log[start : start + self.size]
        page = self._file[(number - 1) * self.size : number * self.size] if number > 0 else self._file[:0]
        if not page or len(page) == self.size:
            return page or None
        return memoryview(bytes(page).ljust(self.size, b"\0"))

    def tree(self, root: int) -> BTreeWalk:
        """Return every page of the b-tree with this root."""
        found = BTreeWalk()
        seen: set[int] = set()
        todo: list[tuple[int, int | None, int | None]] = [(root, None, None)]
        while todo:
            number, low, high = todo.pop()
            page = self.page(number)
            kind = None if page is None or number in seen else page[_start(number)]
            seen.add(number)
            if kind in (_TABLE_LEAF, _INDEX_LEAF):
                found.leaves.append(number)
            elif kind in (_TABLE_INNER, _INDEX_INNER) and page is not None:
                found.inner.append(number)
                todo += reversed(list(_children(page, _start(number), low, high)))
            else:
                found.gaps.append((low, high))
        return found

    def rows(self, number: int) -> Iterator[Row | None]:
        """Yield the rows on a leaf page of a table; None for an unreadable row."""
        page = self.page(number)
        if page is None:
            return
        for at in _cells(page, _start(number)):
            try:
                size, here = varint(page, at)
                rowid, here = varint(page, here)
                yield _signed_value(rowid), record(self._payload(page, here, size, _most_of_row(self.size)))
            except (Nonsense, IndexError, struct.error):
                yield None

    def keys(self, number: int) -> Iterator[list[Value]]:
        """Yield the records on a page of an index, each with the row id at its end. Unreadable records are skipped."""
        page, start = self.page(number), _start(number)
        if page is None:
            return
        for at in _cells(page, start):
            try:
                size, here = varint(page, at + (4 if page[start] == _INDEX_INNER else 0))
                yield record(self._payload(page, here, size, _most_of_key(self.size)))
            except (Nonsense, IndexError, struct.error):
                continue

    def is_leaf(self, number: int) -> bool:
        """Return whether the page may contain rows of a table."""
        page = self.page(number)
        return page is not None and page[_start(number)] == _TABLE_LEAF

    def free(self) -> tuple[set[int], bool]:
        """Return the pages on the list of free pages, and whether the list is complete."""
        found: set[int] = set()
        head = self.page(1)
        trunk = struct.unpack(">I", head[32:36])[0] if head is not None else 0
        while trunk and trunk not in found and (page := self.page(trunk)) is not None:
            found.add(trunk)
            following, count = struct.unpack(">II", page[:8])
            count = min(count, self.size // 4 - 2)
            found.update(struct.unpack(f">{count}I", page[8 : 8 + 4 * count]))
            trunk = following
        return found, head is not None and struct.unpack(">I", head[36:40])[0] == len(found)

    def _payload(self, page: memoryview, at: int, size: int, most: int) -> bytes:
        """Return the bytes of a record, including overflow pages."""
        if size > len(self._file) + len(self._log):
            raise Nonsense("longer than the file")
        usable = self.size
        if size <= most:
            local = size
        else:
            least = (usable - 12) * 32 // 255 - 23
            local = least + (size - least) % (usable - 4)
            local = local if local <= most else least
        if at + local > usable:
            raise Nonsense("runs over the page")
        parts = [bytes(page[at : at + local])]
        left = size - local
        following = struct.unpack(">I", page[at + local : at + local + 4])[0] if left else 0
        while left:
            more = self.page(following)
            if more is None:  # an overflow page is missing; the rest of the row is kept
                parts.append(bytes(left))
                break
            parts.append(bytes(more[4 : 4 + min(left, usable - 4)]))
            left -= len(parts[-1])
            following = struct.unpack(">I", more[:4])[0]
        return b"".join(parts)

    def _read_log(self) -> None:
        header = bytes(self._log[:_LOG_HEADER])
        if len(header) < _LOG_HEADER or struct.unpack(">I", header[:4])[0] not in _LOG_MAGIC:
            return
        order = _LOG_MAGIC[struct.unpack(">I", header[:4])[0]]
        if struct.unpack(">I", header[8:12])[0] != self.size:
            return
        sums = _checksum(header[:24], order, (0, 0))
        whole = sums == struct.unpack(">II", header[24:32])
        salts = header[16:24]
        committed: dict[int, int] = {}
        late: list[tuple[int, int]] = []
        step = _FRAME_HEADER + self.size
        for at in range(_LOG_HEADER, len(self._log) - step + 1, step):
            frame = bytes(self._log[at : at + _FRAME_HEADER])
            if frame[8:16] != salts:
                if whole:  # the following frames are older
                    break
                continue
            number, commit = struct.unpack(">II", frame[:8])
            start = at + _FRAME_HEADER
            if whole:
                sums = _checksum(frame[:8], order, sums)
                sums = _checksum(bytes(self._log[start : start + self.size]), order, sums)
                whole = sums == struct.unpack(">II", frame[16:24])
            if whole:
                committed[number] = start
            else:
                late.append((number, start))
            if commit and whole:
                self._frames.update(committed)
                committed = {}
            elif commit:
                self.late += late
                late = []


def record(payload: bytes) -> list[Value]:
    """Return the columns of a record. Raises Nonsense."""
    end, at = varint(payload, 0)
    if not at <= end <= len(payload):
        raise Nonsense("a header that is longer than the record")
    kinds = []
    while at < end:
        kind, at = varint(payload, at)
        kinds.append(kind)
    values: list[Value] = []
    for kind in kinds:
        value, at = _value(payload, at, kind)
        values.append(value)
    if at != len(payload):
        raise Nonsense("columns that do not fill the record")
    return values


def varint(data: Sequence[int], at: int) -> tuple[int, int]:
    """Return a number of one to nine bytes, and its end offset."""
    value = 0
    for place in range(at, at + _LONGEST_VARINT - 1):
        byte = data[place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:  # noqa: PLR2004 -- the format's bit for "goes on"
            return value, place + 1
    return value << 8 | data[at + _LONGEST_VARINT - 1], at + _LONGEST_VARINT


_INTEGERS: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_REAL: Final = 7
_CONSTANTS: Final[dict[int, Value]] = {0: None, 8: 0, 9: 1}


def _value(payload: bytes, at: int, kind: int) -> tuple[Value, int]:
    if kind in _CONSTANTS:
        return _CONSTANTS[kind], at
    if kind in _INTEGERS or kind == _REAL:
        size = _INTEGERS.get(kind, 8)
    elif kind >= _BLOBS:
        size = (kind - _BLOBS) // 2
    else:
        raise Nonsense(f"a column of kind {kind}")
    data = payload[at : at + size]
    if len(data) != size:
        raise Nonsense("a column that runs over the record")
    at += size
    if kind in _INTEGERS:
        return int.from_bytes(data, "big", signed=True), at
    if kind == _REAL:
        (number,) = struct.unpack(">d", data)
        return number, at
    if kind % 2 == 0:
        return data, at
    # a damaged text must not prevent reading other rows
    return data.decode("utf-8", "replace"), at


def _page_size(head: bytes) -> int:
    """Return the page size from the header, or the usual size of a store if the header is damaged."""
    told = int.from_bytes(head[16:18], "big")
    told = 65_536 if told == 1 else told
    return told if head[:16] == MAGIC and told >= 512 and told & (told - 1) == 0 else _USUAL  # noqa: PLR2004 -- the format's least


def _start(number: int) -> int:
    return 100 if number == 1 else 0


def _cells(page: memoryview, start: int) -> Iterator[int]:
    """Yield the offsets of a page's cells."""
    head = start + (12 if page[start] in (_TABLE_INNER, _INDEX_INNER) else 8)
    count = min(struct.unpack(">H", page[start + 3 : start + 5])[0], (len(page) - head) // 2)
    for at in struct.unpack(f">{count}H", page[head : head + 2 * count]):
        if at >= head:
            yield at


def _children(
    page: memoryview, start: int, low: int | None, high: int | None
) -> Iterator[tuple[int, int | None, int | None]]:
    """Yield the pages below an inner page, each with its range of row ids.

    A range is above the first number, and up to the second.
    """
    is_table = page[start] == _TABLE_INNER
    for at in _cells(page, start):
        try:
            (child,) = struct.unpack(">I", page[at : at + 4])
            key = _signed_value(varint(page, at + 4)[0]) if is_table else None
        except (IndexError, struct.error):
            continue
        yield child, low, key
        low = key if is_table else None
    yield struct.unpack(">I", page[start + 8 : start + 12])[0], low, high


def _most_of_row(size: int) -> int:
    return size - 35


def _most_of_key(size: int) -> int:
    return (size - 12) * 64 // 255 - 23


def _signed_value(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _checksum(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second
