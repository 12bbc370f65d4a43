"""Recordings of agents in files, a store, and what it holds."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pagein import wiring
from pagein.model.entries import Entry, MessageEntry
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.past_sessions.intake import Intake
from pagein.store.sqlite.sqlite_store import SqliteStore

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "sessions"
KEY = "AKIA" + "QY7ZJ3MPLD5XWNTB"
Row = dict[str, Any]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "store.pagein"


@pytest.fixture
def intake(place: Path) -> Iterator[Intake]:
    with wiring.open_intake(place) as opened:
        yield opened


@pytest.fixture
def store(place: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(place)
    yield opened
    opened.close()


@pytest.fixture
def recording(tmp_path: Path) -> Callable[..., Path]:
    """Copies a fixture."""

    def copied(name: str = "claude-code.jsonl", to: str = "") -> Path:
        path = tmp_path / "recorded" / (to or name)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FIXTURES / name, path)
        return path

    return copied


class Pi:
    """A recording of pi, which a test writes as the agent would."""

    def __init__(self, path: Path, name: str = "pi-1", cwd: str = "/srv/shop") -> None:
        self.path = path
        self._count = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        header = {"type": "session", "version": 3, "id": name, "timestamp": "2026-03-02T09:00:00.000Z", "cwd": cwd}
        path.write_text(json.dumps(header) + "\n", encoding="utf-8")
        self.leaf: str | None = None

    def user(self, words: str) -> str:
        return self._add({"role": "user", "content": [{"type": "text", "text": words}]})

    def answer(self, words: str) -> str:
        return self._add({"role": "assistant", "model": "m", "content": [{"type": "text", "text": words}]})

    def call(self, call_id: str, name: str, arguments: Row, result: str) -> str:
        asked = {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}
        self._add({"role": "assistant", "model": "m", "content": [asked]})
        told = [{"type": "text", "text": result}]
        return self._add({"role": "toolResult", "toolCallId": call_id, "toolName": name, "content": told})

    def back_to(self, leaf: str) -> None:
        self.leaf = leaf

    def _add(self, message: Row) -> str:
        self._count += 1
        row = {
            "type": "message",
            "id": f"e{self._count}",
            "parentId": self.leaf,
            "timestamp": f"2026-03-02T09:{self._count // 60:02}:{self._count % 60:02}.000Z",
            "message": message,
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        os.utime(self.path, ns=(self._count, self._count))
        self.leaf = f"e{self._count}"
        return self.leaf


def entries(store: SqliteStore, session: str) -> list[Entry]:
    found = list(store.entries(session))
    kept = [one for one in found if isinstance(one, Entry)]
    assert len(kept) == len(found)
    return kept


def branch(store: SqliteStore, session: str) -> list[Entry]:
    """The entries from the root to the leaf."""
    by_name = {one.id: one for one in entries(store, session)}
    leaf, way = store.leaf(session), list[Entry]()
    while leaf is not None:
        way.insert(0, by_name[leaf])
        leaf = by_name[leaf].parent
    return way


def messages(some: Sequence[Entry]) -> list[Message]:
    return [one.body.message for one in some if isinstance(one.body, MessageEntry)]


def texts(some: Sequence[Entry]) -> list[str]:
    """All that is said, called and answered, in order."""
    found: list[str] = []
    for message in messages(some):
        for block in message.blocks:
            if isinstance(block, Text | ToolResult):
                found.append(block.text)
            elif isinstance(block, ToolCall):
                found.append(block.arguments)
    return found
