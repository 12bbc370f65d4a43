"""Compress blobs together in bundles, because neighbouring small blobs are alike.

Rules of this file
------------------
1. A bundle is a blob by itself, and the base of its members (`packed_bytes.MEMBER`). It is no content of anybody: it is not listed, not
   exported, and not collected while it has members.
2. Blobs are bundled later, outside of the path of a call; never large ones, nor the smallest. What is slow, reading and compressing, is done before the
   transaction, which then stores the bundle only if its blobs are as they were. Until then, their bytes are in a table of their own, `alone`:
   rows of `blob` that shrank would leave holes that nothing fills.
3. A delta is bundled as the whole content. The bundle compresses it against its neighbours, and what has a long match is read fast.
4. A bundle never changes. To remove a member, its bundle is dissolved: all others are stored alone again, and may be bundled again.
   So no bytes of a removed blob stay behind.
5. A bundle may be compressed against what journals say (`bundle_sources.py`). Before that changes, the bundle is dissolved.
6. A bundle may have contents in a short form, without the hashes of references (`pinned_texts.py`).
7. What the histories of files need is in bundles of its own (`file_bundles.py`).
8. The table `unsealed` has the bundles and deltas of an older store. They are stored alone again in the pauses, and then bundled.
"""

import contextlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from pagein.errors import DamagedBlob
from pagein.model.names import ContentHash
from pagein.store.sql.bundle_sources import (
    HEAD,
    TEXTS,
    BundleSource,
    head_of,
    sources_in,
    told_by,
    unpack_with_sources,
)
from pagein.store.sql.packed_bytes import (
    AS_IT_IS,
    BUNDLE,
    DIFFERENCE,
    MEMBER,
    NO_PLACE,
    PINNED,
    QUICKLY,
    SLOWLY,
    SOURCED,
    pack,
    pack_bundle,
    unpack,
    unpack_once,
)
from pagein.store.sql.pinned_texts import ShortContents, full_contents, sequences_in
from pagein.store.sql.sql_rows import Rows

DATA: Final = "CASE WHEN length(blob.data) = 8 THEN coalesce(alone.packed, blob.data) ELSE blob.data END"
"""The packed bytes of a blob, in `BLOBS`."""
BLOBS: Final = "blob LEFT JOIN alone ON alone.number = blob.number"
_SMALLEST: Final = 17
"""Stored bytes from which a blob is bundled: the place of a smaller one would take as much, and to read it, its whole bundle is unpacked."""
_LARGEST: Final = 1 << 18
"""Stored bytes from which a blob stays alone."""
_SIZE: Final = 1 << 22
"""Bytes of the contents of a bundle: more would be smaller, but a single blob would take longer to read."""
_PACKED: Final = 1 << 19
"""Stored bytes of waiting blobs that make a bundle. Contents that pack small are versions of one another, and are read faster."""
_MUCH_SMALLER: Final = 0.85
REST: Final = 8
"""The part of a bundle that a rest must fill: many small bundles would take more room."""
_MOST: Final = 4096
_OLDER: Final = 24
_AT_ONCE: Final = 500
_NO_FILE: Final = "NOT EXISTS (SELECT 1 FROM file_text WHERE file_text.number = alone.number)"
_READY: Final = (
    f"SELECT count(*), coalesce(sum(size), 0) FROM (SELECT size FROM alone WHERE {_NO_FILE} LIMIT ?) AS waiting"  # noqa: S608 -- constants
)
_WAITING: Final = f"""SELECT alone.number, hash, codec, base, packed FROM alone JOIN blob ON blob.number = alone.number
  WHERE {_NO_FILE} ORDER BY alone.number LIMIT ?"""  # noqa: S608 -- constants

_WAIT: Final = """INSERT INTO alone(number, size, packed) VALUES(?, ?, ?)
  ON CONFLICT(number) DO UPDATE SET size = excluded.size, packed = excluded.packed"""


@dataclass(frozen=True, slots=True)
class BlobBundle:
    """A bundle that is not stored yet.

    members: numbers of blobs, with their places in the bundle
    contents: what is in it
    sources: what it is compressed against
    """

    name: ContentHash
    packed: bytes
    members: Sequence[tuple[int, bytes]]
    contents: ShortContents
    sources: Sequence[BundleSource] = ()


def waits_for_bundle(packed: bytes) -> bool:
    """Return whether a blob with these stored bytes is to be bundled."""
    return _SMALLEST <= len(packed) < _LARGEST


def waiting_contents(rows: Rows, load: Callable[[int], bytes], *, rest: bool = False) -> dict[int, bytes]:
    """Return the contents of the oldest waiting blobs, by number; none until they fill a bundle.

    load: returns the content of a blob by number; raises DamagedBlob
    rest: also blobs that fill an eighth of a bundle
    """
    ready = rows.execute(_READY, (_MOST,)).fetchone()
    if ready is None or (ready[0] < _MOST and ready[1] < (_PACKED // REST if rest else _PACKED)):
        return {}
    contents: dict[int, bytes] = {}
    size = stored = 0
    for number, name, codec, base, data in rows.execute(_WAITING, (_MOST,)).fetchall():
        try:
            below = None if base is None else contents.get(int(base)) or load(int(base))
            content = unpack(codec, bytes(data), below)
        except DamagedBlob:
            content = b""
        if ContentHash.of(content).hex != bytes(name).hex():  # damaged: it stays where it is, so that nothing hides it
            continue
        contents[int(number)] = content
        size, stored = size + len(content), stored + len(data)
        if (size >= _SIZE or stored >= _PACKED) and len(contents) > 1:  # a large one that packs small needs company
            break
    return contents if len(contents) > 1 else {}


def bundle_of(contents: ShortContents, likely: Sequence[BundleSource] = ()) -> BlobBundle:
    """Compress the contents of blobs.

    likely: sources, to be used if the bundle gets much smaller
    """
    texts = list(contents.contents.values())
    stored, places = pack_bundle(texts, level=QUICKLY if likely else SLOWLY)
    sources: Sequence[BundleSource] = ()
    if likely:
        against = pack_bundle(texts, told_by(likely))[0]
        sources = likely if len(against) < _MUCH_SMALLER * len(stored) else ()
        stored = head_of(sources) + against if sources else pack_bundle(texts, level=SLOWLY)[0]
    members = list(zip(contents.contents, places, strict=True))
    return BlobBundle(ContentHash.of(b"".join(texts)), stored, members, contents, sources)


def put_bundle(rows: Rows, bundle: BlobBundle) -> int:
    """Store a bundle in place of its members. Return their number; 0 if one of them no longer waits, or if what it needs changed."""
    if not (bundle.contents.are_stored(rows) and all(one.is_stored(rows) for one in bundle.sources)):
        return 0
    for first in range(0, len(bundle.members), _AT_ONCE):
        some = [number for number, _ in bundle.members[first : first + _AT_ONCE]]
        query = f"SELECT count(*) FROM alone JOIN blob ON blob.number = alone.number WHERE alone.number IN ({', '.join('?' * len(some))})"  # noqa: S608 -- question marks
        if rows.execute(query, some).fetchone() != (len(some),):
            return 0
    name = bytes.fromhex(bundle.name.hex)
    if rows.execute("SELECT 1 FROM blob WHERE hash = ?", (name,)).fetchone() is not None:
        return 0  # somebody stored the same bytes as a content
    codec = SOURCED if bundle.sources else BUNDLE
    rows.execute("INSERT INTO blob(hash, codec, data) VALUES(?, ?, ?)", (name, codec, bundle.packed))
    found = rows.execute("SELECT number FROM blob WHERE hash = ?", (name,)).fetchone()
    for member, place in bundle.members:
        rows.execute(
            "UPDATE blob SET codec = ?, data = ?, base = ?, depth = 0 WHERE number = ?",
            (PINNED if member in bundle.contents.short else MEMBER, place, None if found is None else found[0], member),
        )
        rows.execute("DELETE FROM alone WHERE number = ?", (member,))
    return len(bundle.members)


def free_older(rows: Rows) -> int:
    """Store some bundles and deltas of an older store alone. Return their number."""
    query = """SELECT unsealed.number, codec, data FROM unsealed LEFT JOIN blob ON blob.number = unsealed.number
      ORDER BY unsealed.number LIMIT ?"""
    found = rows.execute(query, (_OLDER,)).fetchall()
    for number, codec, data in found:
        rows.execute("DELETE FROM unsealed WHERE number = ?", (number,))
        if codec == BUNDLE:
            with contextlib.suppress(DamagedBlob):
                dissolve_bundle(rows, int(number))
        elif codec == DIFFERENCE and len(data) > len(NO_PLACE):
            rows.execute("UPDATE blob SET data = ? WHERE number = ?", (NO_PLACE, number))
            rows.execute(_WAIT, (number, len(data), bytes(data)))
    return len(found)


def load_bundle(rows: Rows, bundle: int) -> bytes:
    """Return the contents of a bundle, by its number in the table `blob`. Raises DamagedBlob."""
    query = f"SELECT codec, data FROM blob WHERE number = ? AND codec IN ({BUNDLE}, {SOURCED})"  # noqa: S608 -- constants
    found = rows.execute(query, (bundle,)).fetchone()
    if found is None:
        raise DamagedBlob(f"bundle {bundle} is missing")
    codec, data = found
    if codec == BUNDLE:
        return unpack(BUNDLE, bytes(data))
    return unpack_once(bytes(data), lambda packed: unpack_with_sources(rows, packed))


def load_member(rows: Rows, codec: int, place: bytes, bundle: int) -> bytes:
    """Return the content of a blob that is in a bundle, given its codec and its place. Raises DamagedBlob."""
    short = unpack(MEMBER, bytes(place), load_bundle(rows, bundle))
    if codec == MEMBER:
        return short
    (content,) = full_contents(rows, (short,))
    if isinstance(content, DamagedBlob):
        raise content
    return content


def free_pins(rows: Rows, sequences: Collection[int] | None = None) -> None:
    """Dissolve the bundles with contents without the hashes of some versions, or of any, before these are removed or change."""
    for (bundle,) in rows.execute("SELECT DISTINCT base FROM blob WHERE codec = ?", (PINNED,)).fetchall():
        with contextlib.suppress(DamagedBlob):
            if sequences is None or not sequences_in(load_bundle(rows, int(bundle))).isdisjoint(sequences):
                dissolve_bundle(rows, int(bundle))


def free_bundles_on(rows: Rows, kind: int, number: int) -> None:
    """Dissolve the bundles that are compressed against a source, before it changes. What is unreadable stays as it is."""
    query = f"SELECT number, substr(data, 1, {HEAD}) FROM blob WHERE codec = {SOURCED}"  # noqa: S608 -- constants
    for bundle, head in rows.execute(query).fetchall():
        with contextlib.suppress(DamagedBlob):
            if (kind, number) in sources_in(bytes(head)):
                dissolve_bundle(rows, int(bundle))


def members_of(rows: Rows, whole: bytes, members: Sequence[tuple[int, int, bytes]]) -> dict[int, bytes | DamagedBlob]:
    """Return the contents of members of a bundle, by number; a failure in place of an unreadable one.

    whole: what the bundle has. members: numbers, codecs and places
    """
    found: dict[int, bytes | DamagedBlob] = {}
    short: dict[int, bytes] = {}
    for number, codec, place in members:
        try:
            content = unpack(MEMBER, bytes(place), whole)
        except DamagedBlob as problem:
            found[number] = problem
            continue
        (found if codec == MEMBER else short)[number] = content
    return found | dict(zip(short, full_contents(rows, list(short.values())), strict=True))


def dissolve_bundle(rows: Rows, bundle: int) -> None:
    """Store each member of a bundle alone, and delete the bundle. Raises DamagedBlob for an unreadable bundle.

    bundle: its number in the table `blob`
    """
    whole = load_bundle(rows, bundle)
    free_bundles_on(rows, TEXTS, bundle)
    query = "SELECT number, codec, data FROM blob WHERE base = ? AND codec IN (?, ?)"
    for number, content in members_of(rows, whole, rows.execute(query, (bundle, MEMBER, PINNED)).fetchall()).items():
        # damaged as before, and found by its hash
        codec, data = (AS_IT_IS, NO_PLACE) if isinstance(content, DamagedBlob) else pack(content)
        waits = waits_for_bundle(data)
        kept = NO_PLACE if waits else data
        rows.execute("UPDATE blob SET codec = ?, data = ?, base = NULL WHERE number = ?", (codec, kept, number))
        if waits:
            rows.execute(_WAIT, (number, len(data), data))
    rows.execute("DELETE FROM blob WHERE number = ?", (bundle,))
