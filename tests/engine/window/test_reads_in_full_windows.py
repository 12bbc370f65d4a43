"""What rested on text that left a full window with a whole turn left too, or stands in full (law 2), and what must not be stored stays."""

import json
import random
from pathlib import Path

import pytest
from tests.engine.window.sized_sessions import PATIENT
from tests.laws.test_reads_in_windows import OneToken, World

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.model.entries import EpochEntry
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.policy.eviction.overflow import Valve
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.eager_residency import eager
from pagein.upkeep import check_store

NEVER = eager(batch_tokens=10**6, keep_calls=1, min_tokens=20)
WORDS = "why is that so, and not otherwise? " * 12


class SmallWorld(World):
    """Sessions that read and edit in a small window, between much prose."""

    turns = 0

    def opened(self) -> Engine:
        settings = Settings(NEVER, witness=self.watched, valve=Valve(window=2600, pastes=1000))
        return pagein.open(store=self.store, counter=OneToken(), settings=settings)

    def step(self) -> None:
        talk = self.draw.choice(self.talks)
        if self.draw.random() < 0.4:
            talk.session.append(Message("assistant", (Text("so: " + WORDS),)))
            talk.session.append(Message("user", (Text(f"{self.draw.random()} {WORDS}"),)))
            self.asks(talk)
        super().step()
        entries = list(talk.session.journal)
        opened = [one.body for one in entries if isinstance(one.body, EpochEntry)]
        self.turns += sum(len(getattr(one, "turns", ())) for one in opened[-1:])


@pytest.mark.parametrize("seed", range(8))
def test_the_witness_agrees_to_every_request_of_a_full_window(seed: int, tmp_path: Path) -> None:
    world = SmallWorld(random.Random(seed), tmp_path)  # noqa: S311  reproducible, not secret
    for _ in range(60):
        world.step()
    assert world.turns
    for talk in world.talks:
        talk.session.keep()
    world.engine.close()
    store = SqliteUpkeep(world.store)
    assert [finding.why for finding in check_store(store).findings] == []
    store.close()


def test_a_marker_leaves_with_the_turn_that_it_rests_on(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.py").write_text("\n".join(f"line {number}" for number in range(30)))
    settings = Settings(NEVER, valve=Valve(window=2000))
    with pagein.open(store=tmp_path / "s.pagein", counter=OneToken(), settings=settings) as engine:
        session = engine.session("one", workspace=folder)

        def reads(call: str) -> str:
            text = session.read("a.py").text
            session.append(Message("assistant", (ToolCall(call, "read", json.dumps({"path": "a.py"})),)))
            session.append(Message("tool", (ToolResult(call, text, "read"),)))
            session.advance()
            return text

        def speaks() -> None:
            session.append(Message("assistant", (Text("so: " + WORDS),)))
            session.append(Message("user", (Text(WORDS),)))
            session.advance()

        session.append(Message("user", (Text(WORDS),)))
        session.advance()
        reads("base")
        for _ in range(4):
            speaks()
        assert reads("again").startswith("[readcache: unchanged")
        for _ in range(4):
            speaks()
        results = [block for one in session.last_request() for block in one.blocks if isinstance(block, ToolResult)]
        assert not any(one.text.startswith("line 0") for one in results), "its ground has left"
        assert not any(one.text.startswith("[readcache:") for one in results)
        assert not session.read("a.py").text.startswith("[readcache: unchanged")


def test_what_must_not_be_stored_stays_in_a_full_window_with_its_step_alone(tmp_path: Path) -> None:
    settings = Settings(PATIENT, valve=Valve(window=2000))
    with pagein.open(store=tmp_path / "s.pagein", workspace=tmp_path, counter=OneToken(), settings=settings) as engine:
        session = engine.session("one")
        session.append(Message("user", (Text("first " + WORDS),)))
        session.advance()
        secret = "TOKEN=abc\n" * 30
        for call, command, text in (
            ("a", "make", "built\n" * 60),
            ("b", "cat .env", secret),
            ("c", "make", "done\n" * 60),
        ):
            session.append(Message("assistant", (Text("so"), ToolCall(call, "Bash", json.dumps({"command": command})))))
            session.append(Message("tool", (ToolResult(call, text, "Bash"),)))
            session.advance()
        for _ in range(12):
            session.append(Message("assistant", (Text("so: " + WORDS),)))
            session.append(Message("user", (Text(WORDS),)))
            session.advance()
        shown = {
            block.call_id: block.text
            for one in session.last_request()
            for block in one.blocks
            if isinstance(block, ToolResult)
        }
        assert shown["b"] == secret
        assert "a" not in shown
    assert b"TOKEN=abc" not in (tmp_path / "s.pagein").read_bytes()
