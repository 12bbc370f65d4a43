"""Facts about a session as a whole, from the first pass."""

from collections.abc import Iterable

from pagein.replay.readers.line_index import IndexedLine

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


def models_of(marks: Iterable[IndexedLine]) -> tuple[str, ...]:
    """Return the models named in the lines, in the order of their first use."""
    seen = {mark.model: None for mark in marks if mark.model and not mark.model.startswith("<")}
    return tuple(seen)
