"""Read sessions in the normalised schema `pagein-session/1`: a header line, then messages and events in order."""

from collections.abc import Iterator, Sequence
from typing import Final

from pagein.model.messages import (
    Block,
    FileAccess,
    HostEvent,
    Image,
    Message,
    Other,
    Recorded,
    Role,
    ShownLines,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UnreadableLine,
    Usage,
)
from pagein.replay.readers.line_index import IndexedLine, rows_of
from pagein.replay.readers.prunings import Prunings
from pagein.replay.readers.row_fields import Row, count, json_text, number, object_at, objects, seconds, text
from pagein.replay.readers.rows import unknown_row
from pagein.replay.readers.session_heads import flags_of, header_row, version_flag
from pagein.replay.readers.source import Source
from pagein.replay.record.recorded_session import RecordedSession, SessionHead
from pagein.replay.record.usage_tally import UsageTally

_ROLES: Final[dict[str, Role]] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_OPS: Final = ("read", "edit", "write", "delete")


def sessions(source: Source, marks: Sequence[IndexedLine]) -> Iterator[RecordedSession]:
    """Yield the single session of a header and its lines; without a header, a session named after the file."""
    header = next((mark for mark in marks if mark.begins), None)
    row = header_row(source, header)
    rest = [mark for mark in marks if mark is not header]
    tally = UsageTally()
    yield RecordedSession(_head(source, row, marks), _entries(source, rest, tally), tally)


def _head(source: Source, row: Row, marks: Sequence[IndexedLine]) -> SessionHead:
    models = row.get("models")
    return SessionHead(
        id=text(row, "id") or source.stem,
        source=text(row, "source") or source.group or text(row, "agent") or "corpus",
        agent=text(row, "agent") or "unknown",
        file=source.label,
        models=tuple(name for name in models if isinstance(name, str)) if isinstance(models, list) else (),
        parent=text(row, "parent") or text(object_at(row, "parent"), "session"),
        cwd=text(row, "cwd"),
        window=count(object_at(row, "flags"), "context_window") or None,
        flags={**object_at(row, "flags"), **flags_of(marks), **version_flag(text(row, "agent_version"))},
        is_named=text(row, "id") is not None,
    )


def _entries(source: Source, marks: Sequence[IndexedLine], tally: UsageTally) -> Iterator[Recorded]:
    prunings = Prunings()
    for line, row in rows_of(source, marks):
        if isinstance(row, UnreadableLine):
            yield row
            continue
        yield from prunings.due(seconds(row.get("ts")))
        tally.add(line, _usage(object_at(row, "usage")))
        yield _entry(line, row, prunings)
    yield from prunings.due(None)


def _entry(line: int, row: Row, prunings: Prunings) -> Recorded:
    at = seconds(row.get("ts"))
    if row.get("kind") == "event":
        return HostEvent(text(row, "event") or "unknown", at, json_text(object_at(row, "data")))
    role = _ROLES.get(text(row, "role") or "")
    if row.get("kind") != "msg" or role is None:
        kind = text(row, "kind") or text(row, "role")
        return unknown_row(line, f"an entry of unknown kind {kind!r}", row)
    for block in objects(row.get("content")):
        pruned_at = seconds(object_at(block, "meta").get("pruned_at"))
        if pruned_at is not None:
            prunings.note(pruned_at, text(block, "id") or "")
    return Message(
        role=role,
        blocks=tuple(_block(block) for block in objects(row.get("content"))),
        at=at,
        model=text(row, "model"),
        usage=_usage(object_at(row, "usage")),
        stop=text(row, "stop"),
        id=text(row, "mid"),
    )


def _block(row: Row) -> Block:
    kind = text(row, "type") or "unknown"
    words = text(row, "text") or ""
    if kind in ("text", "injected"):
        return Text(words, (text(row, "sub") or "injected") if kind == "injected" else None)
    if kind == "thinking":
        return Thinking(words, redacted=row.get("opaque") is True)
    if kind == "tool_call":
        arguments = row.get("args")
        spelled = arguments if isinstance(arguments, str) else json_text({} if arguments is None else arguments)
        return ToolCall(text(row, "id") or "", text(row, "name") or "", spelled, _accesses(row))
    if kind == "tool_result":
        return _result(row, words)
    return _unspoken(kind, row)


def _unspoken(kind: str, row: Row) -> Block:
    if kind == "image":
        return Image(text(row, "media_type") or "", count(row, "b64_chars"))
    return Other(kind, json_text(row))


def _accesses(row: Row) -> tuple[FileAccess, ...]:
    found = []
    for op in objects(row.get("ops")):
        name, path = text(op, "op"), text(op, "path")
        if path is not None and name in _OPS:
            via = "shell" if op.get("via") == "shell" else "native"
            found.append(FileAccess(name, path, number(op, "start"), number(op, "end"), via))  # type: ignore[arg-type]
    return tuple(found)


def _result(row: Row, words: str) -> ToolResult:
    meta = object_at(row, "meta")
    start, lines = number(meta, "start"), number(meta, "lines")
    return ToolResult(
        call_id=text(row, "id") or "",
        text=words,
        name=text(row, "name") or "",
        is_error=row.get("is_error") is True,
        shown=None if start is None or lines is None else ShownLines(start, lines, number(meta, "total_lines")),
        before=text(meta, "before"),
    )


def _usage(row: Row) -> Usage | None:
    if not row:
        return None
    long, short = count(row, "cache_write_1h"), count(row, "cache_write_5m")
    return Usage(
        fresh=count(row, "input"),
        read=count(row, "cache_read"),
        written=max(count(row, "cache_write"), long + short),
        written_1h=long,
        output=count(row, "output"),
    )
