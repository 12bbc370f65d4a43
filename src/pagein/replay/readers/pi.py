"""Read pi session files, versions 1 to 3: an append-only tree of entries, replayed along the path to its last entry.

Version 1 is a sequence without ids; from version 2 on entries name their parents. As in pi, the last entry of the file
is the leaf.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pagein.model.messages import (
    Block,
    HostEvent,
    Message,
    Other,
    Recorded,
    Text,
    Thinking,
    ToolResult,
    UnreadableLine,
    Usage,
)
from pagein.replay.readers.blocks import ToolCallIndex, flat, image, text_block
from pagein.replay.readers.line_index import IndexedLine, rows_of
from pagein.replay.readers.row_fields import Row, count, json_text, number, object_at, objects, seconds, text
from pagein.replay.readers.rows import unknown_row
from pagein.replay.readers.session_heads import branch_flags, flags_of, header_row, models_of
from pagein.replay.readers.source import Source
from pagein.replay.record.recorded_session import RecordedSession, SessionHead
from pagein.replay.record.usage_tally import UsageTally

_COMPACTED: Final = (
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n",
    "\n</summary>",
)
_CAME_BACK: Final = (
    "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n",
    "</summary>",
)


@dataclass(frozen=True, slots=True)
class _PiPath:
    """The lines on the path to the leaf, and counts of the abandoned ones."""

    marks: list[IndexedLine]
    branches: int
    abandoned_calls: int


def sessions(source: Source, marks: Sequence[IndexedLine]) -> Iterator[RecordedSession]:
    """Yield the single session of a pi file."""
    header = next((mark for mark in marks if mark.begins), None)
    row = header_row(source, header)
    path = _path([mark for mark in marks if mark is not header])
    flags = flags_of(marks) | branch_flags(path.branches, path.abandoned_calls)
    if text(row, "parentSession", "branchedFrom"):
        flags["forked"] = True
    readable = [mark.line for mark in marks if mark.format]
    head = SessionHead(
        id=text(row, "id") or source.stem,
        source=source.group or "pi",
        agent="pi",
        file=source.label,
        models=models_of(marks),
        cwd=text(row, "cwd"),
        flags=flags,
        is_named=text(row, "id") is not None,
    )
    tally = UsageTally()
    yield RecordedSession(
        head, _entries(source, path.marks, _PiTranscript(readable, ToolCallIndex(head.cwd), tally)), tally
    )


def _path(marks: Sequence[IndexedLine]) -> _PiPath:
    known = {mark.id: place for place, mark in enumerate(marks) if mark.id}
    parents = _parents(marks, known)
    leaf = next((place for place in reversed(range(len(marks))) if marks[place].format), None)
    kept: set[int] = set()
    while leaf is not None:
        kept.add(leaf)
        leaf = parents[leaf]
    left = [place for place, mark in enumerate(marks) if mark.format and place not in kept]
    roots = sum(1 for place in left if parents[place] is None or parents[place] in kept)
    calls = sum(1 for place in left if marks[place].role == "assistant")
    said = [mark for place, mark in enumerate(marks) if place in kept or not mark.format]
    return _PiPath(said, roots, calls)


def _parents(marks: Sequence[IndexedLine], known: Mapping[str, int]) -> list[int | None]:
    """Return the entry before each entry.

    Version 1 has no ids; and a parent with a damaged line is taken to follow the entry before its first child.
    """
    parents: list[int | None] = []
    lost: dict[str, int | None] = {}
    before: int | None = None
    for place, mark in enumerate(marks):
        above = known.get(mark.parent) if mark.parent is not None else None
        if mark.id is not None and mark.parent is None:
            parents.append(None)
        elif above is not None and above < place:
            parents.append(above)
        else:
            parents.append(before if mark.parent is None else lost.setdefault(mark.parent, before))
        if mark.format:
            before = place
    return parents


@dataclass(slots=True)
class _PiTranscript:
    """The positions of earlier entries, needed by the entries after a compaction."""

    readable: Sequence[int]
    calls: ToolCallIndex
    tally: UsageTally
    emitted: int = 0
    first_by_id: dict[str, int] = field(default_factory=dict)
    first_by_line: dict[int, int] = field(default_factory=dict)

    def note(self, line: int, row: Row) -> None:
        """Record the next emitted message as the first of this entry."""
        self.first_by_line[line] = self.emitted
        entry = text(row, "id")
        if entry is not None:
            self.first_by_id[entry] = self.emitted

    def count_kept(self, row: Row) -> int:
        """Return the number of last messages kept in the window by the compaction in this row."""
        first = self.first_by_id.get(text(row, "firstKeptEntryId") or "")
        index = number(row, "firstKeptEntryIndex")
        if first is None and index is not None and 0 <= index < len(self.readable):
            first = self.first_by_line.get(self.readable[index])
        return 0 if first is None else self.emitted - first


def _entries(source: Source, marks: Sequence[IndexedLine], transcript: _PiTranscript) -> Iterator[Recorded]:
    for line, row in rows_of(source, marks):
        if isinstance(row, UnreadableLine):
            yield row
            continue
        transcript.note(line, row)
        for entry in _entry(line, row, transcript):
            transcript.emitted += isinstance(entry, Message)
            yield entry
        transcript.tally.add(line, _usage_in(row))


def _usage_in(row: Row) -> Usage | None:
    """Return the usage in a line, if the line is a message of the model."""
    message = object_at(row, "message")
    return _usage(object_at(message, "usage")) if text(message, "role") == "assistant" else None


def _entry(line: int, row: Row, transcript: _PiTranscript) -> Iterator[Recorded]:
    kind = text(row, "type")
    at = seconds(row.get("timestamp"))
    if kind == "message":
        yield from _message(line, object_at(row, "message"), at, transcript.calls)
    elif kind == "compaction":
        summary = text(row, "summary") or ""
        told = {
            "kept": transcript.count_kept(row),
            "tokens_before": count(row, "tokensBefore"),
            "summary_chars": len(summary),
        }
        yield HostEvent("compaction", at, json_text(told))
        yield Message("user", (Text(summary.join(_COMPACTED), "compact_summary"),), at)
    elif kind == "branch_summary":
        yield Message("user", (Text((text(row, "summary") or "").join(_CAME_BACK), "branch_summary"),), at)
    elif kind == "custom_message":
        name = text(row, "customType") or "custom"
        yield Message("user", _blocks(row.get("content"), transcript.calls, name), at)
    elif kind == "model_change":
        yield HostEvent("model_change", at, json_text({"model": text(row, "modelId") or ""}))


def _message(line: int, row: Row, entered: float | None, calls: ToolCallIndex) -> Iterator[Recorded]:
    role = text(row, "role")
    at = entered or seconds(row.get("timestamp"))
    if role == "assistant":
        yield _assistant(row, at, calls)
    elif role == "toolResult":
        words, images = flat(row.get("content"))
        failed = row.get("isError") is True
        name = text(row, "toolName") or ""
        yield Message("tool", (ToolResult(text(row, "toolCallId") or "", words, name, failed, images),), at)
    elif role == "user":
        yield Message("user", _blocks(row.get("content"), calls, None), at)
    elif role == "system":
        yield Message("system", _blocks(row.get("content"), calls, None), at)
    elif role == "bashExecution":
        if row.get("excludeFromContext") is not True:
            ran = f"$ {text(row, 'command') or ''}\n{text(row, 'output') or ''}"
            yield Message("user", (Text(ran, "bash_execution"),), at)
    elif role in ("custom", "hookMessage"):
        yield Message("user", _blocks(row.get("content"), calls, text(row, "customType") or "custom"), at)
    elif role in ("branchSummary", "compactionSummary"):
        yield Message("user", (Text(text(row, "summary") or "", "branch_summary"),), at)
    else:
        yield unknown_row(line, f"a message of unknown role {role!r}", row)


def _assistant(row: Row, at: float | None, calls: ToolCallIndex) -> Message:
    usage = object_at(row, "usage")
    return Message(
        role="assistant",
        blocks=_blocks(row.get("content"), calls, None),
        at=at,
        model=text(row, "model"),
        usage=_usage(usage) if usage else None,
        stop=text(row, "stopReason"),
        id=text(row, "responseId"),
    )


def _usage(row: Row) -> Usage:
    return Usage(
        fresh=count(row, "input"),
        read=count(row, "cacheRead"),
        written=count(row, "cacheWrite"),
        output=count(row, "output"),
    )


def _blocks(content: object, calls: ToolCallIndex, injected: str | None) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (text_block(content, injected),)
    return tuple(_block(row, calls, injected) for row in objects(content))


def _block(row: Row, calls: ToolCallIndex, injected: str | None) -> Block:
    kind = text(row, "type") or "unknown"
    if kind == "text":
        return text_block(text(row, "text") or "", injected)
    if kind == "thinking":
        return Thinking(text(row, "thinking") or "", text(row, "thinkingSignature"), row.get("redacted") is True)
    if kind == "toolCall":
        return calls.add_call(text(row, "id") or "", text(row, "name") or "", json_text(row.get("arguments", {})))
    if kind == "image":
        return image(row)
    return Other(kind, json_text(row))
