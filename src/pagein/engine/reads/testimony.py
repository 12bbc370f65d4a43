"""Collect the input of the witness: messages of a request, claims of calls, and answers that are not in a message yet.

An answer without a message is appended in the form that the client will use: a marker in its original words, which the
hash in the journal confirms; a diff, or a text with markers, from the store under that hash; plain text from the
version that it shows.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pagein.engine.log.journal import Fold, replay_journal
from pagein.engine.log.read_notes import trace_of
from pagein.engine.log.request_draft import pieces_since
from pagein.engine.log.state import START, Rules, State
from pagein.engine.log.state_fold import step
from pagein.engine.reads import reread_notes
from pagein.engine.reads.evidence import START as NO_EVIDENCE
from pagein.engine.reads.evidence import Evidence
from pagein.engine.reads.evidence import step as with_evidence
from pagein.errors import BadName
from pagein.model.entries import CompactionEntry, Entry, EntryId, EpochEntry, MessageEntry, PreviewEntry, RequestSent
from pagein.model.journal_notes import ReadNote
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.read_events import FileRead, FileWrite, ReadClaim, claim_of
from pagein.policy.audit.witness import Objection, witness
from pagein.policy.eviction.residency import Residency
from pagein.policy.reads import markers
from pagein.policy.reads.trust import rule_of

Stored: TypeAlias = Callable[[ContentHash], bytes | None]
KEPT: Final = frozenset({"diff", "range_diff", "partly_known"})
"""Modes of answers whose text is stored."""

_UNSAID: Final = "\0unsaid-"
CANDIDATE: Final = "\0candidate"
"""Call id for an answer that is judged before it is journaled."""


@dataclass(slots=True)
class Testimony:
    """The input of the witness.

    messages: the messages.
    claims: the claim of each call, by call id.
    """

    messages: list[Message] = field(default_factory=list)
    claims: dict[str, ReadClaim] = field(default_factory=dict)

    def add(self, call: str, event: FileRead | FileWrite, text: str) -> None:
        """Add a call without a message, with the answer or the written text."""
        arguments = json.dumps({"text": text}) if isinstance(event, FileWrite) else "{}"
        self.messages.append(Message("assistant", (ToolCall(call, "", arguments),)))
        self.messages.append(Message("tool", (ToolResult(call, text),)))
        self.claims[call] = claim_of(event)

    def objections(self, stored: Stored) -> tuple[Objection, ...]:
        """Return the objections of the witness."""
        return witness(self.messages, self.claims, stored)


def make_testimony(
    evidence: Evidence, messages: Iterable[Message], stored: Stored, *, path: str | None = None
) -> Testimony:
    """Return the input of the witness at one point of a branch.

    messages: the request there.
    path: restrict the claims to one file; None for any file.
    """
    told = Testimony(list(messages), evidence.files.claims(path))
    for number, unsaid in enumerate(evidence.answers_unsaid()):
        event = unsaid.event
        if isinstance(event, FileRead | FileWrite) and path in (None, event.path):
            told.add(f"{_UNSAID}{number}", event, text_of(unsaid, stored) or "")
    return told


def text_of(told: ReadNote, stored: Stored) -> str | None:
    """Return the file text in an answer or a write, or the whole answer with markers; None if lost."""
    event = told.event
    if isinstance(event, FileRead) and not rule_of(event).anchors:
        worded = next((text for text in _markers(event) if trace_of(text) == told.trace), None)
        if worded is not None:
            return worded
        kept = _decode_content(_content(told.trace, stored))
        return None if kept is None else kept[told.before :]
    if not isinstance(event, FileRead | FileWrite):
        return None
    text = _decode_content(stored(event.version))
    if text is None:
        return None
    lines = text.split("\n")
    shown = event.authored if isinstance(event, FileWrite) else event.emitted or ()
    return "\n".join(line for first, last in shown for line in lines[first - 1 : last])


def _markers(event: FileRead) -> Iterator[str]:
    """Yield the possible words of the marker for this answer."""
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
    except BadName:  # a record without a hash, by another writer
        return None


def _decode_content(content: bytes | None) -> str | None:
    return None if content is None else content.decode("utf-8", "surrogatepass")


def window(state: State) -> list[Message]:
    """Return the messages of the next request."""
    return [piece.message for piece in pieces_since(state.draft.ready.tip, 0)]


def witness_objections(entries: Iterable[Entry], stored: Stored) -> Iterator[tuple[EntryId, Objection]]:
    """Yield the objections of the witness to a stored session, each once, with the entry of the judged request.

    Judges the last request before each eviction, and the last request of each branch. A branch without messages is
    judged by its reads. Reads by a client's own tools are judged in the same requests. Entries come parents first, with
    whole branches.
    """
    rules = Rules(Residency())
    journal = replay_journal(START, lambda state, body: step(state, body, rules), entries)
    ground = Fold(journal, NO_EVIDENCE, with_evidence)
    seen = Fold(journal, reread_notes.NOBODY, reread_notes.step)
    found: set[Objection] = set()
    for place in _requests(list(journal)):
        messages = window(journal.state_at(place))
        told = make_testimony(ground[place], messages, stored)
        shown = seen[place].settle().reads.files
        for objection in (*told.objections(stored), *witness(messages, shown.claims(), shown.versions().get)):
            if objection not in found:
                found.add(objection)
                yield place, objection


def _requests(entries: Sequence[Entry]) -> Iterable[EntryId]:
    """Return the entries at which a model saw the window."""
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
