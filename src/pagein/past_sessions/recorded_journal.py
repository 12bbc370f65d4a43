"""The journal of a recorded session: its messages and compactions as entries, without unstorable text.

Rules of this file
------------------
1. An entry is named by its content and the entry before it, as in any journal whose client names no messages. So a
   recording that grew has the same names up to its old end, and one that was rewritten or rewound makes a branch.
2. Nothing that changes while a recording grows or is moved is part of a name.
3. Memory holds the calls without a result, not the session.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from pagein.engine.log.journal import entry_name
from pagein.engine.log.privacy import Privacy, withheld_calls
from pagein.engine.log.session_log import message_entry
from pagein.gateway.curation.session_hints import Hint
from pagein.model.entries import Body, CompactionEntry, Entry, EntryId, NoteEntry
from pagein.model.journal_notes import ClientNote, Note
from pagein.model.memory_notes import RecordedNote
from pagein.model.messages import HostEvent, Message, Recorded, ToolCall, ToolResult, UnreadableLine
from pagein.model.note_forms import encode_note
from pagein.policy.clients.profiles import OTHER, PROFILES
from pagein.ports import TokenCounter
from pagein.providers.wire.session_names import fit_for_logs
from pagein.replay.record.recorded_session import RecordedSession, SessionHead

_RECORDING: Final = "recording"
_DIGITS: Final = 8
_TORN: Final = "torn last line"
_LOST: Final = ("not JSON", "the file cannot be read further", "a line of over")


def session_name(head: SessionHead, first: EntryId) -> str:
    """Return the name under which a gateway journals this session; "" for a session without a printable id.

    first: name of the entry of its first message; part of the name of a session that the recording does not name.
    """
    if not head.is_named:
        return f"{fit_for_logs(head.id)}-{first[:_DIGITS]}"
    agent = head.id.removeprefix(f"{head.parent}-sub-") if head.parent else head.id
    if head.parent and agent != head.id:
        return Hint(fit_for_logs(head.parent), _RECORDING, fit_for_logs(agent)).key
    return fit_for_logs(head.id)


@dataclass(slots=True)
class RecordedJournal:
    """The entries of a session. Read `entries` once; the counts are complete after its end.

    messages: number of messages.
    lost: the lines that are damaged.
    unknown: number of lines in an unknown form.
    """

    session: RecordedSession
    privacy: Privacy
    counter: TokenCounter
    messages: int = 0
    lost: list[UnreadableLine] = field(default_factory=list)
    unknown: int = 0
    _leaf: EntryId | None = None
    _waiting: dict[str, ToolCall] = field(default_factory=dict)
    _private: set[str] = field(default_factory=set)

    def entries(self) -> Iterator[Entry]:
        """Yield the entries: facts about the recording, then what was said. Raises BadInput."""
        head = self.session.head
        self.privacy.begin_turn()
        told = fit_for_logs(head.parent or "")
        yield self._noted(RecordedNote(head.agent, head.cwd or "", told))
        profile = PROFILES.get(head.agent.partition("/")[0], OTHER)
        if profile is not OTHER:
            yield self._noted(ClientNote(profile.name))
        for item in self.session.entries:
            if isinstance(item, Message):
                self.messages += 1
                yield self._said(profile.annotate(item, self._waiting))
            else:
                yield from self._event(item)

    def _said(self, message: Message) -> Entry:
        kept = self.privacy.redact(message, self._private)
        self._private |= withheld_calls(kept)
        for block in message.blocks:
            if isinstance(block, ToolCall):
                self._waiting[block.id] = block
            elif isinstance(block, ToolResult):
                self._waiting.pop(block.call_id, None)
        return self._next(message_entry(message, kept, self.counter), message.at)

    def _event(self, item: Recorded) -> Iterator[Entry]:
        if isinstance(item, HostEvent) and item.kind == "compaction":
            yield self._next(CompactionEntry(_kept(item)), item.at)
        elif isinstance(item, UnreadableLine) and item.why.startswith(_LOST):
            self.lost.append(item)
        elif isinstance(item, UnreadableLine) and not item.why.startswith(_TORN):
            self.unknown += 1

    def _noted(self, note: Note) -> Entry:
        kind, data = encode_note(note)
        return self._next(NoteEntry(kind, self.privacy.redact_note(data)), None)

    def _next(self, body: Body, at: float | None) -> Entry:
        entry = Entry(entry_name(self._leaf, body), self._leaf, body, at)
        self._leaf = entry.id
        return entry


def _kept(event: HostEvent) -> int:
    """Return how many messages a compaction kept in the window."""
    try:
        told = json.loads(event.data)
    except ValueError:
        return 0
    kept = told.get("kept") if isinstance(told, dict) else None
    return max(kept, 0) if isinstance(kept, int) else 0
