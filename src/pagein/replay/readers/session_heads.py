"""Facts about a session as a whole, from the first pass."""

from collections.abc import Iterable

from pagein.model.messages import UnreadableLine
from pagein.replay.readers.line_index import IndexedLine
from pagein.replay.readers.row_fields import Row
from pagein.replay.readers.rows import rows_at
from pagein.replay.readers.source import Source

_TORN = "torn last line"
_CUT = "the file cannot be read further"


def flags_of(marks: Iterable[IndexedLine]) -> dict[str, object]:
    """Return the applicable flags among `no_times`, `unreadable` (number of lines) and `torn_tail`."""
    flags: dict[str, object] = {}
    unreadable, timed, last = 0, False, ""
    for mark in marks:
        timed = timed or mark.timed
        unreadable += not mark.format
        last = mark.why
    if not timed:
        flags["no_times"] = True
    if unreadable:
        flags["unreadable"] = unreadable
    if last.startswith((_TORN, _CUT)):
        flags["torn_tail"] = True
    return flags


def branch_flags(branches: int, abandoned_calls: int) -> dict[str, object]:
    """Return the flags of a session with abandoned branches; none without branches."""
    return {"branches": branches, "abandoned_calls": abandoned_calls} if branches else {}


def version_flag(version: str | None) -> dict[str, object]:
    """Return the flag with the version of the agent, if it is told."""
    return {} if version is None else {"agent_version": version}


def header_row(source: Source, header: IndexedLine | None) -> Row:
    """Return the content of a header line; empty for a damaged one, and without one."""
    found = next((row for _, row in rows_at(source, () if header is None else (header.line,))), None)
    return {} if found is None or isinstance(found, UnreadableLine) else found


def models_of(marks: Iterable[IndexedLine]) -> tuple[str, ...]:
    """Return the models named in the lines, in the order of their first use."""
    seen = {mark.model: None for mark in marks if mark.model and not mark.model.startswith("<")}
    return tuple(seen)
