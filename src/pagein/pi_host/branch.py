"""Follow pi's session tree with the journal of a session: each message under the name that pi gave its entry.

Rules of this file
------------------
1. pi's branch is the truth. Missing entries are added to the journal, so an empty journal is rebuilt from the branch alone.
2. Answers to reads are journaled when they are given. Where the journal has no such record, the details that pi keeps
   with the result give it back.
3. When pi moves to another entry, the later records are on another branch and no longer count. The branch continues from the
   last request sent from its entry, with the decisions made for it, because the provider's cache holds that request. Behind
   calls it continues from what pagein's tools journaled for them: the results may be told by another process only.
"""

import contextlib
from collections.abc import Mapping
from typing import Any, Final

from pagein.engine.log.read_notes import trace_of
from pagein.engine.pooled_stages import POOLED
from pagein.engine.session import Session
from pagein.errors import CallerError, PageinError, StoreError
from pagein.model import read_records
from pagein.model.delegation_notes import ChildResultNote
from pagein.model.entries import CompactionEntry, Entry, EntryId, MessageEntry, NoteEntry, RecallEntry, RequestSent
from pagein.model.journal_notes import ClientNote, IngestNote, ReadNote, RecallNote
from pagein.model.json_text import decode_json
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.read_events import FileRead, FileRefresh, FileWrite, MalformedRecord
from pagein.pi_host.pi_messages import message_of
from pagein.pi_host.protocol import UNKNOWN_ENTRY, BranchDelta, Row
from pagein.pi_host.session_config import NOTHING_SAID, SessionConfig, read_config
from pagein.policy.reads.own_writes import trace_text
from pagein.policy.reads.text_edit import TextEdit
from pagein.policy.reads.trust import rule_of

READ_CACHE: Final = "pi-readcache"
"""Type of the entries that hold refreshes."""
TEXT_HASH: Final = "textHash"
"""Field of a read's record with the hash of the answer: an extension behind pagein's may have changed the text since."""
CONFIG: Final = "rlm-config"
"""Type of the entries that hold a session's own settings."""
MARKER: Final = "[readcache:"
"""How an answer of the read cache begins that rests on earlier text."""
_WRITERS: Final = ("write", "edit")
_MILLISECONDS: Final = 1000
_PI: Final = "pi"
"""Name of the client profile of pi."""


class UnknownEntry(PageinError):
    """The extension relies on an entry that this process does not know."""

    def __str__(self) -> str:
        return UNKNOWN_ENTRY


class PiBranch:
    """Pi's present branch in the journal of a session.

    pooled: whether new conversations are shown in the pooled layout; the journal then names pi as the client from its first
    entry on.
    waits: number of calls that children are still answering.
    calls: the tool calls seen, by id.
    results: the text of each result as pi has it, by the id of its call.
    has_markers: whether a result may depend on earlier results, on any branch.
    """

    def __init__(self, session: Session, *, pooled: bool = False) -> None:
        self._session = session
        self._pooled = pooled
        self._cwd = session.folder or ""
        self._places: dict[str | None, EntryId | None] = {None: None}
        self._messages: dict[str | None, int] = {None: 0}
        self._configs: dict[str | None, SessionConfig] = {None: NOTHING_SAID}
        self._refused: dict[str | None, bool] = {None: False}
        self._leaf: str | None = None
        self._here: EntryId | None = None
        self._began = False
        self._noted: set[str] = set()
        self._sent: Mapping[EntryId, EntryId] | None = None
        self.waits = 0
        self.calls: dict[str, ToolCall] = {}
        self.results: dict[str, str] = {}
        self.has_markers = False

    def follow(self, delta: BranchDelta) -> None:
        """Go to pi's leaf, and journal the new entries. Raises UnknownEntry."""
        if delta.known not in self._places:
            raise UnknownEntry
        self._sent = None
        if self._began and delta.known == self._leaf:
            self._go_on()
        if not self._began or delta.known != self._leaf or self._session.leaf != self._here:
            stays = self._began and delta.known == self._leaf
            self._session.move(self._here if stays else self._behind(self._places[delta.known]))
            self._leaf, self._began = delta.known, True
        for entry in delta.entries:
            self._add(entry)
        self.stay()

    @property
    def config(self) -> SessionConfig:
        """The settings in the entries of the branch."""
        return self._configs[self._leaf]

    @property
    def is_refused(self) -> bool:
        """Whether the last answer of the model's provider was an error."""
        return self._refused[self._leaf]

    def stay(self) -> None:
        """Take the session's current entry for the end of the branch: something was journaled there."""
        self._here = self._session.leaf

    def _go_on(self) -> None:
        """Go on behind the notes of others at the end of the branch: children's answers, pins of another process."""
        with contextlib.suppress(StoreError):
            self._session.catch_up()
        journal, at = self._session.journal.entries, self._session.leaf
        while at != self._here and at in journal and isinstance(journal[at].body, NoteEntry | RecallEntry):
            at = journal[at].parent
        if at == self._here:
            self.stay()

    def note_answered(self, call_id: str) -> None:
        """Record that the journal has a call's record before the result."""
        self._noted.add(call_id)
        self.stay()

    def _behind(self, place: EntryId | None) -> EntryId | None:
        """Return where the branch goes on from an entry of the journal."""
        if self._sent is None:
            self._sent = continuations(self._session.journal.entries)
        return place if place is None else self._sent.get(place, place)

    def _add(self, entry: Row) -> None:
        name = str(entry.get("id"))
        message = message_of(entry, self._cwd)
        count, config, refused = self._messages[self._leaf], self._configs[self._leaf], self._refused[self._leaf]
        if message is not None:
            self._remember(message)
            count += 1
            refused = refused if message.role != "assistant" else entry["message"].get("stopReason") == "error"
            if name in self._session.journal:
                self._session.move(self._behind(name))
            else:
                self._journal(name, entry, message)
        elif entry.get("type") == "custom" and entry.get("customType") == READ_CACHE:
            self._note(read_records.decode_entry(entry.get("data")))
        elif entry.get("type") == "custom" and entry.get("customType") == CONFIG:
            config = read_config(entry.get("data"), config)
        self._configs[name], self._refused[name] = config, refused
        self._messages[name], self._places[name], self._leaf = count, self._session.leaf, name

    def _journal(self, name: str, entry: Row, message: Message) -> None:
        if entry.get("type") == "compaction":
            # in the pooled layout, what pi keeps stands whole, as pi has it
            is_pooled = self._pooled or POOLED in self._session.journal.kinds
            self._session.note_compaction(0 if is_pooled else self._kept(entry))
        if self._pooled and self._session.leaf is None:
            self._session.note(ClientNote(_PI))
        for block in message.blocks:
            if isinstance(block, ToolResult) and not block.is_error:
                self._note_from_details(block, entry["message"].get("details"))
        self._session.append(message, name=name)

    def _kept(self, entry: Row) -> int:
        """Return the number of last messages that a compaction keeps."""
        first = entry.get("firstKeptEntryId")
        if first not in self._messages or first is None:
            return 0
        return self._messages[self._leaf] - self._messages[first] + 1

    def _remember(self, message: Message) -> None:
        if message.role == "assistant" and message.model:
            self._session.model = message.model
        for block in message.blocks:
            if isinstance(block, ToolCall):
                self.calls[block.id] = block
            elif isinstance(block, ToolResult):
                self.results[block.call_id] = block.text
                self.has_markers |= MARKER in block.text

    def _note_from_details(self, result: ToolResult, details: Any) -> None:  # noqa: ANN401 - any JSON
        call = self.calls.get(result.call_id)
        given = call.accesses[0].path if call is not None and call.accesses else ""
        record = details.get("readcache") if isinstance(details, dict) else None
        event: FileRead | FileWrite | FileRefresh | MalformedRecord
        if result.name == "read" and _is_changed(record, result.text):
            event, text = MalformedRecord("another text was shown"), result.text
        elif result.call_id in self._noted:
            return
        elif result.name in _WRITERS and call is not None:
            event, text = read_records.decode_entry(record), written_text(call)
        elif result.name == "read":
            event, text = read_records.decode(details, result.text), result.text
        else:
            return
        if isinstance(event, MalformedRecord):
            self._forget(given)
        self._note(event, text, given)

    def _forget(self, given: str) -> None:
        """End what is known of a file: a call showed or changed it and left no record, as while pagein was off or late."""
        reads = self._session.reads
        if not given:
            return
        with contextlib.suppress(CallerError):
            key = reads.key_of(reads.files.locate(given))
            if reads.knowledge.of(key).view:
                reads.note_refresh(FileRefresh(key))

    def _note(
        self, event: FileRead | FileWrite | FileRefresh | MalformedRecord, text: str = "", given: str = ""
    ) -> None:
        if isinstance(event, MalformedRecord):
            return  # counts for nothing
        if isinstance(event, FileRefresh):
            self._session.reads.note_refresh(event)
            return
        sent = len(text.encode("utf-8", "surrogatepass"))
        whole = sent
        if isinstance(event, FileRead) and not rule_of(event).anchors:
            whole = event.size * (event.last - event.first + 1) // event.total
        self._session.note(ReadNote(event, trace_of(text), given, whole, sent))


def _is_changed(record: Any, text: str) -> bool:  # noqa: ANN401 - any JSON
    """Return whether an answer differs from the answer of the record. False for a record without a hash."""
    told = record.get(TEXT_HASH) if isinstance(record, dict) else None
    return told is not None and told != trace_of(text)


def continuations(journal: Mapping[EntryId, Entry]) -> dict[EntryId, EntryId]:
    """Return the last request that was sent from each entry, with no message in between; else the last note of a tool."""
    sent: dict[EntryId, EntryId] = {}
    noted: dict[EntryId, EntryId] = {}
    for entry in journal.values():
        match entry.body:
            case RequestSent():
                found = sent
            case NoteEntry(note=IngestNote() | ChildResultNote() | RecallNote()):
                found = noted
            case _:
                continue
        at = entry.parent
        while at is not None and at in journal:
            found[at] = entry.id
            at = None if isinstance(journal[at].body, MessageEntry | CompactionEntry) else journal[at].parent
    return noted | sent


def written_text(call: ToolCall) -> str:
    """Return the new text in a call of `write`, or the first one of `edit`; "" for other calls."""
    given = _arguments(call)
    content = given.get("content")
    if isinstance(content, str):
        return content
    return trace_text(edits_in(given))


def edits_in(given: Row) -> list[TextEdit]:
    """Return the replacements of a call of `edit`; none for any other call."""
    edits = given.get("edits")
    rows = edits if isinstance(edits, list) else [given]
    pairs = [(row.get("oldText"), row.get("newText")) for row in rows if isinstance(row, dict)]
    found = [TextEdit(old, new) for old, new in pairs if isinstance(old, str) and isinstance(new, str)]
    return found if len(found) == len(rows) else []


def _arguments(call: ToolCall) -> dict[str, Any]:
    found = decode_json(call.arguments.encode("utf-8", "surrogatepass"))
    return found if isinstance(found, dict) else {}


def name_of(message: Message, known: Mapping[str, str]) -> str:
    """Return the extension's name of a message that an insert may follow; "" for other messages."""
    calls = [block.call_id for block in message.blocks if isinstance(block, ToolResult) and block.call_id in known]
    if calls:
        return calls[-1]
    return "" if message.role != "user" or message.at is None else str(round(message.at * _MILLISECONDS))
