"""Erase texts from a SQL store: rewrite every row with an erased text.

Rules of this file
------------------
1. An erasure is a single transaction. Unreadable rows stay unchanged, and are reported.
2. Rewritten content gets a new hash, and every reference to the old hash is changed to the new hash. The same holds for references to a
   version whose record changed.
3. Ids of entries and objects, and numbers of versions, stay. They only give positions, and contain no user text.
"""

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from pagein.errors import DamagedBlob, MissingBlob, StoreError
from pagein.model.derived_versions import ORDER_REASONS
from pagein.model.names import ContentHash
from pagein.model.objects import StoredObject
from pagein.model.text_removal import PrivateSpan, Retold, TextHolders, Tombstone
from pagein.model.values import Fields, canonical, frozen_fields, parse_fields
from pagein.model.version_hash import object_hash_of, version_of
from pagein.model.versions import Version, Writer
from pagein.model.writes import keys_of
from pagein.policy.privacy.erasure import (
    EntryRedaction,
    is_gone,
    path_of_reading,
    retold,
    unread,
    whole_text,
    without_texts,
)
from pagein.policy.privacy.exclusions import Finds
from pagein.store.sql.packed_records import unpack_record
from pagein.store.sql.sql_blobs import OBJECT_COLUMNS, SqlBlobs, hash_of_name, load_blob, object_of_row, put_blob, raw
from pagein.store.sql.sql_holders import (
    any_stored,
    documents_of,
    entries_with,
    entry_places,
    find_holders,
    load_lines,
)
from pagein.store.sql.sql_journals import change_line, remove_blob
from pagein.store.sql.sql_lines import LINES
from pagein.store.sql.sql_lookups import put_keys
from pagein.store.sql.sql_references import reference_in, shorten_again, store_in_full
from pagein.store.sql.sql_removal import drop_documents
from pagein.store.sql.sql_rows import Row, Rows, encode_text, plain
from pagein.store.sql.sql_versions import IN_SEGMENT, SESSION, put_record, with_records
from pagein.store.sql.target_keys import target_key

_SOMEBODY: Final = Writer("unknown")
_OF_FILES: Final = frozenset({"path", "last_path", "home", "file_type", "file_hash", "op", "known", "proof"})


class SqlErasure(SqlBlobs):
    """Erasure in a SQL store: records of erased texts, and rewriting."""

    def bury(self, tombstones: Iterable[Tombstone]) -> None:
        """Record tombstones of erased texts. Every process on the store then reloads its sessions."""
        with self._database.open_writer() as rows:
            for one in tombstones:
                rows.execute(
                    """INSERT INTO tombstone(digest, chars, beginning) VALUES(?, ?, ?)
                       ON CONFLICT(digest) DO UPDATE SET beginning = excluded.beginning""",  # an earlier pagein made no anchor
                    (one.digest, one.chars, one.beginning),
                )
            rows.execute("UPDATE forgetting SET count = count + 1")

    def find_holders(self, finds: Finds) -> TextHolders:
        with self._database.open_reader() as rows:
            return find_holders(rows, finds, self.forgettings())

    def retell(
        self,
        key: bytes,
        finds: Finds,
        drop: Callable[[Collection[str] | None], bool] = lambda _: False,
        holders: TextHolders | None = None,
    ) -> Retold:
        done = Retold()
        with self._database.open_writer() as rows:
            holders = find_holders(rows, finds, self.forgettings(), holders)
            done.unread += holders.unread
            entries, versions = sorted(holders.entries.items()), holders.versions
            names = _rewrite_blobs(rows, finds, holders.blobs, done)
            gone = _rewrite_objects(rows, finds, names, done)
            owners = [name for name in versions.values() if name is not None]
            if drop({name for _, name in entries}.union(owners) if len(owners) == len(versions) else None):
                # the others of their sessions follow, in short transactions
                drop_documents(rows, documents_of(rows, versions))
            renamed = _rewrite_versions(rows, finds, names, done, None) if any_stored(rows, list(versions)) else {}
            names |= renamed
            telling = EntryRedaction(key, finds, names, gone)
            _rewrite_entries(rows, telling, done, entries_with(rows, telling, []) if renamed else entries)
            for old in [ContentHash(old) for old in names]:
                remove_blob(rows, old)
        return done

    def retell_session(self, session: str, key: bytes) -> Retold:
        """Erase every text of a session's journal, and its evicted results.

        Content needed by other sessions stays for them.
        """
        done = Retold()
        with self._database.open_writer() as rows:
            names: dict[str, str] = {}
            query = f"SELECT {OBJECT_COLUMNS} FROM object WHERE session = ?"  # noqa: S608 -- a constant
            ours = [object_of_row(row) for row in rows.execute(query, (plain(session),)).fetchall()]
            for one in ours:
                text = f"[pagein: withheld, {one.chars:,} characters, forgotten]"
                names[one.content.hex] = put_blob(rows, text.encode()).hex
                _update_object(rows, one, ContentHash(names[one.content.hex]), "", len(text))
                done.objects += 1
            _drop_objects_of(rows, session, done)
            names |= _rename_contents_of(rows, session)
            names |= _rewrite_versions(rows, _no_spans, names, done, session)
            gone = frozenset(str(one.id) for one in ours)
            ours_in_journal = [(number, name) for number, name in entry_places(rows) if name == plain(session)]
            _rewrite_entries(rows, EntryRedaction(key, whole_text, names, gone, wholly=True), done, ours_in_journal)
        return done


def _rewrite_blobs(rows: Rows, finds: Finds, holders: Sequence[str], done: Retold) -> dict[str, str]:
    """Rewrite blobs with an erased text. Return the new hash by the old hash."""
    names: dict[str, str] = {}
    for name in holders:
        try:
            content = load_blob(rows, ContentHash(name))
        except MissingBlob:  # collected since
            continue
        made = retold(content.decode("utf-8", "surrogateescape"), finds, {})
        names[name] = put_blob(rows, made.encode("utf-8", "surrogateescape")).hex
        done.blobs += 1
    return names


def _rewrite_objects(rows: Rows, finds: Finds, names: dict[str, str], done: Retold) -> frozenset[str]:
    """Rewrite the records of evicted objects. Return the ids of objects without remaining text."""
    gone: set[str] = set()
    for row in rows.execute(f"SELECT {OBJECT_COLUMNS} FROM object").fetchall():  # noqa: S608 -- a constant
        one = object_of_row(row)
        description = retold(one.description, finds, {})
        content = ContentHash(names.get(one.content.hex, one.content.hex))
        if (description, content) == (one.description, one.content):
            continue
        text = load_blob(rows, content).decode("utf-8", "surrogateescape")
        if is_gone(text):
            gone.add(str(one.id))
        _update_object(rows, one, content, "" if is_gone(text) else description, len(text))
        done.objects += 1
    return frozenset(gone)


def _update_object(rows: Rows, one: StoredObject, content: ContentHash, description: str, chars: int) -> None:
    rows.execute(
        "UPDATE object SET hash = ?, description = ?, chars = ? WHERE id = ?",
        (raw(content), plain(description), chars, str(one.id)),
    )


def _rewrite_entries(rows: Rows, telling: EntryRedaction, done: Retold, concerned: Sequence[tuple[int, str]]) -> None:
    """Rewrite journal lines.

    concerned: places of the entries that may change

    A session also loses its knowledge of a rewritten file, with every record that depends on that knowledge.
    """
    paths: dict[str, set[str]] = {}
    for _, name, line in load_lines(rows, concerned, done.unread):
        path = telling.touched_path(line)
        if path is not None:
            paths.setdefault(name, set()).add(path)
    wanted = {*concerned, *(one for one in entry_places(rows) if one[1] in paths)} if paths else concerned
    changed: list[int] = []
    for number, name, line in load_lines(rows, sorted(wanted), []):
        path = path_of_reading(line) if name in paths else None
        made = unread(line) if path is not None and path in paths[name] else telling.line(line)
        if made != line:
            change_line(rows, number, made)
            changed.append(number)
            if b'"entry":"said"' not in line:
                done.sessions.add(name)
    LINES.drop(rows, changed)
    done.entries += len(changed)


def _no_spans(_: str) -> tuple[PrivateSpan, ...]:
    return ()


def _drop_objects_of(rows: Rows, session: str, done: Retold) -> None:
    """Delete the objects that only the session wrote, with the names and views that a person gave."""
    orders = " OR ".join("reason = ?" for _ in ORDER_REASONS)
    found = rows.execute(
        f"""SELECT document, count(*) FROM version GROUP BY document
              HAVING max(CASE WHEN {SESSION} = ? THEN 1 ELSE 0 END) = 1
                 AND min(CASE WHEN {SESSION} = ? OR (writer = 'client' AND ({orders})) THEN 1 ELSE 0 END) = 1""",  # noqa: S608 -- question marks
        (encode_text(session), encode_text(session), *ORDER_REASONS),
    ).fetchall()
    done.versions += sum(int(count) for _, count in found)
    drop_documents(rows, [int(document) for document, _ in found])


def _rename_contents_of(rows: Rows, session: str) -> dict[str, str]:
    """Return new names for the contents of files that only a session knew."""
    query = "SELECT DISTINCT content_hash FROM version WHERE content_hash IS NOT NULL AND "
    orders = " OR ".join("reason = ?" for _ in ORDER_REASONS)
    ours = {bytes(name) for (name,) in rows.execute(f"{query} {SESSION} = ?", (encode_text(session),)).fetchall()}
    theirs = {
        bytes(name)
        for (name,) in rows.execute(
            f"{query} ({SESSION} IS NULL OR {SESSION} <> ?) AND NOT (writer = 'client' AND ({orders}))",
            (encode_text(session), *ORDER_REASONS),
        ).fetchall()
    }
    names: dict[str, str] = {}
    for name in sorted(ours - theirs):
        try:
            chars = len(load_blob(rows, hash_of_name(name)).decode("utf-8", "surrogatepass"))
        except (DamagedBlob, MissingBlob):
            continue
        names[name.hex()] = put_blob(rows, f"[pagein: withheld, {chars:,} characters, forgotten]".encode()).hex
    return names


def _without_words(record: str) -> str:
    """Return the record of a version without the texts in its metadata, except for what tells a file and a deed."""
    fields = parse_fields(record)
    metadata = fields["metadata"]
    if not isinstance(metadata, Mapping):
        return record
    kept = {name: value if name in _OF_FILES else without_texts(value, whole_text) for name, value in metadata.items()}
    return canonical(frozen_fields({**fields, "metadata": kept}))


def _rewrite_versions(
    rows: Rows, finds: Finds, names: dict[str, str], done: Retold, session: str | None
) -> dict[str, str]:
    """Rewrite the records of versions, oldest first, because a version may refer to earlier versions.

    session: whose versions to rewrite without any words

    Return the new object hash by the old hash.
    """
    renamed, fields = dict(names), _FieldRenamer(rows, names)
    store_in_full(rows)
    for (sequence,) in rows.execute("SELECT sequence FROM version ORDER BY sequence").fetchall():
        row = _row(
            rows,
            f"SELECT sequence, document, number, at, object_hash, content_hash, chars, record, {SESSION} FROM version WHERE sequence = ?",  # noqa: S608 -- a constant
            sequence,
        )
        ((_, document, number, at, object_hash, content_hash, chars, stored, writer),) = with_records(
            rows, (row,), 0, 7
        )
        record = unpack_record(stored)
        fields.rename(record, renamed)
        made = retold(record, finds, {**renamed, **fields.names} if fields.names else renamed)
        if session is not None and writer == encode_text(session):
            made = _without_words(made)
        if made == record:
            continue
        made = canonical(_without_found_name(parse_fields(made), record))
        before = version_of(record, sequence=sequence, number=number, at=at, chars=chars, writer=_SOMEBODY)
        content = None if content_hash is None else names.get(bytes(content_hash).hex(), bytes(content_hash).hex())
        if content is not None and content != bytes(content_hash).hex():
            chars = len(load_blob(rows, ContentHash(content)).decode("utf-8", "surrogatepass"))
        after = version_of(made, sequence=sequence, number=number, at=at, chars=chars, writer=_SOMEBODY)
        renamed[bytes(object_hash).hex()] = object_hash_of(made).hex
        if before.metadata_view_hash != after.metadata_view_hash:
            renamed[before.metadata_view_hash.hex] = after.metadata_view_hash.hex
        content_name = None if content is None else bytes.fromhex(content)
        rows.execute(
            "UPDATE version SET object_hash = ?, content_hash = ?, chars = ?, record = ? WHERE sequence = ?",
            (raw(object_hash_of(made)), content_name, chars, IN_SEGMENT, sequence),
        )
        put_record(rows, sequence, made, content_name)
        rows.execute("UPDATE request SET asked = ? WHERE asked = ?", (raw(object_hash_of(made)), bytes(object_hash)))
        _follow_head(rows, document, before, after)
        done.versions += 1
    for number, text in rows.execute("SELECT number, reference FROM reference WHERE version IS NULL").fetchall():
        made = retold(text, finds, renamed)
        if made != text:
            rows.execute("UPDATE reference SET reference = ?, pinned = NULL WHERE number = ?", (made, number))
            with contextlib.suppress(DamagedBlob):
                key = target_key(encode_text(reference_in(rows, made, None).target))
                rows.execute("UPDATE reference SET target = ? WHERE number = ?", (key, number))
    shorten_again(rows)
    return {old: new for old, new in renamed.items() if old not in names}


class _FieldRenamer:
    """Renames the versions that additional fields refer to, field by field.

    names: new names of fields, by the old ones
    """

    def __init__(self, rows: Rows, contents: Mapping[str, str]) -> None:
        self.names: dict[str, str] = {}
        self._rows = rows
        self._contents = contents
        self._seen: set[str] = set()

    def rename(self, record: str, renamed: Mapping[str, str]) -> None:
        """Rewrite the additional fields of a version, which refers to earlier versions only.

        renamed: new object hashes of the earlier versions
        """
        held = parse_fields(record)["additional"] if renamed else None
        for name in map(str, held.values()) if isinstance(held, Mapping) else ():
            if name in self._seen:
                continue
            self._seen.add(name)
            with contextlib.suppress(DamagedBlob, MissingBlob):
                text = load_blob(self._rows, ContentHash(self._contents.get(name, name))).decode(
                    "utf-8", "surrogateescape"
                )
                if (made := retold(text, _no_spans, renamed)) != text:
                    self.names[name] = put_blob(self._rows, made.encode("utf-8", "surrogateescape")).hex


def _without_found_name(fields: Fields, before: str) -> Fields:
    """Return the fields of a version without its nickname if a text was found in it: no two objects have one name."""
    return (
        fields
        if fields["nickname"] == parse_fields(before)["nickname"]
        else frozen_fields({**fields, "nickname": None})
    )


def _follow_head(rows: Rows, document: int, before: Version, after: Version) -> None:
    """Update the lookup keys of a document's newest version."""
    (head,) = _row(rows, "SELECT head FROM document WHERE number = ?", document)
    if head != after.sequence:
        return
    put_keys(rows, document, keys_of(after), keys_of(before))
    if before.nickname != after.nickname:
        nickname = None if after.nickname is None else encode_text(after.nickname)
        rows.execute("UPDATE document SET nickname = ? WHERE number = ?", (nickname, document))


def _row(rows: Rows, query: str, value: object) -> Row:
    found = rows.execute(query, (value,)).fetchone()
    if found is None:
        raise StoreError("the store lost a row while it was told anew")
    return found
