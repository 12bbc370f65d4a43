"""Plain logs of model requests: bodies, or pairs of request and response, one a line or in one JSON list.

A log has no sessions, only requests that grow: a request belongs to the session whose last request it extends. One that
keeps the first message and changes later ones is the same session with a rewritten prompt, which counts as a compaction.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pagein.model.messages import HostEvent, Message, Recorded, Text, Unreadable
from pagein.replay.readers.answers import answer
from pagein.replay.readers.blocks import Calls
from pagein.replay.readers.fields import Row, json_text, mapping, seconds, text
from pagein.replay.readers.heads import flags_of
from pagein.replay.readers.marks import Mark
from pagein.replay.readers.rows import decode_json, rows_at
from pagein.replay.readers.source import Source
from pagein.replay.readers.wire import carried_over, is_ours, messages, name, system_text, units
from pagein.replay.recorded import RecordedSession, SessionHead

Numbered: TypeAlias = tuple[int, Row | Unreadable]

_REQUESTS: Final = ("request", "request_body", "requestBody", "req", "body", "kwargs")
_RESPONSES: Final = ("response", "response_body", "responseBody", "resp", "completion", "reply")
_TIMES: Final = ("timestamp", "time", "ts", "at", "created_at", "started_at", "start_time", "startTime", "date")
_HEADERS: Final = ("x-pagein-session", "x-claude-code-session-id", "session-id", "session_id", "x-session-id")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One logged request. `key`: the session that the client names on the wire, None where it names none."""

    body: Row
    response: object
    at: float | None
    key: str | None


@dataclass(slots=True)
class _Found:
    """A session as far as the log has been read: its exchanges, and the names of the last request's units."""

    key: str | None
    steps: list["_Step"] = field(default_factory=list)
    names: list[bytes] = field(default_factory=list)
    answered_as: str | None = None
    models: dict[str, None] = field(default_factory=dict)
    timed: bool = False
    answers: int = 0


@dataclass(frozen=True, slots=True)
class _Step:
    """One line of a session. `known`: how many units stood in the request before it; -1: the prompt was rewritten."""

    line: int
    known: int


def is_request(row: Row) -> bool:
    """Whether this is a logged request."""
    return exchange(row) is not None


def exchange(row: Row) -> Exchange | None:
    """The request in a row of a log, and its response if it is there."""
    for holder in (row, *(_opened(row, key) for key in _REQUESTS)):
        body = mapping(holder, "body") or mapping(holder, "json") or holder
        if isinstance(body.get("messages"), list) or (body.get("input") and (body.get("model") or holder is not row)):
            break
    else:
        return None
    response = next((row[key] for key in _RESPONSES if row.get(key)), None)
    at = next((moment for moment in (seconds(row.get(key)) for key in _TIMES) if moment is not None), None)
    return Exchange(body, response, at, _key(body, mapping(holder, "headers") or mapping(row, "headers")))


def _opened(row: Row, key: str) -> Row:
    value = row.get(key)
    if isinstance(value, str):
        try:
            value = decode_json(value.encode())
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _key(body: Row, headers: Row) -> str | None:
    lowered = {key.lower(): value for key, value in headers.items()}
    told = text(lowered, *_HEADERS) or text(body, "prompt_cache_key")
    user = _opened(mapping(body, "metadata"), "user_id")
    return told or text(user, "session_id") or text(mapping(body, "metadata"), "user_id")


def sessions(source: Source, marks: Sequence[Mark]) -> Iterator[RecordedSession]:
    """The sessions of a log with one request a line."""
    yield from _sessions(source, lambda lines: rows_at(source, lines), [mark.line for mark in marks], flags_of(marks))


def listed_sessions(source: Source, rows: Sequence[Row]) -> Iterator[RecordedSession]:
    """The sessions of a log that is one JSON list, or of one single request."""

    def numbered(lines: Sequence[int]) -> Iterator[Numbered]:
        return ((line, rows[line - 1]) for line in lines)

    yield from _sessions(source, numbered, range(1, len(rows) + 1), {})


def _sessions(
    source: Source,
    open_rows: Callable[[Sequence[int]], Iterator[Numbered]],
    lines: Sequence[int],
    flags: dict[str, object],
) -> Iterator[RecordedSession]:
    found: list[_Found] = []
    for line, row in open_rows(lines):
        logged = None if isinstance(row, Unreadable) else exchange(row)
        if logged is None:
            _last_or_new(found).steps.append(_Step(line, 0))
        else:
            _assign(line, logged, found)
    for place, session in enumerate(found):
        if not session.names and not session.answers:
            continue
        told = {key: value for key, value in flags.items() if key != "no_times" and (place == 0 or key != "unreadable")}
        if not session.timed:
            told["no_times"] = True
        head = SessionHead(
            id=session.key or (source.stem if len(found) == 1 else f"{source.stem}-{place + 1}"),
            source=source.group or "requests",
            agent="requests",
            file=source.label,
            models=tuple(session.models),
            flags=told,
        )
        yield RecordedSession(head, _entries(open_rows, session.steps))


def _last_or_new(found: list[_Found]) -> _Found:
    if not found:
        found.append(_Found(None))
    return found[-1]


def _assign(line: int, logged: Exchange, found: list[_Found]) -> None:
    names = [name(unit) for unit in units(logged.body)]
    session, known = _continued(logged, names, found)
    if session is None:
        bare = next((old for old in found if not old.names and not old.answers), None)
        session = bare or _Found(logged.key)
        session.key = logged.key
        if bare is None:
            found.append(session)
    session.steps.append(_Step(line, known))
    session.names = names
    session.timed = session.timed or logged.at is not None
    model = text(logged.body, "model")
    if model is not None:
        session.models[model] = None
    reply = answer(logged.response, Calls(), None, None)
    session.answered_as = None if reply is None else reply.id
    session.answers += 1


def _continued(logged: Exchange, names: list[bytes], found: Sequence[_Found]) -> tuple[_Found | None, int]:
    """The session that a request goes on with, and how many of its units were known; none: it begins one."""
    follows = text(logged.body, "previous_response_id")
    candidates = [session for session in found if session.answers and session.key == logged.key]
    if follows is not None:
        linked = next((session for session in candidates if session.answered_as == follows), None)
        if linked is not None:
            return linked, 0
    grown = [session for session in candidates if session.names and names[: len(session.names)] == session.names]
    if grown:
        best = max(grown, key=lambda session: len(session.names))
        return best, len(best.names)
    rewritten = [session for session in candidates if session.names[:1] == names[:1] and names]
    return (rewritten[-1], -1) if rewritten else (None, 0)


def _entries(
    open_rows: Callable[[Sequence[int]], Iterator[Numbered]],
    steps: Sequence[_Step],
) -> Iterator[Recorded]:
    calls = Calls()
    system = ""
    unanswered: Message | None = None
    for step, (_, row) in zip(steps, open_rows([step.line for step in steps]), strict=False):
        logged = None if isinstance(row, Unreadable) else exchange(row)
        if logged is None:
            yield (
                row
                if isinstance(row, Unreadable)
                else Unreadable(step.line, "a line without a request", json_text(row)[:120])
            )
            continue
        now = system_text(logged.body)
        if now and now != system:
            yield HostEvent("system_change", logged.at) if system else Message("system", (Text(now),), logged.at)
            system = now
        yield from _prompt(step, logged, calls, unanswered)
        reply = answer(logged.response, calls, logged.at, text(logged.body, "model"))
        unanswered = None
        if reply is None:
            unanswered = Message("assistant", (), logged.at, text(logged.body, "model"), stop="unanswered")
        else:
            yield reply
    if unanswered is not None:
        yield unanswered


def _prompt(step: _Step, logged: Exchange, calls: Calls, unanswered: Message | None) -> Iterator[Recorded]:
    """What a request adds to the one before it: the answer to that, if the log did not hold it, and the news."""
    rows = units(logged.body)
    if step.known < 0:
        if unanswered is not None:
            yield unanswered
        yield HostEvent("compaction", logged.at, json_text({"kept": 0, "trigger": "prefix_change"}))
        yield from (carried_over(message) for message in messages(rows, Calls(), logged.at))
        return
    news = rows[step.known :]
    echo = 0
    while step.known and echo < len(news) and is_ours(news[echo]):
        echo += 1
    if unanswered is not None:
        yield from _told_later(news[:echo], calls, unanswered)
    yield from messages(news[echo:], calls, logged.at)


def _told_later(echo: Sequence[Row], calls: Calls, unanswered: Message) -> Iterator[Message]:
    """The answer to a request without a response in the log, as the next request repeats it."""
    said = list(messages(echo, calls, unanswered.at))
    if not said:
        yield unanswered
    for message in said:
        yield Message("assistant", message.blocks, unanswered.at, unanswered.model)
