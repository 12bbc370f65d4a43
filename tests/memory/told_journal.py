"""A session written to a store message by message."""

import json

from pagein.model.entries import CompactionEntry, Entry, MessageEntry, NoteEntry, RequestSent
from pagein.model.journal_notes import ClientNote
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.memory_upkeep import MemoryUpkeep

UNIQUE = "toolu_01A09q90qw90lq917835lq9"
"""An id as a provider draws it."""


class Journal:
    """A session that is journaled message by message."""

    def __init__(self, store: SqliteUpkeep | MemoryUpkeep, name: str, at: float | None = 100.0) -> None:
        self._store, self._name, self._at = store, name, at
        self.leaf: str | None = None
        self._count = 0
        self.add(NoteEntry.of(ClientNote("claude-code")))

    def add(self, body: MessageEntry | NoteEntry | RequestSent | CompactionEntry) -> None:
        self._count += 1
        at = None if self._at is None else self._at + self._count
        entry = Entry(f"{self._name}-{self._count}", self.leaf, body, at)
        self._store.append(self._name, [entry])
        self.leaf = entry.id

    def say(self, words: str) -> None:
        self.add(MessageEntry(Message("user", (Text(words),))))

    def write(self, call_id: str, text: str, path: str = "/w/a.py") -> None:
        arguments = json.dumps({"file_path": path, "content": text})
        self.add(MessageEntry(Message("assistant", (ToolCall(call_id, "Write", arguments),))))
        self.add(MessageEntry(Message("user", (ToolResult(call_id, "ok", "Write"),))))

    def answer(self, words: str) -> None:
        self.add(MessageEntry(Message("assistant", (Text(words),))))
