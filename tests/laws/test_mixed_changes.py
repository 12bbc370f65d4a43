"""Random requests with all changes mixed, in every wire format: epochs, previews, pinned texts, recalls, recall tools,
keep-alive, failures, retries, forks and restarts. Every sent request is valid, continues the previous one, and is the
same when repeated.
"""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine import wire_clients as clients
from tests.engine.wire_clients import Conversation, Manner, Turn

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.send import rendered_bytes
from pagein.engine.send.outgoing_body import RequestRenderer
from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.model.messages import Usage
from pagein.policy.stubs.previews import Previews
from pagein.providers.validity import Api
from pagein.providers.wire import check_body
from pagein.providers.wire.request_body import open_body
from pagein.providers.wire.tool_offers import ToolOffer
from pagein.testing.eager_residency import eager

EAGER = Settings(eager(batch_tokens=300, keep_calls=1, min_tokens=60, previews=Previews(3000, 900)))
PEEK = ToolOffer("peek", "Bring back what was paged out.")
APIS: tuple[Api, ...] = ("anthropic", "openai_chat", "openai_responses")
LONG = {"type": "ephemeral", "ttl": "1h"}
SYSTEM = "be good " * 4000  # beside which our tools are next to nothing
PARAMETERS = {"type": "object", "properties": {"command": {}}}
TOOLS: dict[Api, dict[str, Any]] = {
    "anthropic": {"name": "Bash", "input_schema": PARAMETERS},
    "openai_chat": {"type": "function", "function": {"name": "shell", "parameters": PARAMETERS}},
    "openai_responses": {"type": "function", "name": "shell", "parameters": PARAMETERS},
}


def raw(value: object) -> bytes:
    return json.dumps(value).encode()


def between(api: Api, said: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """A call of ours and its answer, in front of what the model said."""
    match api:
        case "anthropic":
            use = {"type": "tool_use", "id": name, "name": "peek", "input": {}}
            found = {"type": "tool_result", "tool_use_id": name, "content": "brought back"}
            turns = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [found]}]
        case "openai_chat":
            call = {"id": name, "type": "function", "function": {"name": "peek", "arguments": "{}"}}
            turns = [
                {"role": "assistant", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": name, "content": "brought back"},
            ]
        case "openai_responses":
            turns = [
                {"type": "function_call", "call_id": name, "name": "peek", "arguments": "{}"},
                {"type": "function_call_output", "call_id": name, "output": "brought back"},
            ]
    return [*turns, *said]


class Run:
    """A client, an engine on a real store, and what was sent."""

    def __init__(self, folder: Path, api: Api) -> None:
        self.folder, self.api = folder, api
        self.key = "input" if api == "openai_responses" else "messages"
        self.engine = self.opened()
        self.sent: dict[bytes, bytes] = {}
        self.last: PreparedRequest | None = None
        self.frozen: list[str] = []
        self.plain: set[Conversation] = set()  # what the model said without a call of ours
        self.now = 0.0

    def opened(self) -> Engine:
        return pagein.open(self.folder / "store.db", workspace=self.folder, settings=EAGER)

    def body(self, talk: Conversation) -> bytes:
        fields = json.loads(clients.body(talk, self.api, Manner(marks=1, system=SYSTEM)))
        if self.api == "anthropic":
            fields["messages"][-1]["content"][-1]["cache_control"] = LONG
        return raw({**fields, "tools": [TOOLS[self.api]]})

    def asked(self, body: bytes, lasting: float) -> PreparedRequest:
        return self.engine.prepare(body, self.api, at=self.now, hint="one", offers=(PEEK,), lasting=lasting)

    def recalled(self, longer: Conversation) -> None:
        """What the model said last had a call of ours in front of it; where it never said the same without."""
        if self.last is None or not self.last.offered or self.last.entry is None or longer in self.plain:
            return
        before = json.loads(self.body(longer.until(len(longer.turns) - 1)))[self.key]
        after = json.loads(self.body(longer))[self.key][len(before) :]
        ours = ("assistant",) if self.api != "openai_responses" else ("assistant", None)
        said = []
        for one in after:
            if one.get("role") not in ours or one.get("type") == "function_call_output":
                break
            said.append(one)
        actual = between(self.api, said, f"peek_{longer.mark(len(longer.turns) - 1)}")
        assert (
            self.engine.splice_answer(self.last, RecallExchange(tuple(map(raw, said)), tuple(map(raw, actual)))) is None
        )

    def send(self, talk: Conversation, lasting: float, *, broken: bool) -> None:
        self.now += 40
        body = self.body(talk)
        assert check_body(json.loads(body), self.api) == []
        if broken and body not in self.sent:
            with mock.patch.object(RequestRenderer, "check", side_effect=ZeroDivisionError):
                failed = self.asked(body, lasting)
            assert failed.failure
            assert check_body(failed.request, self.api) == []
        prepared = self.asked(body, lasting)
        assert prepared.failure is None
        assert check_body(prepared.request, self.api) == []
        assert self.sent.setdefault(body, prepared.body) == prepared.body
        assert self.asked(body, 1e6 - lasting).body == prepared.body
        shown = clients.names_of(open_body(prepared.body, self.api).items, self.api)
        if prepared.placed == "continued" and prepared.opened is None:
            assert shown[: len(self.frozen)] == self.frozen
        self.frozen, self.last = shown, prepared
        self.engine.observe(prepared, Usage(fresh=10, written=len(prepared.body) // 4))


TEXTS = st.sampled_from([1, 90, 300, 900]).map(lambda size: "word " * size)
SAYS = st.tuples(
    st.just("say"),
    st.builds(Turn, st.just("on it"), st.lists(TEXTS, max_size=2).map(tuple), st.sampled_from(["", "", "go on"])),
)
STEPS = st.lists(
    st.tuples(
        st.one_of(
            SAYS,
            SAYS,
            SAYS,
            st.tuples(st.just("pin"), st.sampled_from(["no tabs", "two spaces"])),
            st.tuples(st.just("back"), st.integers(0, 8)),
            st.tuples(st.just("restart"), st.none()),
        ),
        st.booleans(),
        st.sampled_from([0.0, 1e6]),
        st.sampled_from([False, False, False, True]),
    ),
    min_size=4,
    max_size=12,
)


@pytest.mark.parametrize("whole", [0, 64 << 10], ids=["by its news", "as a whole"])
@pytest.mark.parametrize("api", APIS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_requests_with_mixed_changes_are_valid_continued_and_repeatable(
    api: Api, whole: int, steps: list[tuple[tuple[str, Any], bool, float, bool]]
) -> None:
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(rendered_bytes, "_CHECKED_WHOLE", whole):
        run, talk = Run(Path(folder), api), Conversation("please do it")
        try:
            run.send(talk, 0.0, broken=False)
            for (kind, what), recalls, lasting, broken in steps:
                if isinstance(what, Turn):
                    talk = talk.then(replace(what, words=what.words or ("" if what.results else "go on")))
                    if recalls:
                        run.recalled(talk)
                    run.plain.add(talk)
                elif kind == "pin":
                    run.engine.session("one").hand.say(what)
                elif kind == "back":
                    talk, run.last = talk.until(what % (len(talk.turns) + 1)), None
                else:
                    run.engine.close()
                    run.engine = run.opened()
                run.send(talk, lasting, broken=broken)
        finally:
            run.engine.close()
