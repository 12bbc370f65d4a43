"""Store the lines of journals in segments (`sql_segments.py`), by the numbers of their entries.

Rules of this file
------------------
1. An entry has `IN_SEGMENT` in place of its line while the line is in a segment. A line in the row of the entry counts first.
2. In the row are: a new line, until a pause between calls moves it (`move_lines`); a line that is no packed line; and a line that was
   changed after its segment was made. So the path of a call touches no segment. What the segment still has is the line before the change.
3. Bundles may be compressed against a segment (`bundle_sources.py`). Before it changes, they are dissolved.
4. In a segment of several lines, the heads of lines are short (`line_heads.py`).
5. When a text is erased, the earlier line is taken out of its segment too (`LINES.drop`), because it may have the text.
"""

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pagein.errors import DamagedBlob
from pagein.store.sql.bundle_sources import LINES as LINE_SOURCE
from pagein.store.sql.line_heads import SHORT_HEAD, lengthen_head, parent_of, shorten_heads
from pagein.store.sql.packed_bytes import FRAMED, SHORT, pack_short, unpack_short
from pagein.store.sql.sql_bundles import REST, free_bundles_on
from pagein.store.sql.sql_rows import Row, Rows, batches, question_marks
from pagein.store.sql.sql_segments import Segments, WaitingTexts

IN_SEGMENT: Final = b""


def _free_bundles(rows: Rows, first: int) -> None:
    free_bundles_on(rows, LINE_SOURCE, first)


LINES: Final = Segments("line_segment", pack_short, unpack_short, size=1 << 20, most=4096, before_change=_free_bundles)
"""The short forms of lines. They are read one after the other, so their segments are large."""
_AT_ONCE: Final = 500
_RATIO: Final = 4
"""Lines are at most about this many times as large as their packed forms, so it is not worth moving fewer."""
_IN_FULL: Final = f"""SELECT number, line FROM journal WHERE length(line) > 0 AND codec = {FRAMED} AND number > ?
  ORDER BY number LIMIT {_AT_ONCE}"""  # noqa: S608 -- constants
_NUMBER, _CODEC, _LINE = 0, 1, 2


def with_lines(rows: Rows, found: Sequence[Row]) -> list[Row]:
    """Return rows of entries with their lines. A line that is missing or damaged stays `IN_SEGMENT`.

    found: rows that begin with the number, the codec and the line
    """
    absent = [row[_NUMBER] for row in found if row[_CODEC] == FRAMED and not len(row[_LINE])]
    if not absent:
        return list(found)
    shorts = _with_heads(rows, LINES.load(rows, absent))
    return [
        (row[_NUMBER], SHORT, shorts[row[_NUMBER]], *row[_LINE + 1 :])
        if row[_NUMBER] in shorts and not len(row[_LINE])
        else row
        for row in found
    ]


def line_of(rows: Rows, number: int) -> tuple[int, bytes] | None:
    """Return the codec and the data of the line of an entry; None for a missing entry."""
    found = rows.execute("SELECT number, codec, line FROM journal WHERE number = ?", (number,)).fetchall()
    return None if not found else (int((row := with_lines(rows, found)[0])[_CODEC]), bytes(row[_LINE]))


def line_sizes(rows: Rows) -> Counter[int]:
    """Return the stored bytes of lines, by the number of the session. A line takes its share of its segment."""
    alone = "SELECT session, sum(length(data)) FROM line_segment JOIN journal ON number = first WHERE texts = 1 GROUP BY session"
    sizes: Counter[int] = Counter()
    for query in ("SELECT session, sum(length(line)) FROM journal GROUP BY session", alone):
        sizes.update({int(session): int(size) for session, size in rows.execute(query).fetchall()})
    for first, last, texts, size in rows.execute(
        "SELECT first, last, texts, length(data) FROM line_segment WHERE texts > 1"
    ).fetchall():
        counts = "SELECT session, count(*) FROM journal WHERE number >= ? AND number <= ? GROUP BY session"
        for session, count in rows.execute(counts, (first, last)).fetchall():
            sizes[int(session)] += size * count // texts
    return sizes


def move_lines(rows: Rows, *, rest: bool = False) -> int:
    """Move some lines from their rows to segments of one line. Return the number of lines.

    A line in its row before the end of the last segment stays there: it changed after that.

    rest: also lines that fill an eighth of a segment
    """
    found = rows.execute(_IN_FULL, (LINES.end(rows),)).fetchall()
    # few lines wait for more: with each move, the snapshots of their sessions are stored again
    if len(found) < min(_AT_ONCE, LINES.most) and sum(len(line) for _, line in found) * _RATIO < _least(rest=rest):
        return 0
    snapshots = _snapshots(rows, [number for number, _ in found])
    again: list[Row] = []
    for number, data in found:
        LINES.put_packed(rows, number, bytes(data))  # a damaged one stays as damaged as it was
        moved = rows.execute(
            "DELETE FROM journal WHERE number = ? RETURNING number, session, id, codec", (number,)
        ).fetchall()
        again += moved
    # rows that shrank would leave holes that nothing fills
    for row in again:
        rows.execute("INSERT INTO journal(number, session, id, codec, line) VALUES(?, ?, ?, ?, ?)", (*row, IN_SEGMENT))
    keep_snapshots(rows, snapshots)
    return len(found)


def waiting_lines(rows: Rows, *, rest: bool = False) -> WaitingTexts | None:
    """Return the lines of the next segment, with short heads; None until they fill it.

    rest: as for `move_lines`
    """
    waiting = LINES.waiting(rows, _least(rest=rest))
    if waiting is None:
        return None
    query = "SELECT number, session, id FROM journal WHERE number >= ? AND number <= ?"
    found = rows.execute(query, (min(waiting.texts), max(waiting.texts))).fetchall()
    entries = {int(number): (int(session), bytes(key)) for number, session, key in found}
    return replace(waiting, texts=shorten_heads(waiting.texts, entries))


def free_heads(rows: Rows, numbers: Iterable[int]) -> None:
    """Give the lines in the segments of some entries their heads again, before these entries go."""
    for number in numbers:
        LINES.change(rows, number, lambda lines: {**lines, **_with_heads(rows, lines)})


def _with_heads(rows: Rows, lines: Mapping[int, bytes]) -> dict[int, bytes]:
    """Return lines with their heads in full; those whose heads cannot be made again are left out."""
    short = {number: line for number, line in lines.items() if line.startswith(SHORT_HEAD)}
    wanted = sorted(short.keys() | {parent_of(number, line) for number, line in short.items()})
    keys: dict[int, bytes] = {}
    for some in batches(wanted):
        query = f"SELECT number, id FROM journal WHERE number IN ({question_marks(some)})"  # noqa: S608 -- question marks
        keys.update((int(number), bytes(key)) for number, key in rows.execute(query, some).fetchall())
    made = {number: line for number, line in lines.items() if number not in short}
    for number, line in short.items():
        with contextlib.suppress(DamagedBlob):
            made[number] = lengthen_head(number, line, keys)
    return made


def _least(*, rest: bool) -> int:
    return LINES.size // REST if rest else LINES.size


def _snapshots(rows: Rows, numbers: Iterable[int]) -> list[Row]:
    return list({row[0]: row for number in numbers for row in snapshots_of(rows, number)}.values())


def snapshots_of(rows: Rows, number: int) -> list[Row]:
    """Return the snapshot of the session of an entry. A change of the entry drops it, also a change that says the same."""
    query = """SELECT session, place, version, codec, data FROM snapshot
      WHERE session = (SELECT session FROM journal WHERE number = ?)"""
    return rows.execute(query, (number,)).fetchall()


def keep_snapshots(rows: Rows, snapshots: Iterable[Row]) -> None:
    """Store these snapshots again."""
    for snapshot in snapshots:
        rows.execute(
            "INSERT INTO snapshot(session, place, version, codec, data) VALUES(?, ?, ?, ?, ?)", tuple(snapshot)
        )
