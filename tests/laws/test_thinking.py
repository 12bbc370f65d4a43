"""Bound thinking never goes out behind another prompt than its own, in random sessions (T2, T6, M10).

Held to what the provider knows: which prompt each thought was an answer to. Tools of ours, recalls, retries, forks, restarts, failures of
ours and turns with everything switched off are mixed.
"""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.send.outgoing_body import RequestRenderer
from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.model.messages import Usage
from pagein.policy.stubs.previews import Previews
from pagein.providers.validity import NOTHING_RECEIVED
from pagein.providers.wire import check_body, with_request
from pagein.providers.wire.tool_offers import ToolOffer
from pagein.testing.eager_residency import eager

EAGER = Settings(eager(batch_tokens=300, keep_calls=1, min_tokens=60, previews=Previews(3000, 900)))
PEEK = ToolOffer("peek", "Bring back what was paged out. " * 20)
BASH = {"name": "Bash", "input_schema": {"type": "object", "properties": {"command": {}}}}
Wire = dict[str, Any]


def raw(value: object) -> bytes:
    return json.dumps(value).encode()


class Client:
    """An agent of a model that binds its thinking, what it said so far, and what the provider knows of it."""

    settings = EAGER
    offers: tuple[ToolOffer, ...] = (PEEK,)

    def __init__(self, folder: Path, model: str, tool: str) -> None:
        self.folder, self.model, self.tool = folder, model, tool
        self.engine = self.opened()
        self.messages: list[Wire] = [{"role": "user", "content": "please do it"}]
        self.received = NOTHING_RECEIVED
        self.last: Wire = {}
        self.prepared: PreparedRequest | None = None
        self.count = 0

    def opened(self) -> Engine:
        return pagein.open(self.folder / "store.db", workspace=self.folder, settings=self.settings)

    def body(self) -> bytes:
        return raw(
            {
                "model": self.model,
                "max_tokens": 9,
                "tools": [{**BASH, "name": self.tool}],
                "messages": self.messages,
            }
        )

    def thought(self) -> Wire:
        self.count += 1
        return {"type": "thinking", "thinking": "hm", "signature": f"signed-{self.count}"}

    def called(self, name: str) -> Wire:
        self.count += 1
        return {"type": "tool_use", "id": f"call_{self.count}", "name": name, "input": {"command": f"{self.count}"}}

    def answered(self, blocks: Sequence[Wire]) -> None:
        """The model's answer to the last request."""
        self.received = with_request(self.received, self.last, "anthropic", list(blocks))

    def recall(self, thinks: bool, said: Sequence[Wire]) -> list[Wire]:  # noqa: FBT001 -- drawn
        """The model calls a tool of ours first, and thinks again behind its answer. What the client sees of it."""
        first = [*([self.thought()] if thinks else []), self.called(self.offers[-1].name)]
        self.answered(first)
        found = {"type": "tool_result", "tool_use_id": first[-1]["id"], "content": "brought back"}
        between = [{"role": "assistant", "content": first}, {"role": "user", "content": [found]}]
        self.last = {**self.last, "messages": [*self.last["messages"], *between]}
        self.answered(said)
        merged = [*first[:-1], *said]
        assert self.prepared is not None
        actual = [*between, {"role": "assistant", "content": list(said)}]
        exchange = RecallExchange((raw({"role": "assistant", "content": merged}),), tuple(map(raw, actual)))
        assert self.engine.splice_answer(self.prepared, exchange) is None
        return merged

    def turn(self, results: Sequence[int], words: str, thinks: bool, recalls: bool) -> None:  # noqa: FBT001 -- drawn
        """The model says something, and is answered."""
        calls = [self.called(self.tool) for _ in results]
        said = [*([self.thought()] if thinks else []), {"type": "text", "text": "so"}, *calls]
        offered = self.prepared is not None and self.prepared.entry is not None and self.prepared.offered
        if recalls and offered:
            said = self.recall(thinks, said)
        else:
            self.answered(said)
        self.messages.append({"role": "assistant", "content": said})
        found = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": "word " * size}
            for call, size in zip(calls, results, strict=True)
        ]
        heard = [{"type": "text", "text": words or "go on"}] if words or not found else []
        self.messages.append({"role": "user", "content": [*found, *heard]})

    def send(self, how: str) -> None:
        body, at = self.body(), 10.0 * len(self.messages)
        self.prepared = None
        if how == "off":
            sent = self.engine.unchanged_request(body, "anthropic", hint="one")
        elif how == "broken":
            with mock.patch.object(RequestRenderer, "check", side_effect=ZeroDivisionError):
                prepared = self.engine.prepare(body, "anthropic", at=at, hint="one", offers=self.offers)
            assert prepared.failure
            sent = prepared.body
        else:
            offers = self.offers if how == "on" else ()
            self.prepared = self.engine.prepare(body, "anthropic", at=at, hint="one", offers=offers)
            assert self.prepared.failure is None
            sent = self.prepared.body
            self.engine.observe(self.prepared, Usage(fresh=len(sent) // 4))
        self.last = json.loads(sent)
        assert check_body(json.loads(body), "anthropic") == []
        assert check_body(self.last, "anthropic", received=self.received) == []

    def restart(self) -> None:
        self.engine.close()
        self.engine = self.opened()


TURN = st.tuples(
    st.just("turn"),
    st.lists(st.sampled_from([1, 90, 300, 900]), max_size=2),
    st.sampled_from(["", "", "and now this"]),
    st.booleans(),
    st.booleans(),
)
HOWS = st.sampled_from(["on", "on", "on", "on", "off", "broken", "without tools"])
STEPS = st.lists(
    st.tuples(st.one_of(TURN, TURN, TURN, st.just(("restart",)), st.tuples(st.just("fork"), st.integers(0, 9))), HOWS),
    min_size=5,
    max_size=14,
)


def walk(client: Client, steps: Sequence[tuple[tuple[Any, ...], str]]) -> None:
    client.send("on")
    for (kind, *what), how in steps:
        if kind == "turn":
            client.turn(*what)
        elif kind == "fork":
            client.messages = client.messages[: 1 + 2 * (what[0] % ((len(client.messages) + 1) // 2))]
        else:
            client.restart()
        client.send(how)


@pytest.mark.parametrize("tool", ["Bash", "lookup"], ids=["known", "stranger"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(model=st.sampled_from(["claude-sonnet-5-5", "claude-opus-5-5", "a-model-of-tomorrow"]), steps=STEPS)
def test_no_thought_ever_stands_behind_another_prompt_than_its_own(
    tool: str, model: str, steps: list[tuple[tuple[Any, ...], str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        client = Client(Path(folder), model, tool)
        try:
            walk(client, steps)
        finally:
            client.engine.close()
