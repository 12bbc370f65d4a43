"""Remember the answers to writes in a SQL database, so that a repeated write gets the same answer.

Rules of this file
------------------
1. The request ids of the indexer are hashes. They are most of all ids, so they are stored as bytes: the first half is the number of the row
   in `answer`. Other ids are texts in `request`, and so is an id whose first half another id has.
2. The object hash that a request of the indexer asked for is that of the version in its answer, so it is not stored again.
3. In an older store every id is in `request`. Such rows move to `answer` in the pauses between calls, if rule 2 holds for them.
"""

import re
from collections.abc import Collection, Iterator
from typing import Final, get_args

from pagein.errors import DamagedBlob
from pagein.model.derived_versions import FOLLOWING
from pagein.model.versions import Version
from pagein.model.writes import Change
from pagein.store.rules.write_rules import Earlier
from pagein.store.sql.sql_blobs import hash_of_name, raw
from pagein.store.sql.sql_rows import Rows, batches, decode_text, encode_text, question_marks
from pagein.store.sql.sql_versions import select_versions, version_in

_CHANGES: Final[tuple[Change, ...]] = get_args(Change)
_SHORT: Final = re.compile(re.escape(FOLLOWING) + "([0-9a-f]{32})")
_OFFSET: Final = 1 << 63
"""A half of an id is a number without sign; a row's number has one."""
_BEHIND_FOLLOWING: Final = FOLLOWING[:-1] + chr(ord(FOLLOWING[-1]) + 1)
_AT_ONCE: Final = 500
_IN_TEXTS: Final = "SELECT sequence, change, asked FROM request WHERE id = ?"
_IN_EITHER: Final = f"""SELECT sequence, CAST(change AS TEXT), CAST(NULL AS BYTEA) FROM answer WHERE number = ? AND rest = ?
  UNION ALL {_IN_TEXTS}"""  # noqa: S608 -- a constant
_MOVABLE: Final = """SELECT id, sequence, change FROM request JOIN version USING(sequence)
  WHERE id > ? AND id < ? AND asked = object_hash ORDER BY id LIMIT ?"""


def put_answer(rows: Rows, request: str, version: Version, change: Change) -> None:
    """Remember the answer to a request. The version has the fields that the request asked for."""
    if not _put_short(rows, request, version.sequence, change):
        rows.execute(
            "INSERT INTO request(id, asked, sequence, change) VALUES(?, ?, ?, ?)",
            (encode_text(request), raw(version.object_hash), version.sequence, change),
        )


def answered_version(rows: Rows, request: str) -> Version | None:
    """Return the version in the answer to a request, or None if there is no answer, or no longer such a version."""
    found = _answer(rows, request)
    return None if found is None else _version(rows, found[0])


def earlier_request(rows: Rows, request: str) -> Earlier | None:
    """Return what is remembered of a request. Raises DamagedBlob if its version is missing or damaged."""
    found = _answer(rows, request)
    if found is None:
        return None
    sequence, change, asked = found
    version = _version(rows, sequence)
    if version is None:
        raise DamagedBlob(f"version {sequence} is missing")
    return Earlier(
        version.object_hash if asked is None else hash_of_name(asked),
        version,
        next(one for one in _CHANGES if one == change),
    )


def answers_between(rows: Rows, after: int, before: int) -> Iterator[tuple[str, int, bytes | None]]:
    """Yield the requests whose answers are versions between two sequences, with the sequence and the object hash asked for.

    The hash is None where it is that of the version.
    """
    bounds = "sequence > ? AND sequence < ? ORDER BY sequence"
    query = f"SELECT id, sequence, asked FROM request WHERE {bounds}"  # noqa: S608 -- constants
    for request, sequence, asked in rows.execute(query, (after, before)).fetchall():
        yield decode_text(request), int(sequence), bytes(asked)
    query = f"SELECT number, rest, sequence FROM answer WHERE {bounds}"  # noqa: S608 -- constants
    for number, rest, sequence in rows.execute(query, (after, before)).fetchall():
        yield _request_of(number, rest), int(sequence), None


def drop_answers(rows: Rows, sequences: Collection[int]) -> None:
    """Forget the answers with some versions."""
    gone = sorted(set(sequences))
    for some in batches(gone):
        rows.execute(f"DELETE FROM request WHERE sequence IN ({question_marks(some)})", some)  # noqa: S608 -- question marks
    # no index finds them: whole objects are dropped rarely
    if 0 < len(gone) <= _AT_ONCE:
        rows.execute(f"DELETE FROM answer WHERE sequence IN ({question_marks(gone)})", gone)  # noqa: S608 -- question marks
    elif gone:
        wanted = frozenset(gone)
        listed = rows.execute("SELECT number, sequence FROM answer").fetchall()
        numbers = [int(number) for number, sequence in listed if sequence in wanted]
        for some in batches(numbers):
            rows.execute(f"DELETE FROM answer WHERE number IN ({question_marks(some)})", some)  # noqa: S608 -- question marks


def answers_in_texts(rows: Rows, after: str, most: int) -> list[tuple[str, int]]:
    """Return a page of the requests in `request` behind an id, with the sequences of the versions in their answers."""
    query = "SELECT id, sequence FROM request WHERE id > ? ORDER BY id LIMIT ?"
    found = rows.execute(query, (encode_text(after), most)).fetchall()
    return [(decode_text(request), int(sequence)) for request, sequence in found]


def answers_in_numbers(rows: Rows, after: str, most: int) -> list[tuple[str, int]]:
    """Return a page of the requests in `answer` behind an id, with the sequences of the versions in their answers."""
    halves = _halves(after)
    bound = "number >= ?" if halves is None else "number > ?"
    query = f"SELECT number, rest, sequence FROM answer WHERE {bound} ORDER BY number LIMIT ?"  # noqa: S608 -- constants
    found = rows.execute(query, (-_OFFSET if halves is None else halves[0], most)).fetchall()
    return [(_request_of(number, rest), int(sequence)) for number, rest, sequence in found]


def move_answers(rows: Rows) -> int:
    """Move some answers of an older store to `answer`. Return their number; 0 if none is left."""
    moved, last = 0, FOLLOWING
    while found := rows.execute(_MOVABLE, (last, _BEHIND_FOLLOWING, _AT_ONCE)).fetchall():
        for request, sequence, change in found:
            if _put_short(rows, request, sequence, change):
                rows.execute("DELETE FROM request WHERE id = ?", (request,))
                moved += 1
        last = found[-1][0]
        if moved:
            break
    return moved


def _put_short(rows: Rows, request: str, sequence: int, change: str) -> bool:
    """Store an answer in `answer`, unless the id is not a hash, or another id has its number."""
    halves = _halves(request)
    if halves is None:
        return False
    query = (
        "INSERT INTO answer(number, rest, sequence, change) VALUES(?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING number"
    )
    place = next(place for place, one in enumerate(_CHANGES) if one == change)
    return rows.execute(query, (*halves, sequence, place)).fetchone() is not None


def _answer(rows: Rows, request: str) -> tuple[int, str, bytes | None] | None:
    """Return the sequence, the change and the object hash asked for; None in place of that of the version."""
    halves = _halves(request)
    listed = [] if halves is None else rows.execute(_IN_EITHER, (*halves, encode_text(request))).fetchall()
    if halves is None:
        listed = rows.execute(_IN_TEXTS, (encode_text(request),)).fetchall()
    for sequence, change, asked in sorted(listed, key=lambda one: one[2] is not None):
        return int(sequence), change if asked is not None else _CHANGES[int(change)], asked
    return None


def _version(rows: Rows, sequence: int) -> Version | None:
    found = select_versions(rows, "sequence = ?", (sequence,))
    return version_in(found[0]) if found else None


def _halves(request: str) -> tuple[int, bytes] | None:
    """Return an id that is a hash as the number and the rest of its row; None for another id."""
    found = _SHORT.fullmatch(request)
    if found is None:
        return None
    data = bytes.fromhex(found[1])
    return int.from_bytes(data[:8], "big") - _OFFSET, data[8:]


def _request_of(number: int, rest: bytes) -> str:
    return f"{FOLLOWING}{(number + _OFFSET).to_bytes(8, 'big').hex()}{bytes(rest).hex()}"
