"""Read many blobs at once.

Rules of this file
------------------
1. Rows are read by few statements, and each bundle is unpacked once, in the order of the bundles: neighbours have the same sources.
2. A delta's bases are read with it. Bytes are hashed again, as those of a single blob (`sql_blobs.load_blob`).
3. Another process may dissolve a bundle meanwhile, bundle its members again, or remove a base. What seems damaged is read again until
   its rows stay the same.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import zstandard

from pagein.errors import DamagedBlob, MissingBlob, StoreError
from pagein.model.names import ContentHash
from pagein.store.sql.packed_bytes import MEMBER, PINNED, ZSTD, unpack
from pagein.store.sql.sql_bundles import BLOBS, DATA, load_bundle, members_of
from pagein.store.sql.sql_rows import Row, Rows, SqlDatabase, batches, question_marks

_BLOB: Final = f"blob.number, hash, codec, {DATA}, base"


def load_blobs(database: SqlDatabase, names: Sequence[ContentHash]) -> list[bytes | StoreError]:
    """Return the verified bytes under these hashes; a failure in place of what is missing or damaged."""
    found: dict[ContentHash, bytes | StoreError] = {}
    before: dict[int, Row] | None = None
    left = list(dict.fromkeys(names))
    while left:
        with database.open_reader() as rows:
            blobs = {row[0]: row for row in _fetch_rows(rows, "hash", [bytes.fromhex(name.hex) for name in left])}
            _with_bases(rows, blobs)
        if before is not None and all(before.get(number) == row for number, row in blobs.items()):
            break  # damaged where it is
        numbers = {bytes(row[1]).hex(): row[0] for row in blobs.values()}
        contents = _members(database, blobs.values())
        found |= {name: _content(name, numbers.get(name.hex), blobs, contents) for name in left}
        left, before = [name for name in left if isinstance(found[name], DamagedBlob)], blobs
    return [found[name] for name in names]


def _fetch_rows(rows: Rows, column: str, values: Sequence[object]) -> Iterator[Row]:
    for some in batches(values):
        query = f"SELECT {_BLOB} FROM {BLOBS} WHERE blob.{column} IN ({question_marks(some)})"  # noqa: S608 -- question marks
        yield from rows.execute(query, some).fetchall()


def _members(database: SqlDatabase, blobs: Iterable[Row]) -> dict[int, bytes | DamagedBlob]:
    """Return the contents of blobs that are in bundles, by number. One bundle is in memory at a time: bundles are large."""
    places: dict[int, list[tuple[int, int, bytes]]] = {}
    for number, _, codec, place, base in blobs:
        if codec in (MEMBER, PINNED) and base is not None:
            places.setdefault(base, []).append((number, codec, place))
    contents: dict[int, bytes | DamagedBlob] = {}
    for bundle, members in sorted(places.items()):
        with database.open_reader() as rows:
            try:
                contents |= members_of(rows, load_bundle(rows, bundle), members)
            except DamagedBlob as problem:
                contents |= {number: problem for number, _, _ in members}
    return contents


def _with_bases(rows: Rows, blobs: dict[int, Row]) -> None:
    """Add the delta bases of these blobs, and the bases of the bases, without bundles."""
    missing = _bases(blobs.values()) - blobs.keys()
    while missing:
        found = {row[0]: row for row in _fetch_rows(rows, "number", sorted(missing))}
        blobs.update(found)
        missing = _bases(found.values()) - blobs.keys()


def _bases(blobs: Iterable[Row]) -> set[int]:
    return {base for _, _, codec, _, base in blobs if base is not None and codec not in (MEMBER, PINNED)}


def _content(
    name: ContentHash, number: int | None, blobs: dict[int, Row], contents: dict[int, bytes | DamagedBlob]
) -> bytes | StoreError:
    if number is None:
        return MissingBlob(f"the store has nothing under {name}")
    if blobs[number][4] is None:
        contents[number] = _unpack_or_damage(blobs[number][2], blobs[number][3], None)
    chain: list[int] = []
    at: int | None = number
    while at is not None and at not in contents and at in blobs and len(chain) <= len(blobs):
        chain.append(at)
        at = blobs[at][4]
    for below in reversed(chain):
        _, _, codec, data, base = blobs[below]
        contents[below] = _unpack_or_damage(codec, data, None if base is None else contents.get(base))
    content = contents[number]
    if isinstance(content, DamagedBlob):
        return DamagedBlob(f"the bytes under {name} cannot be unpacked: {content}")
    if ContentHash.of(content) != name:
        return DamagedBlob(f"the bytes under {name} are not the ones that were stored")
    return content


_mine: Final = threading.local()


def _unpack_or_damage(codec: int, data: bytes, base: bytes | DamagedBlob | None) -> bytes | DamagedBlob:
    if isinstance(base, DamagedBlob):
        return base
    try:
        return _unpacked_alone(bytes(data)) if codec == ZSTD else unpack(codec, bytes(data), base)
    except DamagedBlob as problem:
        return problem


def _unpacked_alone(data: bytes) -> bytes:
    """Unpack bytes compressed without a base, with a decompressor per thread.

    Creating a decompressor costs half of the work.
    """
    if not hasattr(_mine, "decompressor"):
        _mine.decompressor = zstandard.ZstdDecompressor()
    try:
        content: bytes = _mine.decompressor.decompress(data, max_output_size=0)
    except (zstandard.ZstdError, MemoryError):
        return unpack(ZSTD, data)  # raises with the reason
    return content
