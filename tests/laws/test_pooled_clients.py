"""The laws over random clients whose conversations are shown in the pooled layout, on a real store."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.engine import wire_clients as clients
from tests.laws.test_client_requests import MANNERS, TURNS, Run
from tests.laws.test_thinking import STEPS as THOUGHTS
from tests.laws.test_thinking import Client, walk

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.send.outgoing_body import RequestRenderer
from pagein.engine.session import Session
from pagein.providers.validity import Api
from pagein.providers.wire import check_body
from pagein.providers.wire.request_body import open_body
from pagein.providers.wire.tool_offers import ToolOffer, definition
from pagein.tools.brief import OFFERS as RECALL
from pagein.tools.short_pool_tools import OFFERS as POOLS

POOLED = Settings(layout="pooled")
APIS: tuple[Api, ...] = ("anthropic", "openai_chat", "openai_responses", "gemini_generate_content")
TOOL = ToolOffer("lookup", "Look something up.", {"type": "object", "properties": {"b": {"type": "integer"}}})
ACTS = st.sampled_from(["activate", "deactivate", "pin", "unpin"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), TURNS),
        st.tuples(st.just("say"), TURNS),
        st.tuples(st.just("say"), TURNS),
        st.tuples(st.just("retry"), MANNERS),
        st.tuples(st.just("fork"), st.integers(0, 8)),
        st.tuples(st.just("act"), st.tuples(ACTS, st.integers(0, 9))),
        st.tuples(st.just("pause"), st.none()),
        st.tuples(st.just("fail"), st.none()),
        st.tuples(st.just("restart"), st.none()),
        st.tuples(st.just("begin"), st.sampled_from(["hello", "a summary of it"])),
    ),
    min_size=4,
    max_size=16,
)


def with_tools(body: bytes, api: Api) -> bytes:
    """A request of an agent: it offers a tool."""
    made = definition(TOOL, api)
    tools = [{"functionDeclarations": [made]}] if api == "gemini_generate_content" and "name" in made else [made]
    return json.dumps({**json.loads(body), "tools": tools}).encode()


class PooledRun(Run):
    """A client of a pooled conversation. The last request can be prepared anew with a failing engine."""

    def opened(self) -> Engine:
        return pagein.open(self.folder / "store.db", workspace=self.folder, settings=POOLED)

    def send(self, talk: clients.Conversation, manner: clients.Manner) -> PreparedRequest:
        self.now += 10
        body = with_tools(clients.body(talk, self.api, manner), self.api)
        prepared = self.engine.prepare(body, self.api, at=self.now, hint="one", offers=(*RECALL, *POOLS))
        self.hold(body, prepared)
        self.prepared = prepared
        return prepared

    def hold(self, body: bytes, prepared: PreparedRequest) -> None:
        """The request is valid, shows or names each result, and only goes on from the one before unless it opens an epoch."""
        assert prepared.failure is None
        theirs, ours = json.loads(body), json.loads(prepared.body)
        assert {one.rule for one in check_body(ours, self.api)} <= {one.rule for one in check_body(theirs, self.api)}
        self.hold_lossless(clients.results_of(theirs, self.api), clients.results_of(ours, self.api), prepared)
        shown = clients.names_of(open_body(prepared.body, self.api).items, self.api)
        names = tuple(clients.names_of(open_body(body, self.api).items, self.api))
        start = 1 if self.api == "openai_chat" else 0  # the system prompt may change without the conversation
        self.hold_frozen(names[start:], shown[start:], prepared)

    def hold_lossless(self, theirs: dict[str, str], ours: dict[str, str], prepared: PreparedRequest) -> None:
        """Each result is whole in its place, or a reference to an object with its text."""
        assert list(theirs) == list(ours)
        changed = {call: text for call, text in theirs.items() if ours[call] != text}
        assert len(changed) == prepared.replaced
        session = self.engine.session(prepared.session)
        index = session.pools.of_window.state.index
        held = {session.pools.of_window.text(one) for one in index}
        for call, text in changed.items():
            assert ours[call].startswith("toolcall_ref id=")
            assert text in held

    def act(self, name: str, number: int) -> None:
        """Use a tool for pools behind the last request."""

        def work(session: Session) -> None:
            known = list(session.pools.of_window.state.index)
            told = known[number % len(known)] if known else "nothing"
            pools = session.pools.of_window
            {"activate": pools.activate, "deactivate": pools.deactivate, "pin": pools.pin, "unpin": pools.unpin}[name](
                told
            )

        self.engine.behind(self.prepared, work)

    def fail(self, talk: clients.Conversation, manner: clients.Manner) -> None:
        """A request whose decision fails goes out valid, and the next goes on."""
        self.now += 10
        body = with_tools(clients.body(talk, self.api, manner), self.api)
        with mock.patch.object(RequestRenderer, "check", side_effect=ZeroDivisionError):
            prepared = self.engine.prepare(body, self.api, at=self.now, hint="one", offers=(*RECALL, *POOLS))
        theirs, ours = json.loads(body), json.loads(prepared.body)
        assert list(clients.results_of(theirs, self.api)) == list(clients.results_of(ours, self.api))


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
@example(  # behind a compaction, the content at the very end of the last request leaves again
    steps=[
        ("say", clients.Turn("let me see", (), "")),
        ("say", clients.Turn("let me see", ("a " + "word " * 300,), "go on")),
        ("begin", "hello"),
        ("say", clients.Turn("let me see", (), "")),
    ]
)
def test_the_laws_hold_for_random_pooled_clients(api: Api, steps: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = PooledRun(Path(folder), api)
        talk, manner = clients.Conversation("please do it"), clients.Manner()
        run.send(talk, manner)
        for kind, what in steps:
            match kind:
                case "say":
                    talk = talk.then(replace(what, words=what.words or ("" if what.results else "go on")))
                case "retry":
                    manner = replace(what, lists=True)  # the form of the words in front follows that of the client
                case "fork":
                    talk = talk.until(what % (len(talk.turns) + 1))
                case "begin":
                    talk = clients.Conversation(what)
                case "act":
                    run.act(*what)
                case "pause":
                    run.now += 7200
                case "fail":
                    run.fail(talk, manner)
                case _:
                    run.engine.close()
                    run.engine = run.opened()
            run.send(talk, manner)
        run.engine.close()


class PooledThinker(Client):
    """An agent of a model that binds its thinking, whose conversation is pooled."""

    settings = POOLED
    offers = (*RECALL, *POOLS)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(model=st.sampled_from(["claude-sonnet-5-5", "a-model-of-tomorrow"]), steps=THOUGHTS)
def test_no_thought_of_a_pooled_conversation_stands_behind_another_prompt_than_its_own(
    model: str, steps: list[tuple[tuple[Any, ...], str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        client = PooledThinker(Path(folder), model, "Bash")
        try:
            walk(client, steps)
        finally:
            client.engine.close()
