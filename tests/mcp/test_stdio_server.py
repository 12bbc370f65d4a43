"""`pagein mcp` on standard input and output, with the official SDK's own client in both eras of the protocol, and line by line."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import pytest

import pagein
from pagein.cli.commands_mcp import mcp as serve_on_standard_streams
from pagein.errors import BadSetting
from pagein.mcp.first_answers import HANDSHAKES, SERVER_FIELD, STATELESS, VERSION_FIELD, FirstAnswers
from pagein.mcp.offered_tools import INSTRUCTIONS, LONGEST, TOOLS, USUAL, offered
from pagein.mcp.stdio_server import LONGEST_LINE

if TYPE_CHECKING:
    from mcp import Client

Message: TypeAlias = dict[str, Any]
LINES = "".join(f"value_{number} = compute({number})\n" for number in range(60))
ERAS = ("auto", "legacy")
PATIENCE = 30.0
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pagein" / "inspector"
INSPECTOR = Path(os.environ.get("PAGEIN_INSPECTOR") or _CACHE) / "node_modules" / ".bin" / "mcp-inspector"
"""The command that scripts/install_inspector.sh installs."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text(LINES)
    return tmp_path


def command(folder: Path, *more: str) -> list[str]:
    start = "from pagein.cli.cli import main; main()"
    return [sys.executable, "-c", start, "mcp", "--workspace", str(folder), "--store", str(folder / "store.db"), *more]


@contextmanager
def started(folder: Path, *more: str, **environment: str) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(  # noqa: S603 - our own command
        command(folder, *more),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=os.environ | environment,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def say(process: "subprocess.Popen[bytes]", message: Message | bytes) -> None:
    assert process.stdin is not None
    line = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
    process.stdin.write(line + b"\n")
    process.stdin.flush()


def hear(process: "subprocess.Popen[bytes]") -> Message:
    assert process.stdout is not None
    found: Message = json.loads(process.stdout.readline())
    return found


def initialize(version: str = "2025-11-25", name: object = 0) -> Message:
    who = {"name": "tester", "version": "1"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": who}
    return {"id": name, "method": "initialize", "params": params}


def envelope(**params: object) -> Message:
    named = "io.modelcontextprotocol"
    meta = {VERSION_FIELD: STATELESS[0], f"{named}/clientInfo": {"name": "tester", "version": "1"}}
    return {**params, "_meta": {**meta, f"{named}/clientCapabilities": {}}}


def with_client(folder: Path, era: str, job: Callable[["Client"], Awaitable[None]]) -> None:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def run() -> None:
        start, *arguments = command(folder)
        server = StdioServerParameters(command=start, args=arguments, env=dict(os.environ), cwd=str(folder))
        async with Client(stdio_client(server), mode=era) as client:
            await job(client)

    asyncio.run(run())


async def call(client: "Client", name: str, **arguments: object) -> str:
    """The text of an answer."""
    from mcp.types import TextContent

    done = await client.call_tool(name, arguments)
    assert isinstance(done.content[0], TextContent)
    return f"error: {done.content[0].text}" if done.is_error else done.content[0].text


@pytest.mark.parametrize("era", ERAS)
def test_the_sdks_client_reads_again_by_receipt_and_finds_an_earlier_session(folder: Path, era: str) -> None:
    from pagein.model.messages import Message as Said
    from pagein.model.messages import Text

    with pagein.open(folder / "store.db", workspace=folder) as engine:
        session = engine.session("earlier", workspace=folder)
        session.append(Said("user", (Text("the invoice rounding is wrong for Swiss francs"),)))
        session.append(Said("assistant", (Text("I rounded to five centimes in billing"),)))
        session.advance(at=1000.0)

    async def job(client: "Client") -> None:
        listed = await client.list_tools()
        assert [one.name for one in listed.tools] == ["peek", "read", "search"]
        first = await call(client, "read", mode="file", target="a.py")
        text, _, receipt = first.rpartition("\n[known=")
        assert text == LINES
        again = await call(client, "read", mode="file", target="a.py", known=[receipt.removesuffix("]")])
        assert again == "[readcache: unchanged, 61 lines]"
        assert await call(client, "read", mode="file", target="a.py") == first
        assert "error: " in (await call(client, "read", mode="file", target="missing.py"))
        found = await call(client, "search", pattern="Swiss francs")
        name = found.partition("**")[2].partition("**")[0]
        assert "Swiss francs" in await call(client, "peek", id=name)

    with_client(folder, era, job)


@pytest.mark.skipif(not INSPECTOR.exists(), reason="the inspector is not installed: make tools")
def test_the_official_inspector_has_nothing_to_say_about_any_tool_and_calls_one(folder: Path) -> None:
    start, *more = command(folder)
    given = {"PAGEIN_MCP_TOOLS": ",".join(TOOLS), "PYTHONPATH": str(Path(pagein.__file__).parents[1])}
    server = {"command": start, "args": more, "env": given}  # the inspector passes nothing else on
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"pagein": server}}))

    def inspect(*arguments: str) -> Message:
        configured = ["--cli", "--config", str(folder / ".mcp.json"), "--server", "pagein", "--cwd", str(folder)]
        done = subprocess.run(  # noqa: S603 - installed by the project
            [INSPECTOR.parent / "node", INSPECTOR, *configured, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
            env=os.environ | {"HOME": str(folder), "MCP_INSPECTOR_SECRET_STORE": "memory"},
        )
        assert done.returncode == 0, done.stderr  # it would be 6 for a schema that some clients refuse
        assert "Warning" not in done.stderr
        found: Message = json.loads(done.stdout)
        return found

    listed = inspect("--method", "tools/list", "--strict")
    assert [one["name"] for one in listed["tools"]] == sorted(TOOLS)
    read = ("--tool-name", "read", "--tool-arg", "mode=file", "--tool-arg", "target=a.py")
    assert inspect("--method", "tools/call", *read)["content"][0]["text"].startswith(LINES)


@pytest.mark.parametrize("version", [*HANDSHAKES, "1999-01-01"])
def test_each_version_of_the_handshake_is_agreed_on_and_an_unknown_one_gets_the_newest(version: str) -> None:
    told = FirstAnswers(offered(USUAL)).answer(initialize(version))
    assert told is not None
    assert told["result"]["protocolVersion"] == (version if version in HANDSHAKES else HANDSHAKES[-1])
    assert told["result"]["instructions"] == INSTRUCTIONS


def test_the_handshake_is_answered_before_the_sdk_is_there_and_only_once(folder: Path) -> None:
    with started(folder) as process:
        say(process, initialize())
        say(process, {"id": 1, "method": "tools/list"})
        say(process, {"method": "notifications/initialized"})
        say(
            process,
            {
                "id": 2,
                "method": "tools/call",
                "params": {"name": "read", "arguments": {"mode": "file", "target": "a.py"}},
            },
        )
        first, listed, called = hear(process), hear(process), hear(process)
    assert first["result"]["serverInfo"]["name"] == "pagein"
    assert [one["name"] for one in listed["result"]["tools"]] == list(USUAL)
    assert (called["id"], called["result"]["content"][0]["text"].startswith(LINES)) == (2, True)


def test_first_answers_and_http_import_nothing_of_the_sdk() -> None:
    """The import alone takes over a second; a client that waits for the handshake must not wait for it."""
    script = (
        "import sys; from pagein.mcp.first_answers import FirstAnswers; from pagein.mcp.offered_tools import offered, USUAL\n"
        "import pagein.mcp.http_endpoint\n"
        "first = FirstAnswers(offered(USUAL))\n"
        "assert first.answer({'id': 1, 'method': 'tools/list'}) is not None\n"
        "print('mcp' in sys.modules, 'pydantic' in sys.modules)"
    )
    told = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert told.stdout == "False False\n"


@pytest.mark.parametrize("more", [(), ("expand", "ingest", "stats")])
def test_the_sdk_lists_the_same_tools_as_the_first_answer(more: tuple[str, ...]) -> None:
    from pagein.mcp.protocol import ClientCalls, make_server
    from pagein.mcp.tool_answers import ToolAnswers

    tools = offered((*USUAL, *more))
    server = make_server(tools, ClientCalls(ToolAnswers.__new__(ToolAnswers)))
    handler = server.get_request_handler("tools/list")
    assert handler is not None
    listed = asyncio.run(cast("Any", handler.handler)(None, None))
    told = FirstAnswers(tools).answer({"id": 1, "method": "tools/list"})
    assert told is not None
    assert listed.model_dump(by_alias=True, mode="json", exclude_none=True)["tools"] == told["result"]["tools"]


def test_the_stateless_era_is_answered_with_how_long_a_list_stays_fresh(folder: Path) -> None:
    with started(folder) as process:
        say(process, {"id": "a", "method": "server/discover", "params": envelope()})
        found = hear(process)
        say(process, {"id": "b", "method": "tools/list", "params": envelope()})
        listed = hear(process)
        say(process, {"id": "c", "method": "tools/call", "params": envelope(name="stats", arguments={})})
        refused = hear(process)
    assert found["result"]["supportedVersions"] == list(STATELESS)
    assert (listed["result"]["ttlMs"], listed["result"]["cacheScope"]) == (86_400_000, "private")
    assert listed["result"]["_meta"][SERVER_FIELD]["name"] == "pagein"
    assert (refused["id"], refused["result"]["isError"]) == ("c", True)
    assert "the tools are peek, read, search" in refused["result"]["content"][0]["text"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "'mode' must be one of: file, symbol, snippet, diff_preview"),
        ({"mode": "file", "target": 3}, "'target' must be a text"),
        ({"mode": "file", "target": "a.py", "limit": "x"}, "'limit' must be a whole number"),
        ({"mode": "file", "target": "a.py", "known": [1]}, "known: must be a list of texts"),
        (
            {"mode": "file", "target": "a.py", "colour": "red"},
            "read has no argument 'colour'; its arguments are mode, target",
        ),
        ({"mode": "file", "target": "a.py", "pattern": "x"}, "pattern is only valid for mode='snippet'"),
        ({"mode": "file", "target": "a.py", "offset": 999}, "beyond"),
    ],
)
def test_wrong_arguments_get_an_answer_that_says_what_to_do(
    folder: Path, arguments: dict[str, object], told: str
) -> None:
    import threading

    from pagein.mcp.tool_answers import Caller, ToolAnswers

    with pagein.open(folder / "store.db", workspace=folder) as engine:
        answers = ToolAnswers(engine, str(folder))
        found = answers.answer("read", arguments, Caller("tester"), threading.Event())
    assert (found.is_error, told in found.text) == (True, True), found.text


def test_an_error_repeats_no_huge_argument(folder: Path) -> None:
    import threading

    from pagein.mcp.tool_answers import Caller, ToolAnswers

    with pagein.open(folder / "store.db", workspace=folder) as engine:
        answers = ToolAnswers(engine, str(folder))

        def ask(name: str, **arguments: object) -> str:
            return answers.answer(name, arguments, Caller("tester"), threading.Event()).text

        huge = "x" * 1_000_000
        told = [ask("read", mode="file", target=huge), ask("peek", id=huge), ask("search", pattern=huge), ask(huge)]
        assert all(len(one) < 3_000 for one in told)
        known = [f"{number:010x}" for number in range(10_000)]
        shown = ask("read", mode="file", target="a.py", known=[*known, "x]\n[known=0123456789"])
        assert len(shown) < len(LINES) + 300
        assert shown.count("[known=") == 1


def test_a_recalled_part_that_the_model_still_sees_is_one_line(folder: Path) -> None:
    import threading

    from pagein.mcp.tool_answers import Caller, ToolAnswers
    from pagein.model.messages import Message as Said
    from pagein.model.messages import Text

    with pagein.open(folder / "store.db", workspace=folder) as engine:
        session = engine.session("earlier", workspace=folder)
        session.append(Said("user", (Text("round Swiss francs to five centimes\n" * 30),)))
        session.advance(at=1000.0)
        answers = ToolAnswers(engine, str(folder))

        def ask(name: str, **arguments: object) -> str:
            return answers.answer(name, arguments, Caller("tester"), threading.Event()).text

        name = ask("search", pattern="Swiss francs").partition("**")[2].partition("**")[0]
        text, _, tag = ask("peek", id=name).removesuffix("]").rpartition("\n[hash=")
        assert text.count("five centimes") == 30
        assert ask("peek", id=name, if_not=tag) == ask("peek", id=name, if_not=f"[hash={tag}]")
        assert ask("peek", id=name, if_not=tag) == f"[unchanged: what [hash={tag}] showed]"
        assert ask("peek", id=name, if_not="0123456789") == f"{text}\n[hash={tag}]"
        assert ask("peek", id=name, if_not=tag, lines=3, line=2) != ask("peek", id=name, if_not=tag)
        assert "not found" in ask("peek", id="pg-00000000-00000000", if_not=tag)


def test_receipts_hold_over_all_modes_of_a_read(folder: Path) -> None:
    import threading

    from pagein.mcp.tool_answers import Caller, ToolAnswers

    (folder / "b.py").write_text(
        "import os\n\n\ndef first():\n    return os.sep\n\n\ndef second():\n    return first()\n" + LINES
    )
    with pagein.open(folder / "store.db", workspace=folder) as engine:
        answers = ToolAnswers(engine, str(folder))

        def ask(**arguments: object) -> tuple[str, str]:
            text = answers.answer("read", arguments, Caller("tester"), threading.Event()).text
            shown, found, receipt = text.rpartition("\n[known=")
            return (shown, receipt.removesuffix("]")) if found else (text, "")

        lines, receipt = ask(mode="snippet", target="b.py", start_line=10, end_line=40)
        assert "value_20" in lines
        again, none = ask(mode="snippet", target="b.py", start_line=15, end_line=30, known=[receipt])
        assert ("value_10" in again, "unchanged" in again, none) == (False, True, "")
        whole, of_whole = ask(mode="file", target="b.py")
        inside, none = ask(mode="snippet", target="b.py", start_line=12, end_line=50, known=[of_whole])
        assert ("value_10" in inside, "unchanged" in inside, none) == (False, True, "")
        partly, of_rest = ask(mode="file", target="b.py", known=[receipt])
        assert ("value_20" in partly, "value_50" in partly, bool(of_rest)) == (False, True, True)
        assert ask(mode="file", target="b.py", known=[of_rest]) == (whole, of_whole)
        assert ask(mode="file", target="b.py", known=[receipt, of_rest])[0].startswith("[readcache: unchanged")
        assert ask(mode="diff_preview", target="b.py")[1] == ""


def test_the_budget_of_reads_adds_up_in_a_conversation_and_is_no_strangers(folder: Path) -> None:
    from pagein.engine.engine import Settings
    from pagein.mcp.tool_answers import Caller, ToolAnswers
    from pagein.policy.guards.limits import GuardSettings

    for number in range(26):
        (folder / f"m{number}.txt").write_text(f"text {number}\n")
    (folder / "rare.txt").write_text("needle\n")
    with pagein.open(
        folder / "store.db", workspace=folder, settings=Settings(guards=GuardSettings("strict"))
    ) as engine:
        answers = ToolAnswers(engine, str(folder))

        def ask(caller: Caller, **arguments: object) -> str:
            return answers.answer("read", arguments, caller, threading.Event()).text

        one, other = Caller("tester", connection="1"), Caller("tester", connection="2")
        thread, stranger = Caller("tester", thread="t", connection="1"), Caller("tester")
        for number in range(25):
            assert "exceeded" not in ask(one, mode="file", target=f"m{number}.txt")
            assert "exceeded" not in ask(stranger, mode="file", target=f"m{number}.txt")
        refused = ask(one, mode="file", target="m25.txt")
        assert refused.startswith("Read budget exceeded.")
        assert 'mode="snippet"' in refused
        for caller in (other, thread, stranger):
            assert ask(caller, mode="file", target="m25.txt").startswith("text 25"), "another conversation"
        figures = engine.session("mcp-tester", workspace=folder).guards.figures()
        # with the warnings from the 21st read on, five answers are different ones; equal ones are one entry
        assert figures["metrics_of_all_branches"]["reads_count"] == 26 + 5  # type: ignore[index]
        assert ask(one, mode="snippet", target=".", pattern="needle").endswith("rare.txt:1: needle")
        assert ask(one, mode="file", target="rare.txt").startswith("needle"), "the search has restored the budget"
        warned = ask(one, mode="file", target="m25.txt")
        assert "unrelated to recent search results. Related: rare.txt." in warned


def test_while_pagein_is_off_files_are_shown_as_they_are_and_nothing_is_recalled(folder: Path) -> None:
    import threading

    from pagein.mcp.tool_answers import Caller, ToolAnswers

    off = False
    with pagein.open(folder / "store.db", workspace=folder) as engine:
        answers = ToolAnswers(engine, str(folder), is_off=lambda: off)

        def ask(name: str, **arguments: object) -> str:
            return answers.answer(name, arguments, Caller("tester"), threading.Event()).text

        receipt = ask("read", mode="file", target="a.py").rpartition("known=")[2].removesuffix("]")
        off = True
        assert ask("read", mode="file", target="a.py", known=[receipt]) == LINES
        assert "`pagein on`" in ask("search", pattern="value")
        off = False
        assert ask("read", mode="file", target="a.py", known=[receipt]) == "[readcache: unchanged, 61 lines]"
        whole = f" [known={receipt}]\n"
        assert ask("read", mode="file", target="a.py", known=[whole]) == "[readcache: unchanged, 61 lines]"
        strange = answers.resource("pagein://[::1/x", Caller("tester"), threading.Event())
        assert (strange.is_error, "no resource" in strange.text) == (True, True)


NO_REQUESTS = {
    b"[1, 2]": "one JSON object",
    b"7": "one JSON object",
    b'{"jsonrpc":"2.0","id":{"a":1},"method":"tools/list"}': "an id is",
    b'{"jsonrpc":"2.0","id":true,"method":"ping"}': "an id is",
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}': "params must be",
    b'{"id":1,"method":"ping"}': "jsonrpc",
    b'{"jsonrpc":"2.0","id":1}': "a method",
    b'{"jsonrpc":"2.0","id":1,"method":7}': "a method",
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":' + b"[" * 300 + b"]" * 300 + b"}}": "levels",
    b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * LONGEST_LINE: "at most",
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"target":"\\ud800"}}}': "surrogate",
}


WRONG_PARAMETERS: dict[str, tuple[str, object]] = {
    '"name"': ("tools/call", {}),
    "an object": ("tools/call", {"name": "read", "arguments": []}),
    "pagein://object/ID": ("resources/read", {"uri": 7}),
    "_meta is": ("tools/call", {"name": "read", "_meta": 7}),
    "progressToken": ("ping", {"_meta": {"progressToken": []}}),
}


def test_broken_lines_end_nothing_and_the_end_of_the_input_ends_the_process(folder: Path) -> None:
    with started(folder) as process:
        say(process, b"{broken")
        assert hear(process)["error"]["code"] == -32700
        say(process, b"")
        for line, told in NO_REQUESTS.items():
            say(process, line)
            answer = hear(process)
            assert (answer["error"]["code"], told in answer["error"]["message"]) == (-32600, True), answer
        for told, (method, params) in WRONG_PARAMETERS.items():
            say(process, {"id": 1, "method": method, "params": params})
            answer = hear(process)
            assert (answer["error"]["code"], told in answer["error"]["message"]) == (-32602, True), answer
        say(process, b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}')  # the SDK drops it without a word
        assert hear(process)["error"]["code"] == -32700
        say(process, {"id": 1, "method": "prompts/list", "params": {"cursor": "x"}})
        assert "one page" in hear(process)["error"]["message"]
        say(process, b'{"a":' + b"[" * 100_000)
        assert hear(process)["error"]["code"] == -32700
        say(process, initialize(name="one"))
        assert hear(process)["result"]["serverInfo"]["name"] == "pagein"
        say(process, {"method": "notifications/initialized"})
        say(process, {"id": 7, "method": "no/such"})
        assert hear(process)["error"]["code"] == -32601
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


def test_a_server_and_a_client_that_are_killed_in_mid_call_leave_a_sound_store_and_no_process(
    folder: Path,
) -> None:
    """That the store is sound is looked at after each test."""
    with started(folder) as killed:
        say(killed, initialize())
        hear(killed)
        for number in range(12):
            arguments = {"mode": "file", "target": "a.py", "offset": number + 1}
            say(killed, {"id": number + 1, "method": "tools/call", "params": {"name": "read", "arguments": arguments}})
        assert hear(killed)["id"]  # some calls are answered, some are under way
        killed.kill()
        killed.wait(PATIENCE)
    with started(folder) as left:
        say(left, initialize())
        hear(left)
        for number in range(12):
            say(
                left,
                {
                    "id": number + 1,
                    "method": "tools/call",
                    "params": {"name": "read", "arguments": {"mode": "file", "target": "a.py"}},
                },
            )
        assert left.stdin is not None
        assert left.stdout is not None
        left.stdin.close()  # what the end of a client does, whatever ended it
        left.stdout.close()
        assert left.wait(PATIENCE) in (0, 1)


def test_twenty_clients_at_once_on_one_store_are_each_told_the_truth(folder: Path) -> None:
    """A server and an engine for each client, as twenty processes would have, without the starts of twenty processes."""
    from pagein.mcp.protocol import ClientCalls, make_server, serve_streams
    from pagein.mcp.stdio_server import StdioServer
    from pagein.mcp.tool_answers import ToolAnswers

    def run(number: int) -> list[str]:
        (hears, says), (reads, writes) = os.pipe(), os.pipe()
        tools, told = offered(USUAL), []
        with pagein.open(folder / "store.db", workspace=folder) as engine:
            calls = ClientCalls(ToolAnswers(engine, str(folder)))
            with os.fdopen(hears, "rb") as source, os.fdopen(writes, "wb") as sink:
                server = StdioServer(
                    FirstAnswers(tools), lambda *ends: serve_streams(make_server(tools, calls), *ends), source, sink
                )
                work = threading.Thread(target=server.run)
                work.start()
                with os.fdopen(says, "wb", 0) as saying, os.fdopen(reads, "rb") as hearing:

                    def ask(message: Message) -> Message:
                        saying.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
                        found: Message = json.loads(hearing.readline())
                        return found

                    ask(initialize(name=f"client-{number % 3}"))
                    known: list[str] = []
                    for call in range(1, 4):
                        arguments = {"mode": "file", "target": "a.py", "known": known}
                        params = {"name": "read", "arguments": arguments}
                        shown = ask({"id": call, "method": "tools/call", "params": params})["result"]["content"]
                        told.append(shown[0]["text"])
                        known = known or [told[-1].rpartition("[known=")[2].rstrip("]")]
                work.join(PATIENCE)
        assert not work.is_alive()
        return told

    with ThreadPoolExecutor(20) as pool:
        found = list(pool.map(run, range(20)))
    marker = f"[readcache: unchanged, {len(LINES.split(chr(10)))} lines]"
    assert all(one[0].startswith(LINES) and one[1:] == [marker, marker] for one in found), found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_quietly(folder: Path, number: int) -> None:
    with started(folder) as process:
        say(process, initialize())
        hear(process)
        time.sleep(0.2)
        process.send_signal(number)
        process.wait(PATIENCE)
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


def test_the_usual_tools_cost_few_tokens_and_their_bytes_stay() -> None:
    tools = [one.definition for one in offered(USUAL)]
    size = len(json.dumps(tools, separators=(",", ":"))) + len(INSTRUCTIONS)
    assert len(tools) <= 5
    assert size / 3.6 < 1000  # characters of such a text for each token; see docs/mcp.md for the count
    assert tools == [one.definition for one in offered(tuple(reversed(USUAL)))]
    assert all(len(one.description) < LONGEST for one in TOOLS.values())
    assert len(INSTRUCTIONS) < LONGEST
    assert all("Not for" in one["description"] for one in tools)


def test_an_unknown_tool_in_the_settings_is_named(folder: Path) -> None:
    done = subprocess.run(  # noqa: S603 - our own command
        command(folder),
        env=os.environ | {"PAGEIN_MCP_TOOLS": "expand,zap"},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 2
    assert "there is no tool 'zap'; the tools are " + ", ".join(sorted(TOOLS)) in done.stderr


def test_without_the_sdk_the_remedy_is_told_and_no_client_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)  # as if it were not installed
    with pytest.raises(BadSetting, match=r"pip install 'pagein\[mcp\]'"):
        serve_on_standard_streams()
