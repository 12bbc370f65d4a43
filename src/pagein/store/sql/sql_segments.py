"""Store the texts of rows in segments beside the table. A segment has many neighbours, compressed together.

Rules of this file
------------------
1. A segment has the texts of some rows, by the numbers of the rows. The ranges of numbers of two segments never overlap.
2. A text is first stored as a segment of its own, in the packed form of its kind. In the pauses between calls, the oldest of these become one
   segment: a zstd frame with a checksum. So a number is looked up in one step, before and after.
3. A text that is removed or changed is taken out of its segment at once, so that none of its bytes stay behind.
4. Whoever reads a text verifies it, or relies on the checksum of its frame.
"""

import contextlib
import itertools
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pagein.errors import DamagedBlob
from pagein.store.sql.packed_bytes import FRAME_HEAD, QUICKLY, ZSTD, pack_bundle, size_in, unpack
from pagein.store.sql.sql_rows import Row, Rows

_AT_HAND: Final = 16
_COUNT: Final = struct.Struct(">I")
_PART: Final = struct.Struct(">QI")


@dataclass(frozen=True, slots=True)
class WaitingTexts:
    """Single texts that are to be a segment, by number.

    stored: their rows, which tell whether they changed meanwhile
    """

    texts: Mapping[int, bytes]
    stored: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Segments:
    """The segments for a kind of text.

    table: its name, of the form of `sqlite_schema.segment_tables`
    pack_one, unpack_one: the packed form of a text that is alone; the second raises DamagedBlob
    size: bytes of the texts of a segment. More would be smaller, but a single text would take longer to read.
    most: texts of a segment
    before_change: called with the first number of a segment of several texts before it changes or goes
    """

    table: str
    pack_one: Callable[[bytes], bytes]
    unpack_one: Callable[[bytes], bytes]
    size: int = 1 << 16
    most: int = 256
    before_change: Callable[[Rows, int], None] = lambda _rows, _first: None

    def put(self, rows: Rows, number: int, text: bytes) -> None:
        """Store the text of a row, in place of the earlier text."""
        self.put_packed(rows, number, self.pack_one(text))

    def put_packed(self, rows: Rows, number: int, packed: bytes) -> None:
        """Store the text of a row, given in its packed form."""
        query = f"SELECT last, texts FROM {self.table} WHERE first <= ? ORDER BY first DESC LIMIT 1"  # noqa: S608 -- a constant
        near = rows.execute(query, (number,)).fetchone()
        found = self._around(rows, number) if near is not None and near[0] >= number and near[1] > 1 else None
        if found is None:
            self._insert(rows, number, number, 1, packed)
            return
        texts = dict(self._texts(found))
        texts[number] = self.unpack_one(packed)
        self._replace(rows, found, texts)

    def load(self, rows: Rows, numbers: Iterable[int]) -> dict[int, bytes]:
        """Return the texts of rows, as far as they are stored and readable."""
        found: dict[int, bytes] = {}
        texts: _JoinedTexts | Mapping[int, bytes] = {}
        last = -1
        for number in sorted(set(numbers)):
            if number > last:
                segment = self._around(rows, number)
                last = number if segment is None else int(segment[1])
                texts = {} if segment is None else self._readable(segment)
            text = texts.get(number)
            if text is not None:
                found[number] = text
        return found

    def drop(self, rows: Rows, numbers: Iterable[int]) -> None:
        """Remove the texts of rows. Texts of a damaged segment stay, unreadable."""
        left = sorted(set(numbers), reverse=True)
        while left:
            found = self._around(rows, left[-1])
            if found is None:
                left.pop()
                continue
            gone: set[int] = set()
            while left and left[-1] <= found[1]:
                gone.add(left.pop())
            try:
                texts = self._texts(found)
            except DamagedBlob:
                continue
            if not gone.isdisjoint(texts):
                self._replace(rows, found, {number: text for number, text in texts.items() if number not in gone})

    def merge(self, rows: Rows) -> int:
        """Merge the oldest single texts into a segment. Return their number; 0 until the texts fill a segment."""
        waiting = self.waiting(rows)
        return 0 if waiting is None else self.put_joined(rows, waiting, join_texts(waiting.texts))

    def waiting(self, rows: Rows, least: int | None = None) -> WaitingTexts | None:
        """Return the oldest texts that are stored alone, enough to fill a segment; None if there are fewer.

        least: bytes of texts that are enough, instead of `size`
        """
        least = self.size if least is None else least
        behind = self.end(rows)
        query = f"SELECT substr(data, 1, {FRAME_HEAD}) FROM {self.table} WHERE texts = 1 AND first > ? ORDER BY first LIMIT ?"  # noqa: S608 -- constants
        heads = rows.execute(query, (behind, self.most)).fetchall()
        if len(heads) < self.most and sum(size_in(bytes(head)) for (head,) in heads) < least:
            return None
        texts = self._waiting(rows, behind, least)
        return WaitingTexts(texts, self._stored(rows, texts)) if texts else None

    def put_joined(self, rows: Rows, waiting: WaitingTexts, data: bytes) -> int:
        """Store a segment in place of single texts. Return their number; 0 if they changed since they were found."""
        texts = waiting.texts
        if self._stored(rows, texts) != waiting.stored:
            return 0
        first, end = min(texts), max(texts)
        rows.execute(f"DELETE FROM {self.table} WHERE first >= ? AND first <= ?", (first, end))  # noqa: S608 -- a constant
        self._insert(rows, first, end, len(texts), data)
        return len(texts)

    def change(self, rows: Rows, number: int, changed: Callable[[Mapping[int, bytes]], Mapping[int, bytes]]) -> None:
        """Store the texts of the segment with a number in its range anew, if they change. A damaged segment stays as it is."""
        found = self._around(rows, number)
        if found is None:
            return
        with contextlib.suppress(DamagedBlob):
            texts = self._texts(found)
            if (made := changed(texts)) != texts:
                self._replace(rows, found, made)

    def end(self, rows: Rows) -> int:
        """Return the last number in the range of a segment with several texts; -1 if there is none."""
        last = rows.execute(f"SELECT max(last) FROM {self.table} WHERE texts > 1").fetchone()  # noqa: S608 -- a constant
        return -1 if last is None or last[0] is None else int(last[0])

    def _stored(self, rows: Rows, texts: Mapping[int, bytes]) -> Sequence[Row]:
        query = f"SELECT first, last, data FROM {self.table} WHERE first >= ? AND first <= ? ORDER BY first"  # noqa: S608 -- a constant
        found = rows.execute(query, (min(texts), max(texts))).fetchall()
        return [(int(first), int(last), bytes(data)) for first, last, data in found]

    def _waiting(self, rows: Rows, behind: int, least: int) -> dict[int, bytes]:
        """Return the texts of the next segment, of single texts behind a number; none until they fill it.

        A damaged text stays alone, so that it hides no other. A segment ends before it, and the next begins after it.
        """
        query = f"SELECT first, data FROM {self.table} WHERE texts = 1 AND first > ? ORDER BY first LIMIT ?"  # noqa: S608 -- a constant
        texts: dict[int, bytes] = {}
        size = 0
        while page := rows.execute(query, (behind, self.most)).fetchall():
            for number, data in page:
                behind = int(number)
                try:
                    text = self.unpack_one(bytes(data))
                except DamagedBlob:
                    if len(texts) > 1:
                        return texts
                    texts, size = {}, 0  # one text alone gains nothing
                    continue
                texts[behind] = text
                size += len(text)
                if len(texts) > 1 and (size >= self.size or len(texts) >= self.most):
                    return texts
        return texts if len(texts) > 1 and size >= least else {}

    def _around(self, rows: Rows, number: int) -> Row | None:
        """Return the segment with this number in its range, if any."""
        query = f"SELECT first, last, texts, data FROM {self.table} WHERE first <= ? ORDER BY first DESC LIMIT 1"  # noqa: S608 -- a constant
        found = rows.execute(query, (number,)).fetchone()
        return None if found is None or found[1] < number else found

    def _texts(self, segment: Row) -> Mapping[int, bytes]:
        first, _, count, data = segment
        return {int(first): self.unpack_one(bytes(data))} if count == 1 else _joined_texts(bytes(data)).all()

    def _readable(self, segment: Row) -> "_JoinedTexts | Mapping[int, bytes]":
        try:
            return self._texts(segment) if segment[2] == 1 else _joined_texts(bytes(segment[3]))
        except DamagedBlob:
            return {}

    def _replace(self, rows: Rows, segment: Row, texts: Mapping[int, bytes]) -> None:
        if segment[2] > 1:
            self.before_change(rows, int(segment[0]))
        rows.execute(f"DELETE FROM {self.table} WHERE first = ?", (segment[0],))  # noqa: S608 -- a constant
        if len(texts) == 1:
            ((number, text),) = texts.items()
            self._insert(rows, number, number, 1, self.pack_one(text))
        elif texts:
            self._insert(rows, min(texts), max(texts), len(texts), join_texts(texts))

    def _insert(self, rows: Rows, first: int, last: int, count: int, data: bytes) -> None:
        rows.execute(
            f"""INSERT INTO {self.table}(first, last, texts, data) VALUES(?, ?, ?, ?) ON CONFLICT(first)
                DO UPDATE SET last = excluded.last, texts = excluded.texts, data = excluded.data""",
            (first, last, count, data),
        )


def join_texts(texts: Mapping[int, bytes], level: int = QUICKLY) -> bytes:
    """Return the texts as the data of a segment. level: of the compression"""
    ordered = sorted(texts.items())
    head = b"".join(_PART.pack(number, len(text)) for number, text in ordered)
    packed, _ = pack_bundle([_COUNT.pack(len(ordered)), head, *(text for _, text in ordered)], level=level)
    return packed


@dataclass(frozen=True, slots=True)
class _JoinedTexts:
    """The unpacked texts of a segment. Most readers want a few of a thousand, so none is copied before it is asked for.

    numbers: of the texts, ascending. ends: where each text ends, behind the end of what is before the texts.
    """

    whole: bytes
    numbers: Sequence[int]
    ends: Sequence[int]

    def get(self, number: int) -> bytes | None:
        at = bisect_left(self.numbers, number)
        is_there = at < len(self.numbers) and self.numbers[at] == number
        return self.whole[self.ends[at] : self.ends[at + 1]] if is_there else None

    def all(self) -> dict[int, bytes]:
        bounds = zip(self.numbers, self.ends[:-1], self.ends[1:], strict=True)
        return {number: self.whole[begin:end] for number, begin, end in bounds}


@lru_cache(maxsize=_AT_HAND)
def _joined_texts(data: bytes) -> _JoinedTexts:
    """Return the texts of a segment. Kept for a while: neighbours are read one after the other. Raises DamagedBlob."""
    whole = unpack(ZSTD, data)
    try:
        (count,) = _COUNT.unpack_from(whole)
        start = _COUNT.size + count * _PART.size
        parts = list(_PART.iter_unpack(whole[_COUNT.size : start]))
    except struct.error as problem:
        raise DamagedBlob("a segment does not say what is in it") from problem
    if len(parts) != count:
        raise DamagedBlob("a segment does not hold what it says")
    numbers, lengths = zip(*parts, strict=True) if parts else ((), ())
    ends = list(itertools.accumulate(lengths, initial=start))
    if ends[-1] != len(whole):
        raise DamagedBlob("a segment does not hold what it says")
    return _JoinedTexts(whole, numbers, ends)
