"""Find the references to an object in a SQL database, the latest first.

References are small, and the versions that hold them may be long. So the references are found first, and no more of them are
read than wanted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from pagein.model.references import Reference
from pagein.model.values import place_order
from pagein.store.rules.reference_target import ReferenceTarget
from pagein.store.sql.sql_references import reference_in
from pagein.store.sql.sql_rows import Rows, decode_text


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

    targets: the texts by which the table names the target
    """
    valid = "since <= sequence AND (until IS NULL OR until > sequence)" if ever else "until IS NULL AND sequence = head"
    found = rows.execute(
        f"""SELECT sequence, path, reference, reference.version FROM reference
            JOIN document ON document.number = reference.document JOIN version ON version.document = document.number
            WHERE target IN ({", ".join("?" * len(targets))}) AND {valid} ORDER BY at DESC, sequence DESC""",  # noqa: S608 -- constants
        targets,
    ).fetchall()

    def met() -> Iterator[PlacedReference]:
        for sequence, listed in groupby(found, key=lambda row: int(row[0])):
            held = (
                PlacedReference(sequence, decode_text(path), reference_in(rows, text, pinned))
                for _, path, text, pinned in listed
            )
            yield from sorted((one for one in held if wanted.met_by(one.reference)), key=_place)

    return list(islice(met(), most))


def _place(one: PlacedReference) -> tuple[tuple[int, int, str], ...]:
    return place_order(one.path)
