"""A session with withheld text continues after a restart as if there had been no restart (law 9 beside laws 1, 4 and 6)."""

import json
import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import pagein
from pagein import wiring
from pagein.engine.engine import Engine, Settings
from pagein.engine.prepared_request import PreparedRequest
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.providers.validity import Api
from pagein.testing.eager_residency import eager

EAGER = Settings(eager(batch_tokens=300, keep_calls=1, min_tokens=60))
APIS: tuple[Api, ...] = ("anthropic", "openai_chat", "openai_responses")
BIG = "word " * 300
SECRET = "TOKEN=correct-horse-battery-staple\n" * 40


@dataclass(frozen=True)
class Step:
    """A call of a tool, as the model made it, and what it was answered."""

    tool: str
    arguments: dict[str, Any]
    result: str


WORK = Step("Bash", {"command": "make all"}, BIG)
READ = Step("Read", {"file_path": "/srv/app/.env.example"}, SECRET)
SHELL = Step("Bash", {"command": "cat .env | sort"}, SECRET)
WRITE = Step("Write", {"file_path": "/srv/app/.env", "content": SECRET}, "File created successfully.")


def body(steps: Sequence[Step], api: Api, first: str = "do it") -> bytes:
    """The request after these steps."""
    items: list[dict[str, Any]] = [{"role": "user", "content": first}]
    for number, step in enumerate(steps):
        name, arguments = f"call_{number}", json.dumps(step.arguments)
        if api == "anthropic":
            call = {"type": "tool_use", "id": name, "name": step.tool, "input": step.arguments}
            items.append({"role": "assistant", "content": [{"type": "text", "text": "on it"}, call]})
            result = {"type": "tool_result", "tool_use_id": name, "content": step.result}
            items.append({"role": "user", "content": [result]})
        elif api == "openai_chat":
            function = {"name": step.tool, "arguments": arguments}
            call = {"id": name, "type": "function", "function": function}
            items.append({"role": "assistant", "content": "on it", "tool_calls": [call]})
            items.append({"role": "tool", "tool_call_id": name, "content": step.result})
        else:
            items.append({"type": "function_call", "call_id": name, "name": step.tool, "arguments": arguments})
            items.append({"type": "function_call_output", "call_id": name, "output": step.result})
    model = "claude-sonnet-4-5" if api == "anthropic" else "gpt-5.1"
    fields: dict[str, Any] = {"model": model, "input" if api == "openai_responses" else "messages": items}
    return json.dumps({**fields, "max_tokens": 1000} if api == "anthropic" else fields).encode()


def opened(folder: Path) -> Engine:
    return pagein.open(folder / "store.db", workspace=folder, settings=EAGER)


def walked(folder: Path, api: Api, steps: Sequence[Step], *, restarts: bool) -> list[PreparedRequest]:
    """Every request of these steps, by one process, or each by a process of its own."""
    folder.mkdir()
    found: list[PreparedRequest] = []
    with ExitStack() as stack:
        engine = stack.enter_context(opened(folder))
        for count in range(len(steps) + 1):
            if restarts:
                stack.close()
                engine = stack.enter_context(opened(folder))
            found.append(engine.prepare(body(steps[:count], api), api, at=10.0 * count, hint="one"))
    return found


def stored(folder: Path) -> bytes:
    """All that the store holds, as it is and as it was packed."""
    with ExitStack() as stack:
        store = wiring.open_for_upkeep(folder / "store.db", workspace=folder)
        stack.callback(store.close)
        unpacked = [line.line for line in store.journal_lines()] + [store.get(name) for name in store.names()]
    return b"".join([*unpacked, *(file.read_bytes() for file in folder.iterdir())])


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("private", [READ, SHELL, WRITE], ids=["read", "shell", "write"])
def test_a_restart_changes_no_byte_and_no_saving(tmp_path: Path, api: Api, private: Step) -> None:
    steps = [WORK, private, WORK, WORK, WORK]
    plain = walked(tmp_path / "plain", api, steps, restarts=False)
    again = walked(tmp_path / "again", api, steps, restarts=True)
    assert [one.failure for one in again] == [None] * len(again)
    assert [one.replaced for one in again] == [one.replaced for one in plain]
    assert plain[-1].replaced
    # ids of objects are keyed by the store
    assert [_without_ids(one.body) for one in again] == [_without_ids(one.body) for one in plain]
    for one in (*plain[2:], *again[2:]):
        assert b"correct-horse-battery-staple" in one.body
    for folder in ("plain", "again"):
        assert b"correct-horse" not in stored(tmp_path / folder)


@pytest.mark.parametrize("api", APIS)
def test_a_fork_goes_on_after_a_restart(tmp_path: Path, api: Api) -> None:
    steps = [WORK, SHELL, WORK, WORK]
    walked(tmp_path / "one", api, steps, restarts=False)
    other = [*steps[:3], Step("Bash", {"command": "make some"}, BIG + "else"), WORK]
    with opened(tmp_path / "one") as engine:
        found = [engine.prepare(body(other[:count], api), api, at=100.0 * count, hint="one") for count in (3, 4, 5)]
    assert [(one.failure, one.placed) for one in found] == [(None, "retried"), (None, "forked"), (None, "continued")]
    assert found[-1].replaced
    assert b"correct-horse" not in stored(tmp_path / "one")


def test_a_result_that_comes_after_a_restart_is_withheld_by_its_call(tmp_path: Path) -> None:
    call = Message("assistant", (ToolCall("c1", "Bash", '{"command":"cat .env"}'),))
    with opened(tmp_path) as engine:
        session = engine.session("one")
        session.append(Message("user", (Text("show it"),)))
        session.append(call)
        session.keep()
    with opened(tmp_path) as engine:
        session = engine.session("one")
        session.append(Message("tool", (ToolResult("c1", SECRET, "Bash"),)))
        session.advance()
        texts = [block.text for one in session.last_request() for block in one.blocks if isinstance(block, ToolResult)]
        assert texts == [SECRET]
        session.fork("two").keep()
    assert b"correct-horse" not in stored(tmp_path)


def test_a_call_of_the_same_name_on_another_branch_withholds_nothing_here(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = engine.session("one")
        start = session.append(Message("user", (Text("show it"),)))
        session.append(Message("assistant", (ToolCall("c1", "Bash", '{"command":"cat .env"}'),)))
        session.append(Message("tool", (ToolResult("c1", SECRET, "Bash"),)))
        session.move(start)
        session.append(Message("assistant", (ToolCall("c1", "Bash", '{"command":"ls"}'),)))
        session.append(Message("tool", (ToolResult("c1", "a file that one may know", "Bash"),)))
        session.keep()
    assert b"a file that one may know" in stored(tmp_path)


def _without_ids(raw: bytes) -> str:
    return re.sub(r"pg-[0-9a-f]{8}-[0-9a-f]{8}", "ID", raw.decode())
