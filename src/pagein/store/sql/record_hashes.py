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
_AT_ONCE: Final = 250
_REST: Final = 32 - _BEGINNING
_END_OF_FIELDS: Final = b'},"content":'
_HASH: Final = re.compile(rb"\x01(.{32})", re.DOTALL)
_MARK: Final = re.compile(rb"\x01.{32}|\x03(.{%d})" % _BEGINNING, re.DOTALL)


def shorten_hashes(rows: Rows, records: Mapping[int, bytes]) -> dict[int, bytes]:
    """Return the short forms of records with the beginnings of hashes of blobs in their additional fields."""
    parts = {number: short.partition(_END_OF_FIELDS) for number, short in records.items()}
    wanted = {name for fields, _, _ in parts.values() for name in _HASH.findall(fields)}
    alike = _blobs_with(rows, {name[:_BEGINNING] for name in wanted})
    known = {name for name in wanted if alike[name[:_BEGINNING]] == [name]}

    def mark_of(found: re.Match[bytes]) -> bytes:
        return HASH_MARK + found[1][:_BEGINNING] if found[1] in known else found[0]

    return {number: _HASH.sub(mark_of, fields) + end + rest for number, (fields, end, rest) in parts.items()}


def blobs_behind(rows: Rows, shorts: Iterable[bytes]) -> dict[bytes, list[bytes]]:
    """Return the hashes of the blobs that the marks in records may mean, by the beginning of the hash."""
    return _blobs_with(rows, set().union(*map(_beginnings_in, shorts)))


def with_hashes(short: bytes, blobs: Mapping[bytes, list[bytes]]) -> Iterator[bytes]:
    """Yield the records that a short form may mean: none if a blob is missing, several if some blobs begin alike."""
    beginnings = _beginnings_in(short)
    if not beginnings:
        yield short
        return
    fields, end, rest = short.partition(_END_OF_FIELDS)
    for chosen in itertools.product(*(blobs.get(one, []) for one in beginnings)):
        yield _filled(fields, dict(zip(beginnings, chosen, strict=True))) + end + rest


def _filled(fields: bytes, names: Mapping[bytes, bytes]) -> bytes:
    return _MARK.sub(lambda found: b"\1" + names[found[1]] if found[1] else found[0], fields)


def _beginnings_in(short: bytes) -> list[bytes]:
    if HASH_MARK not in short:
        return []
    fields, _, _ = short.partition(_END_OF_FIELDS)
    return [one for one in dict.fromkeys(_MARK.findall(fields)) if one]


def _blobs_with(rows: Rows, beginnings: Iterable[bytes]) -> dict[bytes, list[bytes]]:
    """Return the hashes of blobs by their beginnings."""
    found: dict[bytes, list[bytes]] = {one: [] for one in sorted(beginnings)}
    wanted = list(found)
    for first in range(0, len(wanted), _AT_ONCE):
        some = wanted[first : first + _AT_ONCE]
        query = f"""WITH wanted(low, high) AS (VALUES {", ".join(["(?, ?)"] * len(some))})
          SELECT hash FROM wanted JOIN blob ON hash >= low AND hash <= high"""  # noqa: S608 -- question marks
        bounds = [bound for one in some for bound in (one + bytes(_REST), one + b"\xff" * _REST)]
        for (name,) in rows.execute(query, bounds).fetchall():
            found[bytes(name)[:_BEGINNING]].append(bytes(name))
    return found
