"""Bundles of the texts and edits of files, in the order of paths: the history of a file unpacks few of them.

Rules of this file
------------------
1. The texts of a file's versions, and the arguments of the edits behind them, are in the table `file_text`. They wait until they are many. Then a
   *run* bundles them in the order of their files' paths, without sources. A file that does not fit into the rest of a bundle begins the next one.
2. A run takes over each earlier run that has at most twice as many blobs as what is newer. So the texts of a file are in few runs, and a blob
   is seldom bundled again: both grow with the logarithm of the number of blobs.
3. A run goes on in short steps. What is left to do follows from the rows alone: the blobs of the newest run that wait, or are in a bundle from before
   it. Their order is made once, in the table `file_order`, of which a step takes the first rows; at the end it is made again of what is left
   after all. The number of a run is the largest number that a blob had when it began. Where the last blobs are deleted, further ones get their numbers
   again: the run is renumbered, so that its bundles are not taken for earlier ones.
4. A blob that was in another bundle before a file needed it stays there.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pagein.errors import DamagedBlob
from pagein.model.names import ContentHash
from pagein.store.sql.packed_bytes import MEMBER, unpack
from pagein.store.sql.pinned_texts import ShortContents
from pagein.store.sql.sql_bundles import BlobBundle, bundle_of, dissolve_bundle
from pagein.store.sql.sql_rows import Rows

_PACKED: Final = 1 << 20
"""Stored bytes of waiting texts that make a run."""
_PACKED_REST: Final = 1 << 16
"""The same if no more follow soon."""
_SIZE: Final = 1 << 21
"""Bytes of the contents of a bundle: half of those of another, as a history is read for the sake of one file."""
_AT_ONCE: Final = 256
_BEGIN: Final = -1
_NEWEST: Final = "store.files"
"""Name of the row of `layer` with the number of the newest run. version: whether an earlier run may be left in it"""
_TAKES_OVER, _IS_WHOLE = "open", "done"
_NOTE: Final = """INSERT INTO file_text(number, document, run) SELECT alone.number, ?, 0 FROM blob
  JOIN alone ON alone.number = blob.number WHERE hash = ? ON CONFLICT DO NOTHING"""
_WAITING: Final = """SELECT count(*), coalesce(sum(size), 0), coalesce(sum(CASE WHEN run = ? THEN 1 ELSE 0 END), 0)
  FROM alone CROSS JOIN file_text WHERE file_text.number = alone.number"""
_EARLIER: Final = f"codec = {MEMBER} AND base <= run"
_ORDER: Final = f"""INSERT INTO file_order(place, number, document, run)
  SELECT row_number() OVER (ORDER BY path, file_text.document, blob.number), blob.number, file_text.document, run
  FROM file_text JOIN blob ON blob.number = file_text.number LEFT JOIN alone ON alone.number = blob.number
  LEFT JOIN (SELECT document, min(value) AS path FROM lookup_text WHERE name IN ('path', 'last_path') GROUP BY document) AS places
    ON places.document = file_text.document
  WHERE run = ? AND (alone.number IS NOT NULL OR ({_EARLIER}))"""  # noqa: S608 -- constants
_COUNTED: Final = (
    "SELECT count(*), count(alone.number) FROM file_order LEFT JOIN alone ON alone.number = file_order.number"
)
_FIRST: Final = """SELECT place, file_order.number, file_order.document FROM file_order JOIN file_text ON file_text.number = file_order.number
  WHERE file_text.run = ? AND place > ? ORDER BY place LIMIT ?"""
_ONE: Final = """SELECT hash, codec, base, packed FROM blob LEFT JOIN alone ON alone.number = blob.number
  WHERE blob.number = ?"""


@dataclass(frozen=True, slots=True)
class FileStep:
    """The next step of a run.

    run: what the row of the newest run told: another process may begin a run before the step is taken
    until: the last place in the order that the step is done with; 0 if the order is to be made, -1 if a run begins
    contents: what to bundle, by the numbers of the blobs
    earlier: the bundle to dissolve before that
    damaged: numbers of blobs that cannot be read, and are left out from now on
    """

    run: tuple[int, bool]
    until: int
    contents: dict[int, bytes]
    earlier: int | None = None
    damaged: Sequence[int] = ()

    def bundle(self) -> BlobBundle | None:
        """Compress the contents; None if others come before them, or if a bundle would have no two."""
        is_next = self.earlier is None and len(self.contents) > 1
        return bundle_of(ShortContents(self.contents)) if is_next else None


def note_file_text(rows: Rows, name: bytes, document: int) -> None:
    """Note that the history of a file needs a blob, if the blob still waits for its bundle.

    name: its hash. document: number of the file
    """
    rows.execute(_NOTE, (document, name))


def next_step(rows: Rows, load: Callable[[int], bytes], *, rest: bool) -> FileStep | None:
    """Return the next step; None if there is nothing to do. A step with nothing in it begins a run.

    load: returns the content of a blob by number; raises DamagedBlob
    """
    newest = _newest_run(rows)
    if has_order(rows):
        return _step_of(rows, newest, load)
    count, size, left = rows.execute(_WAITING, newest[:1]).fetchall()[0]
    if newest[1] or left > 1:
        return FileStep(newest, 0, {})
    return FileStep(newest, _BEGIN, {}) if count > 1 and size >= (_PACKED_REST if rest else _PACKED) else None


def has_order(rows: Rows) -> bool:
    """Return whether a run goes on whose order is known. Then its next step reads a few rows."""
    return rows.execute("SELECT 1 FROM file_order LIMIT 1").fetchone() is not None


def take_step(rows: Rows, step: FileStep) -> int:
    """Carry out a step without a bundle to be stored. Return what it moved, at least 1, or 0 if nothing was to be done."""
    for number in step.damaged:
        rows.execute("DELETE FROM file_text WHERE number = ?", (number,))
    if step.earlier is not None:
        try:
            dissolve_bundle(rows, step.earlier)
        except DamagedBlob:
            members = "SELECT number FROM blob WHERE base = ?"
            rows.execute(f"DELETE FROM file_text WHERE number IN ({members})", (step.earlier,))  # noqa: S608 -- a constant
        return 1
    if _newest_run(rows) != step.run:
        return 1  # what is left of the newer run tells the next step
    if step.until == _BEGIN:
        return _begin_run(rows, step.run[0])
    if step.until:
        pass_over(rows, step)
    elif not _make_order(rows, step.run[0]):
        rows.execute("UPDATE layer SET version = ? WHERE name = ?", (_IS_WHOLE, _NEWEST))
    return 1


def pass_over(rows: Rows, step: FileStep) -> None:
    """Take what a step is done with out of the order, unless it is the order of a newer run."""
    rows.execute("DELETE FROM file_order WHERE run = ? AND place <= ?", (step.run[0], step.until))


def _make_order(rows: Rows, run: int) -> bool:
    """Put in order what is left of a run. Return whether there is more than a single text, which waits for others."""
    rows.execute("DELETE FROM file_order")
    rows.execute(_ORDER, (run,))
    ((count, alone),) = rows.execute(_COUNTED).fetchall()
    if count > 1 or count > alone:
        return True
    rows.execute("DELETE FROM file_order")
    return False


def renumber_run(rows: Rows) -> None:
    """Lower the number of the newest run to the largest number of a blob, before its next bundle is stored."""
    run, _ = _newest_run(rows)
    ((last,),) = rows.execute("SELECT max(number) FROM blob").fetchall()
    if last < run:
        rows.execute("UPDATE file_text SET run = ? WHERE run = ?", (last, run))
        rows.execute("UPDATE file_order SET run = ? WHERE run = ?", (last, run))
        rows.execute("UPDATE layer SET place = ? WHERE name = ?", (last, _NEWEST))


def _begin_run(rows: Rows, newest: int) -> int:
    """Begin a run with all texts that wait, and with the earlier runs that it takes over. Return the number of texts that wait."""
    ((waiting, _, _),) = rows.execute(_WAITING, (newest,)).fetchall()
    ((run,),) = rows.execute("SELECT max(number) FROM blob").fetchall()
    counts = "SELECT run, count(*) FROM file_text WHERE run > 0 GROUP BY run ORDER BY run DESC"
    rows.execute("UPDATE file_text SET run = ? WHERE number IN (SELECT number FROM alone)", (run,))
    newer = waiting
    for earlier, count in rows.execute(counts).fetchall():
        if earlier == run:
            continue
        if count > 2 * newer:
            break
        newer += count
        rows.execute("UPDATE file_text SET run = ? WHERE run = ?", (run, earlier))
    rows.execute(
        """INSERT INTO layer(name, place, version) VALUES(?, ?, ?)
           ON CONFLICT(name) DO UPDATE SET place = excluded.place, version = excluded.version""",
        (_NEWEST, run, _TAKES_OVER if newer > waiting else _IS_WHOLE),
    )
    _make_order(rows, run)
    return int(waiting)


def _newest_run(rows: Rows) -> tuple[int, bool]:
    """Return the number of the newest run, -1 for none, and whether an earlier run may be left in it."""
    found = rows.execute("SELECT place, version FROM layer WHERE name = ?", (_NEWEST,)).fetchone()
    return (-1, False) if found is None else (int(found[0]), found[1] == _TAKES_OVER)


def _step_of(rows: Rows, run: tuple[int, bool], load: Callable[[int], bytes]) -> FileStep:
    """Return the step with the first of the texts that are left of a run."""
    contents: dict[int, bytes] = {}
    places: list[int] = []
    damaged: list[int] = []
    file = before = size = until = 0  # before: number of the texts of earlier files
    for place, number, of_file in _in_order(rows, run[0]):
        name, codec, base, packed = rows.execute(_ONE, (number,)).fetchone() or (b"", None, None, None)
        if packed is None and codec == MEMBER and base <= run[0]:
            return FileStep(run, until, contents, int(base), damaged)
        until = place
        if packed is None:
            continue  # removed or bundled meanwhile
        if of_file != file:
            file, before = of_file, len(contents)
        try:
            below = None if base is None else contents.get(int(base)) or load(int(base))
            content = unpack(codec, bytes(packed), below)
        except DamagedBlob:
            content = b""
        if ContentHash.of(content).hex != bytes(name).hex():
            damaged.append(number)
            continue
        if size + len(content) > _SIZE and len(contents) > 1:
            fits = before if before > 1 else len(contents)
            return FileStep(run, places[fits - 1], dict(list(contents.items())[:fits]), None, damaged)
        contents[number] = content
        places.append(place)
        size += len(content)
    return FileStep(run, until, contents, None, damaged)


def _in_order(rows: Rows, run: int) -> Iterator[tuple[int, int, int]]:
    """Yield places, numbers and files in the order of a run."""
    last = 0
    while found := rows.execute(_FIRST, (run, last, _AT_ONCE)).fetchall():
        yield from ((int(place), int(number), int(file)) for place, number, file in found)
        last = int(found[-1][0])
