"""Take the hashes of additional fields out of records in segments: the table `blob` has each of them in full.

Rules of this file
------------------
1. In a segment of several records, the hash of an additional field is the byte 3 and its first bytes, if the store has one blob with these.
   New records have their hashes in full, so that no write waits for a look at blobs.
2. Blobs that are stored later may begin with the same bytes. Then the hash of the whole record tells which one is meant.
3. A record whose blob is lost is damaged, and readable again as soon as the blob is stored again.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pagein.store.sql.sql_rows import Rows

HASH_MARK: Final = b"\3"
_BEGINNING: Final = 6
_REST: Final = 32 - _BEGINNING
_END_OF_FIELDS: Final = b'},"content":'
_HASH: Final = re.compile(rb"\x01(.{32})", re.DOTALL)
_MARK: Final = re.compile(rb"\x01.{32}|\x03(.{%d})" % _BEGINNING, re.DOTALL)


def shorten_hashes(rows: Rows, records: Mapping[int, bytes]) -> dict[int, bytes]:
    """Return the short forms of records with the beginnings of hashes of blobs in their additional fields."""
    parts = {number: short.partition(_END_OF_FIELDS) for number, short in records.items()}
    wanted = {name for fields, _, _ in parts.values() for name in _HASH.findall(fields)}
    known = {name for name in wanted if _blobs_with(rows, name[:_BEGINNING]) == [name]}

    def mark_of(found: re.Match[bytes]) -> bytes:
        return HASH_MARK + found[1][:_BEGINNING] if found[1] in known else found[0]

    return {number: _HASH.sub(mark_of, fields) + end + rest for number, (fields, end, rest) in parts.items()}


def blobs_behind(rows: Rows, shorts: Iterable[bytes]) -> dict[bytes, list[bytes]]:
    """Return the hashes of the blobs that the marks in records may mean, by the beginning of the hash."""
    beginnings = {found[1] for short in shorts if HASH_MARK in short for found in _MARK.finditer(short) if found[1]}
    return {one: _blobs_with(rows, one) for one in sorted(beginnings)}


def with_hashes(short: bytes, blobs: Mapping[bytes, list[bytes]]) -> Iterator[bytes]:
    """Yield the records that a short form may mean: none if a blob is missing, several if some blobs begin alike."""
    beginnings = list(dict.fromkeys(found[1] for found in _MARK.finditer(short) if found[1]))
    for chosen in itertools.product(*(blobs.get(one, []) for one in beginnings)):
        names = dict(zip(beginnings, chosen, strict=True))
        yield _MARK.sub(lambda found, names=names: b"\1" + names[found[1]] if found[1] else found[0], short)  # type: ignore[misc]


def _blobs_with(rows: Rows, beginning: bytes) -> list[bytes]:
    query = "SELECT hash FROM blob WHERE hash >= ? AND hash <= ?"
    bounds = (beginning + bytes(_REST), beginning + b"\xff" * _REST)
    return [bytes(name) for (name,) in rows.execute(query, bounds).fetchall()]
