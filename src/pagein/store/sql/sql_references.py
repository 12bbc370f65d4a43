"""Store the references of versions in a SQL database, as changes from version to version.

Rules of this file
------------------
1. A reference that is pinned to a stored version is stored as the sequence of that version and the rest of its text, because the hashes
   of a pin are most of it, and no compression makes them shorter.
2. Before a version is removed or changed, the references pinned to it are stored in full (`store_in_full`), also those in contents.
3. Targets are looked up by the beginning of their hash. Whoever looks up verifies what is found.
4. What is said here of rows holds for the references of objects that changed lately; the others are packed (`packed_references.py`).
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from pagein.errors import CallerError, DamagedBlob
from pagein.model.links import LastingLink
from pagein.model.references import Pin, Reference
from pagein.model.values import canonical, parse_value
from pagein.model.version_hash import SealedDraft, value_of
from pagein.model.versions import Version
from pagein.store.sql.packed_references import (
    drop_references,
    packed_referrers,
    stored_references,
    unpack_all_references,
    unpack_references,
)
from pagein.store.sql.pinned_texts import BEFORE, BEHIND, PIN, pin_texts, pinned_hashes
from pagein.store.sql.sql_blobs import load_blob, raw
from pagein.store.sql.sql_bundles import free_pins
from pagein.store.sql.sql_rows import Row, Rows, batches, decode_text, encode_text, question_marks
from pagein.store.sql.sql_versions import select_versions, version_in
from pagein.store.sql.target_keys import target_key

_BEHIND_SLASH: Final = "0"
"""The character behind the slash, which ends the range of places below a field."""
_MARK: Final = "\1"
_OF_DOCUMENTS: Final = "FROM version JOIN document ON document.number = version.document WHERE"


def reference_in(rows: Rows, text: str, version: int | None) -> Reference:
    """Return a stored reference.

    version: sequence of the version that it is pinned to, if that is not in the text

    Raises DamagedBlob.
    """
    return _parse(text if version is None else _full_text(rows, text, version))


def references_in(rows: Rows, stored: Sequence[tuple[str, int | None]]) -> Iterator[Reference]:
    """Yield stored references, as `reference_in` returns them. The versions that they are pinned to are read together, each once."""
    pins = pin_texts(rows, {version for _, version in stored if version is not None})
    for text, version in stored:
        pin = None if version is None else pins.get(version)
        yield reference_in(rows, text, version) if pin is None else _parse(_text_with(text, pin))


def lasting_links(rows: Rows, document: int) -> Iterator[LastingLink]:
    """Yield the references of all versions of an object. Raises DamagedBlob.

    Whatever is pinned to a stored version is resolved: its pin is made from that version.
    """
    listed = stored_references(rows, (document,)).get(document, ())
    pins = pin_texts(rows, {one.version for one in listed if one.version is not None})
    for one in listed:
        if one.version is not None and one.version not in pins:
            raise DamagedBlob(f"a reference is pinned to version {one.version}, which is missing or damaged")
        text = one.text if one.version is None else _text_with(one.text, pins[one.version])
        yield LastingLink(decode_text(one.path), _parse(text), one.since, one.until, one.version is not None)


def _parse(text: str) -> Reference:
    try:
        value = parse_value(text)
    except CallerError as problem:
        raise DamagedBlob(f"a reference cannot be read: {problem}") from problem
    if not isinstance(value, Reference):
        raise DamagedBlob("a reference is not one")
    return value


def put_references(rows: Rows, document: int, sequence: int, sealed: SealedDraft, fields: Collection[str] = ()) -> None:
    """Store the references of an object's next version as changes.

    fields: names of the additional fields of the version before; needed for a draft with carried fields.
    """
    unpack_references(rows, (document,))
    before = {(row[0], *_stored_key(*row[1:5])): row[5] for row in _references_now(rows, document, sealed, fields)}
    seen: set[tuple[object, ...]] = set()
    new: list[tuple[str, str, Reference]] = []
    for path, reference in sealed.references:
        place, text = encode_text(path), canonical(reference)
        full, short = (place, text, None, None), (place, *_short_key(text, reference.pin))
        known = full if full in before else short
        if known not in seen:
            seen.add(known)
            if known not in before:
                new.append((place, text, reference))
    for key in before.keys() - seen:
        rows.execute("UPDATE reference SET until = ? WHERE number = ?", (sequence, before[key]))
    for place, text, reference in sorted(new, key=lambda one: one[:2]):
        pinned = None if reference.pin is None else _stored_version(rows, reference)
        rows.execute(
            "INSERT INTO reference(document, path, target, reference, since, version) VALUES(?, ?, ?, ?, ?, ?)",
            (
                *(document, place, target_key(encode_text(reference.target))),
                *(text if pinned is None else _short_text(text), sequence, pinned),
            ),
        )


def put_links_again(rows: Rows, document: int, history: Sequence[Version]) -> None:
    """Store the references of all versions of an object anew, as changes from version to version."""
    drop_references(rows, (document,))
    for one in history:
        additional = {name: value_of(load_blob(rows, blob)) for name, blob in one.additional.items()}
        put_references(rows, document, one.sequence, SealedDraft.of(one.draft(None, additional)))


def store_in_full(rows: Rows, documents: Sequence[int] | None = None) -> None:
    """Store the references to versions of some objects, or of all, with everything that their text says.

    documents: numbers in the table `document`
    """
    query = "SELECT number, reference, version FROM reference WHERE version IS NOT NULL"
    if documents is None:
        free_pins(rows)
        unpack_all_references(rows)
        _fill(rows, rows.execute(query).fetchall())
        return
    for some in batches(documents):
        meant = question_marks(some)
        sequences = rows.execute(f"SELECT sequence FROM version WHERE document IN ({meant})", some).fetchall()  # noqa: S608 -- question marks
        free_pins(rows, {int(sequence) for (sequence,) in sequences})
        ids = rows.execute(f"SELECT id FROM document WHERE number IN ({meant})", some).fetchall()  # noqa: S608 -- question marks
        keys = [target_key(text) for (text,) in ids]
        unpack_references(rows, packed_referrers(rows, keys))
        wanted = f"{query} AND target IN ({question_marks(keys)})"
        _fill(rows, rows.execute(wanted, keys).fetchall() if keys else ())


def shorten_again(rows: Rows) -> None:
    """Store the references to stored versions as short as they can be."""
    for number, text in rows.execute("SELECT number, reference FROM reference WHERE version IS NULL").fetchall():
        try:
            reference = reference_in(rows, text, None)
        except DamagedBlob:
            continue
        pinned = None if reference.pin is None else _stored_version(rows, reference)
        if pinned is not None:
            values = (_short_text(text), pinned, number)
            rows.execute("UPDATE reference SET reference = ?, version = ?, pinned = NULL WHERE number = ?", values)


def _fill(rows: Rows, found: Sequence[Row]) -> None:
    for number, text, version in found:
        try:
            full = _full_text(rows, text, int(version))
        except DamagedBlob:
            continue  # nothing is known of it but its place
        rows.execute("UPDATE reference SET reference = ?, version = NULL WHERE number = ?", (full, number))


def _stored_version(rows: Rows, reference: Reference) -> int | None:
    """Return the sequence of the stored version with exactly the pin of a reference, if any."""
    pin = reference.pin
    if pin is None:
        return None
    wanted = "document.id = ? AND object_hash = ? AND at = ? ORDER BY sequence LIMIT 1"
    values = (encode_text(reference.target), raw(pin.object), pin.at)
    found = rows.execute(f"SELECT sequence {_OF_DOCUMENTS} {wanted}", values).fetchone()
    if found is None:
        return None
    sequence = int(found[0])
    return sequence if pinned_hashes(rows, pin.object, sequence) == (pin.view, pin.content) else None


def _stored_key(text: str, version: int | None, name: bytes | None, at: float | None) -> tuple[object, ...]:
    return (text, None, None) if version is None or name is None else (text, bytes(name), at)


def _short_key(text: str, pin: Pin | None) -> tuple[object, ...]:
    return (text, None, None) if pin is None else (_short_text(text), raw(pin.object), pin.at)


def _short_text(text: str) -> str:
    return PIN.sub(_MARK, text, count=1).removeprefix(BEFORE).removesuffix(BEHIND)


def _full_text(rows: Rows, text: str, version: int) -> str:
    found = select_versions(rows, "sequence = ?", (version,))
    if not found:
        raise DamagedBlob(f"a reference is pinned to version {version}, which is missing")
    pinned = PIN.search(canonical(version_in(found[0]).static()))
    if pinned is None:
        raise DamagedBlob(f"a reference is pinned to version {version}, which has no pin")
    return _text_with(text, pinned[0])


def _text_with(text: str, pin: str) -> str:
    return BEFORE + text.replace(_MARK, pin, 1) + BEHIND


def _references_now(rows: Rows, document: int, sealed: SealedDraft, before: Collection[str]) -> list[Row]:
    """Return the references of an object's newest version that its next version may change."""
    query = """SELECT path, reference, reference.version, object_hash, at, reference.number
               FROM reference LEFT JOIN version ON sequence = reference.version
               WHERE reference.document = ? AND until IS NULL"""
    beginnings = sealed.changed_places(before)
    if beginnings is None:
        return rows.execute(query, (document,)).fetchall()
    ends = [bound for one in map(encode_text, beginnings) for bound in (one, one[:-1] + _BEHIND_SLASH)]
    places = " OR ".join(["(path >= ? AND path < ?)"] * len(beginnings))
    return rows.execute(f"{query} AND ({places})", (document, *ends)).fetchall()
