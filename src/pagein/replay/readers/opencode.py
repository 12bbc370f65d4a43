"""Read OpenCode sessions: exported documents, the storage folder of JSON files, and the SQLite database of newer
versions.

Each holds the same content: session info, message infos in order, and the parts of each message.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, TypeAlias

from pagein.errors import BadInput, NoSession
from pagein.model.messages import (
    Block,
    HostEvent,
    Image,
    Message,
    Other,
    Recorded,
    ShownLines,
    Text,
    Thinking,
    ToolResult,
    UnreadableLine,
    Usage,
)
from pagein.replay.readers.blocks import ToolCallIndex
from pagein.replay.readers.prunings import Prunings
from pagein.replay.readers.row_fields import Row, count, json_text, object_at, objects, seconds, text
from pagein.replay.readers.rows import decode_json, unknown_row
from pagein.replay.readers.session_heads import version_flag
from pagein.replay.readers.shown_ranges import line_run
from pagein.replay.readers.source import Source
from pagein.replay.record.recorded_session import RecordedSession, SessionHead
from pagein.replay.record.usage_tally import UsageTally

Stored: TypeAlias = tuple[Row, list[Row]] | UnreadableLine
_FAILED: Final = ("MessageAbortedError", "aborted")


def is_export(document: Row) -> bool:
    """Return whether this document is an exported session."""
    return bool(object_at(document, "info")) and isinstance(document.get("messages"), list)


def is_info(document: Row) -> bool:
    """Return whether this document is the info file of a session in the storage folder."""
    return (text(document, "id") or "").startswith("ses_") and bool(object_at(document, "time"))


def session_of_export(source: Source, document: Row) -> RecordedSession:
    """Return the session of an exported document."""
    stored: list[Stored] = []
    for place, row in enumerate(document.get("messages") or ()):  # type: ignore[var-annotated, arg-type]
        if isinstance(row, dict) and object_at(row, "info"):
            stored.append((object_at(row, "info"), list(objects(row.get("parts")))))
        else:
            stored.append(unknown_row(0, f"message {place + 1} of the export is no message", row))
    models = [text(item[0], "modelID") for item in stored if not isinstance(item, UnreadableLine)]
    return _session(source, object_at(document, "info"), lambda: iter(stored), models)


def folder_session(source: Source, info: Row) -> RecordedSession:
    """Return the session of an info file, with messages and parts in the folders beside it."""
    if source.path is None:
        raise BadInput(
            f"{source.label}: the messages of this OpenCode session lie in files beside it; unpack them first"
        )
    storage = source.path.resolve().parents[2]
    messages = sorted((storage / "message" / (text(info, "id") or "")).glob("*.json"))
    if not messages:
        raise NoSession(f"{source.label}: an OpenCode session without messages; they belong into {storage / 'message'}")
    infos = (_file(file) for file in messages)
    models = [text(row, "modelID") for row in infos if not isinstance(row, UnreadableLine)]
    return _session(source, info, lambda: _in_folder(storage, messages), models)


def _in_folder(storage: Path, messages: list[Path]) -> Iterator[Stored]:
    for file in messages:
        info = _file(file)
        parts = (_file(part) for part in sorted((storage / "part" / file.stem).glob("*.json")))
        yield from _with_parts(info if isinstance(info, UnreadableLine) else {"id": file.stem, **info}, parts)


def _with_parts(info: Row | UnreadableLine, parts: Iterator[Row | UnreadableLine]) -> Iterator[Stored]:
    """Yield a message with its parts, behind those that are damaged; a damaged message without any."""
    if isinstance(info, UnreadableLine):
        yield info
        return
    found = list(parts)
    yield from (part for part in found if isinstance(part, UnreadableLine))
    yield info, [part for part in found if not isinstance(part, UnreadableLine)]


def _file(path: Path) -> Row | UnreadableLine:
    try:
        row = decode_json(path.read_bytes())
    except (OSError, ValueError) as error:
        return UnreadableLine(0, f"{path.name}: {error}")
    return row if isinstance(row, dict) else UnreadableLine(0, f"{path.name}: not a JSON object")


def database_sessions(path: Path) -> list[tuple[str, str, str, float]]:
    """Return id, title, folder and time of the last change of each session in a database. Raises BadInput for another
    file.
    """
    try:
        with closing(_open_database(path)) as database:
            rows = database.execute("SELECT id, title, directory, time_updated FROM session ORDER BY id").fetchall()
    except sqlite3.Error as error:
        raise BadInput(f"{path}: not an OpenCode database ({error})") from error
    return [(str(row[0]), str(row[1] or ""), str(row[2] or ""), seconds(row[3]) or 0.0) for row in rows]


def _open_database(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)


def sessions_of_database(source: Source) -> Iterator[RecordedSession]:
    """Yield the sessions of a database: the session named by the source, or every session."""
    if source.path is None:
        raise BadInput(f"{source.label}: a database inside an archive; unpack it first")
    known = [session[0] for session in database_sessions(source.path)]
    wanted = known if source.member is None else [source.member]
    for session in wanted:
        if session not in known:
            raise BadInput(f"{source.label}: the database has no session {session!r}")
        yield _database_session(source, source.path, session)


def _database_session(source: Source, path: Path, session: str) -> RecordedSession:
    with closing(_open_database(path)) as database:
        row = database.execute("SELECT parent_id, directory, version FROM session WHERE id = ?", (session,)).fetchone()
        asked = (
            "SELECT json_extract(data, '$.modelID') FROM message WHERE session_id = ? AND json_valid(data) ORDER BY id"
        )
        models = [str(name[0]) for name in database.execute(asked, (session,)) if name[0]]
    info = {"id": session, "parentID": row[0], "directory": row[1], "version": row[2]}
    return _session(source, info, lambda: _in_database(path, session), models)


def _in_database(path: Path, session: str) -> Iterator[Stored]:
    messages = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
    parts = "SELECT id, data FROM part WHERE message_id = ? ORDER BY id"
    with closing(_open_database(path)) as database:
        for name, data in database.execute(messages, (session,)):
            rows = (_cell(str(part), told) for part, told in database.execute(parts, (name,)))
            yield from _with_parts(_cell(str(name), data), rows)


def _cell(name: str, data: object) -> Row | UnreadableLine:
    try:
        row = decode_json(data if isinstance(data, bytes) else str(data).encode())
    except ValueError as error:
        return UnreadableLine(0, f"{name}: {error}")
    return {"id": name, **row} if isinstance(row, dict) else UnreadableLine(0, f"{name}: not a JSON object")


def _session(
    source: Source,
    info: Row,
    stored: Callable[[], Iterator[Stored]],
    models: Sequence[str | None],
) -> RecordedSession:
    parent = text(info, "parentID")
    head = SessionHead(
        id=text(info, "id") or source.stem,
        source=source.group or "opencode",
        agent="opencode/subagent" if parent else "opencode",
        file=source.label,
        models=tuple(dict.fromkeys(model for model in models if model)),
        parent=parent,
        cwd=text(info, "directory"),
        flags=version_flag(text(info, "version")),
        is_named=text(info, "id") is not None,
    )
    tally = UsageTally()
    reverted = text(object_at(info, "revert"), "messageID")
    return RecordedSession(head, _entries(stored(), _OpencodeTranscript(head.cwd, tally), reverted), tally)


def _entries(stored: Iterator[Stored], transcript: "_OpencodeTranscript", reverted: str | None) -> Iterator[Recorded]:
    for item in stored:
        if isinstance(item, UnreadableLine):
            yield item
            continue
        info, parts = item
        if reverted is not None and text(info, "id") == reverted:
            return
        for entry in transcript.entries(info, parts):
            transcript.emitted += isinstance(entry, Message)
            yield entry
    yield from transcript.prunings.due(None)


class _OpencodeTranscript:
    """Converts stored messages to entries; remembers the references of compactions and prunings."""

    def __init__(self, cwd: str | None, tally: UsageTally) -> None:
        self.calls = ToolCallIndex(cwd)
        self.prunings = Prunings()
        self._tally = tally
        self.emitted = 0
        self._placed: dict[str, int] = {}
        self._asked_to_compact: tuple[int, str | None] | None = None

    def entries(self, info: Row, parts: list[Row]) -> Iterator[Recorded]:
        """Yield the entries of one stored message."""
        self._placed[text(info, "id") or ""] = self.emitted
        at = seconds(object_at(info, "time").get("created"))
        yield from self.prunings.due(at)
        if info.get("role") == "assistant":
            yield from self._assistant(info, parts, at)
        elif info.get("role") == "user":
            yield from self._user(parts, at)
        else:
            yield unknown_row(0, f"a message of unknown role {info.get('role')!r}", info)

    def _user(self, parts: list[Row], at: float | None) -> Iterator[Recorded]:
        asked = next((part for part in parts if part.get("type") == "compaction"), None)
        if asked is not None:
            self._asked_to_compact = (self.emitted, text(asked, "tail_start_id"))
        blocks = tuple(block for part in parts for block in _user_blocks(part))
        if blocks:
            yield Message("user", blocks, at)

    def _assistant(self, info: Row, parts: list[Row], at: float | None) -> Iterator[Recorded]:
        self._tally_usage(info, parts)
        steps = _steps(parts)
        for place, step in enumerate(steps):
            began = at if place == 0 else seconds(object_at(step[0], "time").get("start"))
            yield self._step(info, step, began, alone=len(steps) == 1)
            results = [part for part in step if part.get("type") == "tool" and not _runs(part)]
            if results:
                yield self._results(results)
        if info.get("summary") is True:
            yield from self._compaction(parts, seconds(object_at(info, "time").get("completed")) or at)

    def _tally_usage(self, info: Row, parts: list[Row]) -> None:
        """Tally the tokens reported by each finished step, or by the message if no step has finished."""
        finished = [part for part in parts if part.get("type") == "step-finish" and object_at(part, "tokens")]
        for place, part in enumerate(finished):
            self._tally.add((self.emitted, place), _usage(object_at(part, "tokens")))
        if not finished:
            self._tally.add((self.emitted, 0), _usage(object_at(info, "tokens")))

    def _step(self, info: Row, step: list[Row], at: float | None, *, alone: bool) -> Message:
        finish = next((part for part in step if part.get("type") == "step-finish"), {})
        tokens = object_at(info, "tokens") if alone and object_at(info, "tokens") else object_at(finish, "tokens")
        failed = object_at(info, "error")
        return Message(
            role="assistant",
            blocks=tuple(block for part in step for block in self._blocks(part)),
            at=at,
            model=text(info, "modelID"),
            usage=_usage(tokens),
            stop=_failure(failed) if failed else text(finish, "reason") or text(info, "finish"),
            id=text(info, "id"),
        )

    def _blocks(self, part: Row) -> Iterator[Block]:
        kind = text(part, "type")
        if kind == "text":
            yield Text(text(part, "text") or "")
        elif kind == "reasoning":
            yield Thinking(text(part, "text") or "")
        elif kind == "tool":
            arguments = json_text(object_at(object_at(part, "state"), "input"))
            yield self.calls.add_call(text(part, "callID", "id") or "", text(part, "tool") or "", arguments)
        elif kind == "file":
            yield _attachment_block(part)

    def _results(self, parts: list[Row]) -> Message:
        ends = [seconds(object_at(object_at(part, "state"), "time").get("end")) for part in parts]
        return Message(
            "tool", tuple(self._result(part) for part in parts), max((end for end in ends if end), default=None)
        )

    def _result(self, part: Row) -> ToolResult:
        state = object_at(part, "state")
        call_id, name = self.calls.answers(text(part, "callID", "id") or "")
        pruned_at = seconds(object_at(state, "time").get("compacted"))
        if pruned_at is not None:
            self.prunings.note(pruned_at, call_id)
        words = text(state, "output", "error") or ""
        shown: ShownLines | None = line_run(words) if name == "read" else None
        return ToolResult(call_id, words, name, state.get("status") == "error", shown=shown)

    def _compaction(self, parts: list[Row], at: float | None) -> Iterator[Recorded]:
        """Yield the summary in place of all earlier messages, except a tail kept by newer versions before the
        compaction request.
        """
        summary = "\n".join(text(part, "text") or "" for part in parts if part.get("type") == "text")
        began, tail = self._asked_to_compact or (self.emitted, None)
        first = self._placed.get(tail or "", began)
        told = {"kept": max(0, began - first), "behind_kept": self.emitted - began, "summary_chars": len(summary)}
        yield HostEvent("compaction", at, json_text(told))
        yield Message("user", (Text(summary, "compact_summary"),), at)


def _runs(part: Row) -> bool:
    """Return whether a call is under way, so that it has no result yet."""
    return text(object_at(part, "state"), "status") in ("pending", "running")


def _failure(error: Row) -> str:
    return "aborted" if text(error, "name") in _FAILED else "error"


def _steps(parts: list[Row]) -> list[list[Row]]:
    """Return the model calls of a stored message: older versions put all steps of a turn into one message."""
    steps: list[list[Row]] = [[]]
    for part in parts:
        if part.get("type") == "step-start" and any(old.get("type") != "step-start" for old in steps[-1]):
            steps.append([])
        steps[-1].append(part)
    return steps


def _usage(tokens: Row) -> Usage | None:
    if not tokens:
        return None
    cache = object_at(tokens, "cache")
    fresh, output, thought = count(tokens, "input"), count(tokens, "output"), count(tokens, "reasoning")
    read, written = count(cache, "read"), count(cache, "write")
    apart = bool(thought) and count(tokens, "total") == fresh + read + written + output + thought
    return Usage(fresh=fresh, read=read, written=written, output=output + thought if apart else output)


def _user_blocks(part: Row) -> Iterator[Block]:
    kind = text(part, "type")
    if kind == "text" and part.get("ignored") is not True:
        yield Text(text(part, "text") or "", "synthetic" if part.get("synthetic") is True else None)
    elif kind == "file":
        yield _attachment_block(part)
    elif kind == "compaction":
        yield Text("What did we do so far?", "compaction_request")


def _attachment_block(part: Row) -> Block:
    kind, url = text(part, "mime") or "", text(part, "url") or ""
    if kind.startswith("image/"):
        return Image(kind, len(url.partition("base64,")[2]))
    return Other("file", json_text({"mime": kind, "filename": text(part, "filename") or ""}))
