"""PostgreSQL store for teams: blobs, objects and journals in a single schema. Needs the extra `pagein[postgres]`."""

from pagein.model.objects import ObjectId
from pagein.store.postgres.postgres_database import SCHEMA, PostgresDatabase
from pagein.store.sql.sql_journals import SqlJournals
from pagein.store.sql.sql_layers import SqlLayers
from pagein.store.sql.sql_objects import SqlObjects


class PostgresStore(SqlJournals, SqlObjects, SqlLayers):
    """A BlobStore, JournalStore, ObjectStore and LayerStore for use by several machines at once.

    The schema and its tables are created on first use. Raises BadSetting at once for a malformed address.

    patience: seconds to wait for the server or for other writers (see `PostgresDatabase`)
    """

    _database: PostgresDatabase

    def __init__(self, address: str, schema: str = SCHEMA, patience: float | None = None) -> None:
        super().__init__(PostgresDatabase(address, schema, patience=patience))

    def elsewhere(self, object_id: ObjectId) -> bool:  # noqa: ARG002 -- a database holds every workspace, so it has no neighbours
        return False
