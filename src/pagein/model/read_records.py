"""Stored records of read events: encoding, and tolerant decoding.

Writing is exact: metadata version 1 with `spans` added, the lines of `servedHash` that are in the answer as text.
Answers that version 1 cannot express carry `v: 2` and `copies`; a reader of version 1 skips them. Reading never raises:
a malformed record becomes `MalformedRecord`, and is not trusted.

Records without spans come from other writers. Their plain reads count only for lines that they must have shown:
with `details.truncation`, the lines that were let through; without it, the whole scope if the file is so small that
nothing can have been cut, or if the answer itself is at hand and has exactly the lines of the scope; else nothing.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, cast, get_args

from pagein.errors import BadName
from pagein.model.names import ContentHash
from pagein.model.read_caps import DEFAULT_CAPS
from pagein.model.read_events import FileRead, FileRefresh, FileWrite, LineCopy, MalformedRecord, Mode
from pagein.model.spans import NO_LINES, Spans

_MODES: Final = frozenset(get_args(Mode))
_NEED_BASE: Final = frozenset({"unchanged", "unchanged_range", "diff"})
_RANGE: Final = re.compile(r"r:([0-9]{1,12}):([0-9]{1,12})")
_REASONS: Final = frozenset(
    {
        "no_base_hash",
        "hash_match",
        "base_object_missing",
        "range_slice_unchanged",
        "range_slice_changed",
        "diff_file_too_large_bytes",
        "diff_file_too_large_lines",
        "diff_unavailable_or_empty",
        "diff_not_useful",
        "diff_payload_truncated",
        "diff_emitted",
        "bypass_cache",
    }
)


class _Strange(Exception):
    """A field has an invalid value."""


def encode(event: FileRead) -> dict[str, object]:
    """Return the record for `details.readcache`."""
    record: dict[str, object] = {
        "v": event.v,
        "pathKey": event.path,
        "scopeKey": event.scope_key,
        "servedHash": event.version.hex,
    }
    if event.base is not None:
        record["baseHash"] = event.base.hex
    record |= {
        "mode": event.mode,
        "totalLines": event.total,
        "rangeStart": event.first,
        "rangeEnd": event.last,
        "bytes": event.size,
    }
    if event.emitted is not None:
        record["spans"] = [list(run) for run in event.emitted]
    if event.v > 1 or event.copies:
        record["copies"] = _copies_out(event.copies)
    return record


def decode(details: object, text: str | None = None) -> FileRead | MalformedRecord:
    """Return the event in the `details` of a read result.

    text: the answer, where it is at hand.
    """
    try:
        whole = _parse_mapping(details, "details")
        record = _parse_mapping(whole.get("readcache"), "readcache")
        event = _parse_read(record)
        return event if event.emitted is not None else _with_spans(event, whole.get("truncation"), text)
    except (_Strange, BadName) as strange:
        return MalformedRecord(str(strange))


def encode_authored(event: FileWrite) -> dict[str, object]:
    """Return the record of a write or edit by the model."""
    return {
        "v": 1,
        "kind": "authored",
        "pathKey": event.path,
        "servedHash": event.version.hex,
        "totalLines": event.total,
        "spans": [list(run) for run in event.authored],
        "copies": _copies_out(event.copies),
        "whole": event.whole,
    }


def encode_invalidation(event: FileRefresh, at: int) -> dict[str, object]:
    """Return the record of a refresh.

    at: milliseconds since 1970, for people; no decision uses it.
    """
    scope = "full" if event.lines is None else f"r:{event.lines[0]}:{event.lines[1]}"
    return {"v": 1, "kind": "invalidate", "pathKey": event.path, "scopeKey": scope, "at": at}


def decode_entry(data: object) -> FileWrite | FileRefresh | MalformedRecord:
    """Return the event in the data of an entry that is not a tool result."""
    try:
        return _entry(_parse_mapping(data, "entry"))
    except (_Strange, BadName) as strange:
        return MalformedRecord(str(strange))


def _entry(record: Mapping[str, object]) -> FileWrite | FileRefresh:
    kind = record.get("kind") if record.get("v") == 1 else None
    if kind == "invalidate":
        at = record.get("at")
        if not isinstance(at, int | float) or isinstance(at, bool) or at <= 0:
            raise _Strange("at must be positive")
        return FileRefresh(_text(record, "pathKey"), _scope(_text(record, "scopeKey")))
    if kind == "authored":
        return FileWrite(
            _text(record, "pathKey"),
            ContentHash.parse(_text(record, "servedHash")),
            _count(record, "totalLines", 1),
            _spans(record.get("spans")) or NO_LINES,
            _copies_in(record.get("copies")),
            record.get("whole") is True,
        )
    raise _Strange("unknown version or kind")


def _parse_read(record: Mapping[str, object]) -> FileRead:
    version = record.get("v")
    if version not in (1, 2) or isinstance(version, bool):
        raise _Strange("unknown version")
    mode = record.get("mode")
    if not isinstance(mode, str) or mode not in _MODES:
        raise _Strange("unknown mode")
    base: ContentHash | None = None
    if record.get("baseHash") is not None or (version == 1 and mode in _NEED_BASE):
        base = ContentHash.parse(_text(record, "baseHash"))
    first = _count(record, "rangeStart", 1)
    event = FileRead(
        path=_text(record, "pathKey"),
        mode=cast("Mode", mode),
        version=ContentHash.parse(_text(record, "servedHash")),
        total=_count(record, "totalLines", 1),
        first=first,
        last=_count(record, "rangeEnd", first),
        size=_count(record, "bytes", 0),
        base=base,
        emitted=_spans(record.get("spans")),
        copies=_copies_in(record.get("copies")) if version != 1 or "copies" in record else (),
        v=1 if version == 1 else 2,
    )
    scope = _scope(_text(record, "scopeKey"))
    if scope != (None if event.whole else (event.first, event.last)) or event.last > event.total:
        raise _Strange("scope and range contradict each other")
    _check_debug(record.get("debug"))
    return event


def _with_spans(event: FileRead, truncation: object, text: str | None) -> FileRead:
    if event.mode not in ("full", "baseline_fallback"):
        return event
    count = event.last - event.first + 1
    if truncation is not None:
        shown = _let_through(truncation, count)
    elif event.size <= DEFAULT_CAPS.bytes and count <= DEFAULT_CAPS.lines:
        shown = count
    else:
        shown = count if text is not None and _is_exactly(text, count, event) else 0
    emitted = Spans.of((event.first, event.first + shown - 1))
    return FileRead(
        event.path, event.mode, event.version, event.total, event.first, event.last, event.size, event.base, emitted
    )


def _let_through(truncation: object, count: int) -> int:
    record = _parse_mapping(truncation, "truncation")
    if record.get("firstLineExceedsLimit") is True:
        return 0
    if record.get("truncated") is False:
        return count
    return min(_count(record, "outputLines", 0), count)


def _is_exactly(text: str, count: int, event: FileRead) -> bool:
    """Return whether an answer has just the lines of its scope, with the notice of more lines where the file goes on."""
    if event.last < event.total:
        head, found, tail = text.rpartition("\n\n[")
        rest = event.total - event.last
        if not found or tail != f"{rest} more lines in file. Use offset={event.last + 1} to continue.]":
            return False
        text = head
    return text.count("\n") + 1 == count


def _check_debug(debug: object) -> None:
    if debug is not None and _parse_mapping(debug, "debug").get("reason") not in _REASONS:
        raise _Strange("unknown debug reason")


def _copies_out(copies: Sequence[LineCopy]) -> list[list[object]]:
    return [[copy.base.hex, copy.first, copy.count, copy.at] for copy in copies]


def _copies_in(value: object) -> tuple[LineCopy, ...]:
    if not isinstance(value, list):
        raise _Strange("copies must be a list")
    out: list[LineCopy] = []
    for item in value:
        match item:
            case [str(base), int(first), int(count), int(at)] if min(first, count, at) >= 1:
                out.append(LineCopy(ContentHash.parse(base), first, count, at))
            case _:
                raise _Strange("a copy must be [hash, first, count, at]")
    return tuple(out)


def _spans(value: object) -> Spans | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise _Strange("spans must be a list")
    runs: list[tuple[int, int]] = []
    for item in value:
        match item:
            case [int(first), int(last)] if 1 <= first <= last:
                runs.append((first, last))
            case _:
                raise _Strange("a span must be [first, last]")
    return Spans.of(*runs)


def _scope(key: str) -> tuple[int, int] | None:
    if key == "full":
        return None
    found = _RANGE.fullmatch(key)
    if found is not None and 1 <= int(found[1]) <= int(found[2]):
        return int(found[1]), int(found[2])
    raise _Strange("scopeKey must be full or r:<start>:<end>")


def _parse_mapping(value: object, name: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise _Strange(f"{name} must be an object")
    return cast("Mapping[str, object]", value)


def _text(record: Mapping[str, object], name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value:
        raise _Strange(f"{name} must be a text")
    return value


def _count(record: Mapping[str, object], name: str, least: int) -> int:
    value = record.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # a JSON writer may say 3.0
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise _Strange(f"{name} must be a whole number, at least {least}")
    return value
