"""Read Claude Code transcripts: one JSON line per content block, prompt, attachment or event; sub-agents inside or
beside them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from pagein.model.messages import (
    Block,
    HostEvent,
    Message,
    Recorded,
    ShownLines,
    Text,
    ToolResult,
    UnreadableLine,
)
from pagein.replay.readers.attachments import attachment_text
from pagein.replay.readers.blocks import ToolCallIndex, anthropic_usage, content_blocks, result_of_block
from pagein.replay.readers.claude_tree import Lane, Thread, lanes, thread, to_decode
from pagein.replay.readers.line_index import IndexedLine, rows_of
from pagein.replay.readers.row_fields import Row, count, json_text, number, object_at, objects, seconds, text
from pagein.replay.readers.session_heads import branch_flags, flags_of, header_row, models_of, version_flag
from pagein.replay.readers.source import Source
from pagein.replay.record.recorded_session import RecordedSession, SessionHead
from pagein.replay.record.usage_tally import UsageTally

_SCALARS: Final = (str, int, float, bool)


def sessions(source: Source, marks: Sequence[IndexedLine]) -> Iterator[RecordedSession]:
    """Yield the main conversation of a transcript, then each sub-agent in the same file as a session of its own."""
    for lane in lanes(marks):
        said = thread(lane)
        head = _head(source, lane, said)
        tally = UsageTally()
        yield RecordedSession(
            head, _entries(source, said, _ClaudePass(said.last, ToolCallIndex(head.cwd), tally)), tally
        )


def _head(source: Source, lane: Lane, said: Thread) -> SessionHead:
    told = header_row(source, next((mark for mark in said.marks if mark.id is not None), None))
    parent = lane.session or _parent_folder(source)
    flags = flags_of(lane.marks) | branch_flags(said.branches, said.abandoned_calls)
    if said.repeated_lines:
        flags["repeated_lines"] = said.repeated_lines
    flags |= version_flag(text(told, "version"))
    is_side = lane.agent is not None
    return SessionHead(
        id=f"{parent or source.stem}-sub-{lane.agent}" if is_side else lane.session or source.stem,
        source=source.group or "claude-code",
        agent="claude-code/subagent" if is_side else "claude-code",
        file=source.label,
        models=models_of(said.marks),
        parent=parent if is_side else None,
        cwd=text(told, "cwd"),
        flags=flags,
        is_named=(parent if is_side else lane.session) is not None,
    )


def _parent_folder(source: Source) -> str | None:
    """Return the parent session of a sub-agent's file in `<session>/subagents/`."""
    folders = PurePosixPath(source.label.replace("\\", "/")).parts
    place = folders.index("subagents") if "subagents" in folders else 0
    return folders[place - 1] if place else None


@dataclass(slots=True)
class _Open:
    """A model call with lines still to read, and the entries between its lines."""

    uuids: list[str]
    message: Message
    held: list[tuple[str, Recorded]] = field(default_factory=list)


@dataclass(slots=True)
class _ClaudePass:
    """The state of the second pass. placed: number of messages before the one with this uuid."""

    last: dict[str, int]
    calls: ToolCallIndex
    tally: UsageTally
    open: _Open | None = None
    emitted: int = 0
    placed: dict[str, int] = field(default_factory=dict)

    def out(self, uuid: str, entry: Recorded) -> Recorded:
        self.placed.setdefault(uuid, self.emitted)
        if isinstance(entry, Message):
            self.emitted += 1
        return entry

    def count_from(self, uuid: str | None) -> int:
        """Return the number of messages so far, counted from the message with this uuid."""
        place = self.placed.get(uuid or "")
        return 0 if place is None else self.emitted - place

    def close(self) -> Iterator[Recorded]:
        call, self.open = self.open, None
        if call is None:
            return
        for uuid in call.uuids:
            self.placed.setdefault(uuid, self.emitted)
        yield self.out("", call.message)
        for uuid, entry in call.held:
            yield self.out(uuid, entry)


def _entries(source: Source, said: Thread, reading: _ClaudePass) -> Iterator[Recorded]:
    for line, row in rows_of(source, to_decode(said.marks)):
        if isinstance(row, UnreadableLine):
            yield row
            continue
        uuid = text(row, "uuid") or ""
        if row.get("type") == "assistant":
            yield from _assistant_line(line, row, reading)
            continue
        if row.get("subtype") == "compact_boundary":
            yield from reading.close()
            yield _compaction(row, reading)
            continue
        for entry in _entry(row, reading.calls):
            if reading.open is None:
                yield reading.out(uuid, entry)
            else:
                reading.open.held.append((uuid, entry))
    yield from reading.close()


def _assistant_line(line: int, row: Row, reading: _ClaudePass) -> Iterator[Recorded]:
    part = _assistant(row, reading.calls)
    uuid = text(row, "uuid") or ""
    call = text(object_at(row, "message"), "id") or text(row, "requestId")
    if part.model != "<synthetic>":
        reading.tally.add(call or line, part.usage)
    if reading.open is not None and reading.open.message.id != call:
        yield from reading.close()
    if reading.open is None:
        reading.open = _Open([uuid], part)
    else:
        reading.open.uuids.append(uuid)
        reading.open.message = _merge_lines(reading.open.message, part)
    if call is None or reading.last.get(call, line) <= line:
        yield from reading.close()


def _merge_lines(first: Message, more: Message) -> Message:
    """Merge the lines of a model call into a message: blocks in order, last usage, stop reason."""
    return Message(
        role="assistant",
        blocks=first.blocks + more.blocks,
        at=first.at,
        model=first.model or more.model,
        usage=more.usage or first.usage,
        stop=more.stop or first.stop,
        id=first.id,
    )


def _assistant(row: Row, calls: ToolCallIndex) -> Message:
    message = object_at(row, "message")
    failed = row.get("isApiErrorMessage") is True
    return Message(
        role="assistant",
        blocks=content_blocks(message.get("content"), calls),
        at=seconds(row.get("timestamp")),
        model=text(message, "model"),
        usage=anthropic_usage(object_at(message, "usage")),
        stop="error" if failed else text(message, "stop_reason"),
        id=text(message, "id") or text(row, "requestId"),
    )


def _entry(row: Row, calls: ToolCallIndex) -> Iterator[Recorded]:
    kind = row.get("type")
    at = seconds(row.get("timestamp"))
    if kind == "user":
        yield from _user(row, at, calls)
    elif kind == "system":
        yield from _event(row, at)
    elif kind == "attachment":
        found = attachment_text(object_at(row, "attachment"))
        if found is not None:
            yield Message("user", (found,), at)


def _user(row: Row, at: float | None, calls: ToolCallIndex) -> Iterator[Recorded]:
    """Yield the messages of a user line; its tool results become a message of their own, as in every other format."""
    injected = (
        "compact_summary" if row.get("isCompactSummary") is True else "meta" if row.get("isMeta") is True else None
    )
    if injected is None and row.get("isVisibleInTranscriptOnly") is True:
        return
    content = object_at(row, "message").get("content")
    results = tuple(_results(row, content, calls))
    if results:
        yield Message("tool", results, at)
    spoken = tuple(block for block in content_blocks(content, calls, injected) if not isinstance(block, ToolResult))
    if spoken and spoken != (Text(""),):
        yield Message("user", spoken, at)


def _results(row: Row, content: object, calls: ToolCallIndex) -> Iterator[Block]:
    blocks = [block for block in objects(content) if block.get("type") == "tool_result"]
    shown = _lines_shown(row) if len(blocks) == 1 else None
    for block in blocks:
        yield result_of_block(block, calls, shown)


def _lines_shown(row: Row) -> ShownLines | None:
    file = object_at(object_at(row, "toolUseResult"), "file")
    start, lines = number(file, "startLine"), number(file, "numLines")
    return None if start is None or lines is None else ShownLines(start, lines, number(file, "totalLines"))


def _event(row: Row, at: float | None) -> Iterator[Recorded]:
    subtype = text(row, "subtype")
    if subtype == "microcompact_boundary":
        yield HostEvent("microcompaction", at, json_text(object_at(row, "microcompactMetadata")))
    elif subtype == "turn_duration":
        yield HostEvent("turn_end", at, json_text({"duration_ms": count(row, "durationMs")}))
    elif subtype == "api_error":
        yield HostEvent("api_error", at)


def _compaction(row: Row, reading: _ClaudePass) -> HostEvent:
    meta = object_at(row, "compactMetadata")
    told: dict[str, object] = {key: value for key, value in meta.items() if isinstance(value, _SCALARS)}
    told["kept"] = reading.count_from(text(object_at(meta, "preservedSegment"), "headUuid"))
    return HostEvent("compaction", seconds(row.get("timestamp")), json_text(told))
