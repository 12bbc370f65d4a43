"""Plays the scenes with real tools and writes down what happens, as a `pagein-session/1` recording.

Only the clock is made up: how long the model takes to answer and the user to come back is laid out from a seeded
generator, so that pauses of minutes and hours cost nobody a wait and every run gives the same bytes.
"""

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from scripts.demo_session.ledger import CHARACTERS_PER_TOKEN, FLOOR_TOKENS, Ledger
from scripts.demo_session.screenplay import Scene, Step
from scripts.demo_session.stage import PACKAGE
from scripts.demo_session.tools import SHOWN_ROOT, Json, Outcome, Tools

MODEL = "claude-opus-4-6"
SEED = 20261012
_STARTED = datetime(2026, 10, 12, 13, 4, 17, 380000, tzinfo=UTC)
_TOKENS_PER_SECOND = 62.0
_FIRST_TOKEN = (1.4, 3.9)


@dataclass(slots=True)
class Clock:
    """Simulated time, drawn from `draw` and nothing else."""

    draw: random.Random
    now: datetime = _STARTED

    def wait(self, seconds: float, jitter: float = 0.2) -> None:
        """Let about this much time pass."""
        self.now += timedelta(seconds=seconds * self.draw.uniform(1 - jitter, 1 + jitter))

    @property
    def stamp(self) -> str:
        """Now, as recordings write it."""
        return self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(slots=True)
class Recorder:
    """Collects the rows of one session."""

    tools: Tools
    clock: Clock = field(default_factory=lambda: Clock(random.Random(SEED)))  # noqa: S311 - laying out times, not secrets
    ledger: Ledger = field(default_factory=Ledger)
    rows: list[Json] = field(default_factory=list)
    calls: int = 0
    steps: int = 0

    def play(self, scene: Scene) -> None:
        """One user turn, from the message to the last word."""
        self.clock.wait(scene.pause * 60, 0.08)
        self.ledger.add(scene.user)
        self._row("user", [{"type": "text", "text": scene.user}])
        began = self.clock.now
        for step in scene.steps:
            self._step(step)
        spent = round((self.clock.now - began).total_seconds() * 1000)
        self.rows.append({"kind": "event", "event": "turn_end", "ts": self.clock.stamp, "data": {"duration_ms": spent}})

    def _row(self, role: str, content: list[Json], **more: object) -> None:
        self.rows.append(
            {"kind": "msg", "i": len(self.rows), "role": role, "ts": self.clock.stamp, "content": content} | more
        )

    def _step(self, step: Step) -> None:
        started = self.clock.now.timestamp()
        outcomes = [self.tools.run(deed, self.clock.now.isoformat(timespec="seconds")) for deed in step.deeds]
        ids = [f"toolu_demo{self.calls + number:05d}" for number in range(1, len(outcomes) + 1)]
        self.calls += len(outcomes)
        self.steps += 1
        said: list[Json] = [
            {"type": kind, "text": text} for kind, text in (("thinking", step.think), ("text", step.say)) if text
        ]
        called = [_call(id_, deed.tool, done) for id_, deed, done in zip(ids, step.deeds, outcomes, strict=True)]
        spoken = [step.think, step.say, *(json.dumps(done.args, ensure_ascii=False) for done in outcomes)]
        usage = self.ledger.bill(started, sum(map(len, spoken)))
        self.ledger.add(*spoken)
        self.clock.wait(self.clock.draw.uniform(*_FIRST_TOKEN) + usage["output"] / _TOKENS_PER_SECOND, 0.1)
        stop = "tool_use" if called else "end_turn"
        self._row("assistant", [*said, *called], model=MODEL, usage=usage, stop=stop, mid=f"msg_demo{self.steps:05d}")
        for id_, deed, done in zip(ids, step.deeds, outcomes, strict=True):
            self.clock.wait(done.seconds, 0.4)
            self.ledger.add(done.text)
            self._row("tool", [_result(id_, deed.tool, done)])

    def header(self) -> Json:
        """The first line of the recording."""
        return {
            "kind": "session",
            "schema": "pagein-session/1",
            "id": "demo-click-8.1.8",
            "source": "demo",
            "agent": "scripted",
            "agent_version": "1",
            "models": [MODEL],
            "origin": {"package": PACKAGE, "license": "BSD-3-Clause", "made_by": "scripts/make_demo_session.py"},
            "started": str(self.rows[0]["ts"]),
            "ended": self.clock.stamp,
            "cwd": SHOWN_ROOT,
            "parent": None,
            "flags": {
                "usage": "simulated",
                "times": "simulated",
                "chars_per_token": CHARACTERS_PER_TOKEN,
                "floor_tokens": FLOOR_TOKENS,
                "context_window": 1_000_000,
            },
        }


def _call(id_: str, name: str, done: Outcome) -> Json:
    call: Json = {"type": "tool_call", "id": id_, "name": name, "args": done.args}
    return call | ({"ops": list(done.ops)} if done.ops else {})


def _result(id_: str, name: str, done: Outcome) -> Json:
    result: Json = {"type": "tool_result", "id": id_, "name": name, "text": done.text, "is_error": done.is_error}
    return result | ({"meta": done.meta} if done.meta else {})


def record(scenes: Iterable[Scene], tools: Tools) -> str:
    """Play all scenes and return the recording, one JSON value a line."""
    recorder = Recorder(tools)
    for scene in scenes:
        recorder.play(scene)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in [recorder.header(), *recorder.rows])
