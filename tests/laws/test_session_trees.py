"""Random session trees, with real files that are read, held to the laws at every request of every branch."""

import json
import tempfile
from pathlib import Path
from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.watched_engine import WatchedEngine

from pagein.engine.engine import Settings
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.policy.economics.rewrite_cost import Economics
from pagein.policy.eviction.residency import PRICED, Residency
from pagein.policy.stubs.previews import Previews
from pagein.providers.tokens.counters import RatioCounter
from pagein.testing.eager_residency import eager

Op: TypeAlias = tuple[str, int]

BY_SIZE = eager(batch_tokens=1200, keep_calls=2, keep_reads=3, min_tokens=60, previews=Previews(2500, 700))
BY_PRICE = eager(
    keep_calls=2,
    keep_reads=3,
    min_tokens=60,
    keep_calls_free=1,
    economics=Economics(share=0.5),
    previews=Previews(2500, 700),
)

OPS: st.SearchStrategy[list[Op]] = st.lists(
    st.one_of(
        st.tuples(st.just("works"), st.integers(1, 4000)),
        st.tuples(st.just("works"), st.integers(1, 4000)),
        st.tuples(st.just("reads"), st.integers(0, 8)),
        st.tuples(st.just("changes"), st.integers(0, 5)),
        st.tuples(st.just("edits"), st.integers(0, 8)),
        st.tuples(st.just("reverts"), st.integers(0, 9)),
        st.tuples(st.just("shrinks"), st.integers(1, 30)),
        st.tuples(st.just("refreshes"), st.integers(0, 8)),
        st.tuples(st.just("asks"), st.integers(0, 9)),
        st.tuples(st.just("secret"), st.integers(1, 900)),
        st.tuples(st.just("dangles"), st.just(0)),
        st.tuples(st.just("compacts"), st.integers(0, 5)),
        st.tuples(st.just("waits"), st.integers(1, 4000)),
        st.tuples(st.just("goes back"), st.integers(0, 40)),
        st.tuples(st.just("calls"), st.just(0)),
        st.tuples(st.just("calls"), st.just(0)),
    ),
    max_size=45,
)


class Tree:
    """One session whose host does as it is told."""

    def __init__(self, engine: WatchedEngine, home: Path) -> None:
        session = engine.session("tree")
        self.session = session
        self.home = home
        self.now = 0.0
        self.made = 0
        self.file = home / "a.py"
        self.texts: list[str] = []
        self._put("".join(f"line {n} of a file that is read\n" for n in range(90)))

    def do(self, op: Op, number: int) -> None:
        name, value = op
        match name:
            case "works" | "secret":
                self._work(name, value, number)
            case "reads":
                self._read(value)
            case "changes" | "reverts" | "shrinks":
                self._put(self._changed(name, value, number))
            case "edits":
                self._edit(value, number)
            case "refreshes":
                self.session.refresh("a.py", value * 10 + 1 if value else None, 7 if value else None)
            case "asks" | "dangles":
                call = ToolCall(f"dangling-{number}", "Bash", "{}")
                self._say(
                    Message("user", (Text(f"ask {number}"),)) if name == "asks" else Message("assistant", (call,))
                )
            case "compacts":
                self.session.note_compaction(kept=value)
            case "waits":
                self.now += value
            case "goes back":
                branch = self.session.journal.branch(self.session.leaf)
                self.session.move(branch[-1 - value].id if value < len(branch) else None)
            case _:
                self._call(number)

    def _work(self, name: str, value: int, number: int) -> None:
        command, text = (
            (f"make {number}", f"{number}: " + "out put\n" * (value // 8 + 1))
            if name == "works"
            else ("cat .env", f"KEY{number}=" + "hush " * value)
        )
        self._turn("Bash", json.dumps({"command": command}), text)

    def _call(self, number: int) -> None:
        """A host calls its model when somebody has spoken."""
        said = self.session.window()
        if not said or said[-1].role == "assistant":
            self._say(Message("user", (Text(f"go on {number}"),)))
        self.now += 3
        self.session.advance(self.now)

    def _turn(self, tool: str, arguments: str, text: str) -> None:
        self.made += 1
        call = f"call-{self.made}"
        self._say(Message("assistant", (ToolCall(call, tool, arguments),)))
        self._say(Message("tool", (ToolResult(call, text, tool),)))

    def _changed(self, name: str, value: int, number: int) -> str:
        """The file as somebody else leaves it: with another line, without its end, or as it was before."""
        if name == "reverts":
            return self.texts[value % len(self.texts)]
        lines = self.file.read_text().splitlines(keepends=True)
        if name == "shrinks":
            return "".join(lines[: max(5, len(lines) - value)])
        lines[value * 13 : value * 13 + 1] = [f"line changed by {number}\n"]
        return "".join(lines)

    def _put(self, text: str) -> None:
        self.file.write_text(text)
        self.texts.append(text)

    def _edit(self, value: int, number: int) -> None:
        """The model puts lines of its own behind a line, or in its place."""
        text = self.file.read_text()
        lines = text.splitlines(keepends=True)
        old = lines[value * 7 % len(lines)]
        new = (old if value % 2 else "") + "".join(f"mine {number} {n}\n" for n in range(value))
        if text.count(old) == 1:
            self._put(text.replace(old, new))
            self.session.note_edit("a.py", old, new)
            self._turn("edit", json.dumps({"path": "a.py", "oldText": old, "newText": new}), "ok")

    def _read(self, value: int) -> None:
        first = value * 10 + 1 if value else None
        answer = self.session.read("a.py", first, 30 if first else None)
        self._turn("read", json.dumps({"path": "a.py"}), answer.text)

    def _say(self, message: Message) -> None:
        self.session.append(message)


def _grown(ops: list[Op], residency: Residency) -> WatchedEngine:
    with tempfile.TemporaryDirectory() as place:
        home = Path(place) / "work"
        home.mkdir()
        chosen = Settings(residency=residency)
        store = Path(place) / "store.db"
        with WatchedEngine(store, counter=RatioCounter(4.0, 4.0), settings=chosen, home=home, forks=True) as engine:
            tree = Tree(engine, home)
            for number, op in enumerate(ops):
                tree.do(op, number)
            tree.do(("calls", 0), len(ops))
    return engine


@settings(max_examples=120, deadline=None)
@given(OPS, st.sampled_from([BY_SIZE, BY_PRICE, PRICED]))
def test_every_request_of_every_branch_keeps_every_law(ops: list[Op], residency: Residency) -> None:
    _grown(ops, residency)


def test_random_session_trees_have_evictions_epochs_and_forks() -> None:
    """A test of the test: what it watches does happen."""
    turns: list[Op] = [("works", 900), ("calls", 0)] * 6
    ops: list[Op] = [("asks", 0), ("works", 3900), ("reads", 0), ("calls", 0), *turns, ("reads", 0), ("calls", 0)]
    laws = _grown([*ops, ("goes back", 12), *turns, ("compacts", 3), *turns], BY_SIZE).laws
    assert laws.paged > 5
    assert laws.rewritten > 1
    assert laws.bytes_compared > 30
