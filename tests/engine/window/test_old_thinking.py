"""What the model thought in turns that are over, where an epoch takes it along: when, how much, and where it is then."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine import wire_clients as clients
from tests.laws.test_client_requests import EAGER, TURNS, Run

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.recall.object_search import Lookup
from pagein.engine.window.old_thinking import NOT_SHOWN, count_finished
from pagein.errors import StoreError
from pagein.model.entries import EpochEntry
from pagein.model.messages import Message, Text, Thinking, ToolCall, ToolResult
from pagein.providers.validity import NOTHING_RECEIVED
from pagein.providers.wire import check_body, with_request

LEAVES = replace(EAGER, residency=replace(EAGER.residency, thinking="leaves"))
CARRIES, BINDS, STRIPS = "claude-opus-4-6", "claude-sonnet-5-5", "claude-sonnet-4-5"

USER = Message("user", (Text("do"),))
ASKS = Message("assistant", (Thinking("hm", "s"), ToolCall("a", "Read", "{}")))
ANSWERED = Message("tool", (ToolResult("a", "text"),))
SAYS = Message("assistant", (Text("done"),))


@pytest.mark.parametrize(
    ("messages", "count"),
    [
        ([], 0),
        ([USER], 0),
        ([USER, ASKS, ANSWERED], 0),
        ([USER, ASKS, ANSWERED, SAYS], 0),
        ([USER, ASKS, ANSWERED, SAYS, USER], 4),
        ([USER, ASKS, ANSWERED, SAYS, USER, ASKS, ANSWERED, ASKS, ANSWERED], 4),
        ([USER, ASKS, Message("user", (ToolResult("a", "text"), Text("and that")))], 0),
        ([USER, ASKS, ANSWERED, USER], 0),  # providers take the two for one message
        ([USER, SAYS, Message("system", (Text("mind this"),))], 0),
        ([USER, SAYS, USER, SAYS, USER], 4),
    ],
)
def test_a_turn_is_over_when_a_person_spoke_behind_it_and_no_tool(messages: list[Message], count: int) -> None:
    assert count_finished(messages) == count


@contextmanager
def opened(settings: Settings = LEAVES) -> Iterator[Run]:
    with tempfile.TemporaryDirectory() as folder:
        run = _Run(Path(folder), settings)
        yield run
        run.engine.close()


class _Run(Run):
    def __init__(self, folder: Path, settings: Settings) -> None:
        self.settings = settings
        super().__init__(folder, "anthropic")

    def opened(self) -> Engine:
        return pagein.open(self.folder / "store.db", workspace=self.folder, settings=self.settings)


def signed(body: bytes | Mapping[str, Any]) -> list[str]:
    """Signatures of the thinking in a request, in order."""
    value = json.loads(body) if isinstance(body, bytes) else body
    blocks = (block for one in value["messages"] if isinstance(one["content"], list) for block in one["content"])
    return [block["signature"] for block in blocks if block["type"] == "thinking"]


def worked(turns: int = 5, words: str = "") -> clients.Conversation:
    """A turn that read a lot, each step of it thought about, and its end."""
    talk = clients.Conversation("please do it")
    for _ in range(turns):
        talk = talk.then(clients.Turn("on it", ("word " * 200,), thinks=True))
    return talk.then(clients.Turn("done", words=words or "and now this", thinks=True))


def test_an_epoch_takes_the_thinking_of_turns_that_are_over_and_none_of_the_present_one() -> None:
    with opened(replace(LEAVES, residency=replace(LEAVES.residency, batch_tokens=1200))) as run:
        manner = clients.Manner(model=CARRIES)
        talk = worked(3)
        assert run.send(talk, manner).opened is None
        thought = [signed(clients.body(talk, "anthropic", manner))]
        prepared = run.send(talk, manner)
        while prepared.opened is None:
            talk = talk.then(clients.Turn("on it", ("word " * 200,), thinks=True))
            prepared = run.send(talk, manner)
        assert prepared.opened.thought is not None
        theirs, ours = signed(clients.body(talk, "anthropic", manner)), signed(prepared.body)
        before = thought[0]
        assert ours == [before[0], *theirs[len(before) :]]  # what was thought before the first result saw nothing else
        longer = talk.then(clients.Turn("on it", ("more",), thinks=True))
        following = run.send(longer, manner)
        assert following.opened is None
        assert signed(following.body)[: len(ours)] == ours
        run.engine.close()
        run.engine = run.opened()
        again = run.send(longer, manner)
        assert (again.placed, again.body) == ("retried", following.body)


@pytest.mark.parametrize(
    ("settings", "model", "stays"), [(EAGER, CARRIES, 6), (LEAVES, STRIPS, 6), (EAGER, BINDS, 0), (LEAVES, CARRIES, 0)]
)
def test_what_becomes_of_old_thinking_is_the_settings_say_but_where_a_model_binds_it_or_drops_it_itself(
    settings: Settings, model: str, stays: int
) -> None:
    lazy = replace(settings, residency=replace(settings.residency, batch_tokens=600))
    with opened(lazy) as run:
        talk = worked()
        prepared = run.send(talk, clients.Manner(model=model))
        while prepared.opened is None:
            talk = talk.then(clients.Turn("well", words="go on"))
            prepared = run.send(talk, clients.Manner(model=model))
        assert len(signed(prepared.body)) == stays
        assert (prepared.opened.thought is None) == (stays == 6)


def test_what_left_is_recalled_under_its_id_found_by_search_and_kept_as_it_was_said() -> None:
    with opened() as run:
        talk, manner = worked(), clients.Manner(model=CARRIES)
        body = json.loads(clients.body(talk, "anthropic", manner))
        body["messages"][3]["content"][0]["thinking"] = "the \ud83d\ude00 parser is where it breaks"
        body["messages"][5]["content"][0] = {"type": "redacted_thinking", "data": "0pAque"}
        body["messages"][7]["content"][0]["thinking"] = ""
        prepared = run.engine.prepare(json.dumps(body).encode(), "anthropic", at=1.0, hint="one")
        assert prepared.opened is not None
        thought = prepared.opened.thought
        assert thought is not None
        text = f"hm\n\nthe \U0001f600 parser is where it breaks\n\n{NOT_SHOWN}\n\n{NOT_SHOWN}\n\nhm\n\nhm"
        assert run.engine.recall(thought.object_id) == text
        assert thought.chars == len(text)
        session = run.engine.session(prepared.session)
        assert [hit.object_id for hit in session.recalls.search(Lookup("parser is where")).hits] == [thought.object_id]
        said = [one.body for one in session.journal.branch(session.leaf)]
        journaled = [
            block
            for one in said
            if hasattr(one, "message")
            for block in one.message.blocks
            if isinstance(block, Thinking)
        ]
        assert [block.signature for block in journaled if block.redacted] == ["0pAque"]
        assert len(journaled) == 6
        assert [one.thought for one in said if isinstance(one, EpochEntry)] == [thought]


def test_what_was_thought_leaves_only_once_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise StoreError("the disk is full")

    with opened() as run:
        monkeypatch.setattr("pagein.engine.log.pageout.Pager.keep_thinking", full)
        body = clients.body(worked(), "anthropic", clients.Manner(model=CARRIES))
        prepared = run.engine.prepare(body, "anthropic", at=1.0, hint="one")
        assert prepared.opened is None
        assert prepared.failure is not None
        assert "the disk is full" in prepared.failure
        assert signed(prepared.body) == signed(body)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    model=st.sampled_from([CARRIES, CARRIES, BINDS, STRIPS, "a-model-of-tomorrow"]),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["say", "say", "say", "say", "fork", "restart", "retry", "begin"]), TURNS, st.integers(0, 8)
        ),
        min_size=6,
        max_size=16,
    ),
)
def test_whatever_is_said_only_stored_thinking_of_finished_turns_is_missing(
    model: str, steps: list[tuple[str, clients.Turn, int]]
) -> None:
    with opened() as run:
        manner = clients.Manner(model=model)
        talk, received = clients.Conversation("please do it"), NOTHING_RECEIVED
        bodies = {talk: run.send(talk, manner).body}
        for kind, turn, number in steps:
            if kind == "restart":
                run.engine.close()
                run.engine = run.opened()
            if kind == "fork":
                talk = talk.until(number % (len(talk.turns) + 1))
            elif kind == "begin":
                talk = clients.Conversation(f"a summary of it, {number}")
            elif kind != "retry":
                longer = talk.then(replace(turn, words=turn.words or ("" if turn.results else "go on")))
                asked = json.loads(bodies[talk])
                received = with_request(received, asked, "anthropic", clients.answer(longer))
                talk = longer
            prepared = run.send(talk, manner)
            bodies[talk] = prepared.body
            assert check_body(json.loads(prepared.body), "anthropic", received=received) == []
            _hold(run, talk, manner, prepared)


def _hold(run: Run, talk: clients.Conversation, manner: clients.Manner, prepared: PreparedRequest) -> None:
    theirs, ours = signed(clients.body(talk, "anthropic", manner)), signed(prepared.body)
    assert ours == [one for one in theirs if one in set(ours)]
    if manner.model == STRIPS:
        assert ours == theirs
    over = next((count for count in range(len(talk.turns), 0, -1) if not talk.turns[count - 1].results), 0)
    under_way = [f"signed-{talk.mark(place)}" for place in range(over, len(talk.turns)) if talk.turns[place].thinks]
    assert ours[len(ours) - len(under_way) :] == under_way
    objects = run.engine.session(prepared.session).recalls.holdings.newest_first()
    stored = [run.engine.recall(one.object_id) for one in objects if one.kind == "thinking"]
    assert sum(text.split().count("hm") for text in stored) >= len(theirs) - len(ours)
