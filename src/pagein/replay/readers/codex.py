"""Read codex rollouts: response items as returned by the API, followed by token counts.

A model call is the run of assistant items up to its tool outputs, its token count or the next message to the model; the
next token count belongs to this call. A count without such a call belongs to a call with unrecorded items, for example
a compaction, and makes a call of its own. Older rollouts write the bare items without a wrapper; newer ones report
usage twice, as a count and as a record of the response.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from pagein.model.messages import (
    Block,
    HostEvent,
    Message,
    Other,
    Recorded,
    Role,
    Text,
    Thinking,
    ToolResult,
    UnreadableLine,
    Usage,
)
from pagein.replay.readers.blocks import ToolCallIndex, flat, image
from pagein.replay.readers.line_index import IndexedLine, rows_of
from pagein.replay.readers.row_fields import Row, count, json_text, lines_of, object_at, objects, seconds, text
from pagein.replay.readers.rows import rows_at, unknown_row
from pagein.replay.readers.session_heads import branch_flags, flags_of, header_row, models_of, version_flag
from pagein.replay.readers.source import Source
from pagein.replay.record.recorded_session import RecordedSession, SessionHead
from pagein.replay.record.usage_tally import UsageTally

_SPEAKERS: Final[dict[str, Role]] = {"user": "user", "developer": "system", "system": "system"}
_OUTPUTS: Final = frozenset(("function_call_output", "custom_tool_call_output", "local_shell_call_output"))
_OURS: Final = frozenset(("function_call", "custom_tool_call", "local_shell_call", "reasoning"))
_IGNORED: Final = frozenset(
    ("ghost_snapshot", "compaction", "compaction_summary", "context_compaction", "compaction_trigger")
)
_CONTEXT: Final = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<skill>",
)
_EXIT: Final = re.compile(r'^(?:Process exited with code|Exit code:) (\d{1,3})$|"exit_code": ?(\d{1,3})', re.MULTILINE)
_EXIT_WITHIN: Final = 400
_TURN_BEGINS: Final = frozenset(("task_started", "turn_started", "user_message"))
_TURN_ENDS: Final = frozenset(("task_complete", "turn_complete"))


def sessions(source: Source, marks: Sequence[IndexedLine]) -> Iterator[RecordedSession]:
    """Yield the session of a rollout without rolled-back turns. The rollbacks are counted."""
    metas = [mark for mark in marks if mark.begins]
    decoded = header_row(source, metas[0] if metas else None)
    row = object_at(decoded, "payload") or decoded
    said, branches, lost = _surviving_lines(marks)
    flags = flags_of(marks) | branch_flags(branches, lost)
    forked = text(row, "forked_from_id")
    if forked is not None:
        flags["forked"] = True
    flags |= version_flag(text(row, "cli_version"))
    parent = metas[0].parent if metas and metas[0].parent != forked else None
    head = SessionHead(
        id=text(row, "id", "session_id") or source.stem,
        source=source.group or "codex",
        agent="codex/subagent" if parent else "codex",
        file=source.label,
        models=models_of(marks),
        parent=parent,
        cwd=text(row, "cwd"),
        window=_window(source, marks),
        flags=flags,
        is_named=text(row, "id", "session_id") is not None,
    )
    tally = UsageTally()
    yield RecordedSession(head, _entries(source, said, row, _CodexPass(ToolCallIndex(head.cwd), tally)), tally)


def _window(source: Source, marks: Sequence[IndexedLine]) -> int | None:
    told = (mark.line for mark in marks if mark.call in ("task_started", "turn_started", "token_count"))
    for _, row in rows_at(source, (line for _, line in zip(range(3), told, strict=False))):
        payload = {} if isinstance(row, UnreadableLine) else object_at(row, "payload")
        window = count(payload, "model_context_window") or count(object_at(payload, "info"), "model_context_window")
        if window:
            return window
    return None


def _surviving_lines(marks: Sequence[IndexedLine]) -> tuple[list[IndexedLine], int, int]:
    """Return the lines without rolled-back turns, the number of rollbacks, and the number of model calls undone by
    them.
    """
    kept: list[IndexedLine] = []
    turns: list[int] = []
    settled = True  # whether the prompt of the last turn is known to be complete
    branches = lost = 0
    for mark in marks:
        if mark.call == "thread_rolled_back" and turns:
            back = min(len(turns), int(mark.session) if mark.session and mark.session.isdigit() else 1) or 1
            gone = kept[turns[-back] :]
            kept[turns[-back] :] = [damaged for damaged in gone if not damaged.format]
            del turns[-back:]
            lost += sum(1 for mark in gone if mark.call == "token_count")
            branches += 1
        elif mark.call == "user_message" or (mark.call == "message" and mark.role == "user"):
            if settled:
                turns.append(len(kept))
            elif mark.call == "message":  # codex's own messages before a prompt are no part of the turn
                turns[-1] = len(kept)
            settled = mark.call == "user_message"
            kept.append(mark)
        else:
            settled = settled or mark.role == "assistant" or mark.call in _OURS
            kept.append(mark)
    return kept, branches, lost


@dataclass(slots=True)
class _Call:
    """A model call, open until the next call begins: the token count follows the tool outputs."""

    at: float | None
    model: str | None
    blocks: list[Block] = field(default_factory=list)
    usage: Usage | None = None
    behind: list[Recorded] = field(default_factory=list)
    ended: bool = False

    @property
    def complete(self) -> bool:
        return self.ended or self.usage is not None

    def entries(self) -> Iterator[Recorded]:
        yield Message("assistant", tuple(self.blocks), self.at, self.model, self.usage)
        yield from self.behind


@dataclass(slots=True)
class _CodexPass:
    """The state of the pass over the lines.

    counted: totals of the last token count.
    unpaired: the last usage of each way to report it, until the other way reports the same.
    compacted: a compaction whose call may still be reported.
    """

    calls: ToolCallIndex
    tally: UsageTally
    model: str | None = None
    call: _Call | None = None
    counted: tuple[tuple[str, object], ...] = ()
    unpaired: dict[str, Usage] = field(default_factory=dict)
    compacted: list[Recorded] = field(default_factory=list)

    def end_call(self) -> None:
        """Close the open call to new blocks; only its token count may follow."""
        if self.call is not None:
            self.call.ended = True

    def settle(self) -> Iterator[Recorded]:
        """Yield the pending compaction before all later entries."""
        held, self.compacted = self.compacted, []
        yield from held

    def spend(self, way: str, line: int, usage: Usage, at: float | None) -> Iterator[Recorded]:
        """Assign a usage reported in either way: to the open call, else to a call of its own without items."""
        other = next((one for one in self.unpaired if one != way), None)
        if not usage.prompt or (other is not None and self.unpaired[other] == usage):
            self.unpaired.clear()
            return
        self.unpaired[way] = usage
        self.tally.add(line, usage)
        if self.call is not None and self.call.usage is None:
            self.call.usage = usage
            return
        yield from self.close()
        if self.compacted:
            yield Message("assistant", (), at, self.model, usage)
        else:
            self.call = _Call(at, self.model, usage=usage)

    def close(self) -> Iterator[Recorded]:
        call, self.call = self.call, None
        if call is not None:
            yield from call.entries()

    def behind(self, entry: Recorded) -> Iterator[Recorded]:
        """Yield an entry, or hold it until the open call has its token count."""
        if self.call is None:
            yield entry
        else:
            self.call.behind.append(entry)


def _entries(source: Source, marks: Sequence[IndexedLine], meta: Row, reading: _CodexPass) -> Iterator[Recorded]:
    instructions = text(object_at(meta, "base_instructions"), "text") or text(meta, "instructions")
    if instructions:
        yield Message("system", (Text(instructions),), seconds(meta.get("timestamp")))
    for line, row in rows_of(source, marks):
        if isinstance(row, UnreadableLine):
            yield from reading.behind(row)
        else:
            yield from _line(line, row, reading)
    yield from reading.close()
    yield from reading.settle()


def _line(line: int, row: Row, reading: _CodexPass) -> Iterator[Recorded]:
    kind = text(row, "type")
    at = seconds(row.get("timestamp"))
    if kind == "token_usage_record":
        yield from reading.spend("record", line, _usage(object_at(object_at(row, "payload"), "usage")), at)
    elif kind == "turn_context":
        reading.end_call()
        reading.model = text(object_at(row, "payload"), "model") or reading.model
    elif kind == "event_msg":
        yield from _event(line, object_at(row, "payload"), at, reading)
    elif kind == "compacted":
        yield from reading.close()
        yield from reading.settle()
        reading.compacted = list(_compaction(object_at(row, "payload"), at))
    elif kind == "response_item":
        yield from _item(line, object_at(row, "payload"), at, reading)
    elif kind is not None and kind != "session_meta":
        yield from _item(line, row, at, reading)


def _event(line: int, payload: Row, at: float | None, reading: _CodexPass) -> Iterator[Recorded]:
    kind = text(payload, "type") or ""
    if kind == "token_count":
        yield from _count(line, object_at(payload, "info"), at, reading)
        return
    yield from reading.settle()
    if kind in _TURN_BEGINS or kind in _TURN_ENDS:
        reading.end_call()
    if kind in _TURN_ENDS:
        yield from reading.behind(HostEvent("turn_end", at, json_text({"duration_ms": count(payload, "duration_ms")})))
    elif kind == "turn_aborted":
        yield from reading.behind(HostEvent("turn_aborted", at))
    elif kind in ("error", "stream_error"):
        yield from reading.behind(HostEvent("api_error", at))


def _count(line: int, info: Row, at: float | None, reading: _CodexPass) -> Iterator[Recorded]:
    """Yield the entries of a token count. Repeated counts, reporting only limits, are ignored."""
    total, last = object_at(info, "total_token_usage"), object_at(info, "last_token_usage")
    now = tuple(sorted(total.items()))
    if last and (not total or now != reading.counted):
        reading.counted = now
        yield from reading.spend("count", line, _usage(last), at)


def _usage(row: Row) -> Usage:
    read = count(row, "cached_input_tokens")
    written = count(row, "cache_write_input_tokens", "cache_creation_input_tokens")
    return Usage(
        fresh=max(0, count(row, "input_tokens") - read - written),
        read=read,
        written=written,
        output=count(row, "output_tokens"),
    )


def _item(line: int, item: Row, at: float | None, reading: _CodexPass) -> Iterator[Recorded]:
    kind = text(item, "type") or ""
    role = text(item, "role") or ""
    if kind in _IGNORED:
        return
    yield from reading.settle()
    if kind in _OUTPUTS or kind.endswith("_output"):
        yield from _output(item, at, reading)
    elif kind == "message" and role in _SPEAKERS:
        reading.end_call()
        message = Message(_SPEAKERS[role], tuple(_message_blocks(item, role)), at)
        yield from reading.behind(message)
    elif kind in _OURS or kind.endswith("_call") or (kind == "message" and role == "assistant"):
        if reading.call is None or reading.call.complete:
            yield from reading.close()
            reading.call = _Call(at, reading.model)
        reading.call.blocks.extend(_blocks(kind, item, reading.calls))
    else:
        yield from reading.behind(unknown_row(line, f"an item of unknown kind {kind!r}", item))


def _output(item: Row, at: float | None, reading: _CodexPass) -> Iterator[Recorded]:
    call_id = text(item, "call_id", "id") or ""
    output = item.get("output", item.get("tools"))
    if isinstance(output, dict):
        output = output.get("content")
    words, images = flat(output)
    if not words and not images and output and not isinstance(output, str):
        words = json_text(output)
    failed = object_at(item, "output").get("success") is False or text(item, "status") in ("failed", "incomplete")
    exit_code = _EXIT.search(words, 0, _EXIT_WITHIN)
    failed = failed or (exit_code is not None and int(exit_code[1] or exit_code[2]) != 0)
    own, name = reading.calls.answers(call_id)
    reading.end_call()
    result = ToolResult(own, words, name, failed, images)
    yield from reading.behind(Message("tool", (result,), at))


def _message_blocks(item: Row, role: str) -> Iterator[Block]:
    """Yield the blocks of a message to the model; codex's own insertions are recognised by their first words."""
    content = item.get("content")
    rows = objects(content) if not isinstance(content, str) else iter(({"type": "input_text", "text": content},))
    for row in rows:
        words = text(row, "text")
        if words is None:
            yield image(row) if "image" in (text(row, "type") or "") else Other(text(row, "type") or "", json_text(row))
        elif role == "user":
            yield Text(words, "environment" if words.startswith(_CONTEXT) else None)
        else:
            yield Text(words, "developer")


def _blocks(kind: str, item: Row, calls: ToolCallIndex) -> Iterator[Block]:
    call_id, name = text(item, "call_id", "id") or "", text(item, "name") or kind
    if kind == "message":
        for row in objects(item.get("content")):
            yield Text(text(row, "text", "refusal") or "")
    elif kind == "reasoning":
        rows = (*objects(item.get("summary")), *objects(item.get("content")))
        words = "\n".join(text(row, "text") or "" for row in rows)
        yield Thinking(words, redacted=not words)
    elif kind == "custom_tool_call":
        yield calls.add_call(call_id, name, json_text({"input": item.get("input", "")}))
    elif kind == "local_shell_call":
        yield calls.add_call(call_id, "local_shell", _shell_arguments(object_at(item, "action")))
    elif "arguments" in item:
        arguments = item["arguments"]
        yield calls.add_call(call_id, name, arguments if isinstance(arguments, str) else json_text(arguments))
    else:
        yield Other(kind, json_text(item))


def _shell_arguments(action: Row) -> str:
    command = action.get("command")
    words = [word for word in command if isinstance(word, str)] if isinstance(command, list) else lines_of(command)
    script = words[-1] if isinstance(words, list) and words[:2] in (["bash", "-lc"], ["sh", "-c"]) else words
    return json_text({"command": " ".join(script) if isinstance(script, list) else script})


def _compaction(payload: Row, at: float | None) -> Iterator[Recorded]:
    """Yield the event, then the replacement in the window, counted as summary as a whole."""
    replaced = list(objects(payload.get("replacement_history")))
    summary = text(payload, "message") or ""
    size = len(json_text(replaced)) if replaced else len(summary)
    yield HostEvent("compaction", at, json_text({"kept": 0, "replacement_chars": size}))
    if not replaced and summary:
        yield Message("user", (Text(summary, "compact_summary"),), at)
    for item in replaced:
        role: Role = "system" if text(item, "role") in ("developer", "system") else "user"
        words = flat(item.get("content"))[0]
        block: Block = Text(words, "compact_summary") if words else Other(text(item, "type") or "item", json_text(item))
        yield Message(role, (block,), at)
