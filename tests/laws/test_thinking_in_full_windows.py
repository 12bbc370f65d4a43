"""Thinking stays valid where whole turns leave a full window: the law of `tests/laws/test_thinking.py`, in a small window."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.laws.test_thinking import EAGER, HOWS, Client, walk

import pagein
from pagein.engine.engine import Engine
from pagein.policy.eviction.overflow import Valve

FULL = replace(EAGER, valve=Valve(window=3000, pastes=1000))


class InSmallWindow(Client):
    """The same client, before an engine that takes its window for small."""

    def opened(self) -> Engine:
        return pagein.open(self.folder / "store.db", workspace=self.folder, settings=FULL)


TURN = st.tuples(
    st.just("turn"),
    st.lists(st.sampled_from([1, 90, 300, 900]), max_size=2),
    st.sampled_from(["", "and now this " * 40, "and now this " * 200]),
    st.booleans(),
    st.booleans(),
)
STEPS = st.lists(
    st.tuples(st.one_of(TURN, TURN, TURN, st.just(("restart",)), st.tuples(st.just("fork"), st.integers(0, 9))), HOWS),
    min_size=8,
    max_size=22,
)


@pytest.mark.parametrize("tool", ["Bash", "lookup"], ids=["known", "stranger"])
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(model=st.sampled_from(["claude-sonnet-5-5", "claude-opus-5-5", "a-model-of-tomorrow"]), steps=STEPS)
def test_no_thought_stands_behind_another_prompt_than_its_own_when_turns_leave(
    tool: str, model: str, steps: list[tuple[tuple[Any, ...], str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        client = InSmallWindow(Path(folder), model, tool)
        try:
            walk(client, steps)
        finally:
            client.engine.close()
