"""Read Copilot CLI sessions: an event per line. Each message of the model is a model call.

The events report the output of each call, and rarely the size of its prompt; the sum over all calls is in the event at
the end of the session.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pagein.model.messages import Block, HostEvent, Message, Recorded, Text, Thinking, ToolResult, UnreadableLine, Usage
from pagein.replay.readers.api_responses import usage
from pagein.replay.readers.blocks import ToolCallIndex, flat
from pagein.replay.readers.line_index import IndexedLine, rows_of
from pagein.replay.readers.row_fields import Row, count, json_text, number, object_at, objects, seconds, text
from pagein.replay.readers.session_heads import branch_flags, flags_of, header_row, models_of, version_flag
from pagein.replay.readers.source import Source
from pagein.replay.record.recorded_session import RecordedSession, SessionHead
from pagein.replay.record.usage_tally import UsageTally, UsageTotals

_EVENTS: Final = {"session.error": "api_error", "abort": "turn_aborted", "session.task_complete": "turn_end"}


def sessions(source: Source, marks: Sequence[IndexedLine]) -> Iterator[RecordedSession]:
    """Yield the main conversation, then each sub-agent as a session of its own."""
    kept, lost = _surviving_lines(marks)
    facts = object_at(header_row(source, next((mark for mark in kept if mark.begins), None)), "data")
    lanes: dict[str | None, list[IndexedLine]] = {None: []}
    for mark in kept:
        lanes.setdefault(mark.lane if mark.format else None, []).append(mark)
    name = text(facts, "sessionId") or source.stem
    flags = branch_flags(len(lost), sum(lost)) | version_flag(text(facts, "copilotVersion"))
    for lane, said in lanes.items():
        if not any(mark.kind == "assistant.message" for mark in said):
            continue
        head = SessionHead(
            id=name if lane is None else f"{name}-sub-{lane}",
            source=source.group or "copilot-cli",
            agent="copilot-cli" if lane is None else "copilot-cli/subagent",
            file=source.label,
            models=models_of(said) or models_of(kept),
            parent=None if lane is None else name,
            cwd=text(object_at(facts, "context"), "cwd"),
            flags={**flags_of(said), **(flags if lane is None else {})},
            is_named=text(facts, "sessionId") is not None,
        )
        reading = _CopilotPass(head)
        # the sum counts the calls of sub-agents as well
        tally = UsageTally() if len(lanes) == 1 else None
        yield RecordedSession(head, _entries(source, said, reading, tally), tally)


def _surviving_lines(marks: Sequence[IndexedLine]) -> tuple[list[IndexedLine], list[int]]:
    """Return the lines left after all rewinds, and the number of calls undone by each rewind."""
    kept: list[IndexedLine] = []
    lost: list[int] = []
    for mark in marks:
        kept.append(mark)
        if mark.kind != "session.snapshot_rewind" or mark.parent is None:
            continue
        back = next((at for at, one in enumerate(kept) if one.id == mark.parent), None)
        if back is not None:
            lost.append(sum(one.kind == "assistant.message" for one in kept[back:]))
            kept[back:] = [one for one in kept[back:] if not one.format]
    return kept, lost


class _CopilotPass:
    """The state of the second pass. told: the session's final account of all calls, by model."""

    def __init__(self, head: SessionHead) -> None:
        self.calls = ToolCallIndex(head.cwd)
        self.model = next(iter(head.models), None)
        self.told: Row = {}


def _entries(
    source: Source, marks: Sequence[IndexedLine], reading: _CopilotPass, tally: UsageTally | None
) -> Iterator[Recorded]:
    for _, row in rows_of(source, marks):
        if isinstance(row, UnreadableLine):
            yield row
        else:
            yield from _entry(text(row, "type") or "", object_at(row, "data"), seconds(row.get("timestamp")), reading)
    accounts = [object_at(reading.told, model) for model in reading.told]
    if tally is not None:
        requests = sum(count(object_at(one, "requests"), "count") for one in accounts)
        prompt = sum(count(object_at(one, "usage"), "inputTokens") for one in accounts)
        tally.sum_up(UsageTotals(requests, prompt, by_call=False))


def _entry(kind: str, data: Row, at: float | None, reading: _CopilotPass) -> Iterator[Recorded]:
    if kind == "assistant.message":
        yield _assistant(data, at, reading)
    elif kind == "user.message":
        words = text(data, "transformedContent", "content") or ""
        source = text(data, "source")
        yield Message("user", (Text(words, None if source in (None, "user") else source),), at)
    elif kind == "system.message":
        yield Message("system", (Text(text(data, "content") or ""),), at)
    elif kind == "tool.execution_complete":
        yield Message("tool", (_result(data, reading.calls),), at)
    elif kind == "session.model_change":
        reading.model = text(data, "newModel") or reading.model
        yield HostEvent("model_change", at, json_text({"model": reading.model or ""}))
    elif kind == "session.compaction_complete":
        yield from _compaction(data, at, reading)
    elif kind == "session.shutdown":
        reading.told = object_at(data, "modelMetrics") or reading.told
    elif kind in _EVENTS:
        yield HostEvent(_EVENTS[kind], at)


def _assistant(data: Row, at: float | None, reading: _CopilotPass) -> Message:
    blocks: list[Block] = []
    thought, opaque = text(data, "reasoningText"), text(data, "reasoningOpaque", "encryptedContent")
    if thought is not None or opaque is not None:
        blocks.append(Thinking(thought or "", opaque, redacted=thought is None))
    words = text(data, "content")
    if words:
        blocks.append(Text(words))
    for one in objects(data.get("toolRequests")):
        arguments = one.get("arguments", {})
        spelled = arguments if isinstance(arguments, str) else json_text(arguments)
        blocks.append(reading.calls.add_call(text(one, "toolCallId") or "", text(one, "name") or "", spelled))
    reading.model = text(data, "model") or reading.model
    used = usage(object_at(data, "usage"))
    if used is None and number(data, "outputTokens") is not None:
        used = Usage(output=count(data, "outputTokens"))
    return Message("assistant", tuple(blocks), at, reading.model, used, id=text(data, "messageId"))


def _result(data: Row, calls: ToolCallIndex) -> ToolResult:
    own, tool = calls.answers(text(data, "toolCallId") or "")
    failed = data.get("success") is False
    result = data.get("result")
    words, images = flat(object_at(data, "result").get("content") if isinstance(result, dict) else result)
    if failed and not words:
        words = text(object_at(data, "error"), "message") or text(data, "error", "output") or ""
    return ToolResult(own, words, tool, failed, images)


def _compaction(data: Row, at: float | None, reading: _CopilotPass) -> Iterator[Recorded]:
    """Yield the call of the summary, where recorded; then the replacement in the window."""
    if data.get("success") is False:
        return
    spent = object_at(data, "compactionTokensUsed")
    if spent:
        read, written = count(spent, "cacheReadTokens", "cachedInput"), count(spent, "cacheWriteTokens")
        fresh = max(0, count(spent, "inputTokens", "input") - read - written)
        used = Usage(fresh=fresh, read=read, written=written, output=count(spent, "outputTokens", "output"))
        yield Message("assistant", (), at, text(spent, "model") or reading.model, used)
    summary = text(data, "summaryContent") or ""
    yield HostEvent("compaction", at, json_text({"kept": 0, "summary_chars": len(summary)}))
    if summary:
        yield Message("user", (Text(summary, "compact_summary"),), at)
