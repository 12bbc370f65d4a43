"""An agent on the pooled layout: through the library, to a provider and back, in several processes and on branches."""

import json
from pathlib import Path
from typing import Any, Literal
from urllib.request import Request, urlopen

import pytest

import pagein
from pagein.assembly import PooledAgent, PooledCall, pooled
from pagein.engine.engine import Settings
from pagein.engine.session import Session
from pagein.errors import BadInput, BadSetting
from pagein.policy.pools.pool_values import PoolRules
from pagein.simulator import SimulatedProvider

MODEL = "claude-sonnet-4-5"
BASH = {"name": "bash", "description": "Run a command.", "input_schema": {"type": "object", "properties": {}}}
CODE = "def login():\n    return None\n" * 300


def post(url: str, body: dict[str, Any]) -> dict[str, Any]:
    asked = Request(f"{url}/v1/messages", json.dumps(body).encode(), {"content-type": "application/json"})  # noqa: S310
    with urlopen(asked) as answer:  # noqa: S310 -- always HTTP
        reply: dict[str, Any] = json.load(answer)
    return reply


def begin(session: Session, folder: Path) -> PooledAgent:
    session.work_in(str(folder))
    return pooled(MODEL, session, system="You fix bugs.", tools=[BASH])


def work(agent: PooledAgent, url: str, words: str) -> list[dict[str, Any]]:
    agent.say(words)
    requests = []
    while not agent.is_done:
        requests.append(agent.request())
        for call in agent.hear(post(url, requests[-1])):
            agent.answer(call, "1 failed\n" * 200)
    return requests


def test_a_file_that_was_read_stands_in_the_window_and_only_there(tmp_path: Path) -> None:
    (tmp_path / "auth.py").write_text(CODE)
    script = [
        [{"tool": "read", "args": {"path": "auth.py"}}],
        [{"tool": "bash", "args": {"command": "pytest"}}, {"tool": "read", "args": {"path": "auth.py"}}],
        [{"text": "It returns None."}],
    ]
    with SimulatedProvider(script) as provider, pagein.open(tmp_path / "s.pagein") as engine:
        agent = begin(engine.session("fix"), tmp_path)
        requests = work(agent, provider.url, "Why does the login fail?")
        assert json.dumps(requests[-1]).count(json.dumps(CODE)[1:-1]) == 1  # though it was read twice
        bill, usages = provider.bill(), [record.usage for record in provider.requests]
    assert (bill.requests, bill.refused) == (3, 0)
    assert [usage.read > 0 for usage in usages if usage is not None] == [False, False, True]


@pytest.mark.parametrize("api", ["anthropic", "openai_chat"])
def test_the_sdk_sends_the_request_and_its_reply_is_understood(
    tmp_path: Path, api: Literal["anthropic", "openai_chat"]
) -> None:
    (tmp_path / "auth.py").write_text(CODE)
    script = [[{"tool": "read", "args": {"path": "auth.py"}}], [{"text": "It returns None."}]]
    with SimulatedProvider(script) as provider, pagein.open(":memory:") as engine:
        create: Any
        if api == "anthropic":
            sdk = pytest.importorskip("anthropic")
            create = sdk.Anthropic(api_key="k", base_url=provider.url, max_retries=0).messages.create
        else:
            sdk = pytest.importorskip("openai")
            create = sdk.OpenAI(api_key="k", base_url=f"{provider.url}/v1", max_retries=0).chat.completions.create
        session = engine.session("fix")
        session.work_in(str(tmp_path))
        agent = pooled(
            "claude-sonnet-5-5" if api == "anthropic" else "gpt-5.1", session, system="You fix bugs.", api=api
        )
        agent.say("Why does the login fail?")
        while not agent.is_done:
            request = agent.request()
            agent.hear(create(**request))
        assert json.dumps(request).count(json.dumps(CODE)[1:-1]) == 1
        assert (provider.bill().requests, provider.bill().refused) == (2, 0)


def test_another_process_sends_the_same_request_and_each_branch_has_its_own(tmp_path: Path) -> None:
    (tmp_path / "auth.py").write_text(CODE)
    script = [[{"tool": "read", "args": {"path": "auth.py"}}], [{"text": "ok"}], [{"text": "ok"}]]
    with SimulatedProvider(script) as provider:
        with pagein.open(tmp_path / "s.pagein") as engine:
            session = engine.session("fix")
            agent = begin(session, tmp_path)
            work(agent, provider.url, "Read it.")
            place = session.leaf
            agent.say("And now?")
            expected = agent.request()
            session.move(place)
            agent.say("Something else.")
            assert "And now?" not in json.dumps(agent.request())
            session.move(place)
        with pagein.open(tmp_path / "s.pagein") as engine:
            session = engine.session("fix")
            session.move(place)
            again = begin(session, tmp_path)
            again.say("And now?")
            assert again.request() == expected


def reply(*calls: tuple[str, dict[str, str]]) -> dict[str, Any]:
    content = [
        {"type": "tool_use", "id": f"{name}{n}", "name": name, "input": args} for n, (name, args) in enumerate(calls)
    ]
    return {"type": "message", "role": "assistant", "content": content}


def test_a_read_beside_a_command_that_changes_the_file_shows_the_file_as_it_is_then(tmp_path: Path) -> None:
    file = tmp_path / "auth.py"
    file.write_text(CODE)
    with pagein.open(":memory:") as engine:
        agent = begin(engine.session("fix"), tmp_path)
        agent.say("Go.")
        agent.request()
        sed = {"command": "sed -i s/None/True/ auth.py"}
        (call,) = agent.hear(reply(("read", {"path": "auth.py"}), ("bash", sed)))
        file.write_text(CODE.replace("None", "True"))
        agent.answer(call, "")
        prompt = json.dumps(agent.request())
    assert "return True" in prompt
    assert "return None" not in prompt


def test_the_bounds_of_the_settings_hold(tmp_path: Path) -> None:
    bounds = Settings(pools=PoolRules(recent_calls=1))
    with pagein.open(":memory:", settings=bounds) as engine:
        session = engine.session("fix")
        agent = begin(session, tmp_path)
        agent.say("Go.")
        agent.request()
        calls = agent.hear(reply(("bash", {"command": "a"}), ("bash", {"command": "b"})))
        for call in calls:
            agent.answer(call, f"{call.id} " * 300)
        agent.request()
        shown = agent._at.state.walk.state.active
    assert [one.id for one in shown] == ["bash1"] == [one.id for one in session.pools.state.active]


def test_a_call_without_a_result_is_taken_up_by_the_next_process(tmp_path: Path) -> None:
    (tmp_path / "auth.py").write_text(CODE)
    script = [[{"tool": "bash", "args": {}}, {"tool": "read", "args": {"path": "auth.py"}}], [{"text": "ok"}]]
    with SimulatedProvider(script) as provider:
        with pagein.open(tmp_path / "s.pagein") as engine:
            agent = begin(engine.session("fix"), tmp_path)
            agent.say("Go.")
            agent.hear(post(provider.url, agent.request()))
            with pytest.raises(BadInput, match="no result was given for"):
                agent.request()
        with pagein.open(tmp_path / "s.pagein") as engine:
            agent = begin(engine.session("fix"), tmp_path)
            (call,) = agent.calls
            assert call.name == "bash"
            agent.answer(call, "done")
            agent.hear(post(provider.url, agent.request()))
            assert agent.is_done
        assert provider.bill().refused == 0


def test_the_open_calls_are_those_of_the_branch(tmp_path: Path) -> None:
    (tmp_path / "auth.py").write_text(CODE)
    script = [
        [{"tool": "bash", "args": {}}, {"tool": "read", "args": {"path": "auth.py"}}],
        [{"text": "ok"}],
        [{"text": "ok"}],
    ]
    with SimulatedProvider(script) as provider, pagein.open(":memory:") as engine:
        session = engine.session("fix")
        agent = begin(session, tmp_path)
        agent.say("Go.")
        place = session.leaf
        (call,) = agent.hear(post(provider.url, agent.request()))
        calling = session.leaf
        with pytest.raises(BadInput, match=f"no result was given for {call.id}"):
            agent.say("And hurry.")  # no provider takes words between a call and its result
        session.move(place)
        assert agent.calls == []
        agent.say("Go on.")
        agent.hear(post(provider.url, agent.request()))
        session.move(calling)
        assert agent.calls == [call]
        agent.answer(call, "done")
        agent.hear(post(provider.url, agent.request()))
        assert agent.is_done
    assert (provider.bill().requests, provider.bill().refused) == (3, 0)


def test_what_must_not_be_stored_stays_in_the_conversation(tmp_path: Path) -> None:
    secret = "TOKEN=" + "s3cr3t" * 200
    script = [[{"tool": "bash", "args": {"command": "cat .env"}}], [{"text": "ok"}]]
    with SimulatedProvider(script) as provider, pagein.open(tmp_path / "s.pagein") as engine:
        agent = begin(engine.session("fix"), tmp_path)
        agent.say("Go.")
        (call,) = agent.hear(post(provider.url, agent.request()))
        agent.answer(call, secret)
        prompt = json.dumps(agent.request())
    assert secret in prompt
    assert "ACTIVE_CONTENT id=" not in prompt
    assert secret.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())


def test_arguments_that_cannot_work_are_refused() -> None:
    with pagein.open(":memory:") as engine:
        session = engine.session("fix")
        with pytest.raises(BadInput, match="read are pagein's own"):
            pooled(MODEL, session, tools=[{"name": "read"}])
        with pytest.raises(BadSetting, match="there are pagein, spec"):
            pooled(MODEL, session, rules="seed")
        agent = pooled(MODEL, session)
        with pytest.raises(BadInput, match="words are empty"):
            agent.say(" ")
        with pytest.raises(BadInput, match="no open call"):
            agent.answer(PooledCall("c", "bash", {}), "out")
