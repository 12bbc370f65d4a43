"""Files that change, sessions that read, write and forget them, and the test's own account of what each model saw."""

import contextlib
import json
import random
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pagein
from pagein.engine.engine import Engine
from pagein.engine.log import read_notes
from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.model.entries import NoteEntry
from pagein.model.journal_notes import ReadNote
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.read_events import FileRead, FileWrite, ReadClaim, claim_of
from pagein.model.read_records import decode

FILES = ("a.py", "sub/b.md", "big.txt")
ALIASES = {
    "a.py": ("a.py", "link.py", "./sub/../a.py"),
    "sub/b.md": ("sub/b.md", "sub/../sub/b.md"),
    "big.txt": ("big.txt",),
}
WORDS = ("", "}", "return x", "[readcache: unchanged, 3 lines]", "-- a", "++ b", "\x00", "é\u2028", "\r", "\ufeff")


@dataclass
class Window:
    """A session and what its model has in sight: the test's own account, from answers alone."""

    session: Session
    messages: list[Message] = field(default_factory=list)
    claims: dict[str, ReadClaim] = field(default_factory=dict)
    calls: int = 0

    def heard(self, arguments: dict[str, object], text: str, claim: ReadClaim | None) -> None:
        self.calls += 1
        name = f"call-{self.calls}"
        self.messages.append(Message("assistant", (ToolCall(name, "read", json.dumps(arguments)),)))
        self.messages.append(Message("tool", (ToolResult(name, text, "read"),)))
        if claim is not None:
            self.claims[name] = claim

    def forked(self, session: Session) -> "Window":
        return Window(session, list(self.messages), dict(self.claims), self.calls)


class World:
    """Files that change, sessions that read them, a store that may lose things."""

    def __init__(self, draw: random.Random, place: Path, *, may_lose: bool = True) -> None:
        self.draw = draw
        self.may_lose = may_lose
        self.folder = place / "work"
        self.store = place / "s.pagein"
        self.versions: dict[ContentHash, bytes] = {}
        self.texts: dict[str, list[str]] = {}
        (self.folder / "sub").mkdir(parents=True)
        (self.folder / "link.py").symlink_to("a.py")
        for name in FILES:
            self.changes(name, self.text(3000 if name == "big.txt" else 0))
        self.engine = self.opened()
        self.windows = [Window(self.engine.session("s0", workspace=self.folder))]
        self.acts: dict[Callable[[Window, str], None], int] = {}

    def opened(self) -> Engine:
        return pagein.open(store=self.store)

    def text(self, least: int = 0) -> str:
        size = self.draw.choice([0, 1, 6, 40, 150]) + least
        said = [
            self.draw.choice(WORDS) if self.draw.random() < 0.2 else f"line {self.draw.randrange(500)} lorem ipsum"
            for _ in range(size)
        ]
        return "\n".join(said) + self.draw.choice(["", "\n"])

    def now(self, name: str) -> str:
        return (self.folder / name).read_bytes().decode()

    def changes(self, name: str, text: str) -> None:
        content = text.encode()
        (self.folder / name).write_bytes(content)
        self.versions[ContentHash.of(content)] = content
        self.texts.setdefault(name, []).append(text)

    def mutates(self, name: str) -> None:
        said = self.now(name).split("\n")
        at, size = self.draw.randrange(len(said) + 1), self.draw.randrange(1, 12)
        said[at : at + self.draw.choice([0, size])] = [f"new {self.draw.randrange(99)} dolor" for _ in range(size)]
        self.changes(name, "\n".join(said))

    def reverts(self, name: str) -> None:
        """Somebody puts an older text back."""
        self.changes(name, self.draw.choice(self.texts[name]))

    def shrinks(self, name: str) -> None:
        """Somebody cuts the end off."""
        said = self.now(name).split("\n")
        self.changes(name, "\n".join(said[: max(1, len(said) - self.draw.randrange(1, 30))]))

    def reads_elsewhere(self, window: Window, name: str) -> None:
        """Another process reads in the same session; then it is forked here, or goes on."""
        with self.opened() as engine:
            here, window.session = window.session, engine.session(window.session.name, workspace=self.folder)
            self.reads(window, name)
            window.session = here
        if self.draw.random() < 0.5:
            self.forks(window)
        window.session.catch_up()

    def reads(self, window: Window, name: str) -> None:
        total = self.now(name).count("\n") + 1
        offset = self.draw.choice([None, None, self.draw.randrange(1, total + 2)])
        limit = self.draw.choice([None, self.draw.randrange(1, 60), self.draw.randrange(1, total + 20)])
        asked = self.draw.choice(ALIASES[name])
        result = window.session.read(asked, offset, limit, bypass_cache=self.draw.random() < 0.05)
        assert result.failure is None
        if result.is_error:
            assert offset is not None
            assert offset > total
            return
        event = decode(result.details)
        assert isinstance(event, FileRead)
        assert event.version == ContentHash.of((self.folder / name).read_bytes())
        window.heard({"path": asked, "offset": offset, "limit": limit}, result.text, claim_of(event))
        self.is_no_longer(window, result, asked, offset, limit)

    def is_no_longer(
        self, window: Window, result: ReadResult, asked: str, offset: int | None, limit: int | None
    ) -> None:
        """An answer is never longer than the host's own."""
        entry = window.session.journal.entry(window.session.leaf or "").body
        assert isinstance(entry, NoteEntry)
        assert isinstance(entry.note, ReadNote)
        assert len(result.text.encode()) == entry.note.sent <= entry.note.baseline, (asked, offset, limit)

    def writes(self, window: Window, name: str) -> None:
        text = self.text()
        self.changes(name, text)
        assert window.session.note_write(name, text).failure is None
        self.learned(window, {"path": name, "content": text})

    def edits(self, window: Window, name: str) -> None:
        before = self.now(name)
        said = before.split("\n")
        at, size = self.draw.randrange(len(said)), self.draw.randrange(1, 6)
        old = "\n".join(said[at : at + size])
        new = self.draw.choice(["", "\n".join(f"edit {n} sit amet" for n in range(self.draw.randrange(1, 9)))])
        if not old or before.count(old) != 1:
            return
        told_first = self.draw.random() < 0.3
        leaf = window.session.leaf
        after = before.replace(old, new)
        self.versions[ContentHash.of(after.encode())] = after.encode()
        if not told_first:
            self.changes(name, after)
        assert window.session.note_edit(name, old, new).failure is None
        self.changes(name, after)
        if window.session.leaf != leaf:
            self.learned(window, {"path": name, "oldText": old, "newText": new})

    def learned(self, window: Window, arguments: dict[str, object]) -> None:
        event = read_notes.event_of(window.session.journal.entry(window.session.leaf or "").body)
        assert isinstance(event, FileWrite)
        window.heard(arguments, "ok", claim_of(event))

    def refreshes(self, window: Window, name: str) -> None:
        total = self.now(name).count("\n") + 1
        somewhere = (self.draw.randrange(1, total + 1), self.draw.randrange(1, 9))
        lines = self.draw.choice([(None, None), (2, 5), (10, None), somewhere, somewhere])
        window.session.refresh(name, *lines)

    def compacts(self, window: Window) -> None:
        window.session.compact()
        window.messages, window.claims = [], {}

    def forks(self, window: Window) -> None:
        self.windows.append(window.forked(window.session.fork(f"s{len(self.windows)}")))

    def restarts(self) -> None:
        """Every session is found again by another process."""
        if self.draw.random() < 0.5:
            self.engine.close()
        else:
            self.abandoned = self.engine  # as a process that is gone: never closed
        self.engine = self.opened()
        for window in self.windows:
            window.session = self.engine.session(window.session.name, workspace=self.folder)

    def loses(self) -> None:
        """The store loses or damages some of its content."""
        done = self.draw.choice(
            ["DELETE FROM blob WHERE number % 2 = 0", "UPDATE blob SET data = x'00' WHERE number % 3 = 0"]
        )
        with contextlib.closing(sqlite3.connect(self.store)) as connection, connection:
            if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'blob'").fetchone():
                connection.execute(done)

    def goes_on(self) -> None:
        window, name = self.draw.choice(self.windows), self.draw.choice(FILES)
        acts: dict[Callable[[], None], int] = {
            lambda: self.reads(window, name): 46,
            lambda: self.reads_elsewhere(window, name): 4,
            lambda: self.mutates(name): 7,
            lambda: self.reverts(name): 3,
            lambda: self.shrinks(name): 2,
            lambda: self.writes(window, name): 6,
            lambda: self.edits(window, name): 12,
            lambda: self.refreshes(window, name): 5,
            lambda: self.compacts(window): 3,
            lambda: self.forks(window): 4,
            self.restarts: 5,
            self.loses: 3 if self.may_lose else 0,
        }
        more = {lambda act=act: act(window, name): share for act, share in self.acts.items()}
        acts |= more  # type: ignore[arg-type]
        self.draw.choices(list(acts), list(acts.values()))[0]()

    def close(self) -> None:
        self.engine.close()
        with contextlib.suppress(AttributeError):
            self.abandoned.close()

    abandoned: Engine
