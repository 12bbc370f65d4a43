"""The store for teams: blobs, objects and journals in one schema of a PostgreSQL database. Needs the extra `pagein[postgres]`."""

from pagein.model.objects import ObjectId
from pagein.store.postgres.postgres_database import SCHEMA, PostgresDatabase
from pagein.store.sql.sql_journals import SqlJournals
from pagein.store.sql.sql_objects import SqlObjects


class PostgresStore(SqlJournals, SqlObjects):
    """A BlobStore, JournalStore and ObjectStore that several machines may use at once.

    Made on first use: the schema and its tables. Raises BadSetting at once where the address cannot be one.
    patience: how long to wait for the server or for others, in seconds (see `PostgresDatabase`).
    """

    _database: PostgresDatabase

    def __init__(self, address: str, schema: str = SCHEMA, patience: float | None = None) -> None:
        super().__init__(PostgresDatabase(address, schema, patience=patience))

    def elsewhere(self, object_id: ObjectId) -> bool:  # noqa: ARG002 -- one database holds every workspace, so it has no neighbours
        return False
