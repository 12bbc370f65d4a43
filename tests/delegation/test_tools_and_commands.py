"""The tools for models, the methods for programs and the commands, over scripted children."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.delegation.asked_sessions import Asked, asked
from typer.testing import CliRunner

from pagein import wiring
from pagein.cli.cli import app
from pagein.mcp.offered_tools import chosen
from pagein.mcp.tool_answers import Caller, ToolAnswers
from pagein.policy.delegation.limits import DelegationSettings
from pagein.simulator import SimulatedProvider
from pagein.testing.scripted_children import reply, shown_to
from pagein.tools.calls import Call
from pagein.tools.catalogue import answer, guidance, offer_tools, tool_named
from pagein.tools.child_tools import SessionDelegate

Asks = Callable[..., Asked]
REPLY = '{"answer": "4 errors", "confidence": "high", "evidence": ["has 4"]}'


def test_the_tools_are_offered_only_where_a_child_model_is_set() -> None:
    own = {"query", "batch", "extract"}
    assert own.isdisjoint(one.name for one in offer_tools())
    offered = offer_tools("pi-rlm", delegation=True)
    assert {"rlm_query", "rlm_batch", "rlm_extract"} <= {one.name for one in offered}
    assert all(tool_named(name) is tool_named(f"rlm_{name}") is not None for name in own)
    assert "Calls to child models cost" in guidance(offered)
    assert "Calls to child models cost" not in guidance(offer_tools())
    assert guidance(offered, delegation="Mine.\n{{default}}").count("Mine.\nCalls to child models") == 1
    assert not SessionDelegate(lambda: pytest.fail("opened")).is_set


def test_a_model_asks_by_a_tool_and_reads_wrong_calls_in_words(asks: Asks) -> None:
    room = asks(lambda request: reply(shown_to(request).splitlines()[1], "text"))
    session = room.session()
    ids = room.ingested(session, a="text a\n", b="text b\n")
    told = answer(session, "rlm_batch", Call({"instructions": "What?", "targets": ids}, id="host-1"))
    assert not told.is_error
    assert told.text.index("text a") < told.text.index("text b")
    assert json.loads(json.dumps(told.details))["actual"]["calls"] == 2
    assert answer(session, "query", Call({"instructions": "What?", "target": ids[0]})).text.count("text a") == 1
    for arguments, words in (
        ({"target": ids}, "instructions"),
        ({"instructions": "x"}, "no target is named"),
        ({"instructions": "x", "target": [3]}, "target"),
        ({"instructions": "x", "target": ["pg-00000000-00000000"]}, "not found"),
    ):
        wrong = answer(session, "query", Call(arguments))
        assert wrong.is_error
        assert words in wrong.text
    confirmed = answer(session, "batch", Call({"instructions": "x", "targets": ids * 9}, confirm=lambda _: False))
    assert not confirmed.is_error  # each target once: too few to ask a person
    assert answer(session, "query", Call({"instructions": "x", "target": ids}), enabled=False).is_error


def test_a_client_of_mcp_asks_where_the_user_chose_the_tool(asks: Asks) -> None:
    room = asks(lambda _: reply("ok"))
    ids = room.ingested(room.session(), a="1\n")
    offered = chosen(("query",))
    assert "query" in [one.name for one in offered]
    answers = ToolAnswers(room.engines[0], str(room.folder), tuple(one.name for one in offered))
    caller, never = Caller("claude-code", "call-1"), threading.Event()
    told = answers.answer("query", {"instructions": "What?", "target": ids}, caller, never)
    assert "\nok\n" in told.text
    assert "There is no tool" in answers.answer("batch", {"instructions": "What?", "targets": ids}, caller, never).text


def test_a_client_of_mcp_without_a_dialogue_confirms_many_children_by_a_handle(asks: Asks) -> None:
    room = asks(lambda _: reply("ok"))
    ids = room.ingested(room.session(), **{f"f{number}": f"{number}\n" for number in range(11)})
    answers = ToolAnswers(room.engines[0], str(room.folder), ("batch", "query"))

    def ask(**more: object) -> str:
        given = {"instructions": "What?", "targets": ids, **more}
        return answers.answer("batch", given, Caller("claude-code"), threading.Event()).text

    refused = ask()
    assert refused.startswith("This asks 11 child models, which may cost up to $")
    handle = refused.partition('confirm="')[2].partition('"')[0]
    assert ask(confirm="00000000") == refused
    assert ask(confirm=handle, instructions="Else?") != refused
    assert room.child.requests == []
    assert ask(confirm=handle).count("\nok\n") == 11


def test_programs_ask_with_and_without_an_event_loop(asks: Asks) -> None:
    room = asks(lambda _: reply("ok"))
    session = room.session()
    ids = room.ingested(session, a="1\n")
    assert session.query("a?", ids).answer == "ok"
    assert asyncio.run(session.aquery("b?", ids)).answer == "ok"
    assert asyncio.run(session.abatch("c?", ids)).results[0].answer == "ok"
    assert asyncio.run(session.aextract("d?", ids)).results[0].artifact
    assert session.extract("e?", ids[0]).results[0].artifact  # one id alone


def test_settings_reach_the_delegation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from pagein.settings.sources import load_config

    monkeypatch.setenv("PAGEIN_CHILD_MODEL", "anthropic/claude-haiku-4-5")
    monkeypatch.setenv("PAGEIN_CHILD_CALLS", "7")
    monkeypatch.setenv("PAGEIN_CHILD_USD", "0.5")
    found = load_config(tmp_path).delegation
    assert isinstance(found, DelegationSettings)
    assert (found.model, found.limits.calls, found.limits.usd) == ("anthropic/claude-haiku-4-5", 7, 0.5)
    assert (found.model_at(1), found.model_at(2)) == (found.model, found.model)


# --- the command line, against the simulated provider ---


def _settings(folder: Path, provider: SimulatedProvider) -> dict[str, str]:
    return {
        "PAGEIN_STORE": str(folder / "store.db"),
        "PAGEIN_ANTHROPIC": provider.url,
        "PAGEIN_CHILD_MODEL": "anthropic/claude-haiku-4-5",
        "ANTHROPIC_API_KEY": "any-key",
    }


def _ingested(folder: Path, **texts: str) -> list[str]:
    room = asked(folder, lambda _: "")
    try:
        return room.ingested(room.session("questions"), **texts)
    finally:
        room.close()


def test_the_commands_ask_a_provider_and_keep_the_answers_and_their_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pydantic_ai")
    with SimulatedProvider([[{"text": REPLY}]]) as provider:
        ids = _ingested(tmp_path, a="this has 4 errors\n", b="and so has 4 this\n")
        monkeypatch.chdir(tmp_path)
        for name, value in _settings(tmp_path, provider).items():
            monkeypatch.setenv(name, value)
        batch = CliRunner().invoke(app, ["batch", "-", "--json", "--", "How many?"], input="\n".join(ids))
        assert batch.exit_code == 0, batch.output
        told = json.loads(batch.stdout)
        assert [one["answer"] for one in told["results"]] == ["4 errors"] * 2
        assert told["actual"]["usd"] > 0
    with wiring.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        assert engine.recall(str(told["results"][0]["object_id"])) == "4 errors"
    name = told["results"][0]["object_id"]
    plain = CliRunner().invoke(app, ["show", name])
    assert (plain.stdout, plain.stderr) == ("4 errors", f"pagein: evidence: has 4 ({ids[0]}, line 1)\n")
    shown = json.loads(CliRunner().invoke(app, ["show", name, "--json"]).stdout)
    assert (shown["content"], shown["metadata"]["confidence"]) == ("4 errors", "high")
    assert [(one["quote"], one["place"]) for one in shown["evidence"]] == [("has 4", f"{ids[0]}, line 1")]


@pytest.mark.slow
def test_ctrl_c_prints_what_was_finished(tmp_path: Path) -> None:
    pytest.importorskip("pydantic_ai")
    with SimulatedProvider([[{"wait": 30}, {"text": REPLY}]]) as provider:
        ids = _ingested(tmp_path, a="this has 4 errors\n")
        asking = subprocess.Popen(  # noqa: S603 -- our own
            [sys.executable, "-m", "pagein", "batch", *ids, "--json", "--", "How many?"],
            cwd=tmp_path,
            env=os.environ | _settings(tmp_path, provider),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        until = time.monotonic() + 60
        while not provider.requests and time.monotonic() < until:
            time.sleep(0.1)
        asking.send_signal(signal.SIGINT)
        out, errors = asking.communicate(timeout=20)
    assert asking.returncode == 130
    assert "Traceback" not in errors
    assert json.loads(out)["partial"] == "0 of 1 answered: cancelled"
