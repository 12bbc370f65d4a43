"""Find and load the sources of bundles: parts of journals with the same texts as the contents of a bundle.

Rules of this file
------------------
1. What a chat, a call or a file says is in lines of journals, and in the texts that these lines share. So a bundle may be compressed against
   segments of lines and against a bundle of their texts. Then it has of its contents little more than where each piece is in its sources.
2. A source has no sources itself, so a blob is read in at most two steps.
3. A bundle with sources begins with their kinds and numbers. What they tell is the dictionary, in this order.
4. Lines tell themselves, and arguments of calls as objects have them, without one level of escapes. Texts tell files, without the numbers that
   agents see before the lines. Stored bundles need this: it never changes, or bundles get another codec.
5. The sources are those of the entries that were followed last: new objects come from them. They count only if the bundle gets much
   smaller.
6. A source never changes: before, the bundles that are compressed against it are dissolved (`sql_bundles.free_bundles_on`).
"""

import re
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pagein.errors import DamagedBlob
from pagein.store.sql.packed_bytes import BUNDLE, DIFFERENCE, MEMBER, ZSTD, unpack
from pagein.store.sql.sql_rows import Rows

LINES: Final = 1
"""Kind of a source: a segment of journal lines, by its first number."""
TEXTS: Final = 2
"""Kind of a source: a bundle without sources, by its number in the table `blob`."""
HEAD: Final = 64
"""Bytes that are enough to read the sources of a bundle."""
_SEGMENTS: Final = 2
_BUNDLES: Final = 1
_COUNT: Final = struct.Struct(">B")
_NAME: Final = struct.Struct(">BQ")
_MARK: Final = re.compile(rb"\x01(.{32})", re.DOTALL)
_ARGUMENTS: Final = b'"arguments":"'
_END_OF_ARGUMENTS: Final = b'"}'
# possessive: spaces, digits and what follows have no character in common, so going back finds nothing
_LINE_NUMBER: Final = re.compile(rb"\n *+[0-9]++(?:\xe2\x86\x92|[\t:|])")
_AT_HAND: Final = 4
_AT_ONCE: Final = 500
_PACKED: Final = {
    LINES: "SELECT data FROM line_segment WHERE first = ? AND texts > 1",
    TEXTS: f"SELECT data FROM blob WHERE number = ? AND codec = {BUNDLE}",  # noqa: S608 -- a constant
}
_LAST_LINES: Final = """SELECT first, data FROM line_segment WHERE texts > 1 AND first <= (SELECT max(place) FROM layer WHERE substr(name, 1, 6) <> 'store.')
  ORDER BY first DESC LIMIT ?"""


@dataclass(frozen=True, slots=True)
class BundleSource:
    """A source.

    packed: its stored bytes
    told: what it tells
    """

    kind: int
    number: int
    packed: bytes
    told: bytes

    def is_stored(self, rows: Rows) -> bool:
        """Return whether the source is in the store as it was when it was found."""
        found = rows.execute(_PACKED[self.kind], (self.number,)).fetchone()
        return found is not None and bytes(found[0]) == self.packed


def likely_sources(rows: Rows) -> tuple[BundleSource, ...]:
    """Return the segments of the lines that were followed last, and the bundle with most of the texts that these lines share."""
    sources: list[BundleSource] = []
    for first, data in reversed(rows.execute(_LAST_LINES, (_SEGMENTS,)).fetchall()):
        try:
            sources.append(BundleSource(LINES, int(first), bytes(data), b"".join(_told(LINES, bytes(data)))))
        except DamagedBlob:
            continue
    for number in _bundles_of(rows, {mark for one in sources for mark in _MARK.findall(one.told)}):
        ((data,),) = rows.execute(_PACKED[TEXTS], (number,)).fetchall()
        try:
            sources.append(BundleSource(TEXTS, number, bytes(data), b"".join(_told(TEXTS, bytes(data)))))
        except DamagedBlob:
            continue
    return tuple(sources)


def told_by(sources: Sequence[BundleSource]) -> bytes:
    """Return what the sources tell, in their order."""
    return b"".join(one.told for one in sources)


def head_of(sources: Sequence[BundleSource]) -> bytes:
    """Return the beginning of a bundle with these sources."""
    return _COUNT.pack(len(sources)) + b"".join(_NAME.pack(one.kind, one.number) for one in sources)


def sources_in(data: bytes) -> tuple[tuple[int, int], ...]:
    """Return the kinds and numbers of the sources at the beginning of a bundle. Raises DamagedBlob."""
    try:
        (count,) = _COUNT.unpack_from(data)
        named = tuple(_NAME.iter_unpack(data[_COUNT.size : _COUNT.size + count * _NAME.size]))
    except struct.error as problem:
        raise DamagedBlob("a bundle does not say what it is compressed against") from problem
    if len(named) != count or not {kind for kind, _ in named} <= _PACKED.keys():
        raise DamagedBlob("a bundle does not say what it is compressed against")
    return named


def unpack_with_sources(rows: Rows, data: bytes) -> bytes:
    """Return the contents of a bundle with sources. Raises DamagedBlob, also for a missing source."""
    named = sources_in(data)
    base: list[bytes] = []
    for kind, number in named:
        found = rows.execute(_PACKED[kind], (number,)).fetchone()
        if found is None:
            raise DamagedBlob("a part of what its bundle is compressed against is missing")
        base += _told(kind, bytes(found[0]))
    return unpack(DIFFERENCE, data[_COUNT.size + len(named) * _NAME.size :], b"".join(base))


@lru_cache(maxsize=_AT_HAND)
def _told(kind: int, packed: bytes) -> tuple[bytes, ...]:
    """Return what a source tells, in parts. Kept for a while: neighbours have the same sources. Raises DamagedBlob.

    Texts are split and joined: `sub` and `replace` take longer.
    """
    whole = unpack(ZSTD, packed)
    if kind == TEXTS:
        return (b"\n".join(_LINE_NUMBER.split(whole)),)
    arguments = b"".join([one.partition(_END_OF_ARGUMENTS)[0] for one in whole.split(_ARGUMENTS)[1:]])
    return b"\\".join(b'"'.join(arguments.split(b'\\"')).split(b"\\\\")), whole


def _bundles_of(rows: Rows, marks: set[bytes]) -> list[int]:
    """Return the bundles without sources that have most of the blobs with these hashes, at most `_BUNDLES`."""
    names = sorted(marks)
    counts: Counter[int] = Counter()
    for first in range(0, len(names), _AT_ONCE):
        some = names[first : first + _AT_ONCE]
        query = f"""SELECT member.base, count(*) FROM blob AS member JOIN blob AS bundle ON bundle.number = member.base
          WHERE member.hash IN ({", ".join("?" * len(some))}) AND member.codec = {MEMBER} AND bundle.codec = {BUNDLE}
            AND NOT EXISTS (SELECT 1 FROM file_text WHERE file_text.number = member.number)
          GROUP BY member.base"""  # noqa: S608 -- question marks
        counts.update({int(number): int(count) for number, count in rows.execute(query, some).fetchall()})
    return [number for number, _ in counts.most_common(_BUNDLES)]
