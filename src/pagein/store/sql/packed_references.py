"""Pack the references of objects for the disk.

Rules of this file
------------------
1. The references of an object are rows of `reference`, or, once the object has not changed for a while, one text in a segment
   (`sql_segments.py`). They are never in both, and whoever changes them unpacks them first (`unpack_references`).
2. A text has the fields of the rows without the target, which follows from the rest.
3. The objects with packed references to a target are found by a key in `lookup`. A key may stay behind: whoever looks up verifies.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from pagein.errors import CallerError, DamagedBlob
from pagein.model.references import Reference
from pagein.model.values import parse_value
from pagein.store.sql.lookup_pairs import documents_with, drop_pair, put_pair
from pagein.store.sql.packed_bytes import ZSTD, pack_bundle, unpack
from pagein.store.sql.sql_rows import Row, Rows, batches, encode_text, question_marks
from pagein.store.sql.sql_segments import Segments
from pagein.store.sql.target_keys import target_key, target_number

COLD: Final = 1_000
"""Versions of other objects after which the references of an object are packed."""
_OBJECTS: Final = 200
"""Objects packed in one transaction, at most."""
_COLUMNS: Final = "path, reference, since, until, version"


@dataclass(frozen=True, slots=True)
class StoredReference:
    """A reference of an object as it is stored.

    path, text: place and rest of the reference, in their stored forms
    since, until: sequences of the first version with the reference at this place, and of the first version without
    version: sequence of the version that it is pinned to, if that is not in the text
    """

    path: str
    text: str
    since: int
    until: int | None
    version: int | None

    def stands_in(self, sequence: int) -> bool:
        """Return whether the version of the object with this sequence has the reference."""
        return self.since <= sequence and (self.until is None or self.until > sequence)


_Fields = tuple[str, str, int, int | None, int | None]
_decoder: Final = msgspec.msgpack.Decoder(list[_Fields])


def _pack_one(text: bytes) -> bytes:
    return pack_bundle([text])[0]


def _unpack_one(data: bytes) -> bytes:
    return unpack(ZSTD, data)


REFERENCES: Final = Segments("reference_segment", _pack_one, _unpack_one, most=2_048)
"""The packed references of objects, by their numbers in the table `document`."""


def stored_references(rows: Rows, documents: Collection[int]) -> dict[int, tuple[StoredReference, ...]]:
    """Return the references of objects, in the order in which they were stored. Packed ones that are damaged are left out."""
    found: dict[int, tuple[StoredReference, ...]] = {}
    wanted = sorted(set(documents))
    # Another process may pack or unpack them meanwhile: so rows are looked for before and behind.
    for read in (_in_rows, packed_references, _in_rows):
        if wanted:
            found |= read(rows, wanted)
            wanted = [one for one in wanted if one not in found]
    return found


def packed_references(rows: Rows, documents: Collection[int]) -> dict[int, tuple[StoredReference, ...]]:
    """Return the references of the objects whose references are packed and readable."""
    found: dict[int, tuple[StoredReference, ...]] = {}
    for document, text in REFERENCES.load(rows, documents).items():
        try:
            listed = _decoder.decode(text)
        except msgspec.MsgspecError:
            continue
        found[document] = tuple(
            StoredReference(
                path, rest, since, None if lasted is None else since + lasted, None if back is None else since - back
            )
            for path, rest, since, lasted, back in listed
        )
    return found


def packed_referrers(rows: Rows, targets: Iterable[str]) -> list[int]:
    """Return the objects that may have packed references to targets, given by their keys."""
    numbers = sorted({target_number(one) for one in targets})
    return sorted(documents_with(rows, numbers))


def pack_references(rows: Rows) -> int:
    """Pack the references of some objects that have not changed for a while. Return how many changed their place; 0 for none."""
    query = """SELECT DISTINCT reference.document FROM reference JOIN document ON document.number = reference.document
               WHERE head <= (SELECT sequence FROM tally) - ? ORDER BY reference.document LIMIT ?"""
    documents = [int(document) for (document,) in rows.execute(query, (COLD, _OBJECTS)).fetchall()]
    if not documents:
        return REFERENCES.merge(rows)
    meant = question_marks(documents)
    keys = f"SELECT DISTINCT target, document FROM reference WHERE document IN ({meant})"  # noqa: S608 -- question marks
    for target, document in rows.execute(keys, documents).fetchall():
        put_pair(rows, target_number(target), document)
    for document, listed in _in_rows(rows, documents).items():
        REFERENCES.put(rows, document, _packed(listed))
    rows.execute(f"DELETE FROM reference WHERE document IN ({meant})", documents)  # noqa: S608 -- question marks
    return len(documents)


def unpack_references(rows: Rows, documents: Collection[int]) -> None:
    """Store the packed references of objects as rows again, before they change."""
    found = packed_references(rows, documents)
    for document, listed in found.items():
        targets = _targets(rows, listed)
        for one, target in zip(listed, targets, strict=True):
            values = (document, one.path, target, one.text, one.since, one.until, one.version)
            rows.execute(
                "INSERT INTO reference(document, path, target, reference, since, until, version) VALUES(?, ?, ?, ?, ?, ?, ?)",
                values,
            )
    REFERENCES.drop(rows, found)


def unpack_all_references(rows: Rows) -> bool:
    """Store every packed reference as a row again. Return whether all could be read."""
    bounds = rows.execute("SELECT first, last, texts FROM reference_segment ORDER BY first").fetchall()
    for first, last, _ in bounds:
        unpack_references(rows, range(first, last + 1))
    return rows.execute("SELECT 1 FROM reference_segment").fetchone() is None


def drop_references(rows: Rows, documents: Sequence[int]) -> None:
    """Delete the references of objects, with the keys by which they are found."""
    for document, listed in packed_references(rows, documents).items():
        for target in set(_targets(rows, listed)):
            drop_pair(rows, target_number(target), document)
    REFERENCES.drop(rows, documents)
    for some in batches(documents):
        rows.execute(f"DELETE FROM reference WHERE document IN ({question_marks(some)})", some)  # noqa: S608 -- question marks


def _in_rows(rows: Rows, documents: Collection[int]) -> dict[int, tuple[StoredReference, ...]]:
    found: dict[int, list[StoredReference]] = {}
    listed = sorted(documents)
    for some in batches(listed):
        query = f"SELECT document, {_COLUMNS} FROM reference WHERE document IN ({question_marks(some)}) ORDER BY number"  # noqa: S608 -- constants
        for document, *fields in rows.execute(query, some).fetchall():
            found.setdefault(int(document), []).append(StoredReference(*fields))
    return {document: tuple(one) for document, one in found.items()}


def _packed(listed: Sequence[StoredReference]) -> bytes:
    # numbers as distances: they are small, and alike
    fields: list[_Fields] = [
        (
            *(one.path, one.text, one.since),
            *(
                None if one.until is None else one.until - one.since,
                None if one.version is None else one.since - one.version,
            ),
        )
        for one in listed
    ]
    return msgspec.msgpack.encode(fields)


def _targets(rows: Rows, listed: Sequence[StoredReference]) -> Iterator[str]:
    """Yield the key of each reference's target; an empty text for a damaged reference."""
    for one in listed:
        if one.version is not None:
            query = "SELECT id FROM version JOIN document ON document.number = version.document WHERE sequence = ?"
            found: Row | None = rows.execute(query, (one.version,)).fetchone()
            yield "" if found is None else target_key(found[0])
        else:
            yield target_in(one.text)


def target_in(text: str) -> str:
    """Return the key of the target of a reference that is stored in full; an empty text for a damaged one."""
    try:
        value = parse_value(text)
    except (CallerError, DamagedBlob):
        return ""
    return target_key(encode_text(value.target)) if isinstance(value, Reference) else ""
