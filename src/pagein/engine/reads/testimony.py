"""What the witness is told: the messages of a request, what each call in them stands for, and what was read but not said yet.

An answer that is not in a message yet is put behind them, as its host will say it: markers as they were worded, which the hash
in the journal confirms; diffs and texts with markers from the store, where each is kept under that hash; and plain text from the
version that it shows.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pagein.engine.log.folds import Fold
from pagein.engine.log.journal import replay_journal
from pagein.engine.log.read_notes import ReadNote, trace_of
from pagein.engine.log.rendering import pieces_since
from pagein.engine.log.state import START, Rules, State, step
from pagein.engine.reads import reread_notes
from pagein.engine.reads.evidence import START as NO_EVIDENCE
from pagein.engine.reads.evidence import Evidence
from pagein.engine.reads.evidence import step as with_evidence
from pagein.errors import BadName
from pagein.model.entries import CompactionEntry, Entry, EntryId, EpochEntry, MessageEntry, PreviewEntry, RequestSent
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.read_events import FileRead, FileWrite, ReadClaim, claim_of
from pagein.policy.audit.witness import Objection, witness
from pagein.policy.eviction.residency import Residency
from pagein.policy.reads import markers
from pagein.policy.reads.trust import rule_of

Stored: TypeAlias = Callable[[ContentHash], bytes | None]
KEPT: Final = frozenset({"diff", "range_diff", "partly_known"})
"""Modes of answers whose text is kept."""

_UNSAID: Final = "\0unsaid-"
CANDIDATE: Final = "\0candidate"
"""The call under which an answer is judged that is not journaled yet."""


@dataclass(slots=True)
class Testimony:
    """Messages, and by call id what each call stands for."""

    messages: list[Message] = field(default_factory=list)
    claims: dict[str, ReadClaim] = field(default_factory=dict)

    def add(self, call: str, event: FileRead | FileWrite, text: str) -> None:
        """A call that is not said yet, with the text that was answered, or that it put into the file."""
        arguments = json.dumps({"text": text}) if isinstance(event, FileWrite) else "{}"
        self.messages.append(Message("assistant", (ToolCall(call, "", arguments),)))
        self.messages.append(Message("tool", (ToolResult(call, text),)))
        self.claims[call] = claim_of(event)

    def objections(self, stored: Stored) -> tuple[Objection, ...]:
        """What the witness has against it."""
        return witness(self.messages, self.claims, stored)


def make_testimony(
    evidence: Evidence, messages: Iterable[Message], stored: Stored, *, path: str | None = None
) -> Testimony:
    """What can be said at one point of a branch. messages: the request there. path: of one file only."""
    told = Testimony(list(messages))
    for one in evidence.events_in_window():
        event = one.told.event
        if isinstance(event, FileRead | FileWrite) and path in (None, event.path):
            told.claims[one.call] = claim_of(event)
    for number, unsaid in enumerate(evidence.answers_unsaid()):
        event = unsaid.event
        if isinstance(event, FileRead | FileWrite) and path in (None, event.path):
            told.add(f"{_UNSAID}{number}", event, text_of(unsaid, stored) or "")
    return told


def text_of(told: ReadNote, stored: Stored) -> str | None:
    """The file's text in an answer or a write, or the whole answer where it stands for more than it shows. None where it is lost."""
    event = told.event
    if isinstance(event, FileRead) and not rule_of(event).anchors:
        worded = next((text for text in _markers(event) if trace_of(text) == told.trace), None)
        return _decode_content(_content(told.trace, stored)) if worded is None else worded
    if not isinstance(event, FileRead | FileWrite):
        return None
    text = _decode_content(stored(event.version))
    if text is None:
        return None
    lines = text.split("\n")
    shown = event.authored if isinstance(event, FileWrite) else event.emitted or ()
    return "\n".join(line for first, last in shown for line in lines[first - 1 : last])


def _markers(event: FileRead) -> Iterator[str]:
    """How a marker for this answer may have been worded."""
    match event.mode:
        case "unchanged":
            yield markers.unchanged_marker(event.total)
        case "unchanged_range":
            yield markers.lines_unchanged_marker(event.first, event.last, event.total)
            yield markers.inside_unchanged_marker(event.first, event.last)
        case "moved" if event.copies:
            yield markers.moved_marker(event.first, event.last, event.total, event.copies[0].first)
        case _:
            return


def _content(trace: str, stored: Stored) -> bytes | None:
    try:
        return stored(ContentHash.parse(trace))
    except BadName:  # a record of another writer, which does not tell
        return None


def _decode_content(content: bytes | None) -> str | None:
    return None if content is None else content.decode("utf-8", "surrogatepass")


def window(state: State) -> list[Message]:
    """The request as it would leave now."""
    return [piece.message for piece in pieces_since(state.draft.ready().tip, 0)]


def witness_objections(entries: Iterable[Entry], stored: Stored) -> Iterator[tuple[EntryId, Objection]]:
    """What the witness has against the requests of a kept session: the last before anything left the window, and the last of each branch.

    Of a branch that says nothing, what was read stands for its request. Reads by a client's own tools are judged in the same requests.
    Entries come parents first, each branch whole. Each objection comes once, with the entry behind which the request stood so.
    """
    rules = Rules(Residency())
    journal = replay_journal(START, lambda state, body: step(state, body, rules), entries)
    ground = Fold(journal, NO_EVIDENCE, with_evidence)
    seen = Fold(journal, reread_notes.NOBODY, reread_notes.step)
    found: set[Objection] = set()
    for place in _requests(list(journal)):
        messages = window(journal.state_at(place))
        told = make_testimony(ground.at(place), messages, stored)
        reads = seen.at(place).settle().reads
        for objection in (*told.objections(stored), *witness(messages, reads.claims(), reads.versions().get)):
            if objection not in found:
                found.add(objection)
                yield place, objection


def _requests(entries: Sequence[Entry]) -> Iterable[EntryId]:
    """The entries behind which a window stood as its model saw it."""
    sent: dict[EntryId | None, EntryId | None] = {None: None}
    silent: dict[EntryId | None, bool] = {None: True}
    for one in entries:
        sent[one.id] = one.id if isinstance(one.body, RequestSent) else sent[one.parent]
        silent[one.id] = silent[one.parent] and not isinstance(one.body, RequestSent | MessageEntry)
    parents = {one.parent for one in entries}
    barriers = [one.parent for one in entries if isinstance(one.body, CompactionEntry | EpochEntry | PreviewEntry)]
    ends = [one.id for one in entries if one.id not in parents]
    places = (place if silent[place] else sent[place] for place in (*barriers, *ends))
    return dict.fromkeys(place for place in places if place is not None)
