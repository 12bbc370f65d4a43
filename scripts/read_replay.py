"""Replay recorded reads through the read policy: the cost of re-reads, and a proof of every marker.

Recordings hold no files, so each file is rebuilt: from the snapshot before the next edit of the path, from the text
after the last edit, or, where neither shows the lines of the read, from the reads and edits so far (a line never shown
has a unique stand-in and never matches). Only reads by a file tool with line numbers count. A compaction clears the
known lines. Sizes are characters of file text without line numbers.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import msgspec

from pagein.model.documents import Document
from pagein.model.messages import HostEvent, Message, Recorded, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.read_events import FileWrite, ReadClaim, claim_of
from pagein.model.spans import NO_LINES
from pagein.policy.audit.witness import witness
from pagein.policy.reads.baseline import Baseline
from pagein.policy.reads.knowledge import NOTHING, Knowledge, step
from pagein.policy.reads.own_writes import edit_event, follow_edit, unplaced_edit_event, write_event
from pagein.policy.reads.read_answers import decide
from pagein.policy.reads.read_request import ReadRequest
from pagein.policy.reads.text_edit import TextEdit

Origin: TypeAlias = Literal["snapshot", "edited", "rebuilt"]

_NUMBERED = re.compile(r"^\s*(\d+)(?:→|\t)(.*)$")
_UNSEEN = "\0never shown, line "
_TELLING = 3  # a line of fewer non-blank characters recurs by accident
_RUN = 5
_NOT_TOLD = ContentHash.of(b"")


@dataclass(slots=True)
class ReadFigures:
    """The measured figures.

    chars: file text in read results, characters.
    answered: text of the answers in place of the results, characters.
    repeated: characters in runs of five or more meaningful lines shown by an earlier read of the path: the upper limit.
    modes: answers by mode.
    sources: origin of each file.
    objections: objections of the witness.
    """

    reads: int = 0
    again: int = 0
    chars: int = 0
    answered: int = 0
    repeated: int = 0
    modes: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    objections: list[str] = field(default_factory=list)

    def add(self, other: "ReadFigures") -> None:
        """Add the figures of another session."""
        self.reads += other.reads
        self.again += other.again
        self.chars += other.chars
        self.answered += other.answered
        self.repeated += other.repeated
        self.modes += other.modes
        self.sources += other.sources
        self.objections += other.objections

    @property
    def saved(self) -> int:
        """Characters not sent, net of markers and diffs."""
        return self.chars - self.answered


def replay_reads(
    entries: Iterable[Recorded], snapshots: Callable[[str], str | None], *, authored: bool = True
) -> ReadFigures:
    """Replay the reads of a session.

    snapshots: returns a whole file by its name in the recording.
    authored: whether text written by the model counts as seen.
    """
    replayed = _Reads(list(_happenings(entries)), snapshots, authored=authored)
    return replayed.run()


# ── events of files ────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _RecordedRead:
    call: ToolCall
    path: str
    first: int
    lines: tuple[str, ...]
    total: int


@dataclass(frozen=True, slots=True)
class _RecordedEdit:
    """An edit (with old and new text) or a write (old is None). before: recorded name of the whole file before the
    change.
    """

    call: ToolCall
    path: str
    old: str | None
    new: str
    everywhere: bool
    before: str | None


@dataclass(frozen=True, slots=True)
class _RecordedClear:
    """A compaction."""


_Happening: TypeAlias = _RecordedRead | _RecordedEdit | _RecordedClear


def _happenings(entries: Iterable[Recorded]) -> Iterator[_Happening]:
    calls: dict[str, ToolCall] = {}
    for entry in entries:
        if isinstance(entry, HostEvent) and entry.kind == "compaction":
            yield _RecordedClear()
        if not isinstance(entry, Message):
            continue
        for block in entry.blocks:
            if isinstance(block, ToolCall):
                calls[block.id] = block
            elif isinstance(block, ToolResult) and block.call_id in calls and not block.is_error:
                yield from _events_of(calls[block.call_id], block)


def _events_of(call: ToolCall, result: ToolResult) -> Iterator[_Happening]:
    native = next((access for access in call.accesses if access.via == "native"), None)
    if native is None:
        return
    if native.op == "read":
        numbered = [found for line in result.text.split("\n") if (found := _NUMBERED.match(line))]
        if numbered:
            # asked for offset 0, the host begins to count there; the lines are those from the first one all the same
            first, lines = max(1, int(numbered[0][1])), tuple(found[2] for found in numbered)
            known_total = result.shown.total if result.shown else None
            yield _RecordedRead(call, native.path, first, lines, max(known_total or 0, first + len(lines) - 1))
        return
    try:
        arguments = msgspec.json.decode(call.arguments, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeError):
        return
    if native.op == "write":
        yield _RecordedEdit(call, native.path, None, str(arguments.get("content", "")), False, result.before)  # noqa: FBT003
    elif native.op == "edit":
        old, new = str(arguments.get("old_string", "")), str(arguments.get("new_string", ""))
        yield _RecordedEdit(call, native.path, old, new, bool(arguments.get("replace_all")), result.before)


# ── the replay ─────────────────────────────────────────────────────────────


class _Reads:
    def __init__(self, happenings: list[_Happening], snapshots: Callable[[str], str | None], *, authored: bool) -> None:
        self._happenings = happenings
        self._snapshots = snapshots
        self._authored = authored
        self._figures = ReadFigures()
        self._files = _Files()
        self._store: dict[ContentHash, bytes] = {}
        self._begin()

    def _begin(self) -> None:
        """Start a new window: nothing is known, nothing is visible."""
        self._known: Knowledge = NOTHING
        self._messages: list[Message] = []
        self._claims: dict[str, ReadClaim] = {}
        self._shown: dict[str, set[str]] = {}

    def run(self) -> ReadFigures:
        upcoming = _next_snapshots(self._happenings, self._snapshots)
        for happening, snapshot in zip(self._happenings, upcoming, strict=True):
            match happening:
                case _RecordedRead():
                    self._read(happening, snapshot)
                case _RecordedEdit():
                    self._change(happening, snapshot)
                case _RecordedClear():
                    self._end()
        self._end()
        return self._figures

    def _read(self, read: _RecordedRead, snapshot: str | None) -> None:
        figures = self._figures
        lines, source = self._files.at(read, snapshot)
        content = "\n".join(lines).encode("utf-8", "surrogatepass")
        document = Document.of(content, path=read.path, key=read.path)
        if not document.is_text:
            return
        self._store[document.hash] = content
        baseline = Baseline("\n".join(read.lines), "", read.first, len(read.lines), len(lines))
        request = ReadRequest(document, read.path, read.first, read.first + len(read.lines) - 1, baseline)
        decision = decide(request, self._known.of(read.path), self._store.get)
        self._known = step(self._known, decision.event)
        self._say(read.call, decision.text, claim_of(decision.event))
        figures.reads += 1
        figures.again += read.path in self._shown
        figures.chars += len(baseline.text)
        figures.answered += len(decision.text)
        figures.modes[decision.event.mode] += 1
        figures.sources[source] += 1
        shown = self._shown.setdefault(read.path, set())
        figures.repeated += _count_repeated(read.lines, shown)
        shown.update(read.lines)

    def _change(self, change: _RecordedEdit, snapshot: str | None) -> None:
        before = snapshot if change.before is not None else self._files.whole(change.path)
        rebuilt = before is None and change.old is not None
        if before is None:
            before = self._files.as_told(change.path)
        after = _apply_change(change, before)
        self._files.note_change(change, after, rebuilt=rebuilt)
        if after is None:
            self._known = step(self._known, FileWrite(change.path, _NOT_TOLD, 1, NO_LINES))
            return
        event: FileWrite | None
        if change.old is None:
            event = write_event(change.path, after)
        else:
            edit, known = TextEdit(change.old, change.new, change.everywhere), self._known.of(change.path)
            event = edit_event(change.path, after, edit, known, before=before)
            if event is not None and before is not None:
                event = follow_edit(event, before, known, self._store.get)
        if event is None:
            event = unplaced_edit_event(change.path, after)
        if not self._authored:  # the written text does not count as seen; the fact and the place of the edit stay known
            event = replace(event, authored=NO_LINES, whole=False)
        self._store[event.version] = after.encode("utf-8", "surrogatepass")
        self._known = step(self._known, event)
        self._say(change.call, "ok", claim_of(event))

    def _say(self, call: ToolCall, text: str, claim: ReadClaim) -> None:
        name = f"{call.id}#{len(self._messages)}"  # recordings repeat ids
        again = ToolCall(name, call.name, call.arguments)
        self._messages.append(Message("assistant", (again,)))
        self._messages.append(Message("tool", (ToolResult(name, text),)))
        self._claims[name] = claim

    def _end(self) -> None:
        for objection in witness(self._messages, self._claims, self._store.get):
            self._figures.objections.append(f"{objection.call_id}: {objection.why} (line {objection.line})")
        self._begin()


def _next_snapshots(happenings: list[_Happening], snapshots: Callable[[str], str | None]) -> list[str | None]:
    """Return, for each event, the whole file before the next change of its path (for a change, its own `before`)."""
    upcoming: dict[str, str | None] = {}
    found: list[str | None] = []
    for happening in reversed(happenings):
        if isinstance(happening, _RecordedEdit):
            upcoming[happening.path] = snapshots(happening.before) if happening.before else None
        found.append(None if isinstance(happening, _RecordedClear) else upcoming.get(happening.path))
    found.reverse()
    return found


def _apply_change(change: _RecordedEdit, before: str | None) -> str | None:
    if change.old is None:
        return change.new
    if before is None or not change.old or change.old not in before:
        return None
    return before.replace(change.old, change.new, -1 if change.everywhere else 1)


class _Files:
    """The current content of each file, as far as recorded. A line never shown is None."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str | None]] = {}
        self._edited: dict[str, str] = {}

    def whole(self, path: str) -> str | None:
        """Return the text of a file with every line known, else None."""
        return self._edited.get(path)

    def as_told(self, path: str) -> str | None:
        """Return the text as recorded, with a stand-in for each line never shown."""
        lines = self._lines.get(path)
        return None if lines is None else "\n".join(_fill_lines(lines))

    def note_change(self, change: _RecordedEdit, after: str | None, *, rebuilt: bool) -> None:
        """Record a change of the file by a call. rebuilt: whether the content comes from the reads so far alone."""
        self._edited.pop(change.path, None)
        if after is None:
            self._lines.pop(change.path, None)
            return
        lines = [None if line.startswith(_UNSEEN) else line for line in after.split("\n")]
        self._lines[change.path] = lines
        if None not in lines and not rebuilt:
            self._edited[change.path] = after

    def at(self, read: _RecordedRead, snapshot: str | None) -> tuple[list[str], Origin]:
        """Return the lines of the file at this read, and their origin."""
        candidates: tuple[tuple[Origin, str | None], ...] = (
            ("snapshot", snapshot),
            ("edited", self._edited.get(read.path)),
        )
        for source, text in candidates:
            lines = None if text is None else _lines_as_shown(text, read)
            if lines is not None:
                self._lines[read.path] = list(lines)
                return lines, source
        return self._rebuilt(read), "rebuilt"

    def _rebuilt(self, read: _RecordedRead) -> list[str]:
        lines = self._lines.get(read.path, [])[: read.total]
        lines += [None] * (read.total - len(lines))
        lines[read.first - 1 : read.first - 1 + len(read.lines)] = read.lines
        self._lines[read.path] = lines
        self._edited.pop(read.path, None)
        return _fill_lines(lines)


def _fill_lines(lines: list[str | None]) -> list[str]:
    return [f"{_UNSEEN}{n}" if line is None else line for n, line in enumerate(lines, 1)]


def _lines_as_shown(text: str, read: _RecordedRead) -> list[str] | None:
    """Return the lines of a text if they match the read. A host may omit the empty line after the last newline."""
    lines = text.split("\n")
    if lines and not lines[-1] and read.total == len(lines) - 1:
        lines.pop()
    return lines if tuple(lines[read.first - 1 : read.first - 1 + len(read.lines)]) == read.lines else None


def _count_repeated(lines: tuple[str, ...], shown: set[str]) -> int:
    """Return the characters of runs of known lines with five meaningful ones.

    Short lines neither end a run nor count.
    """
    total = run = telling = 0
    for line in (*lines, None):
        blank = line is not None and len("".join(line.split())) < _TELLING
        if line is not None and (blank or line in shown):
            if not blank:
                telling += 1
                run += len(line) + 1
            continue
        total += run if telling >= _RUN else 0
        run = telling = 0
    return total
