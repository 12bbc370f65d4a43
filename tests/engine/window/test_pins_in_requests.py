"""The user's hand on a session whose requests come over the wire, laid there by another process."""

import json
from pathlib import Path

import pytest
from tests.engine import wire_clients as clients

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.prepared_request import PreparedRequest
from pagein.policy.eviction.overflow import FULL, Valve
from pagein.providers.validity import Api
from pagein.providers.wire import check_body
from pagein.testing.eager_residency import eager

APIS: tuple[Api, ...] = ("anthropic", "openai_chat", "openai_responses")
QUIET = Settings(eager(batch_tokens=10**9, keep_calls=1, min_tokens=60), valve=Valve(window=10**9))
RULE = "Never touch the migrations."


class Agent:
    """A client that works through an engine; each turn has one result."""

    def __init__(self, folder: Path, api: Api, settings: Settings = QUIET, model: str = "") -> None:
        self.folder, self.api, self.settings = folder, api, settings
        self.engine = self.opened()
        self.manner = clients.Manner(model=model)
        self.talk = clients.Conversation("hello")
        self.now = 0.0
        self.sent: list[PreparedRequest] = []

    def opened(self) -> Engine:
        return pagein.open(self.folder / "store.db", workspace=self.folder, settings=self.settings)

    def works(self, *marks: str) -> PreparedRequest:
        for mark in marks:
            self.talk = self.talk.then(clients.Turn("on it", (f"{mark} " + "word " * 300,)))
            prepared = self.sends()
        return prepared

    def sends(self) -> PreparedRequest:
        self.now += 10
        prepared = self.engine.prepare(
            clients.body(self.talk, self.api, self.manner), self.api, at=self.now, hint="one"
        )
        assert prepared.failure is None
        assert check_body(prepared.request, self.api) == []
        self.sent.append(prepared)
        return prepared

    def call(self, turn: int) -> str:
        return self.talk.ids(turn)[0]

    def shown(self) -> dict[str, str]:
        return clients.results_of(self.sent[-1].request, self.api)

    def items(self, number: int) -> list[object]:
        """The messages of a request as it left; Anthropic's as blocks, for there our text is one more of the last message."""
        value = self.sent[number].request
        items = value["input" if self.api == "openai_responses" else "messages"]
        if self.api == "anthropic":
            return [[item["role"], {**block, "cache_control": None}] for item in items for block in item["content"]]
        return list(items)


@pytest.mark.parametrize("api", APIS)
def test_results_stay_leave_and_come_back_in_the_bytes_that_are_sent(tmp_path: Path, api: Api) -> None:
    agent = Agent(tmp_path, api)
    with agent.engine, agent.opened() as other:
        agent.works(*"abcde")
        before = agent.shown()
        hand = other.session("one").hand
        hand.pin(agent.call(0))
        hand.drop(agent.call(3))
        hand.epoch()
        prepared = agent.works("f")
        assert prepared.opened is not None
        now = agent.shown()
        assert now[agent.call(0)] == before[agent.call(0)]
        for turn in (1, 2, 3):
            assert now[agent.call(turn)].startswith("[pagein: pg-")
        hand.restore(agent.call(1))
        hand.epoch()
        agent.works("g")
        assert agent.shown()[agent.call(1)] == before[agent.call(1)]
        retried = agent.engine.prepare(clients.body(agent.talk, api, agent.manner), api, at=99.0, hint="one")
        assert retried.body == agent.sent[-1].body


@pytest.mark.parametrize("api", APIS)
def test_a_pinned_text_stands_in_the_bytes_and_stays_there(tmp_path: Path, api: Api) -> None:
    agent = Agent(tmp_path, api)
    with agent.engine, agent.opened() as other:
        agent.works("a", "b")
        other.session("one").hand.say(RULE)
        agent.works("c", "d")
        assert json.dumps(agent.sent[-1].request).count(RULE) == 1
        for number in range(1, len(agent.sent)):
            earlier = agent.items(number - 1)
            assert agent.items(number)[: len(earlier)] == earlier, "what was sent is not changed"
    with agent.opened() as agent.engine:
        again = agent.works("e")
        assert json.dumps(again.request).count(RULE) == 1
        earlier = agent.items(-2)
        assert agent.items(-1)[: len(earlier)] == earlier, "not by a restart either"


@pytest.mark.parametrize("api", APIS)
def test_a_pinned_text_survives_the_clients_own_compaction(tmp_path: Path, api: Api) -> None:
    agent = Agent(tmp_path, api)
    with agent.engine:
        agent.works("a", "b", "c")
        agent.engine.session("one").hand.say(RULE)
        agent.works("d")
        agent.talk = clients.Conversation("This session goes on from one that ran out of room. Summary: all is well.")
        agent.sends()
        assert json.dumps(agent.sent[-1].request).count(RULE) == 1


@pytest.mark.parametrize("api", APIS)
def test_near_the_end_of_the_window_results_leave_over_the_wire_too(tmp_path: Path, api: Api) -> None:
    settings = Settings(QUIET.residency, valve=Valve(window=3000))
    agent = Agent(tmp_path, api, settings)
    with agent.engine:
        agent.works(*"abcdefghij")
        reasons = [one.opened.reason for one in agent.sent if one.opened is not None]
        assert FULL in reasons
        assert agent.talk.ids(9)[0] in agent.shown()


def test_the_window_is_that_of_the_model_that_the_request_names(tmp_path: Path) -> None:
    settings = Settings(eager(batch_tokens=10**9, keep_calls=1, min_tokens=60))
    agent = Agent(tmp_path, "anthropic", settings, model="claude-haiku-4-5")
    with agent.engine:
        for mark in "abcde":
            agent.talk = agent.talk.then(clients.Turn("on it", (f"{mark} " + "word " * 40_000,)))
            agent.sends()
        reasons = [one.opened.reason for one in agent.sent if one.opened is not None]
        assert FULL in reasons


@pytest.mark.parametrize("api", APIS)
def test_a_text_is_pinned_for_every_conversation_of_a_session(tmp_path: Path, api: Api) -> None:
    agent = Agent(tmp_path, api)
    with agent.engine, agent.opened() as other:
        agent.works("a", "b")
        main, leader = agent.talk, agent.manner
        agent.talk, agent.manner = clients.Conversation("Look for it."), clients.Manner(system="You are a sub-agent.")
        agent.works("x")
        assert other.session("one").hand.say(RULE) is None
        for talk, manner in ((agent.talk, agent.manner), (main, leader)):
            agent.talk, agent.manner = talk, manner
            agent.works("y")
            assert json.dumps(agent.sent[-1].request).count(RULE) == 1
        other.session("one").hand.unsay(RULE)
        agent.talk, agent.manner = clients.Conversation("a third one"), clients.Manner(system="You are another.")
        agent.works("z")
        assert RULE not in json.dumps(agent.sent[-1].request)
