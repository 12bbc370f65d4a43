import asyncio
import itertools
import json
import os
import signal
import stat
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
from tests.command_server import run_text_command
from tests.gateway.processes import data_folder, ended, gateway_process, logged, noted
from tests.gateway.stream.test_reply_reader import MESSAGES
from tests.gateway.upstreams import Upstream, run, streams

from pagein import wiring
from pagein.simulator import SimulatedProvider

HEADERS = {"Content-Type": "application/json", "x-api-key": "sk-SECRET-KEY", "anthropic-version": "2023-06-01"}


def conversation(turns: int, name: str = "fix the build", lines: int = 250) -> dict[str, object]:
    """Shell outputs of 9 KB, behind a prompt that is a script."""
    script = json.dumps([[{"text": f"turn {number}"}] for number in range(40)])
    messages: list[dict[str, object]] = [{"role": "user", "content": f"{name} SCRIPT:{script}"}]
    for number in range(turns):
        call = f"toolu_{number:04}"
        use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": f"make step-{number}"}}
        text = "".join(f"step {number} says line {line} of its output\n" for line in range(lines))
        result = {"type": "tool_result", "tool_use_id": call, "content": text}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    # a stranger without tools would have no way back, so nothing of it would leave
    schema = {"type": "object", "properties": {"command": {}}}
    # so long that the recall tools come with the first request
    tools = [{"name": "Bash", "description": "Run it. " * 900, "input_schema": schema}]
    return {"model": "claude-sonnet-4-5", "max_tokens": 100, "tools": tools, "messages": messages}


def cli(*arguments: str, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return run_text_command(*arguments, env=os.environ | data_folder(folder) | environment)


async def sent(url: str, body: object, **headers: str) -> tuple[int, bytes]:
    named = HEADERS | {name.replace("_", "-"): value for name, value in headers.items()}
    async with aiohttp.ClientSession() as client, client.post(url + "/v1/messages", json=body, headers=named) as answer:
        return answer.status, await answer.read()


def test_a_session_through_a_served_gateway_pages_out_and_every_byte_can_be_recalled(tmp_path: Path) -> None:
    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path) as (url, process):
        for turns in range(14):
            status, _ = run(sent(url, conversation(turns)))
            assert status == 200
        last = provider.requests[-1].body
        assert ended(process) == 0
    assert all(record.refused is None for record in provider.requests)
    results = [message["content"][0]["content"] for message in last["messages"][2::2]]
    originals = [message["content"][0]["content"] for message in conversation(13)["messages"][2::2]]  # type: ignore[index]
    changed = [(now, before) for now, before in zip(results, originals, strict=True) if now != before]
    assert changed
    with wiring.open(tmp_path / "s.pagein") as engine:
        for now, before in changed:
            found = [word.strip(".,;:()[]\"'") for word in now.split() if word.strip(".,;:()[]\"'").startswith("pg-")]
            assert engine.recall(found[0]) == before


def test_the_log_and_the_store_of_a_served_gateway_hold_no_key_and_are_the_users_only(tmp_path: Path) -> None:
    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path) as (url, process):
        for turns in range(5):
            run(sent(url, conversation(turns), Authorization="Bearer sk-SECRET-TOKEN"))
        assert ended(process, signal.SIGINT) == 0
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {"gateway.jsonl", "s.pagein"} <= {file.name for file in files}
    for file in files:
        assert b"SECRET" not in file.read_bytes(), file
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file
    calls = [json.loads(line) for line in (tmp_path / "gateway.jsonl").read_text().splitlines()]
    assert [call["event"] for call in calls] == ["call"] * 5


def test_ending_waits_for_a_stream_and_ending_twice_does_not(tmp_path: Path) -> None:
    async def go(*, twice: bool) -> tuple[bytes, bool]:
        hold = asyncio.Event()
        upstream = Upstream(streams(MESSAGES, hold=hold))
        server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
        upstream.port = server.sockets[0].getsockname()[1]
        folder = tmp_path / str(twice)
        folder.mkdir()
        text, broke = b"", False
        with gateway_process(upstream.url, folder) as (url, process):
            async with (
                aiohttp.ClientSession() as client,
                client.post(url + "/v1/messages", json={"messages": []}, headers=HEADERS) as answer,
            ):
                text += await answer.content.readany()
                process.send_signal(signal.SIGINT)
                await refused(url)
                if twice:
                    process.send_signal(signal.SIGINT)
                else:
                    hold.set()
                try:
                    while part := await answer.content.readany():
                        text += part
                except aiohttp.ClientError:
                    broke = True
            assert await asyncio.to_thread(process.wait, 60) == 0
        server.close()
        return text, broke

    assert run(go(twice=False)) == (b"".join(MESSAGES), False)
    assert run(go(twice=True))[1]


async def refused(url: str) -> None:
    """Wait until a gateway takes no new connections: it has heard that it is to end."""
    where = urlsplit(url)
    while True:
        try:
            _, writer = await asyncio.open_connection(where.hostname, where.port)
        except OSError:
            return
        writer.close()
        await asyncio.sleep(0.01)


def test_a_gateway_killed_in_mid_stream_is_a_break_for_the_client_and_its_successor_sends_the_same_bytes(
    tmp_path: Path,
) -> None:
    async def broken(url: str, process: "subprocess.Popen[str]", body: object) -> bool:
        async with aiohttp.ClientSession() as client:
            try:
                async with client.post(url + "/v1/messages", json=body, headers=HEADERS) as answer:
                    await answer.content.readany()
                    process.kill()
                    while await answer.content.readany():
                        pass
            except aiohttp.ClientError:
                return True
        return False

    async def go() -> None:
        upstream = Upstream(streams(MESSAGES))
        server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0, limit=1 << 22)
        upstream.port = server.sockets[0].getsockname()[1]
        with gateway_process(upstream.url, tmp_path) as (url, process):
            for turns in range(12):
                await sent(url, conversation(turns))
            upstream.answer = streams(MESSAGES, hold=asyncio.Event())
            assert await broken(url, process, conversation(12))
        before = upstream.got[-1].body
        upstream.answer = streams(MESSAGES)
        with gateway_process(upstream.url, tmp_path) as (url, process):
            # the client tries again, as it would without us
            assert (await sent(url, conversation(12)))[0] == 200
            assert upstream.got[-1].body == before
            await sent(url, conversation(13))
            assert await asyncio.to_thread(ended, process) == 0
        server.close()
        original = json.dumps(conversation(12)).encode()
        assert len(before) < len(original) * 0.8

    run(go())


def test_the_switch_works_on_a_gateway_that_runs(tmp_path: Path) -> None:
    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path) as (url, _):
        for turns in range(10):
            run(sent(url, conversation(turns)))
        curated = json.dumps(provider.requests[-1].body)
        assert cli("off", folder=tmp_path).returncode == 0
        run(sent(url, conversation(9)))
        assert provider.requests[-1].body == conversation(9)
        assert cli("on", folder=tmp_path).returncode == 0
        run(sent(url, conversation(9)))
        assert json.dumps(provider.requests[-1].body) == curated


def test_doctor_finds_a_setup_that_works_and_one_that_does_not(tmp_path: Path) -> None:
    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path) as (url, _):
        upstreams = (
            "--anthropic",
            provider.url,
            "--openai",
            provider.url,
            "--google",
            provider.url,
            "--store",
            str(tmp_path / "s.pagein"),
        )
        told = {"ANTHROPIC_BASE_URL": url + "/", "ENABLE_TOOL_SEARCH": "true", "ANTHROPIC_MODEL": "claude-opus-5[1m]"}
        fine = cli("doctor", "--json", "--url", url, *upstreams, folder=tmp_path, **told)
        assert fine.returncode == 0, fine.stdout + fine.stderr
        levels = {one["what"]: one["level"] for one in json.loads(fine.stdout)["findings"]}
        assert levels == {
            **dict.fromkeys(
                ("store", "switch", "round trip", "gateway", "anthropic", "openai", "google", "Claude Code"), "fine"
            ),
            **dict.fromkeys(("codex", "opencode", "pi", "Gemini CLI"), "note"),
        }
    (tmp_path / "s.pagein").chmod(0o644)
    wrong = cli("doctor", "--json", "--url", url, *upstreams, folder=tmp_path, PAGEIN_OFF="1")
    assert wrong.returncode == 1
    found = {one["what"]: one["level"] for one in json.loads(wrong.stdout)["findings"]}
    assert {name: found[name] for name in ("store", "switch", "gateway", "anthropic", "openai")} == {
        "store": "note",  # opening a store takes it from others
        "switch": "note",
        "gateway": "wrong",
        "anthropic": "wrong",
        "openai": "wrong",
    }


def test_doctor_only_notes_what_does_not_answer_and_nobody_uses(tmp_path: Path) -> None:
    store, gone = ("--store", str(tmp_path / "s.pagein")), "http://127.0.0.1:9"

    def found(*arguments: str, **environment: str) -> tuple[int, dict[str, str]]:
        done = cli("doctor", "--json", *store, *arguments, folder=tmp_path, **environment)
        return done.returncode, {one["what"]: one["level"] for one in json.loads(done.stdout)["findings"]}

    with SimulatedProvider() as provider:
        away = dict.fromkeys(("PAGEIN_ANTHROPIC", "PAGEIN_OPENAI"), provider.url)
        code, levels = found(PAGEIN_PORT="9", HTTPS_PROXY=gone, **away)
        assert (code, levels["google"], levels["gateway"]) == (0, "note", "note"), "no agent uses either"
        code, levels = found("--google", gone, PAGEIN_PORT="9", **away)
        assert (code, levels["google"]) == (1, "wrong"), "its address was given"
        assert found(PAGEIN_PORT="9", PAGEIN_GOOGLE=gone, **away)[1]["google"] == "wrong", "it was set"
        claude = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ENABLE_TOOL_SEARCH": "true"}
        code, levels = found(PAGEIN_PORT="9", HTTPS_PROXY=gone, **away, **claude)
        assert (code, levels["gateway"]) == (1, "wrong"), "Claude Code waits for it"
        code, levels = found(PAGEIN_PORT="9", HTTPS_PROXY=gone)
        assert (code, {*levels.values()}, levels["network"]) == (0, {"fine", "note"}, "note"), "nothing is set up yet"
        assert found(PAGEIN_PORT="9", HTTPS_PROXY=gone, **claude)[1]["anthropic"] == "wrong", "Claude Code needs it"


def test_doctor_looks_at_the_providers_that_the_running_gateway_sends_to(tmp_path: Path) -> None:
    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path) as (url, _):
        asked = ("--anthropic", provider.url, "--store", str(tmp_path / "s.pagein"))
        found = {
            one["what"]: one
            for one in json.loads(cli("doctor", "--json", "--url", url, *asked, folder=tmp_path).stdout)["findings"]
        }
        assert provider.url in found["openai"]["told"]
        assert found["openai"]["level"] == "fine"


@pytest.mark.parametrize(
    ("arguments", "environment", "word"),
    [
        (("--anthropic", "ftp://x"), {}, "anthropic"),
        (("--openai", "https://user:pass@x"), {}, "login"),
        ((), {"PAGEIN_PORT": "many"}, "PAGEIN_PORT"),
        (("--budget", "0"), {}, "budget"),
        (("--host", "203.0.113.7"), {}, "cannot listen"),
        (("--log", "/nowhere/at/all"), {}, "--log"),
    ],
)
def test_what_cannot_be_served_is_told_and_ends_with_2(
    arguments: tuple[str, ...], environment: dict[str, str], word: str, tmp_path: Path
) -> None:
    done = cli("serve", "--store", str(tmp_path / "s.pagein"), *arguments, folder=tmp_path, **environment)
    assert done.returncode == 2
    assert word in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", ["--store=s.pagein", "--recall", "--keep-alive", "--subscriptions", "--budget=1"])
def test_an_option_that_measuring_leaves_without_effect_is_refused_and_not_ignored(option: str, tmp_path: Path) -> None:
    done = cli("serve", "--measure", option, "--port", "0", folder=tmp_path)
    assert done.returncode == 2
    assert option.partition("=")[0] in done.stderr
    assert not (tmp_path / "s.pagein").exists()


def test_measuring_takes_options_that_say_what_it_does_anyway(tmp_path: Path) -> None:
    asked = ("--measure", "--no-recall", "--no-keep-alive", "--host", "203.0.113.7")
    told = cli("serve", *asked, folder=tmp_path, PAGEIN_STORE=str(tmp_path / "s.pagein")).stderr
    assert "cannot listen" in told


def test_a_locked_store_keeps_nobody_from_working(tmp_path: Path) -> None:
    import sqlite3

    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path, "--budget", "0.5") as (url, _):
        run(sent(url, conversation(1)))
        noted(tmp_path, 1)  # what is noted late would find the store locked
        lock = sqlite3.connect(tmp_path / "s.pagein", isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        try:
            status, _answer = run(sent(url, conversation(2)))  # nobody lets go of the lock before it is answered
        finally:
            lock.execute("ROLLBACK")
            lock.close()
        assert status == 200
        before, asked = (one.body["messages"] for one in provider.requests[-2:])
        assert asked == before + conversation(2)["messages"][len(before) :]  # type: ignore[index]
        assert run(sent(url, conversation(3)))[0] == 200


def test_a_call_that_reads_less_from_the_cache_than_was_there_is_explained(tmp_path: Path) -> None:
    def marked(turns: int, system: str = "you fix builds " * 300) -> dict[str, object]:
        body = conversation(turns)
        last = body["messages"][-1]  # type: ignore[index]
        if isinstance(last["content"], str):
            last["content"] = [{"type": "text", "text": last["content"]}]
        last["content"][-1]["cache_control"] = {"type": "ephemeral"}
        return body | {"system": [{"type": "text", "text": system}]}

    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path) as (url, process):
        for turns in range(4):
            assert run(sent(url, marked(turns), X_Session_Id="s"))[0] == 200
            noted(tmp_path, turns + 1)
        assert run(sent(url, marked(4, "you write builds " * 300), X_Session_Id="s"))[0] == 200
        assert ended(process) == 0
    calls = logged(tmp_path, "call")
    assert [call["cause"] for call in calls[:4]] == [""] * 4
    assert calls[3]["read"] > 0
    assert (calls[4]["cause"], calls[4]["who"], calls[4]["foreign"]) == ("system", "client", "system")
    assert calls[4]["shortfall"] > 0


def test_two_gateways_on_one_store_send_the_same_bytes_for_the_same_branch(tmp_path: Path) -> None:
    with SimulatedProvider() as provider:
        more = ("--store", str(tmp_path / "s.pagein"))
        (tmp_path / "other").mkdir()
        with (
            gateway_process(provider.url, tmp_path) as (one, _),
            gateway_process(provider.url, tmp_path / "other", *more) as (other, _),
        ):
            bodies = []
            for turns in range(10):
                url, second = (one, other) if turns % 2 else (other, one)
                asked = conversation(turns) | {"cache_control": {"type": "ephemeral"}}
                assert run(sent(url, asked))[0] == 200
                assert run(sent(second, asked))[0] == 200
                assert provider.requests[-1].body == provider.requests[-2].body
                bodies.append(provider.requests[-1].body["messages"])
        # what was sent stays as it was sent, whichever of them goes on
        assert all(after[: len(before)] == before for before, after in itertools.pairwise(bodies))
        assert bodies[-1] != conversation(9)["messages"]


def test_status_tells_of_gateway_store_sessions_and_savings(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "s.pagein"))
    nothing = cli("status", "--json", "--url", "http://127.0.0.1:9", *store, folder=tmp_path)
    assert nothing.returncode == 0
    told = json.loads(nothing.stdout)
    assert "pagein serve one that stays" in told["gateway"]["problem"]
    assert "there is no store" in told["store"]["problem"]
    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path) as (url, _):
        for turns in range(10):
            run(sent(url, conversation(turns)))
        [kept] = tmp_path.glob("**/*.pagein")
        asked = ("status", "--url", url, "--store", str(kept))
        told = json.loads(cli(*asked, "--json", folder=tmp_path).stdout)
        assert (told["gateway"]["problem"], told["gateway"]["mode"]) == ("", "curating")
        [session] = told["gateway"]["sessions"]
        assert session["calls"] == 10
        assert session["epochs"] or session["saved"] > 0
        assert (told["store"]["sessions"], told["store"]["problem"]) == (1, "")
        assert told["store"]["bytes"] > 0
        lines = cli(*asked, folder=tmp_path).stdout.splitlines()
        assert [line.split()[0] for line in lines if not line.startswith(" ")] == [
            "today",
            "7",
            "gateway",
            "savings",
            "sessions",
            "store",
        ]
