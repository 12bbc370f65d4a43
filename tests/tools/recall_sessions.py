"""A workspace, a store, and sessions that page everything out soon: for tests of recall."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.model.entries import EpochEntry
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.testing.eager_residency import eager
from pagein.tools.calls import Call
from pagein.tools.catalogue import answer

EAGER = Settings(eager(keep_calls=1, min_tokens=1))


class OneToken:
    """Every character is a token, so that sizes in tests are sizes in tokens."""

    def count(self, text: str, kind: str = "result") -> float:
        return len(text)


@dataclass
class Room:
    """A workspace on a real disk with a real store beside it, and sessions in it that page everything out soon."""

    folder: Path
    store: Path
    engines: list[Engine] = field(default_factory=list)
    said: int = 0

    def session(self, name: str = "main") -> Session:
        """The session as a fresh process would find it."""
        engine = pagein.open(self.store, workspace=self.folder, counter=OneToken(), settings=EAGER)
        self.engines.append(engine)
        return engine.session(name)

    def put(self, name: str, content: str | bytes) -> Path:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
        return file

    def paged(self, session: Session, *texts: str) -> list[str]:
        """Say that tools answered with these texts, go on until they left the window, and give their ids."""
        if session.leaf is None:
            session.append(Message("user", (Text("please"),)))
        for text in texts:
            self.said += 1
            session.append(Message("assistant", (ToolCall(f"c{self.said}", "Bash", "{}"),)))
            session.append(Message("tool", (ToolResult(f"c{self.said}", text, "Bash"),)))
        for _ in range(3):
            session.advance()
            self.said += 1
            session.append(Message("assistant", (ToolCall(f"c{self.said}", "Bash", "{}"),)))
            session.append(Message("tool", (ToolResult(f"c{self.said}", "ok", "Bash"),)))
        left = [
            one.object_id
            for entry in session.journal.branch(session.leaf)
            if isinstance(entry.body, EpochEntry)
            for one in entry.body.paged
        ]
        assert len(left) >= len(texts)
        return left[-len(texts) :]

    def log(self) -> list[dict[str, object]]:
        """What the trajectory says."""
        file = self.store.with_name(self.store.name + ".trajectory.jsonl")
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def close(self) -> None:
        for engine in self.engines:
            engine.close()


def long_text(mark: str, lines: int = 40) -> str:
    """Text that is longer than a stub, each line unlike the others."""
    return "".join(f"{mark} line {n} of the output\n" for n in range(1, lines + 1))


def ask(session: Session, tool: str, call_id: str = "", **arguments: object) -> ReadResult:
    return answer(session, tool, Call(arguments, call_id))
