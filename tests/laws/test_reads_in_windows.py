"""Law 2 in whole requests: sessions that read, speak, page out, compact, branch and go on, and a witness that never objects."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.log import read_notes
from pagein.engine.session import Session
from pagein.model.entries import EntryId
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.read_events import FileRead, FileWrite, ReadClaim, claim_of
from pagein.model.read_records import decode
from pagein.model.spans import Spans
from pagein.policy.audit.witness import witness
from pagein.policy.reads.baseline import baseline
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.eager_residency import eager
from pagein.upkeep import check_store

FILES = ("a.py", "sub/b.md", "big.txt")
EAGER = eager(batch_tokens=600, keep_calls=2, min_tokens=20)


class OneToken:
    """A quarter of a character is a token, so that files of tests are worth paging out."""

    def count(self, text: str, kind: str = "result") -> float:
        return len(text) / 4


@dataclass
class Heard:
    """An answer that the test got, and what it was to stand for."""

    text: str
    claim: ReadClaim
    in_full: str


@dataclass
class Talk:
    """A session, and the test's own account of what its model was told, by call."""

    session: Session
    heard: dict[str, Heard] = field(default_factory=dict)
    calls: int = 0
    places: list[EntryId] = field(default_factory=list)

    def name(self) -> str:
        self.calls += 1
        return f"{self.session.name}-{self.calls}"


class World:
    def __init__(self, draw: random.Random, place: Path) -> None:
        self.draw = draw
        self.folder = place / "work"
        self.store = place / "s.pagein"
        self.watched = draw.random() < 0.5
        self.versions: dict[ContentHash, bytes] = {}
        (self.folder / "sub").mkdir(parents=True)
        for name in FILES:
            self.puts(name, [f"{name} line {n} of the first version" for n in range(draw.choice([3, 30, 90]))])
        self.engine = self.opened()
        self.talks = [Talk(self.engine.session("s0", workspace=self.folder))]
        self.requests = 0
        self.stubs = 0

    def opened(self) -> Engine:
        return pagein.open(store=self.store, counter=OneToken(), settings=Settings(EAGER, witness=self.watched))

    def lines(self, name: str) -> list[str]:
        return (self.folder / name).read_text().split("\n")

    def puts(self, name: str, lines: list[str]) -> None:
        content = "\n".join(lines).encode()
        (self.folder / name).write_bytes(content)
        self.versions[ContentHash.of(content)] = content

    def somebody_edits(self, name: str) -> None:
        lines = self.lines(name)
        at = self.draw.randrange(len(lines) + 1)
        fresh = [f"edited {self.draw.randrange(99)} by others" for _ in range(self.draw.randrange(1, 9))]
        lines[at : at + self.draw.choice([0, 1, 7])] = fresh
        self.puts(name, lines)

    # --- one turn of an agent: calls, their execution in any order, results as a host may say them

    def turn(self, talk: Talk) -> None:
        kinds = [
            self.draw.choice(["read", "read", "read", "write", "edit", "shell"])
            for _ in range(self.draw.choice([1, 1, 2, 3]))
        ]
        planned = [self.called(talk, kind) for kind in kinds]
        said_first = self.draw.random() < 0.5
        message = Message("assistant", tuple(call for call, _ in planned))
        if said_first:
            talk.session.append(message)
        order = list(range(len(planned)))
        self.draw.shuffle(order)
        answers = {place: planned[place][1]() for place in order}
        if not said_first:
            talk.session.append(message)
        results = [
            ToolResult(planned[place][0].id, answers[place], planned[place][0].name) for place in range(len(planned))
        ]
        if self.draw.random() < 0.1:
            results.pop(self.draw.randrange(len(results)))
        if self.draw.random() < 0.1:
            results = [ToolResult(one.call_id, f"wrapped\n{one.text}", one.name) for one in results]
        if self.draw.random() < 0.5:
            talk.session.append(Message("tool", tuple(results)))
        else:
            for one in results:
                talk.session.append(Message("tool", (one,)))

    def called(self, talk: Talk, kind: str) -> tuple[ToolCall, Callable[[], str]]:
        name, path = talk.name(), self.draw.choice(FILES)
        if kind == "shell":
            return ToolCall(name, "bash", '{"command":"make"}'), lambda: "noise\n" * self.draw.choice([1, 200])
        if kind == "write":
            text = "\n".join(f"{path} written {self.draw.randrange(50)}" for _ in range(self.draw.choice([1, 8, 30])))
            call = ToolCall(name, "write", json.dumps({"path": path, "content": text}))
            return call, lambda: self.wrote(talk, name, path, text)
        if kind == "edit":
            lines = self.lines(path)
            at = self.draw.randrange(len(lines))
            old = "\n".join(lines[at : at + 2])
            new = "\n".join(
                [*lines[at : at + 1], *(f"mine {self.draw.randrange(50)}" for _ in range(self.draw.choice([0, 1, 8])))]
            )
            call = ToolCall(name, "edit", json.dumps({"path": path, "edits": [{"old": old, "new": new}]}))
            return call, lambda: self.edited(talk, name, path, old, new)
        offset, limit = self.draw.choice([None, None, 1, 5, 20]), self.draw.choice([None, None, 6, 40])
        call = ToolCall(name, "read", json.dumps({"path": path, "offset": offset, "limit": limit}))
        return call, lambda: self.read(talk, name, path, offset, limit)

    def read(self, talk: Talk, call: str, path: str, offset: int | None, limit: int | None) -> str:
        result = talk.session.read(path, offset, limit)
        assert result.failure is None
        if result.is_error:
            return result.text
        event = decode(result.details)
        assert isinstance(event, FileRead)
        whole = baseline((self.folder / path).read_text(), path, offset=offset, limit=limit)
        talk.heard[call] = Heard(result.text, claim_of(event), whole.text)
        return result.text

    def wrote(self, talk: Talk, call: str, path: str, text: str) -> str:
        self.puts(path, text.split("\n"))
        if self.draw.random() < 0.9:
            assert talk.session.note_write(path, text).failure is None
            self.noted(talk, call, "written")
        return "written"

    def edited(self, talk: Talk, call: str, path: str, old: str, new: str) -> str:
        text = (self.folder / path).read_text()
        if not old or text.count(old) != 1:
            return "not done"
        self.puts(path, text.replace(old, new).split("\n"))
        learned = talk.session.note_edit(path, old, new)
        assert learned.failure is None
        self.noted(talk, call, "done")
        return "done"

    def noted(self, talk: Talk, call: str, said: str) -> None:
        event = read_notes.event_of(talk.session.journal.entry(talk.session.leaf or "").body)
        if isinstance(event, FileWrite):
            talk.heard[call] = Heard(said, claim_of(event), said)

    # --- what else may happen

    def step(self) -> None:
        talk = self.draw.choice(self.talks)
        act = self.draw.random()
        if act < 0.55:
            self.asks(talk)
            self.turn(talk)
        elif act < 0.7:
            self.somebody_edits(self.draw.choice(FILES))
        elif act < 0.76:
            talk.session.read(self.draw.choice(FILES))  # by the host for itself
        elif act < 0.8:
            talk.session.refresh(self.draw.choice(FILES), *self.draw.choice([(), (2, 5)]))
        elif act < 0.84:
            talk.session.note_compaction(self.draw.choice([0, 1, 3, 6]))
        elif act < 0.89 and talk.places:
            talk.session.move(self.draw.choice(talk.places))
        elif act < 0.94 and len(self.talks) < 4:
            forked = talk.session.fork(f"s{len(self.talks)}")
            self.talks.append(Talk(forked, dict(talk.heard), 0))
        elif act < 0.97:
            talk.session.append(Message("user", (Text("go on"),)))
        else:
            self.reopens()

    def reopens(self) -> None:
        for talk in self.talks:
            talk.session.keep()
        stood = [talk.session.leaf for talk in self.talks]
        self.engine.close()
        self.engine = self.opened()
        for talk, leaf in zip(self.talks, stood, strict=True):
            talk.session = self.engine.session(talk.session.name, workspace=self.folder)
            talk.session.move(leaf)

    def asks(self, talk: Talk) -> None:
        prepared = talk.session.advance()
        assert prepared.failure is None
        talk.places.append(talk.session.leaf or "")
        messages = talk.session.last_request()
        self.requests += 1
        assert witness(messages, self.claims(talk, messages), self.versions.get) == ()

    def claims(self, talk: Talk, messages: list[Message]) -> dict[str, ReadClaim]:
        """What each answer that stands in the request was to stand for: as it was given, or in full."""
        found: dict[str, ReadClaim] = {}
        for block in (block for message in messages for block in message.blocks if isinstance(block, ToolResult)):
            heard = talk.heard.get(block.call_id)
            self.stubs += block.text.startswith("[pagein: ")
            if heard is None:
                continue
            if block.text == heard.text or (heard.claim.kind == "authored" and block.text == f"wrapped\n{heard.text}"):
                found[block.call_id] = heard.claim
            elif block.text == heard.in_full:
                count = heard.claim.last - heard.claim.first + 1
                emitted = Spans.of((heard.claim.first, heard.claim.first + count - 1))
                found[block.call_id] = ReadClaim(
                    heard.claim.path,
                    heard.claim.version,
                    heard.claim.total,
                    heard.claim.first,
                    heard.claim.last,
                    "text",
                    emitted,
                )
            else:
                assert block.text.startswith(("[pagein: ", "wrapped\n", "[no result")), block.text
        return found


@pytest.mark.parametrize("seed", range(12))
def test_the_witness_agrees_to_every_request_of_random_sessions(seed: int, tmp_path: Path) -> None:
    world = World(random.Random(seed), tmp_path)  # noqa: S311  reproducible, not secret
    for _ in range(70):
        world.step()
    assert world.requests > 20
    for talk in world.talks:
        talk.session.keep()
    world.engine.close()
    store = SqliteUpkeep(world.store)
    assert [finding.why for finding in check_store(store).findings] == []
    store.close()


def test_random_sessions_have_evictions_and_markers(tmp_path: Path) -> None:
    world = World(random.Random(3), tmp_path)  # noqa: S311  reproducible, not secret
    for _ in range(120):
        world.step()
    assert world.stubs > 10
    kinds = {heard.claim.kind for talk in world.talks for heard in talk.heard.values()}
    assert len(kinds & {"unchanged", "unchanged_range", "partly_known", "moved", "diff", "range_diff"}) >= 3
    world.engine.close()
