"""Read Gemini CLI sessions: one record of messages, or lines that build a record.

A line is a message (replacing an earlier one of the same id), a change, or a rewind. One message of the model is one
model call, with its tool calls and their results inside. `$set` with messages replaces the window of the model: with
messages not seen before, the host has compacted.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
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
from pagein.replay.readers.blocks import ToolCallIndex, image
from pagein.replay.readers.line_index import GEMINI_MESSAGES, IndexedLine, rows_of
from pagein.replay.readers.row_fields import Row, count, json_text, object_at, objects, seconds, sequence, text
from pagein.replay.readers.session_heads import branch_flags, flags_of
from pagein.replay.readers.source import Source
from pagein.replay.record.recorded_session import CARRIED_OVER, RecordedSession, SessionHead
from pagein.replay.record.usage_tally import UsageTally

_SPEAKERS: Final = ("user", "gemini")
_FAILED: Final = frozenset(("error", "cancelled"))
_SETTING_UP: Final = ("This is the Gemini CLI", "<session_context>")


def is_record(row: Row) -> bool:
    """Return whether this row is a whole session in a single record."""
    messages = row.get("messages")
    if text(row, "sessionId") is None or not isinstance(messages, list):
        return False
    return all(text(message, "type") in GEMINI_MESSAGES for message in objects(messages))


def session_of_record(source: Source, row: Row) -> RecordedSession:
    """Return the session of a record."""
    record = _GeminiRecord()
    record.apply(row)
    return _session(source, record, {} if any(_at(one) is not None for one in record.rows) else {"no_times": True})


def sessions(source: Source, marks: Sequence[IndexedLine]) -> Iterator[RecordedSession]:
    """Yield the single session of a file of lines."""
    record = _GeminiRecord()
    for _, row in rows_of(source, marks):
        if isinstance(row, UnreadableLine):
            record.lost.append(row)
        else:
            record.apply(row)
    flags = flags_of(marks)
    if any(_at(one) is not None for one in record.rows):
        flags.pop("no_times", None)
    yield _session(source, record, flags)


def _at(row: Row) -> float | None:
    return seconds(row.get("timestamp"))


@dataclass(slots=True)
class _Window:
    """The messages that entered a window, by id; and the messages kept from the previous window."""

    rows: dict[str, Row] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()


@dataclass(slots=True)
class _GeminiRecord:
    """The session as built by the lines so far."""

    facts: dict[str, object] = field(default_factory=dict)
    windows: list[_Window] = field(default_factory=lambda: [_Window()])
    lost: list[UnreadableLine] = field(default_factory=list)
    branches: int = 0
    abandoned_calls: int = 0

    @property
    def rows(self) -> Iterator[Row]:
        return (row for window in self.windows for row in window.rows.values())

    def apply(self, row: Row) -> None:
        """Apply one line: a rewind, a change, a message, or the facts at the beginning of a session."""
        rewind = text(row, "$rewindTo")
        if rewind is not None:
            self._rewind(rewind)
        elif "$set" in row:
            self._set(object_at(row, "$set"))
        elif text(row, "id") is not None and text(row, "type") in GEMINI_MESSAGES:
            self.windows[-1].rows[text(row, "id") or ""] = row
        else:
            self._set(row)

    def _set(self, row: Row) -> None:
        self.facts |= {key: value for key, value in row.items() if key != "messages"}
        if isinstance(row.get("messages"), list):
            rows = list(objects(row.get("messages")))
            self._replace({text(one, "id") or f"#{place}": one for place, one in enumerate(rows)})

    def _rewind(self, to: str) -> None:
        """Remove a message and everything after; for an unknown message the whole window, as the host does."""
        rows = self.windows[-1].rows
        names = list(rows)
        self._drop(names[names.index(to) if to in rows else 0 :])

    def _drop(self, names: Sequence[str]) -> None:
        gone = [self.windows[-1].rows.pop(name) for name in names]
        calls = sum(text(row, "type") == "gemini" for row in gone)
        self.branches += calls > 0
        self.abandoned_calls += calls

    def _replace(self, rows: dict[str, Row]) -> None:
        """Replace the window of the model: by more than before, by less (an aborted turn), or by a summary and kept
        messages.
        """
        window = self.windows[-1]
        seen = list(window.rows)
        news = {name: row for name, row in rows.items() if name not in window.rows}
        if list(rows)[: len(seen)] == seen:
            window.rows |= news
        elif not news:
            self._drop([name for name in seen if name not in rows])
        else:
            self.windows.append(_Window(news, frozenset(rows).intersection(seen)))


def _session(source: Source, record: _GeminiRecord, flags: dict[str, object]) -> RecordedSession:
    flags |= branch_flags(record.branches, record.abandoned_calls)
    is_sub = record.facts.get("kind") == "subagent"
    folders = next((one for one in sequence(record.facts, "directories") if isinstance(one, str)), None)
    head = SessionHead(
        id=text(record.facts, "sessionId") or source.stem,
        source=source.group or "gemini-cli",
        agent="gemini-cli/subagent" if is_sub else "gemini-cli",
        file=source.label,
        models=tuple(dict.fromkeys(model for row in record.rows if (model := text(row, "model")))),
        parent=PurePosixPath(source.label).parent.name or None if is_sub else None,
        cwd=folders,
        flags=flags,
        is_named=text(record.facts, "sessionId") is not None,
    )
    tally = UsageTally()
    return RecordedSession(head, _entries(record, _GeminiTranscript(folders, tally)), tally)


def _entries(record: _GeminiRecord, transcript: "_GeminiTranscript") -> Iterator[Recorded]:
    yield from record.lost
    for place, window in enumerate(record.windows):
        if place:
            yield transcript.compaction(window)
        for row in _calls_joined(window.rows.items()):
            yield from transcript.entries(*row, is_summary=place > 0)


def _calls_joined(rows: Iterable[tuple[str, Row]]) -> Iterator[tuple[str, Row]]:
    """Join a message with only tool calls to the previous call: the host writes such messages after thoughts in
    between.
    """
    held: tuple[str, Row] | None = None
    for name, row in rows:
        if held is not None and _is_rest(row) and text(held[1], "type") == "gemini":
            held = held[0], {**held[1], "toolCalls": [*sequence(held[1], "toolCalls"), *sequence(row, "toolCalls")]}
            continue
        if held is not None:
            yield held
        held = name, row
    if held is not None:
        yield held


def _is_rest(row: Row) -> bool:
    told = row.get("content") or row.get("thoughts") or row.get("tokens")
    return text(row, "type") == "gemini" and not told and bool(sequence(row, "toolCalls"))


class _GeminiTranscript:
    """Converts recorded messages to entries; remembers the start of each, for the messages kept by a compaction."""

    def __init__(self, cwd: str | None, tally: UsageTally) -> None:
        self._tally = tally
        self._calls = ToolCallIndex(cwd)
        self._emitted = 0
        self._placed: dict[str, int] = {}
        self._answered: set[str] = set()

    def compaction(self, window: _Window) -> HostEvent:
        """Return the event of a new window; the last messages of the previous window may stay after its summary."""
        first = self._emitted
        for name, place in reversed(self._placed.items()):
            if name not in window.kept:
                break
            first = place
        return HostEvent("compaction", None, json_text({"kept": self._emitted - first}))

    def entries(self, name: str, row: Row, *, is_summary: bool) -> Iterator[Recorded]:
        """Yield the entries of one recorded message."""
        kind, at = text(row, "type"), _at(row)
        if kind == "error":
            yield HostEvent("api_error", at)
        if kind not in _SPEAKERS:
            return
        said = self._model(name, row, at) if kind == "gemini" else self._user(row, at)
        for message in _carried_over(said) if is_summary and not object_at(row, "tokens") else said:
            self._placed.setdefault(name, self._emitted)
            self._emitted += 1
            yield message

    def _user(self, row: Row, at: float | None) -> Iterator[Message]:
        parts = list(_parts(row.get("content")))
        results = [object_at(part, "functionResponse") for part in parts if object_at(part, "functionResponse")]
        news = [one for one in results if text(one, "id") not in self._answered]
        if news:
            yield Message(
                "tool", tuple(self._result(text(one, "id") or "", [{"functionResponse": one}]) for one in news), at
            )
        blocks = tuple(_block(part) for part in parts if not object_at(part, "functionResponse"))
        if blocks:
            yield Message("user", blocks, at)

    def _model(self, name: str, row: Row, at: float | None) -> Iterator[Message]:
        usage = _usage(object_at(row, "tokens"))
        self._tally.add(name, usage)
        thoughts = [_thinking(one) for one in objects(row.get("thoughts"))]
        words = [_block(part) for part in _parts(row.get("content")) if text(part, "text") != ""]
        asked = list(objects(row.get("toolCalls")))
        calls = [
            self._calls.add_call(text(one, "id") or "", text(one, "name") or "", json_text(object_at(one, "args")))
            for one in asked
        ]
        yield Message("assistant", (*thoughts, *words, *calls), at, text(row, "model"), usage, id=name)
        done = [
            (seconds(one.get("timestamp")), one) for one in asked if one.get("result") or text(one, "status") in _FAILED
        ]
        if done:
            ended = max((moment for moment, _ in done if moment is not None), default=at)
            results = (self._result(text(one, "id") or "", one.get("result"), text(one, "status")) for _, one in done)
            yield Message("tool", tuple(results), ended)

    def _result(self, call: str, result: object, status: str | None = None) -> ToolResult:
        self._answered.add(call)
        own, tool = self._calls.answers(call)
        words, images, failed = [], [], status in _FAILED
        for part in _parts(result):
            response = object_at(object_at(part, "functionResponse"), "response")
            if response:
                failed = failed or "error" in response
                words.append(text(response, "output", "error") or json_text(response))
            elif object_at(part, "inlineData"):
                images.append(image(object_at(part, "inlineData")))
            else:
                words.append(text(part, "text") or json_text(part))
        return ToolResult(own, "\n".join(words), tool, failed, tuple(images))


def _carried_over(said: Iterable[Message]) -> Iterator[Message]:
    """Mark the first messages of a new window as summary: neither a call nor new words of the user."""
    for message in said:
        blocks = tuple(Text(one.text, "compact_summary") if isinstance(one, Text) else one for one in message.blocks)
        stop = CARRIED_OVER if message.role == "assistant" else None
        yield Message(message.role, blocks, message.at, message.model, stop=stop)


def _parts(content: object) -> Iterator[Row]:
    """Yield the parts of a content: text, a part, or a list of either."""
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            if part:
                yield {"text": part}
        elif isinstance(part, dict):
            yield part


def _block(part: Row) -> Block:
    words = text(part, "text")
    if words is not None:
        return Text(words, "environment" if words.startswith(_SETTING_UP) else None)
    data = object_at(part, "inlineData")
    return image(data) if data else Other(next(iter(part), "part"), json_text(part))


def _thinking(row: Row) -> Thinking:
    return Thinking("\n".join(words for words in (text(row, "subject"), text(row, "description")) if words))


def _usage(row: Row) -> Usage | None:
    """Return the usage of a call: the prompt includes tokens read from the cache, the output excludes thinking."""
    if not row:
        return None
    read = count(row, "cached")
    fresh = max(0, count(row, "input") - read) + count(row, "tool")
    return Usage(fresh=fresh, read=read, output=count(row, "output") + count(row, "thoughts"))
