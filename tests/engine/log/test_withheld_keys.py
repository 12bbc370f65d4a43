"""A key in a message, a read or a call is nowhere in the store, and keeps only its own block in the window."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.engine.log.test_withheld_requests import APIS, EAGER, WORK, Step, opened, stored, walked
from tests.policy.privacy.test_keys_in_texts import KEYS, drawn

import pagein
from pagein.engine.recall.object_search import Lookup
from pagein.errors import BadInput
from pagein.model.journal_notes import OtherNote
from pagein.model.messages import Message, Other, Text, Thinking, ToolCall, ToolResult
from pagein.providers.validity import Api

KEY = KEYS["github-token"]
PRINTENV = Step("Bash", {"command": "printenv"}, "PATH=/usr/bin\n" * 300 + f"GITHUB_TOKEN={KEY}\nLANG=C\n")
CURL = Step("Bash", {"command": f"curl -H 'Authorization: Bearer {KEY}' https://x.test"}, "plain\n" * 300)
COMPOSE = Step("Bash", {"command": "docker compose config"}, "services:\n" * 200 + "      DB_PASSWORD: hunter2\n")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("told", [PRINTENV, CURL, COMPOSE], ids=["printenv", "curl", "compose"])
def test_a_key_stays_in_the_window_and_out_of_the_store(tmp_path: Path, api: Api, told: Step) -> None:
    steps = [WORK, told, WORK, WORK, WORK]
    secret = "hunter2" if told is COMPOSE else KEY
    found = {name: walked(tmp_path / name, api, steps, restarts=name == "again") for name in ("plain", "again")}
    for name, requests in found.items():
        assert [one.failure for one in requests] == [None] * len(requests)
        assert all(secret.encode() in one.body for one in requests[2:])
        assert requests[-1].replaced
        assert secret.encode() not in stored(tmp_path / name)
    assert [one.replaced for one in found["again"]] == [one.replaced for one in found["plain"]]


def test_only_the_block_with_the_key_stays(tmp_path: Path) -> None:
    """What a call with a key in its arguments was answered may leave like anything else."""
    requests = walked(tmp_path / "one", "anthropic", [WORK, CURL, WORK, WORK, WORK], restarts=True)
    last = json.loads(requests[-1].body)["messages"]
    blocks = [block for one in last[1:] for block in one["content"] if block["type"] == "tool_result"]
    assert "[pagein: pg-" in str(blocks[1]["content"])


def test_keys_in_whatever_is_said_are_not_kept(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = engine.session("one")
        said = [
            Message("user", (Text(f"use {KEY}"), Other("document", json.dumps({"data": KEY})))),
            Message("assistant", (Thinking(f"the key is {KEY}"), ToolCall("c1", "Deploy", json.dumps({"key": KEY})))),
            Message("tool", (ToolResult("c1", f"used {KEY}", "Deploy"),)),
        ]
        for message in said:
            session.append(message)
        session.advance()
        session.note(OtherNote("mine", json.dumps({"why": KEY})))
        assert session.last_request() == said
        assert session.fork("two").window() == said
        with pytest.raises(BadInput, match="holds a key"):
            session.hand.say(f"remember {KEY}")
        session.keep()
    assert KEY.encode() not in stored(tmp_path)


def test_a_file_with_a_key_is_read_in_full_and_neither_stored_nor_ingested(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    text = "import os\n" * 60 + f"TOKEN = '{KEY}'\n"
    (work / "settings.py").write_text(text)
    (work / "plain.py").write_text("import os\n" * 60)
    (tmp_path / "kept").mkdir()
    with ExitStack() as stack:
        engine = stack.enter_context(pagein.open(tmp_path / "kept" / "store.db", workspace=work, settings=EAGER))
        session = engine.session("one", workspace=work)
        assert session.read("settings.py").text == session.read("settings.py").text == text
        session.note_write("settings.py", text)
        assert session.read("plain.py").text != session.read("plain.py").text
        ingesting = session.recalls.ingest_below(str(work))
        assert ingesting is not None
        report = ingesting.ingest(["*.py"])
        assert [(path, why) for path, why in report.skipped if path == "settings.py"] == [
            ("settings.py", "holds a key")
        ]
        session.recalls.search(Lookup(drawn(5) + " " + KEY))
    with opened(tmp_path / "kept"):
        pass
    assert KEY.encode() not in stored(tmp_path / "kept")
