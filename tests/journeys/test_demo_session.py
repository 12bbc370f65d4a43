"""The demo session that ships with the project matches its README."""

import getpass
import gzip
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SESSION = ROOT / "examples" / "demo-session.jsonl.gz"
Row = dict[str, Any]


@pytest.fixture(scope="module")
def text() -> str:
    return gzip.decompress(SESSION.read_bytes()).decode("utf-8")


@pytest.fixture(scope="module")
def rows(text: str) -> list[Row]:
    return [json.loads(line) for line in text.split("\n") if line]


@pytest.fixture(scope="module")
def messages(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["kind"] == "msg"]


def at(row: Row) -> float:
    return datetime.fromisoformat(row["ts"]).timestamp()


def calls_with_results(messages: list[Row]) -> Iterator[tuple[Row, Row]]:
    results = {block["id"]: block for row in messages if row["role"] == "tool" for block in row["content"]}
    for row in messages:
        for block in row["content"]:
            if block["type"] == "tool_call":
                yield block, results[block["id"]]


def test_the_header_says_that_the_session_is_a_demo_with_simulated_usage(rows: list[Row]) -> None:
    head = rows[0]
    assert (head["kind"], head["schema"], head["source"]) == ("session", "pagein-session/1", "demo")
    assert head["flags"]["usage"] == "simulated"
    assert head["started"] == rows[1]["ts"]
    assert head["ended"] == rows[-1]["ts"]


def test_the_demo_session_has_the_promised_length(text: str, messages: list[Row]) -> None:
    assert 140 <= sum(row["role"] == "assistant" for row in messages) <= 165
    assert 5 <= sum(row["role"] == "user" for row in messages) <= 7
    assert 800_000 <= len(text) <= 1_200_000
    assert SESSION.stat().st_size < 300_000


def test_every_call_is_answered_once_and_in_order_before_the_model_speaks_again(messages: list[Row]) -> None:
    waiting: list[str] = []
    for row in messages:
        if row["role"] == "tool":
            assert [block["id"] for block in row["content"]] == [waiting.pop(0)]
        else:
            assert waiting == []
            waiting = [block["id"] for block in row["content"] if block["type"] == "tool_call"]
            assert row["role"] == "user" or row["stop"] == ("tool_use" if waiting else "end_turn")
    assert waiting == []


def test_time_runs_forward_with_pauses_below_and_above_the_cache_lifetimes(messages: list[Row]) -> None:
    times = [at(row) for row in messages]
    assert times == sorted(times)
    pauses = [at(row) - at(before) for before, row in pairwise(messages) if row["role"] == "user"]
    assert any(pause < 300 for pause in pauses)
    assert any(300 < pause < 3600 for pause in pauses)
    assert any(pause > 3600 for pause in pauses)


def test_usage_follows_from_the_text_and_the_pauses_alone(rows: list[Row], messages: list[Row]) -> None:
    flags = rows[0]["flags"]
    characters = 0
    start = cached = cached_at = 0.0
    for row in messages:
        if row["role"] == "assistant":
            usage = row["usage"]
            prompt = usage["input"] + usage["cache_read"] + usage["cache_write"]
            assert prompt == flags["floor_tokens"] + round(characters / flags["chars_per_token"])
            assert usage["cache_read"] == (cached if start - cached_at < 300 else 0)
            cached, cached_at = prompt - usage["input"], start
        else:
            start = at(row)
        for block in row["content"]:
            args = block.get("args")
            characters += len(block["text"] if args is None else json.dumps(args, ensure_ascii=False))


def test_reads_after_edits_show_what_the_edits_made(messages: list[Row]) -> None:
    files: dict[str, str] = {}
    compared = 0
    for call, result in calls_with_results(messages):
        args, path = call["args"], call["args"].get("file_path", "")
        if call["name"] == "Read":
            shown = [line.split("→", 1)[1] for line in result["text"].split("\n")]
            meta = result["meta"]
            assert meta["lines"] == len(shown)
            if path in files:
                first = meta["start"] - 1
                assert shown == files[path].split("\n")[first : first + len(shown)]
                compared += 1
            elif len(shown) == meta["total_lines"]:
                files[path] = "\n".join(shown) + "\n"
        elif call["name"] == "Write":
            files[path] = args["content"]
        elif call["name"] == "Edit" and path in files:
            assert (args["old_string"] not in files[path]) is result["is_error"]
            files[path] = files[path].replace(args["old_string"], args["new_string"])
    assert compared >= 8


def test_most_edits_quote_text_that_the_model_has_seen(messages: list[Row]) -> None:
    seen = ""
    quoted = edits = 0
    for call, result in calls_with_results(messages):
        if call["name"] == "Edit" and not result["is_error"]:
            edits += 1
            quoted += call["args"]["old_string"] in seen
        seen += (
            re.sub(r"^ *\d+[→:-]", "", result["text"], flags=re.MULTILINE)
            + "\n"
            + str(call["args"].get("new_string", ""))
        )
    assert edits >= 60
    assert quoted / edits > 0.9


def test_tests_fail_before_they_pass_and_the_last_full_run_passes(messages: list[Row]) -> None:
    runs = [
        result["text"]
        for call, result in calls_with_results(messages)
        if call["name"] == "Bash" and "pytest" in call["args"]["command"]
    ]
    assert sum(" failed" in run for run in runs) >= 10
    assert sum(len(run) > 25_000 for run in runs) >= 4
    assert "670 passed" in runs[-1]
    assert " failed" not in runs[-1]


def test_the_demo_session_names_no_machine_and_no_person(text: str) -> None:
    assert not re.search(r"/(?:work|tmp|home|root|Users|var|private)/", text)
    assert "pagein-demo" not in text
    assert set(re.findall(r"[\w.+-]+@[\w.-]+\.(?:com|org|net|io|dev|de)\b", text)) == {"agent@example.com"}
    assert all(int(address, 16) < 0x7F0000000100 for address in re.findall(r"\b0x7f[0-9a-f]{10}\b", text))
    if len(host := socket.gethostname()) > 5:
        assert host not in text
    if len(user := getpass.getuser()) > 5:
        assert user not in text


@pytest.mark.slow
@pytest.mark.skipif(
    "PAGEIN_DEMO_CHECK" not in os.environ, reason="needs the network; set PAGEIN_DEMO_CHECK to play it again"
)
def test_playing_the_screenplay_again_gives_the_same_text() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.make_demo_session", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
