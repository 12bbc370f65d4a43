"""The work of a call grows with its new part, not with the session: counted in calls of functions."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.call_counts import counted, excess

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.session import Session
from pagein.model.messages import Usage
from pagein.testing.eager_residency import eager

SHORT, LONG = 150, 1200  # messages; what grows with them is called a thousand times more in the longer one
ALLOWED = 150
NOTHING_LEAVES = Settings(eager(batch_tokens=1 << 40))
ARGUMENTS = {"Bash": "command", "Read": "file_path", "Write": "file_path"}
LINE = "a line of it, as tools print them\n"


def messages(count: int, text: str, tool: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "make it work"}]}]
    for turn in range(count // 2):
        found += exchange(f"c{turn}", tool, {ARGUMENTS[tool]: f"/w/part-{turn}"}, f"{text}     9\tpart {turn}\n")
    return found


def exchange(name: str, tool: str, given: dict[str, str], result: str) -> list[dict[str, Any]]:
    """A call and its result."""
    call = {"type": "tool_use", "id": name, "name": tool, "input": given}
    answer = {"type": "tool_result", "tool_use_id": name, "content": result}
    return [
        {"role": "assistant", "content": [{"type": "text", "text": f"now {name}"}, call]},
        {"role": "user", "content": [answer]},
    ]


def body(said: list[dict[str, Any]]) -> bytes:
    *before, last = said
    marked = [*last["content"][:-1], {**last["content"][-1], "cache_control": {"type": "ephemeral"}}]
    fields = {"model": "claude-sonnet-4-5", "max_tokens": 1000, "system": "be good", "stream": True}
    tools = [
        {"name": name, "description": "", "input_schema": {"type": "object", "properties": {argument: {}}}}
        for name, argument in ARGUMENTS.items()
    ]
    return json.dumps({**fields, "tools": tools, "messages": [*before, {**last, "content": marked}]}).encode()


def calls_of_a_turn(
    engine: Engine, count: int, text: str, tool: str = "Bash", order: Callable[[Session, int], None] | None = None
) -> dict[str, Counter[str]]:
    """What one more turn behind a session this long calls, step by step. The turns before it take in the history.

    order: what the user wishes on the way; told the number of the last turn.
    """
    said, name = messages(count + 12, text, tool), f"of {count}"
    for end in range(count + 1, count + 11, 2):
        prepared = engine.prepare(body(said[:end]), "anthropic", at=10.0 * end, hint=name)
        assert prepared.failure is None
        assert engine.observe(prepared, Usage(fresh=3, written=30 * end, output=10)).failure is None
        if order is not None and end == count + 5:
            order(engine.session(name), end // 2 - 1)
    last = body(said[: count + 11])
    prepared, preparing = counted(lambda: engine.prepare(last, "anthropic", at=10.0 * count + 110, hint=name))
    assert prepared.placed == "continued"
    assert prepared.opened is None
    observed, observing = counted(lambda: engine.observe(prepared, Usage(fresh=3, written=30 * count, output=10)))
    assert observed.failure is None
    return {"preparing": preparing, "observing": observing}


@pytest.mark.parametrize("tool", ["Bash", "Read"])
@pytest.mark.parametrize("lines", [1, 60])
def test_a_turn_behind_a_long_session_calls_what_one_behind_a_short_one_calls(
    tmp_path: Path, tool: str, lines: int
) -> None:
    with pagein.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        few, many = (calls_of_a_turn(engine, count, LINE * lines, tool) for count in (SHORT, LONG))
    for step in few:
        assert excess(few[step], many[step], ALLOWED) == {}, step
        assert many[step]["decode_entry"] == 0, step  # what this process said, it need not be told


def test_a_dropped_result_that_waits_for_an_epoch_costs_the_turns_until_then_nothing(tmp_path: Path) -> None:
    def drop(session: Session, turn: int) -> None:
        session.hand.drop(f"c{turn}")
        assert session.journal.state_at(session.leaf).hand.dropping

    with pagein.open(tmp_path / "store.db", workspace=tmp_path, settings=NOTHING_LEAVES) as engine:
        few, many = (calls_of_a_turn(engine, count, LINE * 60, order=drop) for count in (SHORT, LONG))
        session = engine.session(f"of {LONG}")
        standing = session.journal.state_at(session.leaf).standing
    assert excess(few["preparing"], many["preparing"], ALLOWED) == {}
    assert f"c{LONG // 2 + 1}" in {one.call_id for one in standing.old()}


def test_a_call_that_writes_a_marker_is_told_of_it_without_a_look_at_all_markers(tmp_path: Path) -> None:
    text = "".join(f"{line:6}\tline {line} of a file that is read again and again\n" for line in range(1, 30))
    with pagein.open(tmp_path / "store.db", workspace=tmp_path, settings=NOTHING_LEAVES) as engine:
        few, many = (calls_of_an_echo(engine, count, text) for count in (10, 120))
    assert excess(few, many, 60) == {}


def calls_of_an_echo(engine: Engine, reads: int, text: str) -> Counter[str]:
    """What it calls to prepare the request in which a marker was written, behind so many reads that were answered by one."""
    said, name = [{"role": "user", "content": [{"type": "text", "text": "make it work"}]}], f"echo {reads}"
    for turn in range(reads):
        said += exchange(f"c{turn}", "Read", {"file_path": f"/w/part-{turn // 2}"}, text)
        prepared = engine.prepare(body(said), "anthropic", at=10.0 * turn, hint=name)
    results = [
        block["content"] for one in prepared.request["messages"] for block in one["content"] if "content" in block
    ]
    marker = next(one for one in results if one.startswith("[readcache:"))
    said += exchange("write", "Write", {"file_path": "/w/other", "content": marker}, "File created")
    prepared, calls = counted(lambda: engine.prepare(body(said), "anthropic", at=10.0 * reads, hint=name))
    assert prepared.failure is None
    assert "pagein notice" in prepared.body.decode()
    return calls
