"""The laws over random clients: whatever they send, in whatever form, on a real store."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine import wire_clients as clients

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.prepared_request import PreparedRequest
from pagein.policy.stubs.previews import Previews
from pagein.providers.validity import NOTHING_RECEIVED, Api
from pagein.providers.wire import check_body, with_request
from pagein.providers.wire.request_body import open_body
from pagein.testing.eager_residency import eager

EAGER = Settings(eager(batch_tokens=300, keep_calls=1, min_tokens=60, previews=Previews(3000, 900)))
APIS: tuple[Api, ...] = ("anthropic", "openai_chat", "openai_responses", "gemini_generate_content")

TEXTS = st.builds(
    lambda mark, size: f"{mark} " + "word " * size, st.sampled_from("abcdef"), st.sampled_from([1, 90, 300, 900])
)
TURNS = st.builds(
    clients.Turn,
    said=st.sampled_from(["let me see", "on it"]),
    results=st.lists(TEXTS, max_size=3).map(tuple),
    words=st.sampled_from(["", "", "go on", "other words"]),
    thinks=st.booleans(),
)
MANNERS = st.builds(
    clients.Manner,
    lists=st.booleans(),
    marks=st.integers(0, 3),
    spaces=st.booleans(),
    system=st.sampled_from(["s", "t"]),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), TURNS),
        st.tuples(st.just("say"), TURNS),
        st.tuples(st.just("retry"), MANNERS),
        st.tuples(st.just("fork"), st.integers(0, 8)),
        st.tuples(st.just("switch"), st.integers(0, 8)),
        st.tuples(st.just("manner"), MANNERS),
        st.tuples(st.just("restart"), st.none()),
        st.tuples(st.just("begin"), st.sampled_from(["hello", "a summary of it"])),
    ),
    min_size=4,
    max_size=16,
)


class Run:
    """A client, an engine on a real store, and what was sent so far."""

    def __init__(self, folder: Path, api: Api) -> None:
        self.folder, self.api = folder, api
        self.engine = self.opened()
        self.sent: dict[tuple[str, ...], list[str]] = {}
        self.originals: dict[str, str] = {}
        self.paged: dict[str, set[str]] = {}
        self.now = 0.0

    def opened(self) -> Engine:
        return pagein.open(self.folder / "store.db", workspace=self.folder, settings=EAGER)

    def send(self, talk: clients.Conversation, manner: clients.Manner) -> PreparedRequest:
        self.now += 10
        body = clients.body(talk, self.api, manner)
        prepared = self.engine.prepare(body, self.api, at=self.now, hint="one")
        self.hold(body, prepared)
        return prepared

    def hold(self, body: bytes, prepared: PreparedRequest) -> None:
        assert prepared.failure is None
        assert not prepared.repaired
        theirs, ours = json.loads(body), json.loads(prepared.body)
        allowed = {one.rule for one in check_body(theirs, self.api)}
        assert {one.rule for one in check_body(ours, self.api)} <= allowed
        self.hold_lossless(clients.results_of(theirs, self.api), clients.results_of(ours, self.api), prepared)
        if prepared.replaced == 0:
            assert prepared.body == body
        shown = clients.names_of(open_body(prepared.body, self.api).items, self.api)
        names = tuple(clients.names_of(open_body(body, self.api).items, self.api))
        start = 1 if self.api == "openai_chat" else 0  # the system prompt may change without the conversation
        self.hold_frozen(names[start:], shown[start:], prepared)

    def hold_lossless(self, theirs: dict[str, str], ours: dict[str, str], prepared: PreparedRequest) -> None:
        assert list(theirs) == list(ours)
        left = (*(prepared.opened.paged if prepared.opened else ()), *prepared.previewed)
        for one in left:  # on two branches a call of one id may have been answered by two texts
            self.paged.setdefault(one.call_id, set()).add(one.object_id)
        changed = [call for call, text in theirs.items() if ours[call] != text]
        assert len(changed) == prepared.replaced
        for call in changed:
            assert theirs[call] in {self.engine.recall(one) for one in self.paged[call]}

    def hold_frozen(self, names: tuple[str, ...], shown: list[str], prepared: PreparedRequest) -> None:
        if names in self.sent:
            assert prepared.placed == "retried"
            assert shown == self.sent[names]
        elif prepared.opened is None:
            parents = (names[:count] for count in range(len(names) - 1, 0, -1))
            before = next((self.sent[parent] for parent in parents if parent in self.sent), [])
            assert shown[: len(before)] == before
        self.sent[names] = shown


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_the_laws_hold_for_random_clients(api: Api, steps: list[tuple[str, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Run(Path(folder), api)
        talk, manner = clients.Conversation("please do it"), clients.Manner()
        history = [talk]
        run.send(talk, manner)
        for kind, what in steps:
            match what:
                case clients.Turn():
                    talk = talk.then(replace(what, words=what.words or ("" if what.results else "go on")))
                case clients.Manner():
                    manner = what
                case int() if kind == "fork":
                    talk = talk.until(what % (len(talk.turns) + 1))
                case int():
                    talk = history[what % len(history)]
                case str():
                    talk = clients.Conversation(what)
                case _:
                    run.engine.close()
                    run.engine = run.opened()
            history.append(talk)
            run.send(talk, manner)
        run.engine.close()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    model=st.sampled_from(["claude-sonnet-5-5", "claude-opus-4-6", "a-model-of-tomorrow"]),
    steps=st.lists(
        st.tuples(st.sampled_from(["say", "say", "say", "fork", "restart"]), TURNS, st.integers(0, 8)),
        min_size=6,
        max_size=16,
    ),
)
def test_thinking_never_stands_behind_another_prompt_than_it_was_made_for(
    model: str, steps: list[tuple[str, clients.Turn, int]]
) -> None:
    """Held to what a provider knows: which prompt each thought was an answer to (T2, T6, M10)."""
    with tempfile.TemporaryDirectory() as folder:
        run = Run(Path(folder), "anthropic")
        manner = clients.Manner(model=model)
        talk, received = clients.Conversation("please do it"), NOTHING_RECEIVED
        bodies = {talk: run.send(talk, manner).body}
        for kind, turn, number in steps:
            if kind == "restart":
                run.engine.close()
                run.engine = run.opened()
            if kind == "fork":
                talk = talk.until(number % (len(talk.turns) + 1))
            else:
                longer = talk.then(replace(turn, words=turn.words or ("" if turn.results else "go on")))
                asked = json.loads(bodies[talk])
                received = with_request(received, asked, "anthropic", clients.answer(longer))
                talk = longer
            prepared = run.send(talk, manner)
            assert check_body(json.loads(prepared.body), "anthropic", received=received) == []
            bodies[talk] = prepared.body
        run.engine.close()


def test_where_thinking_is_bound_an_epoch_waits_for_the_user_and_takes_the_thinking_behind_it_along() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Run(Path(folder), "anthropic")
        manner = clients.Manner(model="claude-sonnet-5-5")
        talk = clients.Conversation("please do it")
        for _ in range(5):
            talk = talk.then(clients.Turn("on it", ("word " * 200,), thinks=True))
            assert run.send(talk, manner).opened is None
        talk = talk.then(clients.Turn("done", words="and now this", thinks=True))
        prepared = run.send(talk, manner)
        assert prepared.opened is not None
        assert prepared.replaced == len(prepared.opened.paged)
        assert prepared.body.count(b"signed-") == 1  # what was thought before the first result saw nothing else
        talk = talk.then(clients.Turn("on it", ("word " * 200,), thinks=True))
        assert run.send(talk, manner).body.count(b"signed-") == 2
        run.engine.close()
