"""Read from the journals of a store which agents are at work, including agents behind other gateways.

Rules of this file
------------------
1. The rule is that of `AgentWork`: a request begins work, and an answer without a call of a client's tool ends it.
2. A conversation is a branch of a journal from its first entry on. Of a long store only the newest entries are read.
"""

from typing import Final

from pagein.gateway.curation.agent_work import AgentWork
from pagein.memory.indexer import is_session
from pagein.model.codec import decode_message
from pagein.model.entries import Entry, EntryId, MessageEntry, NoteEntry, RequestSent
from pagein.model.memory_notes import AnswerNote
from pagein.model.messages import Message, ToolCall
from pagein.ports import WholeStore

_FIRST: Final = 2_048
"""Entries before the first look that may tell who is at work."""
_AT_ONCE: Final = 256
_MOST_ENTRIES: Final = 20_000


class JournaledWork:
    """The work of all conversations of a store, up to the last `catch_up`. Not thread-safe; raises StoreError."""

    def __init__(self, store: WholeStore) -> None:
        self._store = store
        self._place = max(0, store.last_place() - _FIRST)
        self._now = 0.0
        self._work = AgentWork(lambda: self._now)
        self._beginnings: dict[tuple[str, EntryId], EntryId] = {}

    def catch_up(self) -> None:
        """Read the new entries."""
        while places := self._store.places(self._place, _AT_ONCE):
            last = places[-1][0]
            for session in dict.fromkeys(session for _, session in places if is_session(session)):
                for place, entry in self._store.news(session, self._place):
                    if place > last:
                        break
                    if isinstance(entry, Entry):
                        self._follow(session, entry)
            self._place = last

    def at(self, now: float) -> AgentWork:
        """Return the work as of a moment, in seconds since 1970."""
        self._now = now
        return self._work

    def _follow(self, session: str, entry: Entry) -> None:
        conversation = f"{session} {self._beginning(session, entry)}"
        if entry.at is None:  # nobody knows whether it goes on
            return
        self._now = entry.at
        match entry.body:
            case MessageEntry(message) if message.role == "assistant":
                self._work.note_answer(conversation, calls=_has_calls(message))
            case MessageEntry() | RequestSent():
                self._work.note_request(session, conversation, entry.at, is_near=True)
            case NoteEntry(note=AnswerNote(text)):
                said = decode_message(text.encode("utf-8", "surrogatepass"))
                self._work.note_answer(conversation, calls=isinstance(said, Message) and _has_calls(said))
            case _:
                pass

    def _beginning(self, session: str, entry: Entry) -> EntryId:
        """Return the first known entry of the entry's branch."""
        parent = entry.parent
        found = entry.id if parent is None else self._beginnings.get((session, parent), parent)
        self._beginnings[session, entry.id] = found
        if len(self._beginnings) > _MOST_ENTRIES:
            del self._beginnings[next(iter(self._beginnings))]
        return found


def _has_calls(message: Message) -> bool:
    return any(isinstance(block, ToolCall) for block in message.blocks)
