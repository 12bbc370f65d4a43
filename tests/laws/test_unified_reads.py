"""Law 2 for the tool `read`: all its modes, mixed with a host's own reads and writes; the witness never objects."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.laws.reading_world import ALIASES, FILES, Window, World
from tests.laws.test_reads_in_windows import Heard, Talk
from tests.laws.test_reads_in_windows import World as RequestWorld

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.session import Session
from pagein.model.entries import NoteEntry
from pagein.model.journal_notes import ReadNote
from pagein.model.messages import Message
from pagein.model.names import ContentHash
from pagein.model.read_events import FileRead, ReadClaim, claim_of
from pagein.model.read_records import decode
from pagein.policy.audit.witness import witness
from pagein.policy.guards.limits import GuardSettings
from pagein.policy.reads.baseline import baseline
from pagein.tools.calls import Call
from pagein.tools.catalogue import answer

EXPECTED = {"OUT_OF_RANGE", "NO_RESULTS", "UNKNOWN_SYMBOL", "AMBIGUOUS_SYMBOL", "UNPARSABLE"}


def last_read(session: Session) -> ReadNote:
    """The note about the file of the last answer; the measure of the guards stands behind it."""
    for entry in reversed(list(session.journal.branch(session.leaf))):
        if isinstance(entry.body, NoteEntry) and isinstance(entry.body.note, ReadNote):
            return entry.body.note
    raise AssertionError


class ModeWorld(World):
    """A world whose models also read by mode. Its functions are those of a small language model's file."""

    def __init__(self, draw: random.Random, place: Path, *, may_lose: bool = True) -> None:
        super().__init__(draw, place, may_lose=may_lose)
        self.acts = {self.reads_by_mode: 60, self.defines: 25}
        self.shown = 0
        self.markers = 0

    def text(self, least: int = 0) -> str:
        return super().text(least).replace("\x00", "nul")  # or it would be binary

    def opened(self) -> Engine:
        return pagein.open(store=self.store, settings=Settings(guards=GuardSettings("off"), witness=False))

    def defines(self, _: Window, __: str) -> None:
        """Somebody writes a file with definitions in place of what was there."""
        lines = ["import os", ""]
        for number in range(self.draw.randrange(1, 6)):
            lines += ["@wraps", f"def function_{number}(value):"]
            lines += [
                f"    step_{row} = {self.draw.choice([1, 1, 1, 2])}" for row in range(self.draw.choice([2, 9, 30]))
            ]
            lines.append("")
        self.changes("a.py", "\n".join(lines) + self.draw.choice(["", "\n"]))

    def reads_by_mode(self, window: Window, name: str) -> None:
        arguments = self.call(name)
        before = window.session.leaf
        result = answer(window.session, "read", Call(arguments))
        assert result.failure is None
        details = result.details
        assert details["ok"] is not result.is_error
        if result.is_error:
            assert isinstance(details["error"], dict)
            assert details["error"]["code"] in EXPECTED, (arguments, details["error"])
            assert window.session.leaf == before
            return
        assert details["text"] == result.text
        if "readcache" not in details:
            return
        event = decode(details)
        assert isinstance(event, FileRead)
        note = last_read(window.session)
        assert note.event == event
        self.shown += 1
        self.markers += event.mode not in ("full", "baseline_fallback")
        window.heard(arguments, result.text, replace(claim_of(event), before=note.before))

    def call(self, name: str) -> dict[str, object]:
        draw, total = self.draw, self.now(name).count("\n") + 1
        target = draw.choice(ALIASES[name])
        call: dict[str, object]
        match draw.choice(["file", "lines", "lines", "pattern", "pattern", "folder", "symbol"]):
            case "file":
                call = {"mode": "file", "target": target, "offset": draw.choice([None, draw.randrange(1, total + 2)])}
                call["limit"] = draw.choice([None, draw.randrange(1, 60)])
            case "lines":
                first = draw.randrange(1, total + 2)
                call = {"mode": "snippet", "target": target, "start_line": first}
                call |= {"end_line": first + draw.randrange(60), "context_lines": draw.choice([None, 0, 3])}
            case "pattern":
                text = draw.choice(["lorem", "line 1", "/new|edit/", "/^$/", "}", "step_1", "return x"])
                call = {"mode": "snippet", "target": target, "pattern": text}
                call |= {"context_lines": draw.choice([None, 0, 6, 15]), "limit": draw.choice([None, 2, 5])}
                call["offset"] = draw.choice([None, None, 2])
            case "folder":
                text = draw.choice(["step_1", "return x", "import", "wraps", "lorem"])
                call = {"mode": "snippet", "target": ".", "pattern": text, "context_lines": draw.choice([None, 4, 12])}
            case _:
                call = {"mode": "symbol", "target": f"function_{draw.randrange(4)}", "path": "a.py"}
                call |= {"include_context": draw.random() < 0.5, "limit": draw.choice([None, None, 7])}
        call["bypass_cache"] = draw.random() < 0.05
        call["max_preview_chars"] = draw.choice([None, None, None, 100, 300, 2_000])
        return call


@pytest.fixture
def worlds() -> Iterator[list[World]]:
    made: list[World] = []
    yield made
    for world in made:
        world.close()


@pytest.mark.damages_store
@pytest.mark.parametrize("seed", range(10))
def test_answers_in_every_mode_are_proven_by_the_window(tmp_path: Path, worlds: list[World], seed: int) -> None:
    world = ModeWorld(random.Random(seed), tmp_path)  # noqa: S311 - a test's dice
    worlds.append(world)
    for _ in range(70):
        world.goes_on()
    assert world.shown
    for window in world.windows:
        assert witness(window.messages, window.claims, world.versions.get) == ()


@pytest.mark.parametrize("seed", range(4))
def test_a_check_of_sessions_that_read_by_mode_finds_no_fault(tmp_path: Path, worlds: list[World], seed: int) -> None:
    world = ModeWorld(random.Random(3000 + seed), tmp_path, may_lose=False)  # noqa: S311 - a test's dice
    worlds.append(world)
    for _ in range(70):
        world.goes_on()
    assert world.markers
    # and what `pagein check` says is asserted behind every test (see `stores_are_sound`)


def test_random_reads_have_every_kind_of_answer(tmp_path: Path, worlds: list[World]) -> None:
    world = ModeWorld(random.Random(8), tmp_path, may_lose=False)  # noqa: S311 - a test's dice
    worlds.append(world)
    for _ in range(250):
        world.goes_on()
    texts = [
        block.text
        for window in world.windows
        for one in window.messages
        for block in one.blocks
        if hasattr(block, "text")
    ]
    assert any("not shown]" in text for text in texts)
    assert any("unchanged in lines" in text for text in texts)
    assert any("function function_" in text for text in texts)
    assert ContentHash.of((world.folder / FILES[0]).read_bytes()) in world.versions


# --- in whole requests: with evictions, forks, and results that a host orders otherwise


class ModeTalks(RequestWorld):
    """Agents whose reads go through the tool with modes as often as through the host's own."""

    def read(self, talk: Talk, call: str, path: str, offset: int | None, limit: int | None) -> str:
        if self.draw.random() < 0.4:
            return super().read(talk, call, path, offset, limit)
        lines = self.lines(path)
        first = min(offset or 1, len(lines))
        asked: dict[str, object] = {
            "mode": "snippet",
            "target": path,
            "start_line": first,
            "end_line": first + (limit or 9),
        }
        if self.draw.random() < 0.5:
            asked = {"mode": "snippet", "target": path, "pattern": "/line [0-9]*[05] /", "context_lines": 3, "limit": 4}
        result = answer(talk.session, "read", Call(asked))
        assert result.failure is None
        if result.is_error:
            return result.text
        event = decode(result.details)
        assert isinstance(event, FileRead)
        note = last_read(talk.session)
        head = result.text[: note.before]
        whole = baseline("\n".join(lines), path, offset=event.first, limit=event.last - event.first + 1)
        claim = replace(claim_of(event), before=note.before)
        talk.heard[call] = Heard(result.text, claim, head + whole.text)
        return result.text

    def claims(self, talk: Talk, messages: list[Message]) -> dict[str, ReadClaim]:
        before = {call: heard.claim.before for call, heard in talk.heard.items()}
        return {call: replace(claim, before=before[call]) for call, claim in super().claims(talk, messages).items()}


@pytest.mark.parametrize("seed", range(10))
def test_the_witness_agrees_to_every_request_with_reads_by_mode(seed: int, tmp_path: Path) -> None:
    world = ModeTalks(random.Random(500 + seed), tmp_path)  # noqa: S311  reproducible, not secret
    for _ in range(70):
        world.step()
    assert world.requests > 20
    assert any(heard.claim.before for talk in world.talks for heard in talk.heard.values())
    for talk in world.talks:
        talk.session.keep()
    world.engine.close()
    # and what `pagein check` says is asserted behind every test (see `stores_are_sound`)
