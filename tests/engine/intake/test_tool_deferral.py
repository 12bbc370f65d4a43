"""The choice of deferred tools: made once for a conversation, on the journals of others, and kept on every way out."""

import json
from pathlib import Path
from typing import Any
from zlib import crc32

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.log.tool_uses import ToolUses
from pagein.engine.prepared_request import PreparedRequest
from pagein.errors import StoreError
from pagein.model.messages import Usage
from pagein.policy.economics.tool_deferral import LEAST_CALLS
from pagein.testing.memory_journals import MemoryJournals

ON = Settings(floor_paging="always")
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
TOOLS = [
    {"name": name, "description": f"what {name} does " * 600, "input_schema": SCHEMA}
    for name in ("Bash", "CronCreate", "Workflow", "Agent", "Skill", "WebFetch")
]
REST = [str(one["name"]) for one in TOOLS[1:]]
Wire = dict[str, Any]


def said(place: int, name: str = "Bash") -> list[Wire]:
    """A call, and its result."""
    call = {"type": "tool_use", "id": f"toolu_{place}", "name": name, "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": f"toolu_{place}", "content": "done"}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def body(words: str, calls: int = 0, name: str = "Bash", model: str = "claude-sonnet-4-5", **more: object) -> bytes:
    messages = [{"role": "user", "content": words}, *(one for place in range(calls) for one in said(place, name))]
    return json.dumps({"model": model, "max_tokens": 100, "tools": TOOLS, "messages": messages, **more}).encode()


def prepare(engine: Engine, request: bytes, session: str, prompt: int = 20_000) -> PreparedRequest:
    days = crc32(session.encode()) % 100  # far enough apart for any cache to be cold
    prepared = engine.prepare(request, "anthropic", at=1_790_000_000.0 + 86_400.0 * days, hint=session, offers=())
    assert prepared.failure is None
    engine.observe(prepared, Usage(fresh=prompt, output=50))
    return prepared


def work(engine: Engine, session: str, name: str = "Bash", prompt: int = 20_000) -> None:
    """A session of enough calls."""
    for calls in range(LEAST_CALLS):
        prepare(engine, body(session, calls, name), session, prompt)


def deferred(request: bytes) -> list[str]:
    return [one["name"] for one in json.loads(request)["tools"] if one.get("defer_loading")]


def test_a_choice_rests_on_other_sessions_and_holds_for_its_own(tmp_path: Path) -> None:
    with pagein.open(tmp_path / "s.db", settings=ON) as engine:
        work(engine, "one")
        assert deferred(prepare(engine, body("one", LEAST_CALLS), "one").body) == []
        assert deferred(prepare(engine, body("two"), "two").body) == REST
        assert deferred(prepare(engine, body("two", 1, "Workflow"), "two").body) == REST
        assert deferred(prepare(engine, body("three"), "three").body) == [one for one in REST if one != "Workflow"]


def test_a_warm_prompt_keeps_its_tools(tmp_path: Path) -> None:
    """A session that begins just after another one reads the front of its prompt from the cache."""
    with pagein.open(tmp_path / "s.db", settings=ON) as engine:
        work(engine, "one", prompt=60_000)
        engine.prepare(body("one", LEAST_CALLS), "anthropic", at=1_800_000_000.0, hint="one", offers=())
        begun = [
            engine.prepare(body(name), "anthropic", at=1_800_000_000.0 + wait, hint=name, offers=())
            for name, wait in (("soon", 60.0), ("late", 900.0))
        ]
        assert [deferred(one.body) for one in begun] == [[], REST]


def test_retries_forks_and_sub_agents(tmp_path: Path) -> None:
    with pagein.open(tmp_path / "s.db", settings=ON) as engine:
        work(engine, "one")
        first = prepare(engine, body("two"), "two")
        assert prepare(engine, body("two"), "two").body == first.body
        prepare(engine, body("two", 2), "two")
        assert deferred(prepare(engine, body("two", 1, "Workflow"), "two").body) == deferred(first.body), "a fork"
        few = json.loads(body("look"))
        few["tools"] = TOOLS[:-1]
        assert deferred(prepare(engine, json.dumps(few).encode(), "two").body) == REST[:-1], "a sub-agent's own choice"
        assert deferred(prepare(engine, body("two", 3), "two").body) == deferred(first.body)


def test_a_conversation_that_was_begun_elsewhere_keeps_its_tools(tmp_path: Path) -> None:
    """A cache may hold its prompt, and a change of the tools would void it."""
    with pagein.open(tmp_path / "s.db", settings=ON) as engine:
        work(engine, "one")
        assert deferred(prepare(engine, body("two", 3, "CronCreate"), "two").body) == []
        assert deferred(prepare(engine, body("two", 4, "CronCreate"), "two").body) == []


def test_a_request_without_a_decision_goes_out_with_the_same_tools(tmp_path: Path) -> None:
    with pagein.open(tmp_path / "s.db", settings=ON) as engine:
        work(engine, "one")
        first = prepare(engine, body("two"), "two")
        assert first.deferred == tuple(REST)
        late = engine.forward(body("two", 1), "anthropic", at=None, hint="two")
        assert json.loads(late.body)["tools"] == json.loads(first.body)["tools"]
        assert late.offered == ("tool_search_tool_regex",)
        assert engine.settle()
        assert deferred(prepare(engine, body("two", 2), "two").body) == deferred(first.body)


def test_a_first_request_without_a_decision_defers_nothing_from_then_on(tmp_path: Path) -> None:
    with pagein.open(tmp_path / "s.db", settings=ON) as engine:
        work(engine, "one")
        late = engine.forward(body("two"), "anthropic", at=None, hint="two")
        assert late.body == body("two")
        assert engine.settle()
        assert deferred(prepare(engine, body("two", 1), "two").body) == []


def test_models_without_tool_search_and_other_formats_keep_their_tools(tmp_path: Path) -> None:
    with pagein.open(tmp_path / "s.db", settings=ON) as engine:
        work(engine, "one")
        for model in ("claude-haiku-3-5", "kimi-k2", "unheard-of"):
            assert deferred(prepare(engine, body(model, model=model), model).body) == []
        functions = [{"type": "function", "function": {"name": one["name"], "parameters": SCHEMA}} for one in TOOLS]
        chat = {"model": "gpt-5.1", "tools": functions, "messages": [{"role": "user", "content": "hi"}]}
        raw = json.dumps(chat).encode()
        assert engine.prepare(raw, "openai_chat", at=None, hint="chat", offers=()).body == raw


def test_a_callers_own_session_defers_nothing(tmp_path: Path) -> None:
    """Nobody hides the searches where no gateway reads the answer."""
    with pagein.open(tmp_path / "s.db", settings=ON) as engine:
        work(engine, "one")
        assert engine.prepare(body("two"), "anthropic", at=None, hint="two").body == body("two")


class Failing(MemoryJournals):
    """A store that cannot tell its sessions."""

    def latest(self, most: int) -> list[str]:
        raise StoreError(f"no list of {most}")


def test_without_evidence_from_the_store_there_is_no_evidence() -> None:
    assert list(ToolUses(Failing()).sessions("one")) == []


def test_the_sessions_of_a_store_are_listed_by_their_last_entry(tmp_path: Path) -> None:
    with pagein.open(tmp_path / "s.db", settings=ON) as engine:
        for name in ("one", "two", "one", "three", "two"):
            engine.prepare(body(name), "anthropic", at=None, hint=name, offers=())
            engine.prepare(body(f"{name} again"), "anthropic", at=None, hint=name, offers=())
        journals = engine._journals
        assert journals is not None
        assert list(journals.latest(2)) == ["three", "two"]
        assert set(journals.latest(9)) == {"one", "two", "three"}
