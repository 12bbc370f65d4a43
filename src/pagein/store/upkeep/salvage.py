"""Copy the readable rows of a damaged store into a new file.

Rules of this file
------------------
1. The damaged file is only read, by `sqlite_pages`, so that a damaged page costs only the rows on this page.
2. A row is copied if it has the shape of its table. Its content is verified on reading: blobs, entries and versions carry a hash or
   checksum. So a row with damaged content is copied too, and found by the following check.
3. Rows on pages that no tree reaches any more belong to the only table with their shape. Pages listed as free contain deleted rows,
   which stay deleted.
4. A readable index names the rows missing in its table. A missing journal entry gets an undecodable row under its own id and
   place, and `store_repair` turns this row into a bridge.
"""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from pagein.store.sql.sqlite_schema import MIGRATIONS, MOVED_ENTRIES
from pagein.store.upkeep.sqlite_pages import Pages, Row, Value

_FIRST_ROW: Final = re.compile(r"INSERT INTO (\w+) VALUES")
LOG_TORN: Final = "the write-ahead log is damaged, so some of what was written last may be missing"
_HASH: Final = 32
_HASHES: Final = frozenset(("hash", "object_hash", "content_hash", "asked", "pinned", "key"))
_TYPES: Final[dict[str, tuple[type, ...]]] = {"INTEGER": (int,), "REAL": (float, int), "TEXT": (str,), "BLOB": (bytes,)}
# Tables created fresh for every file, and tables derived from other tables by `rebuild`.
_FRESH: Final = frozenset(("migration", "snapshot", "lookup"))
_DERIVED: Final = frozenset(
    (
        "migration",
        "snapshot",
        "line_text",
        "file_order",
        "file_text",
        "lookup",
        "lookup_text",
        "document",
        "reference",
        "reference_segment",
        "life",
        "paged",
        "tally",
    )
)
# The table of entries has the first name in older stores.
_ENTRIES: Final = frozenset(("entry", "journal"))
# Tables with changing rows; of several states the last counts. Rows of other tables are written only once.
_CHANGING: Final = frozenset(("session", "life", "document", "tally", "reference"))


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table.

    alias: whether the column is the row id, stored outside of the row
    """

    name: str
    types: tuple[type, ...]
    may_lack: bool
    may_be_null: bool
    alias: bool

    def takes(self, value: Value) -> bool:
        """Return whether the column accepts a value."""
        if value is None:
            return self.alias or self.may_be_null
        if self.alias or not isinstance(value, self.types):
            return False
        return self.name not in _HASHES or not isinstance(value, bytes) or len(value) == _HASH


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the new file.

    keys: column numbers of its unique indexes, by name
    """

    name: str
    columns: tuple[TableColumn, ...]
    keys: dict[str, tuple[int, ...]]

    def fits(self, values: Sequence[Value]) -> bool:
        """Return whether a row has the shape of this table. Rows of an older schema have fewer columns."""
        count = len(values)
        return (
            count <= len(self.columns)
            and all(column.takes(value) for column, value in zip(self.columns, values, strict=False))
            and all(column.may_lack for column in self.columns[count:])
        )


@dataclass(frozen=True, slots=True)
class MissingRow:
    """An unreadable row named by an index.

    key: values by column
    """

    table: str
    row: int
    key: dict[str, Value]


@dataclass(slots=True)
class SalvageReport:
    """Result of a salvage.

    rows: copied rows, by table
    missing: missing rows known by key
    untold: missing content without a key, in words
    torn: tables with unreadable pages or rows
    """

    rows: dict[str, int] = field(default_factory=dict)
    missing: list[MissingRow] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    torn: set[str] = field(default_factory=set)


def salvage(pages: Pages, made: sqlite3.Connection) -> SalvageReport:
    """Fill a file from `make_empty_tables` with the rows of a damaged file."""
    tables = tables_of(made)
    done = SalvageReport()
    _SalvagePass(pages, made, tables, done).run()
    later = pages.later()
    if later is not None:
        done.untold.append(LOG_TORN)
        _SalvagePass(later, made, tables, SalvageReport(), changing=True).run()
    done.rows = {name: count_of(made, name) for name in tables if name not in _FRESH}
    return done


def make_empty_tables(made: sqlite3.Connection) -> tuple[dict[str, str], list[str]]:
    """Create the tables of a store without rows.

    Returns the statements still needed: the statements that insert a first row, by table, and the statements that
    create triggers.
    """
    triggers: list[str] = []
    begins: dict[str, str] = {}
    made.execute("CREATE TABLE migration(number INTEGER PRIMARY KEY, name TEXT NOT NULL)")
    for number, (name, statements) in enumerate(MIGRATIONS, start=1):
        for statement in statements:
            verb = statement.split(maxsplit=2)[:2]
            if verb == ["CREATE", "TRIGGER"]:
                if " ON entry " not in statement:  # a table of older stores, that is gone at the end
                    triggers.append(statement)
            elif found := _FIRST_ROW.match(statement):
                begins[found[1]] = statement
            # these would migrate content of an older schema
            elif verb[0] not in ("INSERT", "UPDATE") and statement not in MOVED_ENTRIES:
                made.execute(statement)
        made.execute("INSERT INTO migration VALUES(?, ?)", (number, name))
    return begins, triggers


def tables_of(made: sqlite3.Connection) -> dict[str, Table]:
    """Return the tables of a file."""
    names = made.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'").fetchall()
    return {name: _table(made, name) for (name,) in names}


def _table(made: sqlite3.Connection, name: str) -> Table:
    columns = tuple(
        TableColumn(
            column,
            (str, bytes) if column == "record" else _TYPES[kind],  # records of older stores are texts
            may_lack=not required or default is not None,
            may_be_null=not key and (not required or default is not None),
            alias=bool(key) and kind == "INTEGER",
        )
        for _, column, kind, required, default, key in made.execute(f"PRAGMA table_info({name})")
    )
    keys = {
        index: tuple(place for _, place, _ in made.execute(f"PRAGMA index_info({index})"))
        for _, index, unique, origin, _ in made.execute(f"PRAGMA index_list({name})").fetchall()
        if unique and origin in ("u", "pk")
    }
    return Table(name, columns, keys)


class _SalvagePass:
    """A single pass through every page.

    changing: for tables with changing rows, replace existing rows by the rows of this pass
    """

    def __init__(
        self,
        pages: Pages,
        made: sqlite3.Connection,
        tables: dict[str, Table],
        done: SalvageReport,
        *,
        changing: bool = False,
    ) -> None:
        self._pages, self._made, self._tables, self._done, self._changing = pages, made, tables, done, changing
        self._reached: set[int] = set()
        self._named: set[str] = set()

    def run(self) -> None:
        roots = self._roots()
        for name, table in self._tables.items():
            if name in roots:
                self._take(table, roots[name])
            elif name not in _ENTRIES or _ENTRIES.isdisjoint(roots):
                self._done.torn.add(name)
        missing = [one for table in self._tables.values() for one in self._rows_missing(table, roots)]
        self._reach_others(roots)
        self._take_strays()
        self._done.missing = [one for one in missing if not self._holds(one)]
        self._tell()

    def _roots(self) -> dict[str, int]:
        """Return the root pages of tables and indexes, as far as the file's own list is readable."""
        tree = self._pages.tree(1)
        self._reached.update(tree.leaves, tree.inner)
        found: dict[str, int] = {}
        for row in self._rows(tree.leaves):
            if row is not None and len(row[1]) == 5:  # noqa: PLR2004 -- the columns of SQLite's own table
                kind, name, _, root, _ = row[1]
                if kind in ("table", "index") and isinstance(name, str) and isinstance(root, int) and root > 1:
                    found[name] = root
        return found

    def _rows(self, leaves: Iterable[int]) -> Iterator[Row | None]:
        for number in leaves:
            yield from self._pages.rows(number)

    def _take(self, table: Table, root: int) -> None:
        tree = self._pages.tree(root)
        self._reached.update(tree.leaves, tree.inner)
        if tree.gaps:
            self._done.torn.add(table.name)
        for number in tree.leaves:
            found = list(self._pages.rows(number))
            rows = [row for row in found if row is not None and table.fits(row[1])]
            if len(rows) < len(found):
                self._done.torn.add(table.name)
            moved = [_in_order(rows, place) for place in range(len(rows))]
            # rows with a damaged id come last, so that they displace no intact row
            for row, between in sorted(zip(rows, moved, strict=True), key=lambda one: one[1] is not None):
                self._put(table, row if between is None else (self._free_id(table, between), row[1]))

    def _free_id(self, table: Table, between: range) -> int:
        query = f"SELECT rowid FROM {table.name} WHERE rowid >= ? AND rowid < ?"  # noqa: S608 -- a name of our own schema
        taken = {row for (row,) in self._made.execute(query, (between.start, between.stop))}
        return next((one for one in between if one not in taken), between.start)

    def _put(self, table: Table, row: Row) -> None:
        if table.name in _FRESH:
            return
        rowid, values = row
        held = [
            (column.name, value)
            for column, value in zip(table.columns, values, strict=False)
            if not column.alias and value is not None  # without a value the column gets its default
        ]
        verb = "REPLACE" if self._changing and table.name in _CHANGING else "INSERT OR IGNORE"
        names = ", ".join(["rowid", *(name for name, _ in held)])
        marks = ", ".join("?" * (len(held) + 1))
        self._made.execute(f"{verb} INTO {table.name}({names}) VALUES({marks})", (rowid, *(one for _, one in held)))

    def _rows_missing(self, table: Table, roots: dict[str, int]) -> Iterator[MissingRow]:
        """Yield rows named by the table's unique indexes but missing in the table."""
        for index, columns in table.keys.items():
            if index not in roots:
                continue
            tree = self._pages.tree(roots[index])
            self._reached.update(tree.leaves, tree.inner)
            if not tree.gaps:
                self._named.add(table.name)
            for number in (*tree.leaves, *tree.inner):
                for key in self._pages.keys(number):
                    if len(key) == len(columns) + 1 and all(
                        table.columns[place].takes(value) for place, value in zip(columns, key, strict=False)
                    ):
                        rowid = key[-1]
                        if isinstance(rowid, int):
                            names = {table.columns[place].name: key[at] for at, place in enumerate(columns)}
                            yield MissingRow(table.name, rowid, names)

    def _holds(self, one: MissingRow) -> bool:
        """Return whether the new file has a row with this key or row id. A row found by row id means a damaged index.
        Null keys name nothing.
        """
        if None in one.key.values():
            return True
        wanted = " AND ".join(f"{name} = ?" for name in one.key)
        query = f"SELECT 1 FROM {one.table} WHERE rowid = ? OR ({wanted})"  # noqa: S608 -- names of our own schema
        return self._made.execute(query, (one.row, *one.key.values())).fetchone() is not None

    def _reach_others(self, roots: dict[str, int]) -> None:
        for root in roots.values():
            if root not in self._reached:
                tree = self._pages.tree(root)
                self._reached.update(tree.leaves, tree.inner)

    def _take_strays(self) -> None:
        """Copy rows on pages reached by no tree, because a page above them is damaged."""
        free, all_known = self._pages.free()
        for number in range(1, self._pages.count + 1):
            if number in self._reached or number in free or not self._pages.is_leaf(number):
                continue
            for row in self._pages.rows(number):
                if row is None:
                    continue
                fitting = [table for table in self._tables.values() if len(row[1]) and table.fits(row[1])]
                # if the list of free pages is damaged, the page may contain deleted rows
                if len(fitting) == 1 and (all_known or fitting[0].name in self._done.torn):
                    self._put(fitting[0], row)

    def _tell(self) -> None:
        pages, done = self._pages, self._done
        if pages.promised > pages.count:
            done.untold.append(f"{pages.promised - pages.count} of {pages.promised} pages are cut off")
        for name in sorted(done.torn - _DERIVED - self._named):
            done.untold.append(
                f"not all pages of the table {name} can be read, nor its index, so what is missing has no name"
            )


def _in_order(rows: Sequence[Row], place: int) -> range | None:
    """Return the range of ids for a row whose id does not fit between its neighbours on the page.

    Return None for a fitting id.
    """
    own = rows[place][0]
    before = rows[place - 1][0] if place else None
    after = rows[place + 1][0] if place + 1 < len(rows) else None
    if before is None or after is None:
        misplaced = (before is not None and own <= before) or (after is not None and own >= after)
        low = before + 1 if before is not None else (after or own) - 1
        return range(low, low + 1) if misplaced else None
    return range(before + 1, after) if before < after and not before < own < after else None


def count_of(made: sqlite3.Connection, table: str) -> int:
    """Return the number of rows of a table."""
    (count,) = made.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 -- a name of our own schema
    return int(count)
