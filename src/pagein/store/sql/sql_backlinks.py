"""Find the references to an object in a SQL database, the latest first.

References are small, and the versions that hold them may be long. So the references are found first, and no more of them are
read than wanted.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Final

from pagein.model.references import Reference
from pagein.model.values import place_order
from pagein.store.rules.reference_target import ReferenceTarget
from pagein.store.sql.packed_references import StoredReference, packed_references, packed_referrers, target_in
from pagein.store.sql.sql_references import references_in
from pagein.store.sql.sql_rows import Rows, batches, decode_text, encode_text, question_marks

_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class PlacedReference:
    """A reference, its place, and the sequence of the version that holds it."""

    sequence: int
    path: str
    reference: Reference


def references_to(
    rows: Rows, wanted: ReferenceTarget, targets: Sequence[str], *, ever: bool, most: int | None
) -> list[PlacedReference]:
    """Return the references to a target, at most so many, in the order of `ObjectStore.backlinks`.

    targets: the keys by which the tables name the target
    """
    found = _in_rows(rows, targets, ever=ever)
    known = {one.document for one in found}
    others = [one for one in packed_referrers(rows, targets) if one not in known]
    packed = packed_references(rows, others)
    found += _in_texts(rows, packed, _sequences(rows, wanted.id), targets, ever=ever)
    if len(packed) < len(others):  # a key stayed behind, or another process unpacked them meanwhile
        found += [
            one
            for one in _in_rows(rows, targets, ever=ever)
            if one.document not in known and one.document not in packed
        ]
    found.sort(key=lambda one: (one.at, one.sequence), reverse=True)

    def read() -> Iterator[PlacedReference]:
        step = _AT_ONCE if most is None else max(1, min(most, _AT_ONCE))
        for first in range(0, len(found), step):
            some = found[first : first + step]
            references = references_in(rows, [(one.text, one.version) for one in some])
            for one, reference in zip(some, references, strict=True):
                yield PlacedReference(one.sequence, decode_text(one.path), reference)

    def met() -> Iterator[PlacedReference]:
        for _, held in groupby(read(), key=lambda one: one.sequence):
            yield from sorted((one for one in held if wanted.met_by(one.reference)), key=_place)

    return list(islice(met(), most))


@dataclass(frozen=True, slots=True)
class _FoundReference:
    """A reference as it is stored, with the version that holds it."""

    document: int
    at: float
    sequence: int
    path: str
    text: str
    version: int | None


def _in_rows(rows: Rows, targets: Sequence[str], *, ever: bool) -> list[_FoundReference]:
    valid = "since <= sequence AND (until IS NULL OR until > sequence)" if ever else "until IS NULL AND sequence = head"
    found = rows.execute(
        f"""SELECT document.number, at, sequence, path, reference, reference.version FROM reference
            JOIN document ON document.number = reference.document JOIN version ON version.document = document.number
            WHERE target IN ({question_marks(targets)}) AND {valid}""",  # noqa: S608 -- constants
        targets,
    ).fetchall()
    return [_FoundReference(*row) for row in found]


def _in_texts(
    rows: Rows,
    packed: Mapping[int, Sequence[StoredReference]],
    pinned: Collection[int],
    targets: Sequence[str],
    *,
    ever: bool,
) -> list[_FoundReference]:
    """Return the packed references that may have the target.

    pinned: sequences of its versions
    """
    meant = {
        document: [
            one
            for one in listed
            if (ever or one.until is None)
            and (one.version in pinned if one.version is not None else target_in(one.text) in targets)
        ]
        for document, listed in packed.items()
    }
    documents = [document for document, listed in meant.items() if listed]
    found: list[_FoundReference] = []
    for some in batches(documents):
        asked = f"version.document IN ({question_marks(some)})"
        newest = "" if ever else "JOIN document ON head = sequence"
        query = f"SELECT version.document, at, sequence FROM version {newest} WHERE {asked}"  # noqa: S608 -- constants
        found += [
            _FoundReference(document, at, sequence, one.path, one.text, one.version)
            for document, at, sequence in rows.execute(query, some).fetchall()
            for one in meant[document]
            if one.stands_in(sequence)
        ]
    return found


def _sequences(rows: Rows, object_id: str) -> frozenset[int]:
    query = "SELECT sequence FROM version JOIN document ON document.number = version.document WHERE document.id = ?"
    return frozenset(int(sequence) for (sequence,) in rows.execute(query, (encode_text(object_id),)).fetchall())


def _place(one: PlacedReference) -> tuple[tuple[int, int, str], ...]:
    return place_order(one.path)
