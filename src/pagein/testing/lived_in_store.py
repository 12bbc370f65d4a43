"""A store with a history: sessions with messages, reads, edits, evictions, compactions and forks, and objects."""

# ruff: noqa: PLR2004 -- shares of a day's work

import random
from dataclasses import dataclass, field
from pathlib import Path

from pagein.engine.engine import Engine, Settings
from pagein.engine.session import Session
from pagein.model.entries import EpochEntry
from pagein.model.identifiers import uuid7
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.model.versions import Draft, Provenance, Writer, deletion
from pagein.model.writes import Write
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing.eager_residency import eager
from pagein.wiring import open as open_engine

EAGER = Settings(eager(batch_tokens=600, keep_calls=2, min_tokens=100))
FILES = ("a.py", "b.txt", "c.md")


@dataclass
class LivedIn:
    """A store under random use.

    texts: the answer to each call.
    stubs: the text to recall for each evicted object.
    """

    store: Path
    folder: Path
    draw: random.Random
    texts: dict[str, str] = field(default_factory=dict)
    stubs: dict[str, str] = field(default_factory=dict)
    names: list[str] = field(default_factory=lambda: ["main"])
    calls: int = 0
    writes: int = 0
    forks: int = 0

    def live(self, steps: int) -> None:
        """Run this number of random steps; the engine is opened anew now and then, as in a new process."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            if not (self.folder / name).exists():
                self._change(name)
        left = steps
        while left > 0:
            today = min(left, self.draw.randrange(5, 30))
            left -= today
            with open_engine(self.store, workspace=self.folder, settings=EAGER) as engine:
                for _ in range(today):
                    self._step(engine)

    def _step(self, engine: Engine) -> None:
        session = engine.session(self.draw.choice(self.names), workspace=self.folder)
        name = self.draw.choice(FILES)
        kind = self.draw.random()
        if kind < 0.45:
            self._talk(session)
        elif kind < 0.7:
            session.read(name, self.draw.choice([None, self.draw.randrange(1, 9)]), self.draw.choice([None, 12]))
        elif kind < 0.8:
            self._change(name)
        elif kind < 0.9:
            self._write_object()
        elif kind < 0.94:
            session.compact()
        elif kind < 0.97 and len(self.names) < 5:
            self.forks += 1
            self.names.append(f"fork {self.forks}")
            session.fork(self.names[-1])
        else:
            branch = session.journal.branch(session.leaf)
            if branch:
                session.move(self.draw.choice(branch).id)

    def _talk(self, session: Session) -> None:
        """Run a call of the model: a tool call, a long answer of the tool, and a prepared request."""
        self.calls += 1
        call = f"call-{self.calls}"
        text = "".join(f"{call} line {n} {self.draw.randrange(99)}\n" for n in range(self.draw.choice([1, 5, 30, 120])))
        self.texts[call] = text
        if self.draw.random() < 0.5:
            session.append(Message("user", (Text(f"please, {self.calls}"),)))
        session.append(Message("assistant", (ToolCall(call, "Bash", '{"command":"make"}'),)))
        session.append(Message("tool", (ToolResult(call, text, "Bash"),)))
        prepared = session.advance()
        if isinstance(prepared.opened, EpochEntry):
            self.stubs |= {one.object_id: self.texts[one.call_id] for one in prepared.opened.paged}

    def _change(self, name: str) -> None:
        file = self.folder / name
        lines = file.read_text().split("\n") if file.exists() else [f"{name} {n}" for n in range(60)]
        at = self.draw.randrange(len(lines) + 1)
        lines[at : at + self.draw.choice([0, 3])] = [f"new {self.draw.randrange(1000)}" for _ in range(3)]
        file.write_text("\n".join(lines))

    def _write_object(self) -> None:
        number = self.draw.randrange(6)
        object_id = uuid7(1_700_000_000_000 + number, number.to_bytes(10, "big"))
        other = uuid7(1_700_000_000_000, bytes(10))
        self.writes += 1
        store = SqliteStore(self.store)
        try:
            current = store.current(object_id)
            draft = Draft(
                id=object_id,
                type="note",
                content="".join(f"{n} of note {number}\n" for n in range(self.draw.randrange(80))),
                provenance=Provenance("somewhere", "agent", () if current is None else (current.static(),)),
                metadata={"path": f"notes/{number}.md", "tags": ["x", number]},
                additional={"summary": f"summary {self.draw.randrange(9)} of {other}"},
                nickname=f"note-{number}",
            )
            if current is not None and self.draw.random() < 0.1:
                draft = deletion(current)
            store.write(
                Write(
                    f"write {self.writes} {self.draw.random()}",
                    draft,
                    float(self.writes),
                    writer=Writer(session="main"),
                )
            )
        finally:
            store.close()


def make_lived_in_store(store: Path, folder: Path, seed: int, steps: int = 60) -> LivedIn:
    """Create a store at this path after this number of steps. The same seed gives the same store, except its secret."""
    made = LivedIn(store, folder, random.Random(seed))  # noqa: S311 -- a test's dice
    made.live(steps)
    return made
