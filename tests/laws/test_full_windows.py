"""The laws over random sessions in a small window: nothing is lost, nothing is refused, what was sent stays, restarts and forks say the same."""

import json
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine.window.prose import Talk, Wire, items_of, lost, sides, strings

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.log import snapshots
from pagein.engine.prepared_request import PreparedRequest
from pagein.model.messages import Usage
from pagein.policy.eviction.overflow import Valve
from pagein.providers.validity import Api
from pagein.providers.wire import check_body

WINDOW = 6000
SMALL = Settings(valve=Valve(window=WINDOW, pastes=2000))
APIS: tuple[Api, ...] = ("anthropic", "openai_chat", "openai_responses")
WORDS = "alpha beta gamma delta epsilon"


def text(mark: str, size: int) -> str:
    return f"{mark}: " + (WORDS * (size // len(WORDS) + 1))[:size]


SIZES = st.sampled_from([3, 80, 400, 900, 2600, 7000])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("turn"), SIZES, SIZES),
        st.tuples(st.just("turn"), SIZES, SIZES),
        st.tuples(st.just("tool"), SIZES, SIZES),
        st.tuples(st.just("failed"), SIZES, SIZES),
        st.tuples(st.just("with words"), SIZES, SIZES),
        st.tuples(st.just("blocks"), SIZES, SIZES),
        st.tuples(st.just("retry"), st.just(0), st.just(0)),
        st.tuples(st.just("restart"), st.just(0), st.just(0)),
        st.tuples(st.just("kill"), st.just(0), st.just(0)),
        st.tuples(st.just("fork"), st.integers(1, 9), SIZES),
    ),
    min_size=15,
    max_size=45,
)


class Run:
    """A client, an engine on a real store, and all that was sent."""

    def __init__(self, folder: Path, api: Api, *, lists: bool) -> None:
        self.folder, self.talk = (
            folder,
            Talk(api, lists=lists, instructions="<system-reminder>Never push.</system-reminder>"),
        )
        self.engine = self.opened()
        self.sent: dict[bytes, bytes] = {}
        self.items: list[Wire] = []
        self.killed: list[Engine] = []
        self.epochs = 0
        self.number = 0
        self.now = 0.0

    def opened(self) -> Engine:
        return pagein.open(self.folder / "store.db", workspace=self.folder, settings=SMALL)

    def restart(self) -> None:
        self.engine.close()
        self.engine = self.opened()

    def kill(self) -> None:
        """Nobody closes anything."""
        self.killed.append(self.engine)
        self.engine = self.opened()

    def fork(self, back: int, size: int) -> None:
        """The client goes back so many words of the user's, and says something else."""
        talk = self.talk
        users = [at for at, item in enumerate(talk.items) if item.get("role") == "user"]
        cut = users[max(0, len(users) - back)]
        if cut and "tool_result" not in json.dumps(talk.items[cut]):
            del talk.items[cut:]
            said = list(strings(talk.items))
            talk.texts = [one for one in talk.texts if one in said]
            talk.user(text(self.mark("other way"), size))

    def mark(self, kind: str) -> str:
        self.number += 1
        return f"{kind} {self.number}"

    def send(self, engine: Engine | None = None) -> PreparedRequest:
        talk, body = self.talk, self.talk.body()
        self.now += 10
        prepared = (engine or self.engine).prepare(body, talk.api, at=self.now, hint="one")
        items = items_of(prepared.body, talk.api)
        assert prepared.failure is None
        assert check_body(json.loads(prepared.body), talk.api) == []
        recall = self.engine.session(prepared.session).recall
        assert lost(talk, items, recall) == [], "law 1"
        assert sides(items) == alternating(sides(items_of(body, talk.api)), sides(items)), (
            "the sides alternate as they did"
        )
        said = items_of(body, talk.api)
        assert last(said, "user") in map(json.dumps, items) or carries(items, said), "the last words of the user stay"
        if body in self.sent:
            assert self.sent[body] == prepared.body, "law 6: a retry is the same"
        elif prepared.placed == "continued" and prepared.opened is None:
            assert items[: len(self.items)] == self.items, "law 4"
        self.sent[body], self.items = prepared.body, items
        used = Usage(fresh=10, written=len(prepared.body) // 4)
        assert (engine or self.engine).observe(prepared, used).failure is None
        self.epochs += prepared.opened is not None and bool(prepared.opened.turns)
        return prepared


_keep = snapshots.Snapshots.keep
UNKEPT: list[Exception] = []


def told(*asked: Any) -> None:  # noqa: ANN401 -- whatever it takes
    """Keep a snapshot; what the engine suppresses is remembered."""
    try:
        _keep(*asked)
    except Exception as problem:
        UNKEPT.append(problem)
        raise


def alternating(before: list[str], after: list[str]) -> list[str]:
    """The sides of a request, if no more of one side follow on each other than in what the client said."""
    return after if runs(after) <= runs(before) else before


def runs(sides: list[str]) -> int:
    """How often the user speaks behind the user."""
    return sum(one == other == "user" for one, other in pairwise(sides))


def last(items: list[Wire], role: str) -> str:
    return json.dumps(next(item for item in reversed(items) if item.get("role") == role))


def carries(items: list[Wire], said: list[Wire]) -> bool:
    """Whether the last words of the user stand in a request, beside a text of ours."""
    words = list(strings(json.loads(last(said, "user"))))
    return all(any(word in one for one in strings(items)) for word in words)


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS, st.booleans())
def test_a_full_window_keeps_the_laws(api: Api, steps: list[tuple[str, int, int]], lists: bool) -> None:  # noqa: FBT001
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(snapshots, "EVERY", 10),
        mock.patch.object(snapshots.Snapshots, "keep", told),
    ):
        run = Run(Path(folder), api, lists=lists)
        talk = run.talk
        talk.user("begin")
        run.send()
        for kind, some, other in steps:
            match kind:
                case "turn":
                    talk.model(text(run.mark("answer"), min(some, 2600)))
                    talk.user(text(run.mark("question"), other))
                case "blocks":
                    talk.model(text(run.mark("answer"), min(some, 2600)))
                    talk.user(text(run.mark("paste"), other), text(run.mark("question"), some))
                case "tool" | "failed":
                    talk.tool(
                        text(run.mark("step"), min(some, 900)), text(run.mark("out"), other), is_error=kind == "failed"
                    )
                case "with words":
                    talk.tool("so", text(run.mark("out"), other), words=text(run.mark("besides"), some))
                case "restart":
                    run.restart()
                case "kill":
                    run.kill()
                case "fork":
                    run.fork(some, other)
            run.send()
        run.restart()
        run.send()
        for engine in (*run.killed, run.engine):
            engine.close()
        assert UNKEPT == [], "the state of a full window can be kept for another process"
