"""Store objects with versions in a SQL database.

Rules of this file
------------------
1. Every fact that a write depends on is read inside its transaction, without other writers; the decision itself is `write_rules.decide`.
2. A version's row, content, references and lookup keys are committed together.
3. Queries for versions read `version` and `document` alone. Only `content` and `additional` touch blobs.
4. A row is valid only if its record matches its hash.
5. References and lookup keys are stored as changes between versions, so that a long chat costs only its growth.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Final

from pagein.errors import StoreError
from pagein.model.links import Backlink, Link, Resolution, UnresolvedReference
from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.values import Value, place_order
from pagein.model.version_hash import SealedDraft, additional_in, decode_content, value_of
from pagein.model.versions import Draft, Version
from pagein.model.writes import Outcome, Query, Write, Written, fields_match, keys_of
from pagein.store.rules.reference_target import resolve_reference, target_of
from pagein.store.rules.write_rules import AppendVersion, RememberedAnswer, WriteFacts, decide
from pagein.store.sql.lookup_pairs import join_pairs
from pagein.store.sql.packed_records import unpack_record
from pagein.store.sql.packed_references import pack_references, stored_references
from pagein.store.sql.pinned_texts import note_pin
from pagein.store.sql.sql_answers import (
    answered_version,
    answers_between,
    earlier_request,
    move_answers,
    put_answer,
)
from pagein.store.sql.sql_backlinks import references_to
from pagein.store.sql.sql_blobs import SqlBlobs, hash_of_name, load_blob, put_blob, raw
from pagein.store.sql.sql_lookups import drop_unused_keys, put_keys
from pagein.store.sql.sql_queries import conditions, documents_with_key, with_stored_names
from pagein.store.sql.sql_references import put_links_again, put_references, reference_in
from pagein.store.sql.sql_rows import Row, Rows, batches, decode_text, encode_text, question_marks
from pagein.store.sql.sql_versions import (
    IN_SEGMENT,
    merge_records,
    put_record,
    select_versions,
    shorten_sessions,
    version_in,
    with_records,
    writer_number,
)
from pagein.store.sql.target_keys import target_key

_STEP: Final = 16
"""Distance of delta bases: every 16th version is a delta against the 16th version before it, so that delta chains stay short."""
_AT_ONCE: Final = 500
_READ_ALONE: Final = frozenset({"user"})
"""Types of objects whose contents stay out of bundles. Histories and lists show the words of many turns, each a bundle apart."""
_FILES: Final = frozenset({"file", "note"})
_RECORDS: Final = "SELECT sequence, content_hash, record FROM version WHERE sequence > ? ORDER BY sequence LIMIT ?"
_NUMBER, _AT = 1, 2
"""Places of these columns in a row of a version."""
_PACKING: Final = (merge_records, pack_references, move_answers, shorten_sessions, drop_unused_keys, join_pairs)
"""What a store does in the pauses between calls, behind the bundling of blobs."""


class SqlObjects(SqlBlobs):
    """An ObjectStore in a SQL database."""

    def bundle_more(self, *, rest: bool = False) -> int:
        done = super().bundle_more(rest=rest)
        if done:
            return done
        with self._database.open_writer() as rows:
            return next((done for pack in _PACKING if (done := pack(rows))), 0)

    def write(self, write: Write) -> Outcome:
        sealed = SealedDraft.of(write.draft)
        with self._database.open_writer() as rows:
            self._refuse_erased(_texts(sealed))
            facts = _facts(rows, write)
            match decide(write, sealed, facts):
                case AppendVersion(number, change):
                    version = _append_version(rows, write, sealed, facts.current, number)
                    put_answer(rows, write.request, version, change)
                    return Written(version, change)
                case RememberedAnswer(answer):
                    put_answer(rows, write.request, answer.version, answer.change)
                    return answer
                case answer:
                    return answer

    def put_version(self, write: Write, number: int) -> bool:
        sealed = SealedDraft.of(write.draft)
        with self._database.open_writer() as rows:
            self._refuse_erased(_texts(sealed))
            return _put_back(rows, write, sealed, number)

    def answered(self, request: str) -> Version | None:
        with self._database.open_reader() as rows:
            return answered_version(rows, request)

    def current(self, name: str) -> Version | None:
        with self._database.open_reader() as rows:
            found = _newest(rows, name)
            return (
                _one(rows, "document.nickname = ? AND sequence = document.head", encode_text(name))
                if found is None
                else found
            )

    def version(self, object_id: str, number: int) -> Version | None:
        with self._database.open_reader() as rows:
            return _one(rows, "document.id = ? AND version.number = ?", encode_text(object_id), number)

    def as_of(self, object_id: str, at: float) -> Version | None:
        with self._database.open_reader() as rows:
            found = _latest(rows, object_id, 1, float(at))
        return found[0] if found else None

    def history(self, object_id: str) -> Sequence[Version]:
        return self._versions("document.id = ? ORDER BY version.number", encode_text(object_id))

    def latest_versions(self, object_id: str, most: int | None = None) -> Sequence[Version]:
        with self._database.open_reader() as rows:
            return _latest(rows, object_id, 2**62 if most is None else most)

    def objects(self, query: Query) -> Sequence[Version]:
        asked = with_stored_names(query)
        found, kept = self._found(asked, query)
        if asked.limit is not None and len(kept) < len(found):  # two keys with one number
            _, kept = self._found(replace(asked, limit=None), query)
        return kept if query.limit is None else kept[: query.limit]

    def _found(self, asked: Query, query: Query) -> tuple[Sequence[Version], Sequence[Version]]:
        """Return the versions that the tables give for a query, and those of them that match the second query."""
        with self._database.open_reader() as rows:
            wanted, values = conditions(rows, asked)
            found = tuple(map(version_in, select_versions(rows, f"sequence = document.head AND {wanted}", values)))
        return found, tuple(one for one in found if fields_match(query, one))

    def may_have_more(self, most: int, name: str, value: Value) -> bool:
        """Return whether more objects than `most` may have a value in a field, without reading them. True if they have."""
        with self._database.open_reader() as rows:
            return len(documents_with_key(rows, name, value)) > most

    def log(self, after: int = 0, limit: int | None = None) -> Sequence[Version]:
        most = 2**62 if limit is None else max(limit, 0)
        return self._versions("sequence > ? ORDER BY sequence LIMIT ?", after, most)

    def content(self, version: Version) -> str | None:
        if version.content_hash is None:
            return None
        with self._database.open_reader() as rows:
            return decode_content(load_blob(rows, version.content_hash))

    def additional(self, version: Version, name: str) -> Value:
        if name not in version.additional:
            return None
        with self._database.open_reader() as rows:
            return value_of(load_blob(rows, version.additional[name]))

    def resolve(self, reference: Reference) -> Resolution | UnresolvedReference:
        return resolve_reference(self, self._by_hash, reference)

    def references(self, version: Version) -> Sequence[Link]:
        with self._database.open_reader() as rows:
            found = rows.execute("SELECT document FROM version WHERE sequence = ?", (version.sequence,)).fetchall()
            placed = sorted(
                (
                    (decode_text(one.path), reference_in(rows, one.text, one.version))
                    for listed in stored_references(rows, [int(document) for (document,) in found]).values()
                    for one in listed
                    if one.stands_in(version.sequence)
                ),
                key=lambda one: place_order(one[0]),
            )
        return tuple(Link(path, one, isinstance(self.resolve(one), Resolution)) for path, one in placed)

    def backlinks(
        self, target: str, *, pinned: ContentHash | None = None, ever: bool = False, most: int | None = None
    ) -> Sequence[Backlink]:
        wanted = target_of(self, target, pinned)
        texts = sorted({target_key(encode_text(one)) for one in (wanted.id, *wanted.names)})
        with self._database.open_reader() as rows:
            listed = references_to(rows, wanted, texts, ever=ever, most=most)
            numbers = sorted({one.sequence for one in listed})
            sources: dict[int, Version] = {}
            for some in batches(numbers):
                found = select_versions(rows, f"sequence IN ({question_marks(some)})", some)
                sources.update((version.sequence, version) for version in map(version_in, found))
        return tuple(Backlink(sources[one.sequence], one.path, one.reference) for one in listed)

    def contents(self, after: int = 0) -> tuple[frozenset[ContentHash], int]:
        needed: set[ContentHash] = set()
        while page := self._page_of_records(after):
            after = int(page[-1][0])
            for _, content, stored in page:
                needed.update(additional_in(unpack_record(stored)))
                if content is not None:
                    needed.add(hash_of_name(content))
        return frozenset(needed), after

    def _page_of_records(self, after: int) -> list[Row]:
        with self._database.open_reader() as rows:
            return with_records(rows, rows.execute(_RECORDS, (after, _AT_ONCE)).fetchall(), 0, 2)

    def _versions(self, wanted: str, *values: object) -> Sequence[Version]:
        with self._database.open_reader() as rows:
            return tuple(version_in(row) for row in select_versions(rows, wanted, values))

    def _by_hash(self, object_id: str, name: ContentHash) -> Version | None:
        with self._database.open_reader() as rows:
            last = "document.id = ? AND object_hash = ? ORDER BY version.number DESC LIMIT 1"
            return _one(rows, last, encode_text(object_id), raw(name))


def _one(rows: Rows, wanted: str, *values: object) -> Version | None:
    found = select_versions(rows, wanted, values)
    return version_in(found[0]) if found else None


def _latest(rows: Rows, object_id: str, most: int, until: float = inf) -> Sequence[Version]:
    """Return the versions of an object with the latest times up to one, the latest first.

    most: how many. The index of times has no first versions, so the first one is looked for alone.
    """
    later = "document.id = ? AND version.number > 1 AND at <= ? ORDER BY at DESC, version.number DESC LIMIT ?"
    found = select_versions(rows, later, (encode_text(object_id), until, most))
    after = found[-1][_AT] if len(found) == most and found else -inf
    first = "document.id = ? AND version.number = 1 AND at <= ? AND at > ?"
    found += select_versions(rows, first, (encode_text(object_id), until, after))
    ordered = sorted(found, key=lambda row: (row[_AT], row[_NUMBER]), reverse=True)
    return tuple(version_in(row) for row in ordered[:most])


def _newest(rows: Rows, object_id: str) -> Version | None:
    return _one(rows, "document.id = ? AND sequence = document.head", encode_text(object_id))


def _texts(sealed: SealedDraft) -> Iterator[bytes]:
    """Yield every text of a version."""
    yield sealed.record.encode("utf-8", "surrogatepass")
    yield from () if sealed.content is None else (sealed.content,)
    yield from (data for _, data in sealed.additional)


def _facts(rows: Rows, write: Write) -> WriteFacts:
    nickname, holder = write.draft.nickname, None
    if nickname is not None:
        holder = rows.execute("SELECT id FROM document WHERE nickname = ?", (encode_text(nickname),)).fetchone()
    earlier, current = earlier_request(rows, write.request), _newest(rows, write.draft.id)
    return WriteFacts(earlier, current, None if holder is None else decode_text(holder[0]))


# --- writing -----------------------------------------------------------------------------------------------------


def _append_version(rows: Rows, write: Write, sealed: SealedDraft, current: Version | None, number: int) -> Version:
    sequence = _next_sequence(rows)
    version = sealed.version(sequence=sequence, number=number, at=float(write.at), writer=write.writer)
    document = _document(rows, version)
    _put_content(rows, sealed, _base_of(rows, current, number), document)
    _put_row(rows, document, version)
    put_references(rows, document, sequence, sealed, () if current is None else current.additional)
    put_keys(rows, document, keys_of(version), frozenset() if current is None else keys_of(current))
    note_pin(version)
    return version


def _put_row(rows: Rows, document: int, version: Version) -> None:
    who = (version.writer.kind, version.writer.reason)
    content = None if version.content_hash is None else raw(version.content_hash)
    rows.execute(
        """INSERT INTO version(sequence, document, number, at, object_hash, content_hash, chars, record, of_session, writer, reason)
           VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (
            *(version.sequence, document, version.number, version.at, raw(version.object_hash)),
            *(content, version.chars),
            *(IN_SEGMENT, writer_number(rows, version.writer.session), *map(encode_text, who)),
        ),
    )
    put_record(rows, version.sequence, version.record, content)


def _put_back(rows: Rows, write: Write, sealed: SealedDraft, number: int) -> bool:
    neighbours = select_versions(rows, "document.id = ? ORDER BY version.number", (encode_text(write.draft.id),))
    history = [version_in(row) for row in neighbours]
    before = [one for one in history if one.number < number]
    behind = [one for one in history if one.number > number]
    if not behind or len(before) + len(behind) < len(history):
        return False
    sequence = _free_sequence(rows, write.request, sealed, before[-1].sequence if before else 0, behind[0].sequence)
    if sequence is None:
        return False
    version = sealed.version(sequence=sequence, number=number, at=float(write.at), writer=write.writer)
    (found,) = rows.execute("SELECT document FROM version WHERE sequence = ?", (behind[0].sequence,)).fetchall()
    document = int(found[0])
    _put_content(rows, sealed, before[-1] if before else None, document)
    _put_row(rows, document, version)
    put_links_again(rows, document, (*before, version, *behind))
    return True


def _free_sequence(rows: Rows, request: str, sealed: SealedDraft, after: int, before: int) -> int | None:
    """Return a free place in the order of every version.

    The original place if a request still records it, otherwise the first free place, if any that no other lost version had.
    """
    answers = list(answers_between(rows, after, before))
    asked = [sequence for name, sequence, wanted in answers if name == request or wanted == raw(sealed.object_hash)]
    found = rows.execute("SELECT sequence FROM version WHERE sequence > ? AND sequence < ?", (after, before)).fetchall()
    taken = {int(one) for (one,) in found}
    others = {sequence for _, sequence, _ in answers}.difference(asked)
    places = [one for one in (*asked, *range(after + 1, before)) if one not in taken]
    return min(places, key=lambda one: one in others, default=None)


def _next_sequence(rows: Rows) -> int:
    found = rows.execute("UPDATE tally SET sequence = sequence + 1 RETURNING sequence").fetchone()
    if found is None:
        raise StoreError("the store has lost count of its versions")
    return int(found[0])


def _document(rows: Rows, version: Version) -> int:
    nickname = None if version.nickname is None else encode_text(version.nickname)
    if version.number == 1:
        values = (version.type, nickname, int(version.deleted), version.sequence, encode_text(version.id))
        # the document may exist without a version after a repair
        found = rows.execute(
            """INSERT INTO document(type, nickname, deleted, head, id) VALUES(?, ?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET
               type = excluded.type, nickname = excluded.nickname, deleted = excluded.deleted, head = excluded.head
               RETURNING number""",
            values,
        ).fetchone()
        if found is None:
            raise StoreError("the store lost an object while it was written")
        return int(found[0])
    return put_head(rows, version)


def put_head(rows: Rows, version: Version) -> int:
    """Make a version the newest version of the object, and return the object's number."""
    nickname = None if version.nickname is None else encode_text(version.nickname)
    found = rows.execute(
        "UPDATE document SET type = ?, nickname = ?, deleted = ?, head = ? WHERE id = ? RETURNING number",
        (version.type, nickname, int(version.deleted), version.sequence, encode_text(version.id)),
    ).fetchone()
    if found is None:
        raise StoreError("the store lost an object while it was written")
    return int(found[0])


def _base_of(rows: Rows, current: Version | None, number: int) -> Version | None:
    """Return the version that serves as delta base for the version with this number."""
    if current is None:
        return None
    back, step = 1, _STEP
    while (number - 1) % step == 0:
        back, step = step, step * _STEP
    if back == 1 or back >= number:
        return current
    return _one(rows, "document.id = ? AND version.number = ?", encode_text(current.id), number - back) or current


def _put_content(rows: Rows, sealed: SealedDraft, base: Version | None, document: int) -> None:
    type_ = sealed.draft.type
    file = document if type_ in _FILES else None
    if sealed.content is not None:
        below = None if base is None else base.content_hash
        put_blob(rows, sealed.content, below, stays=type_ in _READ_ALONE, file=file)
    file = _edited_file(rows, sealed.draft) if file is None and sealed.additional else file
    for name, data in sealed.additional:
        put_blob(rows, data, None if base is None else base.additional.get(name), file=file)


def _edited_file(rows: Rows, draft: Draft) -> int | None:
    """Return the number of the first file that a call edited: the history of the file needs the arguments. None if it edited none."""
    refs = draft.metadata.get("file_refs")
    for ref in refs if isinstance(refs, tuple) else ():
        if isinstance(ref, Reference) and ref.relation == "edit":
            found = rows.execute("SELECT number FROM document WHERE id = ?", (encode_text(ref.target),)).fetchone()
            return None if found is None else int(found[0])
    return None
