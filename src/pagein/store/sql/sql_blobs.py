"""Store blobs and recallable objects in a SQL database.

Rules of this file
------------------
1. A blob's name is the hash of its bytes, so two writers of the same name write the same bytes, and a lost race does no harm.
2. Bytes are hashed again on reading, because wrong bytes are worse than missing bytes. A blob stored again is verified too, and healed.
3. An object's record and its bytes are committed together: an id that can be found can be recalled.
4. A blob may be stored as a delta against another blob, its base. A base is stored before its deltas, and is not removed while a delta
   needs it. A base is referenced by number, not by name. A delta may become a blob without base, or a member of a bundle.
"""

import contextlib
import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pagein.errors import DamagedBlob, MissingBlob, StoreError
from pagein.model.names import ContentHash
from pagein.model.objects import EXPIRED, ObjectId, Origin, StoredObject
from pagein.model.text_removal import Tombstone
from pagein.policy.privacy.erased_texts import ErasedTexts
from pagein.store.sql.blob_batches import load_blobs
from pagein.store.sql.bundle_sources import likely_sources
from pagein.store.sql.file_bundles import has_order, next_step, note_file_text, pass_over, renumber_run, take_step
from pagein.store.sql.packed_bytes import (
    BUNDLE,
    DIFFERENCE,
    MEMBER,
    NO_PLACE,
    PINNED,
    SOURCED,
    PackedBytes,
    pack,
    pack_against,
    unpack,
)
from pagein.store.sql.pinned_texts import shorten_contents
from pagein.store.sql.sql_bundles import (
    BLOBS,
    DATA,
    bundle_of,
    dissolve_bundle,
    free_older,
    load_member,
    put_bundle,
    waiting_contents,
    waits_for_bundle,
)
from pagein.store.sql.sql_rows import Row, Rows, SqlDatabase, plain

DEEPEST: Final = 40
"""Maximum length of a delta chain."""
OBJECT_COLUMNS: Final = "id, hash, kind, workspace, session, call_id, description, tokens, chars"
_ONE: Final = f"SELECT codec, {DATA}, base FROM {BLOBS} WHERE hash = ?"  # noqa: S608 -- constants
# The limit stops a cycle, which only damage can create, from running for ever.
_CHAIN: Final = f"""WITH RECURSIVE chain(codec, data, base, place) AS (
    SELECT codec, {DATA}, base, 0 FROM {BLOBS} WHERE hash = ?
    UNION ALL
    SELECT blob.codec, {DATA}, blob.base, chain.place + 1 FROM chain JOIN blob ON blob.number = chain.base
    LEFT JOIN alone ON alone.number = blob.number
    WHERE chain.place <= {DEEPEST} AND chain.codec NOT IN ({MEMBER}, {PINNED}))
  SELECT codec, data, base FROM chain ORDER BY place DESC"""  # noqa: S608 -- constants

# bytes may stay behind where rows of a damaged file were lost
_WAIT: Final = """INSERT INTO alone(number, size, packed) SELECT number, ?, ? FROM blob WHERE hash = ?
  ON CONFLICT(number) DO UPDATE SET size = excluded.size, packed = excluded.packed"""


class SqlBlobs:
    """A BlobStore in a SQL database, except for the parts that depend on the database."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        self._forgotten: tuple[int, ErasedTexts] = 0, ErasedTexts()
        self._prepared: dict[ContentHash, PackedBytes] = {}

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._database.open_writer():
            yield

    def close(self) -> None:
        self._database.close()

    def put(self, content: bytes, name: ContentHash | None = None) -> ContentHash:
        packed = None if name is None else self._prepared.pop(name, None)
        with self._database.open_writer() as rows:
            self._refuse_erased((content,))
            return put_blob(rows, content, name=name, packed=packed)

    def prepare(self, content: bytes, name: ContentHash) -> None:
        self._prepared = {name: pack(content)}  # only the last: what is not put after all is soon gone

    def put_many(self, contents: Sequence[bytes]) -> tuple[ContentHash, ...]:
        with self._database.open_writer() as rows:
            self._refuse_erased(contents)
            return tuple(put_blob(rows, content) for content in contents)

    def get(self, name: ContentHash) -> bytes:
        with self._database.open_reader() as rows:
            return load_blob(rows, name)

    def load(self, names: Sequence[ContentHash]) -> Sequence[bytes | StoreError]:
        return load_blobs(self._database, names)

    def has(self, name: ContentHash) -> bool:
        with self._database.open_reader() as rows:
            return rows.execute("SELECT 1 FROM blob WHERE hash = ?", (raw(name),)).fetchone() is not None

    def names(self) -> Iterator[ContentHash]:
        with self._database.open_reader() as rows:
            query = "SELECT hash FROM blob WHERE codec NOT IN (?, ?) ORDER BY CASE WHEN codec IN (?, ?) THEN base ELSE number END, number"
            found = rows.execute(query, (BUNDLE, SOURCED, MEMBER, PINNED)).fetchall()
        return iter([hash_of_name(name) for (name,) in found])

    def figures(self) -> tuple[int, int]:
        with self._database.open_reader() as rows:
            query = f"SELECT sum(CASE WHEN codec IN (?, ?) THEN 0 ELSE 1 END), coalesce(sum(length({DATA})), 0) FROM {BLOBS}"  # noqa: S608 -- constants
            found = rows.execute(query, (BUNDLE, SOURCED)).fetchone()
        count, size = found if found is not None else (0, 0)
        return int(count or 0), int(size)

    def bundle_more(self, *, rest: bool = False) -> int:
        with self._database.open_reader() as rows:
            goes_on = has_order(rows)  # before others, for which each step would pass over all that waits for the run
            contents = {} if goes_on else waiting_contents(rows, lambda number: _load_number(rows, number), rest=rest)
            shorts, sources = (shorten_contents(rows, contents), likely_sources(rows)) if contents else (None, ())
        if shorts is None:
            return self._bundle_files(rest=rest)
        bundle = bundle_of(shorts, sources)
        with self._database.open_writer() as rows:
            return put_bundle(rows, bundle)

    def _bundle_files(self, *, rest: bool) -> int:
        """Go on with the bundles of the texts of files; if there is nothing to do, with what an older store has. Return 0 at the end."""
        with self._database.open_reader() as rows:
            step = next_step(rows, lambda number: _load_number(rows, number), rest=rest)
            if step is None and rows.execute("SELECT 1 FROM unsealed LIMIT 1").fetchone() is None:
                return 0
        bundle = None if step is None else step.bundle()
        with self._database.open_writer() as rows:
            if step is None:
                return free_older(rows)
            if bundle is None:
                return take_step(rows, step)
            pass_over(rows, step)
            renumber_run(rows)
            return put_bundle(rows, bundle)

    def put_objects(self, objects: Sequence[tuple[StoredObject, bytes]]) -> frozenset[ObjectId]:
        with self._database.open_writer() as rows:
            return self._put_objects(rows, objects)

    def _put_objects(self, rows: Rows, objects: Sequence[tuple[StoredObject, bytes]]) -> frozenset[ObjectId]:
        taken: set[ObjectId] = set()
        self._refuse_erased([content for _, content in objects])
        for stored, content in objects:
            first = _add_object(rows, stored)
            if first is not None and first.kind == EXPIRED != stored.kind:
                rows.execute("DELETE FROM object WHERE id = ?", (str(stored.id),))
                first = _add_object(rows, stored)
            if first is None or (first.content, first.workspace) != (stored.content, plain(stored.workspace)):
                taken.add(stored.id)
            else:
                put_blob(rows, content)
        return frozenset(taken)

    def find(self, object_id: ObjectId) -> StoredObject | None:
        with self._database.open_reader() as rows:
            return _find_object(rows, object_id)

    def secret(self) -> bytes:
        with self._database.open_reader() as rows:
            found = rows.execute("SELECT key FROM secret").fetchone()
        if found is None:
            with self._database.open_writer() as rows:
                fresh = secrets.token_bytes(32)
                # Another process may have been faster; then its key is used.
                rows.execute("INSERT INTO secret(number, key) VALUES(1, ?) ON CONFLICT DO NOTHING", (fresh,))
                found = rows.execute("SELECT key FROM secret").fetchone()
        if found is None:
            raise StoreError("the store lost its secret while it was made")
        return bytes(found[0])

    def tombstones(self) -> tuple[Tombstone, ...]:
        with self._database.open_reader() as rows:
            found = rows.execute("SELECT digest, chars, beginning FROM tombstone ORDER BY number").fetchall()
        return tuple(Tombstone(str(digest), int(chars), int(beginning)) for digest, chars, beginning in found)

    def forgettings(self) -> int:
        with self._database.open_reader() as rows:
            found = rows.execute("SELECT count FROM forgetting").fetchone()
        return 0 if found is None else int(found[0])

    def forgotten(self) -> ErasedTexts:
        """Return the erased texts, reloaded after a new erasure."""
        count = self.forgettings()
        if count and self._forgotten[0] != count:
            self._forgotten = count, ErasedTexts(self.secret(), self.tombstones())
        return self._forgotten[1]

    def _refuse_erased(self, contents: Iterable[bytes]) -> None:
        """Raise StoreError if a content has an erased text."""
        forgotten = self.forgotten()
        if forgotten.tombstones and any(forgotten.finds(one.decode("utf-8", "replace")) for one in contents):
            raise StoreError("it holds a text that was ordered to be forgotten, and is not stored")


def is_shared(rows: Rows, name: ContentHash) -> bool:
    """Return whether journal lines may share the content with this hash: it is not that of an evicted object."""
    return rows.execute("SELECT 1 FROM object WHERE hash = ? LIMIT 1", (raw(name),)).fetchone() is None


def put_blob(
    rows: Rows,
    content: bytes,
    base: ContentHash | None = None,
    name: ContentHash | None = None,
    packed: PackedBytes | None = None,
    *,
    stays: bool = False,
    file: int | None = None,
) -> ContentHash:
    """Store bytes, as a delta if there is a base and the delta is much smaller.

    name: hash of the bytes; None to compute it. packed: what `pack` gave for the bytes; None to pack them.
    stays: never to be bundled: they are read without their neighbours.
    file: number of the file whose history needs the bytes
    """
    name = name or ContentHash.of(content)
    try:
        load_blob(rows, name)
    except MissingBlob:
        number, depth, data_of_base = _base(rows, base)
        codec, data = packed or pack(content) if data_of_base is None else pack_against(content, data_of_base)
        if codec != DIFFERENCE:
            number, depth = None, 0
        waits = not stays and waits_for_bundle(data)
        rows.execute(
            "INSERT INTO blob(hash, codec, data, base, depth) VALUES(?, ?, ?, ?, ?)",
            (raw(name), codec, NO_PLACE if waits else data, number, depth),
        )
        _put_waiting(rows, name, data if waits else None)
    except DamagedBlob:
        _heal(rows, name, content)
    if file is not None:
        note_file_text(rows, raw(name), file)
    return name


def _heal(rows: Rows, name: ContentHash, content: bytes) -> None:
    """Store the bytes of a damaged blob again."""
    free_member(rows, name)
    store_alone(rows, name, content)


def store_alone(rows: Rows, name: ContentHash, content: bytes) -> None:
    """Store the bytes of a blob that is no member, without a base."""
    codec, data = pack(content)
    waits = waits_for_bundle(data)
    rows.execute(
        "UPDATE blob SET codec = ?, data = ?, base = NULL, depth = 0 WHERE hash = ?",
        (codec, NO_PLACE if waits else data, raw(name)),
    )
    _put_waiting(rows, name, data if waits else None)


def _put_waiting(rows: Rows, name: ContentHash, data: bytes | None) -> None:
    """Store the bytes of a blob that waits for a bundle; None if it does not."""
    if data is None:
        rows.execute("DELETE FROM alone WHERE number = (SELECT number FROM blob WHERE hash = ?)", (raw(name),))
    else:
        rows.execute(_WAIT, (len(data), data, raw(name)))


def free_member(rows: Rows, name: ContentHash) -> None:
    """Dissolve the bundle of a blob, if it is in one. A bundle that cannot be read stays as it is."""
    query = "SELECT base FROM blob WHERE hash = ? AND codec IN (?, ?)"
    found = rows.execute(query, (raw(name), MEMBER, PINNED)).fetchone()
    if found is not None and found[0] is not None:
        with contextlib.suppress(DamagedBlob):
            dissolve_bundle(rows, int(found[0]))


def _load_number(rows: Rows, number: int) -> bytes:
    found = rows.execute("SELECT hash FROM blob WHERE number = ?", (number,)).fetchone()
    if found is None:
        raise DamagedBlob("what it differs from is missing")
    return load_blob(rows, hash_of_name(found[0]))


def load_blob(rows: Rows, name: ContentHash) -> bytes:
    """Return the verified bytes under a hash. Raises MissingBlob or DamagedBlob."""
    try:
        return _load_blob(rows, name)
    except DamagedBlob:
        return _load_blob(rows, name)  # another process may have dissolved its bundle meanwhile


def _load_blob(rows: Rows, name: ContentHash) -> bytes:
    found = rows.execute(_ONE, (raw(name),)).fetchone()
    if found is None:
        raise MissingBlob(f"the store has nothing under {name.hex}")
    chain: Sequence[Row] = (found,)
    if found[2] is not None and found[0] not in (MEMBER, PINNED):
        chain = rows.execute(_CHAIN, (raw(name),)).fetchall()
    content: bytes | None = None
    try:
        for codec, data, base in chain:
            is_member = codec in (MEMBER, PINNED) and base is not None
            content = load_member(rows, codec, data, base) if is_member else unpack(codec, bytes(data), content)
    except DamagedBlob as problem:
        raise DamagedBlob(f"the bytes under {name} cannot be unpacked: {problem}") from problem
    if content is None or ContentHash.of(content) != name:
        raise DamagedBlob(f"the bytes under {name} are not the ones that were stored")
    return content


def raw(name: ContentHash) -> bytes:
    """Return a hash as stored bytes."""
    return bytes.fromhex(name.hex)


def hash_of_name(kept_name: bytes) -> ContentHash:
    """Decode a stored hash."""
    return ContentHash(bytes(kept_name).hex())


def _base(rows: Rows, base: ContentHash | None) -> tuple[int | None, int, bytes | None]:
    """Return a usable base with its number, the depth of a delta on it, and the bytes; otherwise None."""
    if base is None:
        return None, 0, None
    found = rows.execute("SELECT number, depth FROM blob WHERE hash = ?", (raw(base),)).fetchone()
    if found is None or found[1] >= DEEPEST:
        return None, 0, None
    try:
        return int(found[0]), int(found[1]) + 1, load_blob(rows, base)
    except DamagedBlob:
        return None, 0, None


def _record(stored: StoredObject) -> tuple[object, ...]:
    texts = (stored.kind, stored.workspace, stored.origin.session, stored.origin.call_id, stored.description)
    return (str(stored.id), raw(stored.content), *map(plain, texts), stored.tokens, stored.chars)


def _add_object(rows: Rows, stored: StoredObject) -> StoredObject | None:
    """Store the record of an object unless its id is known. Return the record of the id."""
    rows.execute(
        f"INSERT INTO object({OBJECT_COLUMNS}) VALUES(?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING", _record(stored)
    )
    return _find_object(rows, stored.id)


def _find_object(rows: Rows, object_id: ObjectId) -> StoredObject | None:
    query = f"SELECT {OBJECT_COLUMNS} FROM object WHERE id = ?"  # noqa: S608 -- a constant
    row = rows.execute(query, (str(object_id),)).fetchone()
    return None if row is None else object_of_row(row)


def object_of_row(row: Row) -> StoredObject:
    """Return the record in a row of the table `object`."""
    object_id, name, kind, workspace, session, call_id, description, tokens, chars = row
    origin = Origin(session, call_id)
    return StoredObject(ObjectId(object_id), hash_of_name(name), kind, workspace, origin, description, tokens, chars)
