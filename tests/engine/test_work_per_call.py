"""The work of a call grows with what is new in it, not with the session: counted in calls of functions."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.engine.counting import counted, excess

import pagein
from pagein.engine.engine import Engine
from pagein.model.messages import Usage

SHORT, LONG = 150, 1200  # messages; what grows with them is called a thousand times more in the longer one
ALLOWED = 150
RESULTS = ("plain", "paged")


def messages(count: int, text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "make it work"}]}]
    for turn in range(count // 2):
        call = {"type": "tool_use", "id": f"c{turn}", "name": "Bash", "input": {"command": f"make {turn}"}}
        result = {"type": "tool_result", "tool_use_id": f"c{turn}", "content": f"part {turn}: {text}"}
        found.append({"role": "assistant", "content": [{"type": "text", "text": f"part {turn}"}, call]})
        found.append({"role": "user", "content": [result]})
    return found


def body(said: list[dict[str, Any]]) -> bytes:
    *before, last = said
    marked = [*last["content"][:-1], {**last["content"][-1], "cache_control": {"type": "ephemeral"}}]
    fields = {"model": "claude-sonnet-4-5", "max_tokens": 1000, "system": "be good", "stream": True}
    tools = [{"name": "Bash", "description": "run", "input_schema": {"type": "object", "properties": {}}}]
    return json.dumps({**fields, "tools": tools, "messages": [*before, {**last, "content": marked}]}).encode()


def calls_of_a_turn(engine: Engine, count: int, text: str) -> dict[str, Counter[str]]:
    """What one more turn behind a session this long calls, step by step. The turns before it take in the history."""
    said, name = messages(count + 12, text), f"of {count}"
    for end in range(count + 1, count + 11, 2):
        prepared = engine.prepare(body(said[:end]), "anthropic", at=10.0 * end, hint=name)
        assert prepared.failure is None
        assert engine.observe(prepared, Usage(fresh=3, written=30 * end, output=10)).failure is None
    last = body(said[: count + 11])
    envelope, opening = counted(lambda: engine.opened(last, "anthropic", name))
    prepared, preparing = counted(
        lambda: engine.prepare(last, "anthropic", at=10.0 * count + 110, hint=name, envelope=envelope)
    )
    assert prepared.placed == "continued"
    assert prepared.opened is None
    observed, observing = counted(lambda: engine.observe(prepared, Usage(fresh=3, written=30 * count, output=10)))
    assert observed.failure is None
    return {"opening": opening, "preparing": preparing, "observing": observing}


@pytest.mark.parametrize("results", RESULTS)
def test_a_turn_behind_a_long_session_calls_what_one_behind_a_short_one_calls(tmp_path: Path, results: str) -> None:
    text = "a line of it\n" * (1 if results == "plain" else 120)
    with pagein.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        few, many = (calls_of_a_turn(engine, count, text) for count in (SHORT, LONG))
    for step in few:
        assert excess(few[step], many[step], ALLOWED) == {}, step
