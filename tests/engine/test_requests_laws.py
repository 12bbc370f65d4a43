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
from pagein.engine.requests import PreparedRequest
from pagein.policy.previews import Previews
from pagein.policy.residency import Residency
from pagein.providers.validity import Api, check_body
from pagein.providers.wire.request import opened

EAGER = Settings(Residency(batch_tokens=300, keep_calls=1, min_tokens=60, previews=Previews(3000, 900)))
APIS: tuple[Api, ...] = ("anthropic", "openai_chat", "openai_responses")

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
        self.paged: dict[str, str] = {}
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
        shown = clients.names_of(opened(prepared.body, self.api).items, self.api)
        names = tuple(clients.names_of(opened(body, self.api).items, self.api))
        start = 1 if self.api == "openai_chat" else 0  # the system prompt may change without the conversation
        self.hold_frozen(names[start:], shown[start:], prepared)

    def hold_lossless(self, theirs: dict[str, str], ours: dict[str, str], prepared: PreparedRequest) -> None:
        assert list(theirs) == list(ours)
        left = (*(prepared.opened.paged if prepared.opened else ()), *prepared.previewed)
        self.paged.update((one.call_id, one.object_id) for one in left)
        changed = [call for call, text in theirs.items() if ours[call] != text]
        assert len(changed) == prepared.replaced
        for call in changed:
            assert self.engine.recall(self.paged[call]) == theirs[call]

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
def test_whatever_a_client_does_the_laws_hold(api: Api, steps: list[tuple[str, object]]) -> None:
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
