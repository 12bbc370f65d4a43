"""Read a source: detect its format by content, and pass its lines to the reader of this format."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from pagein.errors import BadInput, NoSession
from pagein.model.messages import UnreadableLine
from pagein.replay.readers import claude_code, codex, copilot_cli, corpus, gemini_cli, opencode, pi, requests_log
from pagein.replay.readers.line_index import IndexedLine, indexed_lines
from pagein.replay.readers.row_fields import objects, text
from pagein.replay.readers.rows import DAMAGE, decode_json, rows_at
from pagein.replay.readers.source import MAGIC_SQLITE, Source, open_stream
from pagein.replay.record.recorded_session import RecordedSession

Reader: TypeAlias = Callable[[Source, Sequence[IndexedLine]], Iterator[RecordedSession]]

READERS: Final[dict[str, Reader]] = {
    "corpus": corpus.sessions,
    "pi": pi.sessions,
    "claude-code": claude_code.sessions,
    "codex": codex.sessions,
    "gemini-cli": gemini_cli.sessions,
    "copilot-cli": copilot_cli.sessions,
    "requests": requests_log.sessions,
}
_KNOWN: Final = (
    "pagein-session/1, pi, Claude Code, codex, OpenCode, Gemini CLI, Copilot CLI, logs of Anthropic or OpenAI requests"
)
_OWN_NAMES: Final = frozenset(("codex", "gemini-cli", "copilot-cli"))
_SPEAKING: Final = {
    "corpus": frozenset(("msg",)),
    "pi": frozenset(("message",)),
    "claude-code": frozenset(("prompt", "assistant", "result")),
    "codex": frozenset(("response_item", "bare")),
    "gemini-cli": frozenset(("user", "gemini", "set", "record")),
    "copilot-cli": frozenset(("user.message", "assistant.message")),
}
_BOM: Final = b"\xef\xbb\xbf"
_WIDE_MARKS: Final = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")
_LONGEST_MARK: Final = 4
_HEAD: Final = 8192
_LARGEST_DOCUMENT: Final = 1 << 30


def read_source(source: Source) -> Iterator[RecordedSession]:
    """Yield the recorded sessions of a source, each with entries read on demand.

    A file may hold several: sub-agents inside their parent's file, sessions one after the other, mixed lines of two
    agents. Raises BadInput, naming file and line, for a source without any session.
    """
    if source.member is not None or _is_database(source):
        yield from opencode.sessions_of_database(source)
    elif _is_document(_head(source)):
        yield from _document(source)
    else:
        yield from _of_lines(source, list(indexed_lines(source)))


def check(source: Source) -> None:
    """Raise the errors of `read_source`, but read the file only as far as its first message."""
    if source.member is not None or _is_database(source):
        next(opencode.sessions_of_database(source), None)
        return
    if _is_document(_head(source)):
        next(_document(source), None)
        return
    seen: list[IndexedLine] = []
    for mark in indexed_lines(source):
        seen.append(mark)
        if _tells(mark) and _is_proved(seen):
            break
    next(_of_lines(source, seen), None)


def _of_lines(source: Source, found: Sequence[IndexedLine]) -> Iterator[RecordedSession]:
    stretches = _stretches(found)
    if not stretches:
        unknown = bool(found) and not any(mark.format for mark in found)
        if unknown and (len(found) == 1 or found[0].why.startswith(("not JSON", "torn"))):
            yield from _document(source, found)
            return
        raise _useless(source, found)
    for marked in stretches:
        refused = next((mark for mark in marked if mark.kind == "unknown-schema"), None)
        if refused is not None:
            raise BadInput(f"{source.label}, line {refused.line}: {refused.why}. Read it with a newer pagein")
    mixed = len({mark.format for mark in found if mark.format}) > 1
    for marked in stretches:
        yield from _flag_sessions(_sessions(source, marked), marked, mixed=mixed)


def _head(source: Source) -> bytes:
    """Return the first bytes. Raises BadInput for an empty or a binary file."""
    try:
        with open_stream(source) as stream:
            head = stream.read(_HEAD)
    except DAMAGE as error:
        raise BadInput(f"{source.label}: cannot be read: {str(error) or type(error).__name__}") from error
    if not head.strip():
        raise NoSession(f"{source.label}: an empty file. Give one with a recorded session in it")
    if _is_wide(head):
        raise BadInput(f"{source.label}: text in UTF-16 or UTF-32. Save it as UTF-8, for example with iconv")
    if b"\0" in head:
        raise BadInput(f"{source.label}: a binary file. Give a file in one of these formats: {_KNOWN}")
    return head


def _is_wide(head: bytes) -> bool:
    """Return whether these bytes are text of two or four bytes a letter, with a byte order mark or, for plain letters,
    without.
    """
    some = head[: _LONGEST_MARK * 16]
    return some.startswith(_WIDE_MARKS) or (any(some) and not (any(some[::2]) and any(some[1::2])))


def _is_document(head: bytes) -> bool:
    """Return whether a file with this beginning is one JSON value over several lines, or a list."""
    first, _, rest = head.removeprefix(_BOM).lstrip().partition(b"\n")
    return first.startswith(b"[") or (first.strip() == b"{" and bool(rest.strip()))


def _is_database(source: Source) -> bool:
    if source.path is None:
        return False
    try:
        with source.path.open("rb") as file:
            return file.read(len(MAGIC_SQLITE)) == MAGIC_SQLITE
    except OSError:
        return False


def _stretches(found: Sequence[IndexedLine]) -> list[list[IndexedLine]]:
    """Return the lines of each session distinguishable by the shapes of lines; those of sub-agents stay together.

    Lines of one format continue the last session of this format. A line of no known format joins the session of the
    line before.
    """
    stretches: list[list[IndexedLine]] = []
    open_of: dict[str, list[IndexedLine]] = {}
    lost: list[IndexedLine] = []
    current: list[IndexedLine] | None = None
    for mark in found:
        if not mark.format:
            (lost if current is None else current).append(mark)
            continue
        stretch = open_of.get(mark.format)
        if stretch is None or _begins_another(mark, stretch):
            stretch = lost
            lost = []
            stretches.append(stretch)
            open_of[mark.format] = stretch
        stretch.append(mark)
        current = stretch
    return [marked for marked in stretches if any(map(_tells, marked)) and _is_proved(marked)]


def _tells(mark: IndexedLine) -> bool:
    return _speaks(mark) or mark.kind == "unknown-schema"


def _is_proved(marked: Sequence[IndexedLine]) -> bool:
    """Return whether lines with a shape common to several agents belong to this one: pi's messages look like others'."""
    return all(mark.format != "pi" for mark in marked) or any(mark.proof for mark in marked)


def _begins_another(mark: IndexedLine, stretch: Sequence[IndexedLine]) -> bool:
    """Return whether this line opens a new session instead of continuing the one before.

    A codex rollout repeats its own header when resumed, and holds the headers of the threads it was forked from. Other
    agents may repeat their header as well.
    """
    if mark.format == "opencode":
        return True
    if not mark.begins or mark.format == "requests":
        return False
    if mark.format not in _OWN_NAMES:
        return True
    own = [header for header in stretch if header.begins]
    return bool(own) and mark.id not in {name for header in own for name in (header.id, header.parent)}


def _speaks(mark: IndexedLine) -> bool:
    """Return whether this line is part of the conversation, and not a note beside it."""
    kinds = _SPEAKING.get(mark.format)
    return bool(mark.format) if kinds is None else mark.kind in kinds


def _sessions(source: Source, marked: Sequence[IndexedLine]) -> Iterator[RecordedSession]:
    kind = next(mark.format for mark in marked if mark.format)
    if kind != "opencode":
        yield from READERS[kind](source, marked)
        return
    for _, row in rows_at(source, [mark.line for mark in marked if mark.format]):
        if not isinstance(row, UnreadableLine):
            yield opencode.session_of_export(source, row)


def _flag_sessions(
    sessions: Iterator[RecordedSession], marked: Sequence[IndexedLine], *, mixed: bool
) -> Iterator[RecordedSession]:
    """Flag sessions in a file shared with another format; the first line distinguishes sessions without a name."""
    first = next(mark.line for mark in marked if mark.format)
    for session in sessions:
        head = session.head
        flags = {**head.flags, "mixed_file": True, "first_line": first} if mixed else head.flags
        yield replace(session, head=replace(head, flags=flags))


def _document(source: Source, found: Sequence[IndexedLine] = ()) -> Iterator[RecordedSession]:
    """Yield the sessions of a JSON document. found: its lines, if the file was first read as lines."""
    try:
        document = _decode_source(source, found)
    except BadInput:
        lines = [] if found else list(indexed_lines(source))
        if not _stretches(lines):
            raise
        yield from _of_lines(source, lines)
        return
    rows = list(objects(document if isinstance(document, list) else [document]))
    if rows and all(text(row, "role") and "content" in row for row in rows):
        rows = [{"messages": rows}]
    exports = [row for row in rows if opencode.is_export(row)]
    if exports:
        yield from (opencode.session_of_export(source, row) for row in exports)
    elif rows and all(gemini_cli.is_record(row) for row in rows):
        yield from (gemini_cli.session_of_record(source, row) for row in rows)
    elif len(rows) == 1 and opencode.is_info(rows[0]):
        yield opencode.folder_session(source, rows[0])
    elif any(requests_log.is_request(row) for row in rows):
        yield from requests_log.sessions_of_list(source, rows)
    else:
        raise NoSession(f"{source.label}, line 1: JSON, but no session. Give a file in one of these formats: {_KNOWN}")


def _decode_source(source: Source, found: Sequence[IndexedLine]) -> object:
    try:
        with open_stream(source) as stream:
            raw = stream.read(_LARGEST_DOCUMENT)
        if len(raw) == _LARGEST_DOCUMENT:
            raise BadInput(
                f"{source.label}: one JSON document of over {_LARGEST_DOCUMENT >> 20} MiB; split it into lines"
            )
        return decode_json(raw)
    except DAMAGE as error:
        raise BadInput(f"{source.label}: cannot be read: {str(error) or type(error).__name__}") from error
    except ValueError as error:
        if found:
            raise _useless(source, found) from error
        raise BadInput(f"{source.label}: the JSON document is torn or damaged ({error}). Export it again") from error


def _useless(source: Source, found: Sequence[IndexedLine]) -> NoSession:
    known = next((mark for mark in found if mark.format), None)
    if known is not None:
        kind = "pagein-session/1" if known.format == "corpus" else known.format
        if any(map(_speaks, found)):
            why = f"lines as {kind} has them, but none that only {kind} writes"
            return NoSession(f"{source.label}, line {known.line}: {why}. Give a file in one of these formats: {_KNOWN}")
        return NoSession(f"{source.label}, line {known.line}: a {kind} file without a message in it")
    first = found[0] if found else IndexedLine(1, "", why="blank")
    return NoSession(f"{source.label}, line {first.line}: {first.why}. Give a file in one of these formats: {_KNOWN}")
