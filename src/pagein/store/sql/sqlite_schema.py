"""Tables of the SQLite store, as a list of migration steps.

A step is never edited once it has been released: a change is a new step. The table `migration` says which steps a file has seen.
"""

from dataclasses import dataclass
from typing import Final

APPLICATION_ID: Final = 0x50474931
"""Marks a SQLite file as a store of pagein, in its header."""

BLOB_TABLES: Final = (
    # codec: 0 uncompressed, 1 zstd with checksum. Blobs have a separate table, so that queries about objects touch no content.
    """CREATE TABLE blob(
         number INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, codec INTEGER NOT NULL, data BLOB NOT NULL)""",
    """CREATE TABLE object(
         id TEXT PRIMARY KEY, hash BLOB NOT NULL, kind TEXT NOT NULL, workspace TEXT NOT NULL, session TEXT NOT NULL,
         call_id TEXT NOT NULL, description TEXT NOT NULL, tokens INTEGER NOT NULL, chars INTEGER NOT NULL)""",
    "CREATE INDEX object_of_session ON object(session)",
    """CREATE TABLE entry(
         number INTEGER PRIMARY KEY, session TEXT NOT NULL, id TEXT NOT NULL, codec INTEGER NOT NULL,
         line BLOB NOT NULL, UNIQUE(session, id))""",
    # leaf: the current entry of each session
    "CREATE TABLE session(name TEXT PRIMARY KEY, leaf TEXT NOT NULL)",
    "CREATE TABLE secret(number INTEGER PRIMARY KEY CHECK(number = 1), key BLOB NOT NULL)",
)
OBJECT_TABLES: Final = (
    # head: sequence of the newest version; type, nickname and deleted are copied from that version
    """CREATE TABLE document(
         number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, type TEXT NOT NULL, nickname TEXT UNIQUE,
         deleted INTEGER NOT NULL, head INTEGER NOT NULL UNIQUE)""",
    """CREATE TABLE version(
         sequence INTEGER PRIMARY KEY, document INTEGER NOT NULL, number INTEGER NOT NULL, at REAL NOT NULL,
         object_hash BLOB NOT NULL, content_hash BLOB, chars INTEGER NOT NULL, record TEXT NOT NULL,
         writer TEXT NOT NULL, reason TEXT NOT NULL, session TEXT, UNIQUE(document, number))""",
    "CREATE INDEX version_by_hash ON version(document, object_hash)",
    # since, until: sequences of the first version with the reference at this place, and of the first version without
    """CREATE TABLE reference(
         number INTEGER PRIMARY KEY, document INTEGER NOT NULL, path TEXT NOT NULL, target TEXT NOT NULL,
         pinned BLOB, reference TEXT NOT NULL, since INTEGER NOT NULL, until INTEGER)""",
    "CREATE INDEX reference_of_document ON reference(document, until)",
    "CREATE INDEX reference_to_target ON reference(target, until)",
    # lookup keys of newest versions: `model/writes.keys_of`
    "CREATE TABLE field(document INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL)",
    "CREATE INDEX field_by_value ON field(name, value)",
    "CREATE INDEX field_of_document ON field(document)",
    """CREATE TABLE request(
         id TEXT PRIMARY KEY, asked BLOB NOT NULL, sequence INTEGER NOT NULL, change TEXT NOT NULL)""",
    # the last assigned sequence
    "CREATE TABLE tally(number INTEGER PRIMARY KEY CHECK(number = 1), sequence INTEGER NOT NULL)",
    "INSERT INTO tally VALUES(1, 0)",
)
"""The tables of objects, in a form that `postgres_schema.py` can translate into PostgreSQL's dialect."""

FORGETTING_TABLES: Final = (
    # keyed digests of erased texts (`model/text_removal.py`)
    """CREATE TABLE tombstone(
         number INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, chars INTEGER NOT NULL, beginning INTEGER NOT NULL)""",
    # number of erasures, so that every process on the store notices a new erasure
    "CREATE TABLE forgetting(count INTEGER NOT NULL)",
    "INSERT INTO forgetting VALUES(0)",
)
LAYER_TABLE: Final = "CREATE TABLE layer(name TEXT PRIMARY KEY, place INTEGER NOT NULL, version TEXT NOT NULL)"
LINE_TEXT_TABLE: Final = """CREATE TABLE line_text(
         blob INTEGER NOT NULL, entry INTEGER NOT NULL, UNIQUE(blob, entry))"""
"""The blobs that lines of journals need (`packed_bytes.py`)."""
CONTENT_INDEX: Final = "CREATE INDEX object_of_content ON object(hash)"
ANSWER_INDEX: Final = "CREATE INDEX answer_of_version ON request(sequence)"
TIME_INDEX: Final = "CREATE INDEX version_by_time ON version(document, at, number)"
KEY_NUMBER: Final = "key_number"
"""The function of `sql_lookups.key_number` in SQL, which the migration needs."""
TARGET_KEY: Final = "target_key"
"""The function of `target_keys.target_key` in SQL, likewise."""
ENTRY_KEY: Final = "entry_key"
"""The function of `short_names.entry_key` in SQL, likewise."""
LOOKUP_TABLES: Final = (
    # key: a number for a lookup key of a newest version (`sql_lookups.py`)
    """CREATE TABLE lookup(
         key INTEGER NOT NULL, document INTEGER NOT NULL, PRIMARY KEY(key, document)) WITHOUT ROWID""",
    # lookup keys of fields that are also looked up by their beginning or end
    """CREATE TABLE lookup_text(
         number INTEGER PRIMARY KEY, document INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL)""",
    "CREATE INDEX lookup_by_text ON lookup_text(name, value)",
    "CREATE INDEX lookup_of_document ON lookup_text(document)",
)
TEXT_NAMES: Final = ("path", "last_path", "session_id", "nickname")
"""Names of the fields in `lookup_text`."""
MOVED_TEXTS: Final = f"""INSERT INTO lookup_text(document, name, value)
  SELECT document, name, value FROM field WHERE name IN ({", ".join(f"'{name}'" for name in TEXT_NAMES)})"""  # noqa: S608 -- constants
DROPPED_INDEX: Final = "DROP INDEX version_by_hash"
ALONE_TABLE: Final = "CREATE TABLE alone(number INTEGER PRIMARY KEY, size INTEGER NOT NULL, packed BLOB NOT NULL)"
"""The bytes of blobs that wait for a bundle (`sql_bundles.py`), by the numbers of the blobs.

size: length of these bytes. With it, no other table has rows of this shape, so that a row of a damaged file belongs here for certain.
"""


FILE_TEXT_TABLE: Final = """CREATE TABLE IF NOT EXISTS file_text(
         number INTEGER PRIMARY KEY, document INTEGER NOT NULL, run INTEGER NOT NULL)"""
"""The numbers of the blobs that the histories of files need (`file_bundles.py`). document: the file. run: 0 for none yet"""
FILE_ORDER_TABLE: Final = """CREATE TABLE IF NOT EXISTS file_order(
         place INTEGER PRIMARY KEY, number INTEGER NOT NULL, document INTEGER NOT NULL, run INTEGER NOT NULL)"""
"""What is left of the newest run of file bundles, in order."""
UNSEALED: Final = (
    "CREATE TABLE unsealed(number INTEGER PRIMARY KEY)",
    "INSERT INTO unsealed(number) SELECT number FROM blob WHERE codec IN (2, 5)",
)
"""The numbers of the deltas and bundles of an older form (`sql_bundles.py`)."""
SOURCED_INDEX: Final = "CREATE INDEX IF NOT EXISTS blob_with_sources ON blob(number) WHERE codec = 8"
"""Finds the bundles with sources (`bundle_sources.py`)."""
_SEGMENT: Final = "last INTEGER NOT NULL, texts INTEGER NOT NULL, data BLOB NOT NULL"


def segment_tables(name: str, columns: str = _SEGMENT) -> tuple[str, ...]:
    """Return the statements that create a table of segments (`sql_segments.py`), with indexes of the texts that are alone, and of the others.

    first, last: the range of numbers. texts: how many
    columns: those after the first. By their types and order, a row of a damaged file is told from those of other tables.
    """
    return (
        f"CREATE TABLE {name}(first INTEGER PRIMARY KEY, {columns})",
        f"CREATE INDEX {name}_alone ON {name}(first) WHERE texts = 1",
        f"CREATE INDEX {name}_joined ON {name}(last) WHERE texts > 1",
    )


RECORD_TABLES: Final = (
    *segment_tables("record_segment"),
    # versions of an older form, with the record in their row
    "CREATE INDEX version_in_full ON version(sequence) WHERE length(record) > 0",
)
SESSION_TABLE: Final = (
    # of_session: number of the session of a version's writer: the names were a quarter of the rows. size: length of the name. With it, no
    # other table has rows of this shape, so that a row of a damaged file belongs here for certain.
    "CREATE TABLE writer_session(number INTEGER PRIMARY KEY, size INTEGER NOT NULL, name TEXT NOT NULL UNIQUE)",
    "ALTER TABLE version ADD COLUMN of_session INTEGER",
    # versions of an older form, with the name in their row
    "CREATE INDEX version_with_session ON version(sequence) WHERE session IS NOT NULL",
)
UNUSED_KEYS: Final = """INSERT INTO layer(name, place, version)
  SELECT 'store.keys', max(number), '1' FROM document HAVING max(number) IS NOT NULL"""
"""Objects of an older store have keys that are no longer stored (`sql_lookups.drop_unused_keys`)."""
JOINED_PAIRS: Final = (
    # further: further objects with the key (`lookup_pairs.py`)
    "ALTER TABLE lookup ADD COLUMN further BLOB",
    "INSERT INTO layer(name, place, version) SELECT 'store.pairs', -1, '1' FROM lookup LIMIT 1",
)
"""Rows of `lookup` with several objects, and the place where joining those of an older store begins."""
FEW_TIMES: Final = (
    # the first version of an object is found by its number
    "DROP INDEX version_by_time",
    "CREATE INDEX version_by_time ON version(document, at, number) WHERE number > 1",
)
ANSWER_TABLE: Final = """CREATE TABLE answer(
         number INTEGER PRIMARY KEY, rest BLOB NOT NULL, sequence INTEGER NOT NULL, change INTEGER NOT NULL)"""
"""The answers to requests of the indexer (`sql_answers.py`). change: place in the list of changes"""
REFERENCE_SEGMENTS: Final = segment_tables(
    "reference_segment", "last INTEGER NOT NULL, data BLOB NOT NULL, texts INTEGER NOT NULL"
)
"""Packed references (`packed_references.py`)."""
LINE_TABLES: Final = (
    # kind: a word that no other table has at this place
    *segment_tables("line_segment", f"kind TEXT NOT NULL DEFAULT 'line', {_SEGMENT}"),
    # lines of an older form, with the text in their row
    "CREATE INDEX entry_in_full ON entry(number) WHERE length(line) > 0",
)
"""The lines of journals, by the numbers of their entries (`sql_lines.py`)."""
SNAPSHOT_TABLE: Final = """CREATE TABLE snapshot(
         session TEXT PRIMARY KEY, place INTEGER NOT NULL, version TEXT NOT NULL, codec INTEGER NOT NULL, data BLOB NOT NULL)"""
JOURNAL_TABLE: Final = (
    # session: the number of its name. id: `short_names.entry_key`. As texts, these took half of the room of the journals.
    """CREATE TABLE journal(
         number INTEGER PRIMARY KEY, session INTEGER NOT NULL, id BLOB NOT NULL, codec INTEGER NOT NULL,
         line BLOB NOT NULL, UNIQUE(session, id))""",
    "CREATE INDEX journal_of_session ON journal(session)",
    "CREATE INDEX journal_in_full ON journal(number) WHERE length(line) > 0",
)
MOVED_ENTRIES: Final = (
    """INSERT OR IGNORE INTO writer_session(size, name) SELECT length(name), name FROM (
         SELECT DISTINCT replace(session, '\\', '\\\\') AS name FROM entry WHERE session <> char(0) || 'dropped')""",
    f"""INSERT OR IGNORE INTO journal(number, session, id, codec, line)
          SELECT number, coalesce((SELECT number FROM writer_session WHERE name = replace(session, '\\', '\\\\')), 0),
            {ENTRY_KEY}(id), codec, line FROM entry ORDER BY number""",  # noqa: S608 -- a constant
    "DROP TABLE entry",
)
"""The statements that move the entries of an older store to `journal`."""

MIGRATIONS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (
        "blobs, objects, journal",
        (*BLOB_TABLES,),
    ),
    # entries after a number are queried before every read
    ("news of a session", ("CREATE INDEX entry_of_session ON entry(session)",)),
    # Last use of each session, so that retention can find ended sessions. Triggers, so that no writer can forget it.
    (
        "life of sessions",
        (
            """CREATE TABLE life(session TEXT PRIMARY KEY, touched INTEGER NOT NULL, ended INTEGER NOT NULL DEFAULT 0)""",
            "INSERT INTO life(session, touched) SELECT name, strftime('%s') FROM session UNION SELECT session, strftime('%s') FROM object",
            *(
                f"""CREATE TRIGGER life_{number} {deed} BEGIN
                      INSERT INTO life(session, touched) VALUES(new.{name}, CAST(strftime('%s') AS INTEGER))
                      ON CONFLICT(session) DO UPDATE SET touched = excluded.touched, ended = 0; END"""
                for number, (deed, name) in enumerate(
                    (
                        ("AFTER INSERT ON session", "name"),
                        ("AFTER UPDATE ON session", "name"),
                        # before: fires also for a known object
                        ("BEFORE INSERT ON object", "session"),
                    )
                )
            ),
        ),
    ),
    # Objects in every version. Content is in blobs. A blob may be a delta against another blob, its `base`.
    (
        "objects with versions",
        (
            "ALTER TABLE blob ADD COLUMN base INTEGER",
            "ALTER TABLE blob ADD COLUMN depth INTEGER NOT NULL DEFAULT 0",
            "CREATE INDEX blob_on_base ON blob(base) WHERE base IS NOT NULL",
            """CREATE TRIGGER blob_is_base BEFORE DELETE ON blob WHEN EXISTS(SELECT 1 FROM blob WHERE base = old.number)
                 BEGIN SELECT raise(IGNORE); END""",
            *OBJECT_TABLES,
        ),
    ),
    # Insertion order of evicted objects, for readers that remember their position. A dropped object that is stored again gets a new
    # place, and no place is reused, hence AUTOINCREMENT.
    (
        "places of paged-out objects",
        (
            "CREATE TABLE paged(place INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, at INTEGER NOT NULL)",
            """INSERT INTO paged(id, at) SELECT object.id, coalesce(life.touched, strftime('%s'))
                 FROM object LEFT JOIN life ON life.session = object.session ORDER BY object.rowid""",
            """CREATE TRIGGER paged_after AFTER INSERT ON object BEGIN
                 DELETE FROM paged WHERE id = new.id;
                 INSERT INTO paged(id, at) VALUES(new.id, CAST(strftime('%s') AS INTEGER)); END""",
        ),
    ),
    ("forgotten texts", FORGETTING_TABLES),
    # Folded state of long sessions. A trigger deletes the snapshot when an entry is changed or dropped.
    (
        "snapshots",
        (
            SNAPSHOT_TABLE,
            """CREATE TRIGGER snapshot_dropped AFTER DELETE ON entry BEGIN
                 DELETE FROM snapshot WHERE session = old.session; END""",
            """CREATE TRIGGER snapshot_changed AFTER UPDATE ON entry BEGIN
                 DELETE FROM snapshot WHERE session = old.session; END""",
        ),
    ),
    # What is derived from the journals, with the place of the last entry in it.
    ("derived layers", (LAYER_TABLE,)),
    # Versions are looked up by time, and not all are written in the order of their times.
    ("versions by time", (TIME_INDEX,)),
    # The answers to requests go with the version in them.
    ("answers of versions", (ANSWER_INDEX,)),
    ("texts of journal lines", (LINE_TEXT_TABLE, CONTENT_INDEX)),
    # Lookup keys as numbers: they took a fifth of a file as texts.
    (
        "lookup keys as numbers",
        (
            *LOOKUP_TABLES,
            f"INSERT OR IGNORE INTO lookup(key, document) SELECT {KEY_NUMBER}(name, value), document FROM field",  # noqa: S608 -- a constant
            MOVED_TEXTS,
            "DROP TABLE field",
        ),
    ),
    # version: sequence of the version that a reference is pinned to (`sql_references.py`)
    (
        "short references",
        (
            "ALTER TABLE reference ADD COLUMN version INTEGER",
            f"UPDATE reference SET target = {TARGET_KEY}(target), pinned = NULL",  # noqa: S608 -- a constant
        ),
    ),
    ("bundles of blobs", (ALONE_TABLE,)),
    # The versions of one object are few, and other indexes find them.
    ("versions without an index of hashes", (DROPPED_INDEX,)),
    # The records of versions took a fifth of a file.
    ("segments of records", RECORD_TABLES),
    ("answers by number", (ANSWER_TABLE,)),
    ("segments of references", REFERENCE_SEGMENTS),
    ("fewer lookup keys", (UNUSED_KEYS,)),
    # The lines of journals took a quarter of a file.
    ("segments of journal lines", LINE_TABLES),
    # Larger bundles, with deltas too, take two thirds of the room.
    ("large bundles", UNSEALED),
    ("sessions of versions as numbers", SESSION_TABLE),
    # Bundles that are compressed against what journals say: an earlier pagein could not read them.
    ("bundles with sources", (SOURCED_INDEX,)),
    (
        "sessions and ids of entries in short forms",
        (
            *JOURNAL_TABLE,
            *MOVED_ENTRIES,
            "DROP TABLE snapshot",
            SNAPSHOT_TABLE.replace("session TEXT", "session INTEGER"),
            *(
                f"""CREATE TRIGGER journal_{deed.lower()}d AFTER {deed} ON journal BEGIN
                 DELETE FROM snapshot WHERE session = old.session; END"""  # noqa: S608 -- constants
                for deed in ("DELETE", "UPDATE")
            ),
        ),
    ),
    # A row for each pair of key and object took three times the room.
    ("several objects in a row of a lookup key", JOINED_PAIRS),
    # Most objects have one version.
    ("times of later versions", FEW_TIMES),
    # No other tables, but an earlier pagein would not recognise an erased text by its anchor.
    ("anchors of forgotten texts", ()),
    # Blame unpacked ten bundles for a file with many versions.
    ("texts of files", (FILE_TEXT_TABLE,)),
    # Each step of a run put all its texts in order again.
    ("order of the texts of files", (FILE_ORDER_TABLE,)),
)


@dataclass(frozen=True, slots=True)
class Schema:
    """Kind of a SQLite file.

    mark: application id in its header
    what: its name in messages
    migrations: the steps that create its tables
    """

    mark: int
    what: str
    migrations: tuple[tuple[str, tuple[str, ...]], ...]


STORE: Final = Schema(APPLICATION_ID, "a store", MIGRATIONS)
