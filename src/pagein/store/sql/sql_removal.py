"""Remove objects, and single versions of objects, from a SQL database. Their blobs stay."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from pagein.errors import DamagedBlob
from pagein.model.writes import keys_of
from pagein.store.sql.packed_records import RECORDS
from pagein.store.sql.packed_references import drop_references
from pagein.store.sql.sql_answers import drop_answers
from pagein.store.sql.sql_lookups import put_keys
from pagein.store.sql.sql_objects import put_head
from pagein.store.sql.sql_references import put_links_again, store_in_full
from pagein.store.sql.sql_rows import Rows, batches, question_marks
from pagein.store.sql.sql_versions import select_versions, version_in


def drop_documents(rows: Rows, numbers: Sequence[int]) -> None:
    """Delete objects, by their numbers in the table `document`."""
    drop_references(rows, numbers)
    store_in_full(rows, numbers)
    dropped: list[int] = []
    for some in batches(numbers):
        meant = question_marks(some)
        _drop_keys(rows, some)
        query = f"SELECT sequence FROM version WHERE document IN ({meant})"  # noqa: S608 -- question marks
        sequences = [int(sequence) for (sequence,) in rows.execute(query, some).fetchall()]
        RECORDS.drop(rows, sequences)
        dropped += sequences
        rows.execute(f"DELETE FROM version WHERE document IN ({meant})", some)  # noqa: S608 -- question marks
        rows.execute(f"DELETE FROM document WHERE number IN ({meant})", some)  # noqa: S608 -- question marks
    drop_answers(rows, dropped)


def drop_versions(rows: Rows, document: int, sequences: Sequence[int]) -> None:
    """Delete some versions of an object, and number the others from 1. The object keeps a version."""
    _drop_keys(rows, (document,))
    store_in_full(rows, (document,))
    for sequence in sequences:
        rows.execute("DELETE FROM version WHERE sequence = ?", (sequence,))
    drop_answers(rows, sequences)
    RECORDS.drop(rows, sequences)
    found = select_versions(rows, "document = ? ORDER BY version.number", (document,))
    history = [replace(version_in(row), number=number) for number, row in enumerate(found, 1)]
    for version in history:
        rows.execute("UPDATE version SET number = ? WHERE sequence = ?", (version.number, version.sequence))
    put_links_again(rows, document, history)
    put_keys(rows, document, keys_of(history[-1]), frozenset())
    put_head(rows, history[-1])


def _drop_keys(rows: Rows, documents: Sequence[int]) -> None:
    """Delete the lookup keys of objects. The keys of an unreadable version stay behind: they are verified when they are found."""
    meant = question_marks(documents)
    rows.execute(f"DELETE FROM lookup_text WHERE document IN ({meant})", documents)  # noqa: S608 -- question marks
    query = f"SELECT sequence, document FROM version JOIN document ON sequence = head WHERE document IN ({meant})"  # noqa: S608 -- question marks
    numbers: dict[int, int] = dict(rows.execute(query, documents).fetchall())
    for row in select_versions(rows, f"sequence = head AND document IN ({meant})", documents):
        with contextlib.suppress(DamagedBlob):
            put_keys(rows, numbers[row[0]], frozenset(), keys_of(version_in(row)))
