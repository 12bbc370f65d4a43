"""Read the versions of objects in a SQL database. A row is valid only if its record matches its hash."""

from collections.abc import Sequence

from pagein.errors import CallerError, DamagedBlob
from pagein.model.version_hash import object_hash_of, version_of
from pagein.model.versions import Version, Writer
from pagein.store.sql.packed_records import unpack_record
from pagein.store.sql.sql_blobs import hash_of_name
from pagein.store.sql.sql_queries import VERSION
from pagein.store.sql.sql_rows import Row, Rows, decode_text


def select_versions(rows: Rows, wanted: str, values: Sequence[object]) -> list[Row]:
    """Return the rows of versions that meet a condition, in the columns of `sql_queries.VERSION`."""
    query = f"SELECT {VERSION} FROM version JOIN document ON document.number = version.document WHERE {wanted}"  # noqa: S608 -- constants
    return rows.execute(query, values).fetchall()


def version_in(row: Row) -> Version:
    """Return the version in a row of `sql_queries.VERSION`.

    Raises DamagedBlob if the record does not match its hash.
    """
    sequence, number, at, name, chars, stored, writer, reason, session = row
    who = Writer(decode_text(writer), decode_text(reason), None if session is None else decode_text(session))
    try:
        record = unpack_record(stored)
        if object_hash_of(record) != hash_of_name(name):
            raise DamagedBlob(f"the record of version {sequence} is not the one that was stored")
        return version_of(record, sequence=sequence, number=number, at=at, chars=chars, writer=who)
    except CallerError as problem:
        raise DamagedBlob(f"version {sequence} cannot be read: {problem}") from problem
