"""Compress blobs together in bundles, because neighbouring small blobs are alike.

Rules of this file
------------------
1. A bundle is a blob by itself, and the base of its members (`packed_bytes.MEMBER`). It is no content of anybody: it is not listed, not
   exported, and not collected while it has members.
2. Blobs are bundled later, in short transactions outside of the path of a call; never blobs that are deltas, or large. Until then, their
   bytes are in a table of their own, `alone`: rows of `blob` that shrank would leave holes that nothing fills.
3. A bundle never changes. To remove a member, its bundle is dissolved: all others are stored alone again, and may be bundled again.
   So no bytes of a removed blob stay behind.
"""

from collections.abc import Sequence
from typing import Final

from pagein.errors import DamagedBlob
from pagein.model.names import ContentHash
from pagein.store.sql.packed_bytes import AS_IT_IS, BUNDLE, MEMBER, NO_PLACE, pack, pack_bundle, unpack
from pagein.store.sql.sql_rows import Rows

DATA: Final = "CASE WHEN length(blob.data) = 8 THEN coalesce(alone.packed, blob.data) ELSE blob.data END"
"""The packed bytes of a blob, in `BLOBS`."""
BLOBS: Final = "blob LEFT JOIN alone ON alone.number = blob.number"
LARGEST: Final = 16_384
"""Stored bytes from which a blob stays alone."""
_SIZE: Final = 1 << 16
"""Bytes of the contents of a bundle: more would be smaller, but a single blob would take longer to read."""
_PACKED: Final = _SIZE // 4
"""Stored bytes of waiting blobs from which bundling is tried: their contents are about four times as large."""
_MOST: Final = 256
_READY: Final = "SELECT count(*), coalesce(sum(size), 0) FROM (SELECT size FROM alone LIMIT ?) AS waiting"
_WAITING: Final = """SELECT alone.number, hash, codec, packed FROM alone JOIN blob ON blob.number = alone.number
  ORDER BY alone.number LIMIT ?"""

_WAIT: Final = """INSERT INTO alone(number, size, packed) VALUES(?, ?, ?)
  ON CONFLICT(number) DO UPDATE SET size = excluded.size, packed = excluded.packed"""


def bundle_blobs(rows: Rows) -> int:
    """Store the oldest waiting blobs in a bundle. Return their number; 0 until the waiting blobs fill a bundle."""
    ready = rows.execute(_READY, (_MOST,)).fetchone()
    if ready is None or (ready[0] < _MOST and ready[1] < _PACKED):
        return 0
    found = rows.execute(_WAITING, (_MOST,)).fetchall()
    members: list[int] = []
    contents: list[bytes] = []
    size = 0
    for number, name, codec, data in found:
        try:
            content = unpack(codec, bytes(data))
        except DamagedBlob:
            content = b""
        if ContentHash.of(content).hex != bytes(name).hex():  # damaged: it stays where it is, so that nothing hides it
            continue
        members.append(int(number))
        contents.append(content)
        size += len(content)
        if size >= _SIZE and len(members) > 1:  # a large one that packs small needs company
            break
    if len(members) < 2:  # noqa: PLR2004 - a bundle of one is none
        return 0
    bundle = _put_bundle(rows, contents)
    if bundle is None:
        return 0
    number, places = bundle
    for member, place in zip(members, places, strict=True):
        rows.execute("UPDATE blob SET codec = ?, data = ?, base = ? WHERE number = ?", (MEMBER, place, number, member))
        rows.execute("DELETE FROM alone WHERE number = ?", (member,))
    return len(members)


def _put_bundle(rows: Rows, contents: Sequence[bytes]) -> tuple[int, list[bytes]] | None:
    """Store a bundle. Return the bundle's number and the places of the contents."""
    name = bytes.fromhex(ContentHash.of(b"".join(contents)).hex)
    if rows.execute("SELECT 1 FROM blob WHERE hash = ?", (name,)).fetchone() is not None:
        return None  # somebody stored the same bytes as a content
    packed, places = pack_bundle(contents)
    rows.execute("INSERT INTO blob(hash, codec, data) VALUES(?, ?, ?)", (name, BUNDLE, packed))
    found = rows.execute("SELECT number FROM blob WHERE hash = ?", (name,)).fetchone()
    return None if found is None else (int(found[0]), places)


def dissolve_bundle(rows: Rows, bundle: int) -> None:
    """Store each member of a bundle alone, and delete the bundle. Raises DamagedBlob for an unreadable bundle.

    bundle: its number in the table `blob`
    """
    found = rows.execute("SELECT data FROM blob WHERE number = ? AND codec = ?", (bundle, BUNDLE)).fetchone()
    if found is None:
        raise DamagedBlob(f"bundle {bundle} is missing")
    whole = unpack(BUNDLE, bytes(found[0]))
    members = rows.execute("SELECT number, data FROM blob WHERE base = ? AND codec = ?", (bundle, MEMBER)).fetchall()
    for number, place in members:
        try:
            codec, data = pack(unpack(MEMBER, bytes(place), whole))
        except DamagedBlob:
            codec, data = AS_IT_IS, NO_PLACE  # damaged as before, and found by its hash
        rows.execute("UPDATE blob SET codec = ?, data = ?, base = NULL WHERE number = ?", (codec, NO_PLACE, number))
        rows.execute(_WAIT, (number, len(data), data))
    rows.execute("DELETE FROM blob WHERE number = ?", (bundle,))
