"""Read plain logs of model requests: bodies, or pairs of request and response, each on a line or in a JSON list.

A log has no sessions, only growing requests; `request_lineage` assigns them to sessions. A rewritten prompt or a new
window counts as a compaction. An answer omitted by the client from its next request belongs to its call, and to no
prompt.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final, TypeAlias

from pagein.model.messages import HostEvent, Message, Recorded, Text, ToolResult, UnreadableLine
from pagein.providers.wire.session_names import AGENT_HEADER, SESSION_HEADERS
from pagein.replay.readers.api_responses import answer
from pagein.replay.readers.blocks import ToolCallIndex
from pagein.replay.readers.line_index import IndexedLine
from pagein.replay.readers.request_lineage import Front, KnownAnswer, Lineage, LoggedRequest, LogLine, Name
from pagein.replay.readers.request_units import (
    behind,
    instructions,
    is_ours,
    messages,
    name,
    pieces,
    repeat_message,
    system_text,
    units,
)
from pagein.replay.readers.row_fields import Row, json_text, object_at, seconds, text
from pagein.replay.readers.rows import decode_json, rows_at, unknown_row
from pagein.replay.readers.session_heads import branch_flags, flags_of
from pagein.replay.readers.source import Source
from pagein.replay.record.recorded_session import RecordedSession, SessionHead
from pagein.replay.record.usage_tally import UsageTally

NumberedRow: TypeAlias = tuple[int, Row | UnreadableLine]

_REQUESTS: Final = ("request", "request_body", "requestBody", "req", "body", "kwargs")
_RESPONSES: Final = ("response", "response_body", "responseBody", "resp", "completion", "reply")
_TIMES: Final = ("timestamp", "time", "ts", "at", "created_at", "started_at", "start_time", "startTime", "date")


@dataclass(frozen=True, slots=True)
class LoggedExchange:
    """One logged request. name: the session as named by the client on the wire."""

    body: Row
    response: object
    at: float | None
    name: Name


@dataclass(frozen=True, slots=True)
class _Fact:
    """The facts of a request needed for the head of a session."""

    model: str | None
    timed: bool


def is_request(row: Row) -> bool:
    """Return whether this row is a logged request."""
    return exchange(row) is not None


def exchange(row: Row) -> LoggedExchange | None:
    """Return the request in a row of a log, with its response if recorded."""
    for holder in (row, *(_object_in(row, key) for key in _REQUESTS)):
        body = object_at(holder, "body") or object_at(holder, "json") or holder
        if _is_conversation(body.get("messages")) or (body.get("input") and (body.get("model") or holder is not row)):
            break
    else:
        return None
    response = next((row[key] for key in _RESPONSES if row.get(key)), None)
    at = next((moment for moment in (seconds(row.get(key)) for key in _TIMES) if moment is not None), None)
    return LoggedExchange(body, response, at, _name(body, object_at(holder, "headers") or object_at(row, "headers")))


def _is_conversation(messages: object) -> bool:
    """Return whether this value is the `messages` of a request: each names its speaker.

    Recordings of agents have lists of this name, too.
    """
    return isinstance(messages, list) and all(isinstance(one, dict) and text(one, "role") for one in messages)


def _object_in(row: Row, key: str) -> Row:
    value = row.get(key)
    if isinstance(value, str):
        try:
            value = decode_json(value.encode())
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _name(body: Row, headers: Row) -> Name:
    """Return the name given to the session by its client, else the name of a cache or a user."""
    lowered = {key.lower(): value for key, value in headers.items()}
    told, agent = text(lowered, *SESSION_HEADERS), text(lowered, AGENT_HEADER)
    if told is not None:
        return Name(f"{told}/{agent}" if agent else told, is_session=True)
    user = text(object_at(body, "metadata"), "user_id")
    inner = text(_object_in(object_at(body, "metadata"), "user_id"), "session_id")
    cache = text(body, "prompt_cache_key")
    return Name(cache or inner or user, is_session=cache is None and (inner is not None or "_session_" in (user or "")))


def sessions(source: Source, marks: Sequence[IndexedLine]) -> Iterator[RecordedSession]:
    """Yield the sessions of a log with one request per line."""
    yield from _sessions(source, lambda lines: rows_at(source, lines), [mark.line for mark in marks], flags_of(marks))


def sessions_of_list(source: Source, rows: Sequence[Row]) -> Iterator[RecordedSession]:
    """Yield the sessions of a log in a JSON list, or of a single request."""

    def number_rows(lines: Sequence[int]) -> Iterator[NumberedRow]:
        return ((line, rows[line - 1]) for line in lines)

    yield from _sessions(source, number_rows, range(1, len(rows) + 1), {})


def _sessions(
    source: Source,
    open_rows: Callable[[Sequence[int]], Iterator[NumberedRow]],
    lines: Sequence[int],
    flags: dict[str, object],
) -> Iterator[RecordedSession]:
    lineage, facts = Lineage(), dict[int, _Fact]()
    for line, row in open_rows(lines):
        logged = None if isinstance(row, UnreadableLine) else exchange(row)
        if logged is None:
            lineage.add_lost_line(line)
        else:
            facts[line] = _Fact(text(logged.body, "model"), logged.at is not None)
            lineage.add_request(line, _request_of(logged), _answer_of(logged))
    found = [one for one in lineage.sessions() if any(step.known is not None for step in one.steps)]
    for place, session in enumerate(found):
        known = [facts[step.line] for step in session.steps if step.known is not None]
        told = {key: value for key, value in flags.items() if key != "no_times" and (place == 0 or key != "unreadable")}
        if not any(one.timed for one in known):
            told["no_times"] = True
        if session.left:
            told |= branch_flags(session.left + 1, session.left)
        head = SessionHead(
            id=session.name.text or (source.stem if len(found) == 1 else f"{source.stem}-{place + 1}"),
            source=source.group or "requests",
            agent="requests",
            file=source.label,
            models=tuple(dict.fromkeys(one.model for one in known if one.model is not None)),
            flags=told,
            is_named=bool(session.name.text),
        )
        tally = UsageTally()
        yield RecordedSession(head, _entries(open_rows, session.steps, tally), tally)


def _request_of(logged: LoggedExchange) -> LoggedRequest:
    rows = units(logged.body)
    tools = logged.body.get("tools") or ()
    front = Front(_digest(instructions(logged.body)), _digest(json_text(tools) if tools else ""))
    blocks = [(name(piece), len(json_text(piece))) for unit in rows for piece in pieces(unit)]

    def words() -> str:
        said = (block for message in messages(rows, ToolCallIndex(), None) for block in message.blocks)
        return "\n".join(block.text for block in said if isinstance(block, Text | ToolResult))

    return LoggedRequest(logged.name, front, blocks, text(logged.body, "previous_response_id"), words)


def _digest(words: str) -> bytes:
    return blake2b(words.encode("utf-8", "surrogatepass"), digest_size=16).digest() if words else b""


def _answer_of(logged: LoggedExchange) -> KnownAnswer:
    reply = answer(logged.response, ToolCallIndex(), None, None)
    if reply is None:
        return KnownAnswer()
    return KnownAnswer(reply.id, "\n".join(block.text for block in reply.blocks if isinstance(block, Text)))


def _entries(
    open_rows: Callable[[Sequence[int]], Iterator[NumberedRow]],
    steps: Sequence[LogLine],
    tally: UsageTally,
) -> Iterator[Recorded]:
    calls = ToolCallIndex()
    system = ""
    reply: Message | None = None
    for step, (_, row) in zip(steps, open_rows([step.line for step in steps]), strict=False):
        logged = None if isinstance(row, UnreadableLine) else exchange(row)
        if logged is None:
            yield row if isinstance(row, UnreadableLine) else unknown_row(step.line, "a line without a request", row)
            continue
        news = _News(step, logged)
        if reply is not None:
            yield from news.before(reply, calls)
        now = system_text(logged.body)
        if now and now != system:
            yield HostEvent("system_change", logged.at) if system else Message("system", (Text(now),), logged.at)
            system = now
        yield from news.entries(calls, begins=reply is None)
        model = text(logged.body, "model")
        reply = answer(logged.response, calls, logged.at, model) or Message(
            "assistant", (), logged.at, model, stop="unanswered"
        )
        tally.add(step.line, reply.usage)
    if reply is not None:
        yield reply


class _News:
    """The content added by a request to the one before."""

    def __init__(self, step: LogLine, logged: LoggedExchange) -> None:
        self._known, self._at = step.known or 0, logged.at
        rows = units(logged.body)
        self._rows = behind(rows, self._known) if self._known > 0 else rows
        self._echo = 0
        while self._known > 0 and self._echo < len(self._rows) and is_ours(self._rows[self._echo]):
            self._echo += 1

    def before(self, reply: Message, calls: ToolCallIndex) -> Iterator[Message]:
        """Yield the answer to the previous request as far as this request repeats it; if the log lacks the answer, in
        the repeated words.
        """
        if reply.stop != "unanswered":
            yield reply if self._echo or self._known <= 0 else replace(reply, blocks=())
            return
        said = list(messages(self._rows[: self._echo], calls, reply.at))
        if not said:
            yield reply
        for message in said:
            yield Message("assistant", message.blocks, reply.at, reply.model)

    def entries(self, calls: ToolCallIndex, *, begins: bool) -> Iterator[Recorded]:
        """Yield the rest of the new content."""
        if self._known >= 0:
            yield from messages(self._rows[self._echo :], calls, self._at)
            return
        calls.begin_anew()
        if not begins:
            yield HostEvent("compaction", self._at, json_text({"kept": 0, "trigger": "prefix_change"}))
        yield from (repeat_message(message) for message in messages(self._rows, calls, self._at))
