"""Random journals of sessions for tests: turns, calls on files, rewinds, several threads and sessions at once."""

import json
import random
from collections.abc import Iterator, Sequence

from pagein.model.codec import encode_message
from pagein.model.entries import CompactionEntry, Entry, MessageEntry, NoteEntry
from pagein.model.journal_notes import ClientNote, UsageNote
from pagein.model.memory_notes import AnswerNote
from pagein.model.messages import Message, Text, Thinking, ToolCall, ToolResult, Usage
from pagein.ports import JournalStore

PATHS = ("/w/a.py", "/w/b.py", "/w/plan.md")


class SessionStory:
    """A session that is told entry by entry, with an independent record of what it did."""

    def __init__(self, name: str, random_: random.Random) -> None:
        self.name = name
        self.said: list[str] = []
        self.calls: list[tuple[str, str]] = []
        self._random = random_
        self._count = 0
        self._leaf: str | None = None
        self._leaves: list[str] = []
        self._time = 1_000.0 + random_.random()
        self.files: dict[str, str] = {}

    @property
    def leaf(self) -> str:
        assert self._leaf is not None
        return self._leaf

    def begin(self) -> list[Entry]:
        return [self._entry(NoteEntry.of(ClientNote("claude-code")))]

    def go_on(self) -> list[Entry]:
        """Return the next entries of the session."""
        draw = self._random.random()
        if draw < 0.05 and self._leaves:
            self._leaf = self._random.choice(self._leaves)  # a rewind
        elif draw < 0.08:
            self._leaf = None  # another thread
        elif draw < 0.12 and self._leaf is not None:
            return [self._entry(CompactionEntry(1))]
        elif draw < 0.16 and self._leaves:
            return [self.late_note(self._random.choice(self._leaves))]
        if draw < 0.4 or self._leaf is None:
            return [self.says()]
        if draw < 0.85:
            return self.calls_tool()
        return self.answers_twice() if draw < 0.95 else [self.answers()]

    def late_note(self, behind: str) -> Entry:
        """Return the usage of an earlier request, told after the session went on. The session stays where it is."""
        here, self._leaf = self._leaf, behind
        entry = self._entry(NoteEntry.of(UsageNote(Usage(self._count))))
        self._leaf = here
        return entry

    def says(self) -> Entry:
        words = f"please do {self.name} {self._count}"
        self.said.append(words)
        return self._message(Message("user", (Text(words),)))

    def answers_twice(self) -> list[Entry]:
        """Return an answer as its client saw it, mostly with the message that brings it in the words of the client."""
        words, draw = f"the end {self._count}", self._random.random()
        seen = Message("assistant", (Thinking("hm"), Text(words)), model="m-1")
        if draw < 0.4:
            seen = Message(
                "assistant", (*seen.blocks, ToolCall(f"call_{self._count}", "Read", '{"file_path": "/w/a.py"}'))
            )
        note = NoteEntry.of(AnswerNote(encode_message(seen).decode()))
        if draw < 0.1 and self._leaves:  # told after the session went on
            here, self._leaf = self._leaf, self._random.choice(self._leaves)
            entry = self._entry(note)
            self._leaf = here
            return [entry]
        told = [self._entry(note)]
        if draw > 0.6:
            told.append(self._message(Message("assistant", (Text(words + "\n"),), model="m-1")))
        return told

    def answers(self) -> Entry:
        return self._message(Message("assistant", (Text(f"done {self._count}"),), model="m-1"))

    def calls_tool(self) -> list[Entry]:
        path = self._random.choice(PATHS)
        call_id = self._random.choice((f"toolu_{self.name}_{self._count}", f"call_{self._random.randrange(3)}"))
        kind = self._random.choice(("Read", "Write", "Edit", "Bash"))
        text, arguments = "ok", {"command": "make test"}
        if kind == "Read":
            held = self.files.get(path, "one\ntwo\n")
            text = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(held.split("\n"), 1))
            arguments = {"file_path": path}
        elif kind == "Write":
            self.files[path] = f"# [[b]] {self._count}\nline\n" * self._random.randrange(1, 4)
            arguments = {"file_path": path, "content": self.files[path]}
        elif kind == "Edit":
            text = f"The file {path} has been updated successfully."
            arguments = {"file_path": path, "old_string": "line", "new_string": f"row {self._count}"}
        failed = self._random.random() < 0.1
        result = ToolResult(call_id, "<tool_use_error>no" if failed else text, is_error=failed)
        self.calls.append((call_id, result.text))
        call = ToolCall(call_id, kind, json.dumps(arguments))
        asked = self._message(Message("assistant", (Text(f"step {self._count}"), call), model="m-1"))
        return [asked, self._message(Message("user", (result,)))]

    def _message(self, message: Message) -> Entry:
        entry = self._entry(MessageEntry(message))
        self._leaves.append(entry.id)
        return entry

    def _entry(self, body: MessageEntry | NoteEntry | CompactionEntry) -> Entry:
        self._count += 1
        self._time += self._random.random()
        entry = Entry(f"e{self._count}", self._leaf, body, self._time)
        self._leaf = entry.id
        return entry


def tell(store: JournalStore, stories: Sequence[SessionStory], random_: random.Random, steps: int) -> Iterator[None]:
    """Append the entries of several sessions, mixed; yields after each append."""
    for story in stories:
        store.append(story.name, story.begin())
        yield
    for _ in range(steps):
        story = random_.choice(stories)
        store.append(story.name, story.go_on())
        yield
