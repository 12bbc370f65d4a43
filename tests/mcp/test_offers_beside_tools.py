"""What MCP clients get beside the usual tools: prompts, objects as resources, other tools, progress, consent, several workspaces."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.window.sized_sessions import opened

import pagein
from pagein.engine.conversation import ClientAnswer
from pagein.engine.engine import Engine
from pagein.errors import BadInput
from pagein.mcp.first_answers import STATELESS, VERSION_FIELD, FirstAnswers
from pagein.mcp.http_endpoint import HttpEndpoint
from pagein.mcp.object_resources import TEMPLATES, peek_arguments
from pagein.mcp.offered_prompts import PROMPTS
from pagein.mcp.offered_tools import LONGEST_ANSWER, TOOLS, USUAL, chosen, offered
from pagein.mcp.tool_answers import Caller, ToolAnswers
from pagein.mcp.workspaces import folders_of
from pagein.model.messages import Message, Text, ToolCall, ToolResult, Usage
from pagein.simulator import SimulatedProvider
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing.scripted_children import reply
from pagein.tools import catalogue
from pagein.tools.delegation_tools import DELEGATION
from pagein.tools.naming_commands import name

if TYPE_CHECKING:
    from mcp import Client

LINES = "".join(f"value_{number} = compute({number})\n" for number in range(60))
MARKER = "[readcache: unchanged, 61 lines]"
ALL = tuple(TOOLS)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    (tmp_path / "a.py").write_text(LINES)
    with pagein.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        yield engine


class Asked:
    """A client's calls of all tools. `last`: the caller of the next call."""

    def __init__(self, engine: Engine, *folders: Path, follows_roots: bool = False) -> None:
        folders_read = [str(one) for one in folders]
        self.answers = ToolAnswers(engine, folders_read, ALL, follows_roots=follows_roots)
        self.caller = Caller("tester")

    def __call__(self, name: str, **arguments: object) -> str:
        found = self.answers.answer(name, arguments, self.caller, threading.Event())
        return f"error: {found.text}" if found.is_error else found.text


def answer(method: str, version: str | None = None, tools: tuple[str, ...] = USUAL, **params: object) -> Any:  # noqa: ANN401 - JSON
    meta = {} if version is None else {"_meta": {VERSION_FIELD: version}}
    found = FirstAnswers(offered(tools)).answer({"id": 1, "method": method, "params": {**params, **meta}})
    assert found is not None
    return found.get("result", found.get("error"))


# --- tools ---


def test_the_setting_takes_every_tool_of_the_catalogue() -> None:
    names = {one.name for one in (*catalogue.TOOLS, *catalogue.MORE, *DELEGATION, *catalogue.DEPRECATED)}
    assert {one.name for one in chosen(tuple(names))} == names == set(TOOLS)
    writes = {one.name for one in TOOLS.values() if not one.definition["annotations"]["readOnlyHint"]}
    orders = {"activate", "deactivate", "pin", "unpin"}
    assert writes == {"batch", "extract", "ingest", "query"} | orders
    assert all("Not for" in one.description or "Deprecated: use" in one.description for one in TOOLS.values())
    assert TOOLS["ingest"].definition["annotations"]["destructiveHint"] is False


def test_the_setting_for_replaced_tools_holds_over_mcp_too(tmp_path: Path) -> None:
    old = {one.name for one in catalogue.DEPRECATED}
    assert {one.name for one in chosen((), deprecated=True)} == {*USUAL, *old}
    assert chosen(("read_file",), deprecated=True) == chosen((), deprecated=True)
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    environment = {**os.environ, "PAGEIN_DEPRECATED_TOOLS": "true", "PAGEIN_STORE": str(tmp_path / "s.pagein")}
    command = [sys.executable, "-m", "pagein", "mcp"]
    said = "".join(f"{json.dumps(one)}\n" for one in asked)
    done = subprocess.run(  # noqa: S603 - our own program
        command, input=said, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=60, check=True
    )
    (listed,) = [told for one in done.stdout.splitlines() if (told := json.loads(one))["id"] == 2]
    assert {one["name"] for one in listed["result"]["tools"]} == {*USUAL, *old}


def test_the_next_calls_of_an_answer_can_be_made_as_they_are(engine: Engine, tmp_path: Path) -> None:
    ask = Asked(engine, tmp_path)
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor" / "compute.py").write_text("x\n")
    for target in ("vendor/compute.py", "nowhere.py"):
        told = ask.answers.answer("read", {"mode": "file", "target": target}, ask.caller, threading.Event())
        details: Any = told.details
        for calls in (details["error"]["next_calls"], details["meta"]["stabilization"]["next_calls"]):
            assert calls
            for call in calls:
                again = ask.answers.answer(call["tool"], call["arguments"], ask.caller, threading.Event())
                assert "has no argument" not in again.text
                assert again.details["mode"] == call["arguments"]["mode"], "it was made"


def test_after_a_refresh_the_next_read_shows_the_text_whatever_is_quoted(engine: Engine, tmp_path: Path) -> None:
    ask = Asked(engine, tmp_path)
    text, _, receipt = ask("read", mode="file", target="a.py").rpartition("\n[known=")
    known = [receipt.removesuffix("]")]
    assert ask("read", mode="file", target="a.py", known=known) == MARKER
    assert "invalidated" in ask("readcache_refresh", path="a.py")
    assert ask("read", mode="file", target="a.py", known=known) == f"{text}\n[known={receipt}"
    assert ask("read", mode="file", target="a.py", known=known) == MARKER


def test_a_replaced_tool_shares_the_receipts_of_read(engine: Engine, tmp_path: Path) -> None:
    ask = Asked(engine, tmp_path)
    receipt = ask("read_file", path="a.py").rpartition("known=")[2].removesuffix("]")
    assert ask("read", mode="file", target="a.py", known=[receipt]) == MARKER
    assert ask("read_file", target="a.py", known=[receipt]) == MARKER, "by a name that its schema does not have"
    assert ask("get_snippet", path="a.py", query="value_7 ").startswith("a.py")
    assert "nonsense" in ask("read_file", path="a.py", nonsense=1)
    assert ask("read_file", path="../b.py").startswith("error: ")


def test_read_takes_the_arguments_that_its_short_list_leaves_out(engine: Engine, tmp_path: Path) -> None:
    ask = Asked(engine, tmp_path)
    assert ask("read", mode="file", target="a.py", preview_mode="none").startswith("a.py: lines 1-61 of 61, ")
    assert "Use offset=" in ask("read", mode="file", target="a.py", max_preview_chars=300)
    proposed = ask("read", mode="diff_preview", target="a.py", against="WORKTREE", content="value_0 = 0\n")
    assert proposed.startswith("a.py: 1 hunk, ")
    shown = ask("read", mode="file", target="a.py")
    known = [shown.rpartition("known=")[2].removesuffix("]")]
    assert ask("read", mode="file", target="a.py", known=known) == MARKER
    assert ask("read", mode="file", target="a.py", known=known, bypass_cache=True) == shown
    (tmp_path / "big.txt").write_text("a line of text\n" * 5_000)
    most = ask("read", mode="file", target="big.txt", max_preview_chars=50_000)
    assert len(most) < LONGEST_ANSWER + 100, "no more than one answer may have"


def test_versions_and_references_of_a_stored_object_are_listed(engine: Engine, tmp_path: Path) -> None:
    ask = Asked(engine, tmp_path)
    session = engine.session("earlier", workspace=tmp_path)
    session.append(Message("user", (Text("write the notes"),)))
    for number, text in enumerate(("first [[a.py]]\n", "second [[a.py]]\n")):
        written = json.dumps({"file_path": str(tmp_path / "notes.md"), "content": text})
        session.append(Message("assistant", (ToolCall(f"w{number}", "Write", written),)))
        session.append(Message("tool", (ToolResult(f"w{number}", "File written.", "Write"),)))
    session.advance(at=1000.0)
    ask("search", pattern="write the notes")  # what brings the objects up to the journals
    chat = ask("select", id="earlier").splitlines()
    assert (chat[0].startswith("session "), len(chat) > 1) == (True, True)
    told = ask("history", id="notes.md").splitlines()
    assert [one.split()[0].rpartition("@")[2] for one in told[1:]] == ["2", "1"]
    assert all("earlier, turn 1" in one and 'the user said "write the notes"' in one for one in told[1:])
    assert ask("history", id="notes.md", skip=1).splitlines()[1:] == told[2:]
    note = told[1].split()[0]
    assert [one.partition(" -> ")[2] for one in ask("select", id=note, relation="link").splitlines()[1:]]
    assert ask("select", id=note, type="chat", under="/nowhere").endswith("No references.")
    ask("read", mode="file", target="a.py")
    ask("search", pattern="write the notes")
    assert f"  {datetime.now(UTC):%Y-}" in ask("history", id="a.py"), "a read over MCP has its time"
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        name(store, str(tmp_path / "notes.md"), "the notes", at=2000.0)
    told = ask("history", id="the notes").splitlines()
    assert told[1].endswith("characters, name"), "a person named it, and no session"
    for tool in ("history", "select"):
        assert ask(tool, id="unknown.md").startswith("error: no object has the id")
        assert ask(tool) == "error: Missing required parameter: id"


def test_a_gateways_window_keeps_and_leaves_what_the_model_says(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        messages: list[dict[str, object]] = [{"role": "user", "content": "please"}]
        ask = Asked(engine, tmp_path)

        def order(name: str, arguments: dict[str, object], result: str = "") -> str:
            """Let the model behind the gateway call a tool; without a result one of the server's."""
            body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": messages}
            prepared = engine.prepare(json.dumps(body).encode(), "anthropic", at=100.0 * len(messages), hint="gate")
            called = {"type": "tool_use", "id": f"toolu_{len(messages)}", "name": name, "input": arguments}
            said: dict[str, object] = {"role": "assistant", "content": [called]}
            engine.observe(prepared, ClientAnswer(Usage(fresh=100), (json.dumps(said).encode(),)))
            ask.caller = Caller("tester", str(called["id"]))
            found = result or ask(name.removeprefix("mcp__pagein__"), **arguments)
            given = {"type": "tool_result", "tool_use_id": called["id"], "content": found}
            messages.extend((said, {"role": "user", "content": [given]}))
            return found

        for number in range(2):
            order("Bash", {"command": "ls"}, f"r{number} begins\n" + "x" * 600)
        assert order("mcp__pagein__pin", {"id": "toolu_1"}) == "toolu_1 stays in the window from now on"
        listed = order("mcp__pagein__pin", {"id": "nothing"})
        assert "has no tool result 'nothing'" in listed
        assert "toolu_3  whole, 610 tokens, Bash  r1 begins" in listed
        assert order("mcp__pagein__deactivate", {"id": "toolu_3"}) == "toolu_3 leaves the window with the next epoch"
        marks = {one.call_id: one.marks for one in engine.session("gate").hand.window()}
        assert (marks["toolu_1"], marks["toolu_3"]) == (("pinned",), ("dropping",))
        assert order("mcp__pagein__unpin", {"id": "toolu_1"}) == "toolu_1 may leave the window again"
        ask.caller = Caller("tester", "of another agent")
        assert "pass no gateway" in ask("unpin", id="toolu_1")


def test_many_files_need_consent_by_a_handle_where_nobody_can_be_asked(engine: Engine, tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"part_{number}.txt").write_text(f"{number}\n")
    ask = Asked(engine, tmp_path)
    refused = ask("ingest", paths=["*.txt"])
    handle = refused.partition('confirm="')[2].partition('"')[0]
    assert refused.startswith("error: 12 files match. Ask the user")
    assert ask("ingest", paths=["*.txt"], confirm="00000000").startswith("error: 12 files match")
    assert ask("ingest", paths=["*.tx*"], confirm=handle).startswith("error: 12 files match")
    assert ask("ingest", paths=["*.txt"], confirm=handle).startswith("Ingested 12 files")
    assert ask("ingest", paths=["a.py"]).startswith("Ingested 1 files")


# --- workspaces ---


def test_a_path_is_read_in_the_workspace_that_holds_it_and_nowhere_else(engine: Engine, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two", "three")]
    for folder in folders:
        folder.mkdir()
        (folder / "b.py").write_text(f"{folder.name}\n{LINES}")
    (folders[0] / ".env").write_text("KEY=secret\n")
    ask = Asked(engine, *folders[:2], follows_roots=True)
    assert ask("read", mode="file", target="b.py").startswith("one\n")
    shown, _, receipt = ask("read", mode="file", target=str(folders[1] / "b.py")).rpartition("\n[known=")
    assert shown.startswith("two\n")
    again = ask("read", mode="file", target=str(folders[1] / "b.py"), known=[receipt.removesuffix("]")])
    assert again == "[readcache: unchanged, 62 lines]"
    assert ask("read", mode="file", target=str(folders[2] / "b.py")).startswith("error: ")
    assert "is excluded" in ask("read", mode="file", target=".env")
    ask.caller = Caller("tester", roots=(str(folders[2]),))
    assert ask("read", mode="file", target="b.py").startswith("three\n")
    assert ask("read", mode="file", target=str(folders[0] / "b.py")).startswith("error: ")
    fixed = Asked(engine, folders[0])
    fixed.caller = ask.caller
    assert fixed("read", mode="file", target="b.py").startswith("one\n")


def test_only_folders_of_this_machine_count_among_a_clients_roots(tmp_path: Path) -> None:
    (tmp_path / "my app").mkdir()
    here = (tmp_path / "my app").as_uri()
    roots = [here, here, "https://example.org/", "file://elsewhere/tmp", f"{here}/missing", ""]
    assert folders_of(roots) == (str(tmp_path / "my app"),)


# --- prompts and resources ---


@pytest.mark.parametrize("version", [None, *STATELESS])
def test_lists_are_answered_without_the_sdk_and_stay_the_same(version: str | None) -> None:
    prompts = answer("prompts/list", version)
    assert [one["name"] for one in prompts["prompts"]] == ["drill_down", "search_then_peek"]
    assert [one["name"] for one in answer("prompts/list", version, ALL)["prompts"]] == [one.name for one in PROMPTS]
    assert answer("resources/list", version)["resources"] == []
    assert answer("resources/templates/list", version)["resourceTemplates"] == [dict(one) for one in TEMPLATES]
    assert ("ttlMs" in prompts) is (version is not None)


def test_a_prompt_names_only_tools_that_are_offered() -> None:
    for tools in (USUAL, ALL, (*ALL, "query", "batch")):
        names = set(tools)
        for prompt in PROMPTS:
            if names >= set(prompt.needs):
                text = prompt.text(dict.fromkeys(prompt.arguments, "X"), names)
                assert "X" in text
                assert {"query", "batch"} & set(text.split("`")) <= names
    told = answer("prompts/get", name="search_then_peek", arguments={"question": "Why five centimes?"})
    assert "Why five centimes?" in told["messages"][0]["content"]["text"]
    assert "the prompts are drill_down, search_then_peek" in answer("prompts/get", name="zap")["message"]
    assert "question" in answer("prompts/get", name="search_then_peek", arguments={})["message"]


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/passwd",
        "pagein://object/",
        "pagein://file/a",
        "pagein://object/x?line=-1",
        "pagein://object/x?if=1",
    ],
)
def test_an_address_of_another_form_is_refused_with_the_form(uri: str) -> None:
    with pytest.raises(BadInput, match="pagein"):
        peek_arguments(uri)


def test_an_object_is_read_as_a_resource_in_parts(engine: Engine, tmp_path: Path) -> None:
    session = engine.session("earlier")
    session.append(Message("user", (Text("round Swiss francs to five centimes\n" * 30),)))
    session.advance(at=1000.0)
    ask, off = Asked(engine, tmp_path), [False]
    name = ask("search", pattern="Swiss francs").partition("**")[2].partition("**")[0]
    answers = ToolAnswers(engine, str(tmp_path), is_off=lambda: off[0])

    def read(uri: str) -> str:
        found = answers.resource(uri, Caller("tester"), threading.Event())
        return f"error: {found.text}" if found.is_error else found.text

    assert read(f"pagein://object/{name}").count("five centimes") == 30
    part = read(f"pagein://object/{name}?line=3&lines=4")
    assert part.count("five centimes") == 4
    assert "line=7" in part
    assert read("pagein://object/pg-00000000-00000000").startswith("error: Object pg-00000000-00000000 not found")
    off[0] = True
    assert "disabled" in read(f"pagein://object/{name}")


# --- over the wire ---


def with_client(
    folder: Path,
    job: Callable[["Client"], Awaitable[None]],
    era: str,
    environment: Mapping[str, str] | None = None,
    **more: Any,  # noqa: ANN401 - callbacks of the SDK
) -> None:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    start = ["-c", "from pagein.cli.cli import main; main()", "mcp", "--store", str(folder / "store.db")]
    tools = {"PAGEIN_MCP_TOOLS": "ingest,batch", "PAGEIN_MCP_STRUCTURED": "yes", **(environment or {})}
    server = StdioServerParameters(command=sys.executable, args=start, env=os.environ | tools, cwd=str(folder / "own"))

    async def run() -> None:
        async with Client(stdio_client(server), mode=era, **more) as client:
            await job(client)

    asyncio.run(run())


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_the_sdks_client_sees_resources_prompts_progress_consent_and_its_roots(  # noqa: PLR0915 -- one server for all: its start takes seconds
    tmp_path: Path, era: str
) -> None:
    from mcp import types

    own, root = tmp_path / "own", tmp_path / "root"
    for folder in (own, root):
        folder.mkdir()
        (folder / "which.txt").write_text(folder.name)
        for number in range(12):
            (folder / f"part_{number}.txt").write_text(f"{number}\n")
    asked: list[str] = []
    heard: list[str | None] = []

    async def agree(_: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"agree": True})

    async def roots(_: object) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": root.as_uri()})])

    async def told(progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        heard.append(message)

    async def job(client: "Client") -> None:
        assert [one.name for one in (await client.list_resource_templates()).resource_templates] == ["object"]
        prompt = await client.get_prompt("search_then_peek", {"question": "why?"})
        assert "why?" in prompt.messages[0].content.text  # type: ignore[union-attr]
        shown = await client.call_tool("read", {"mode": "file", "target": "which.txt"})
        assert shown.content[0].text.startswith("root" if era == "legacy" else "own")  # type: ignore[union-attr]
        assert shown.structured_content is not None
        assert (shown.structured_content["mode"], shown.structured_content["ok"]) == ("file", True)
        stored = await client.call_tool("ingest", {"paths": ["part_*.txt"]}, progress_callback=told)
        text = stored.content[0].text  # type: ignore[union-attr]
        if era != "legacy":  # nobody can be asked
            handle = text.partition('confirm="')[2].partition('"')[0]
            arguments = {"paths": ["part_*.txt"], "confirm": handle}
            stored = await client.call_tool("ingest", arguments, progress_callback=told)
            text = stored.content[0].text  # type: ignore[union-attr]
        assert text.startswith("Ingested 12 files")
        name = text.splitlines()[1].split()[0]
        ids = [line.split()[0] for line in text.splitlines()[1:13]]
        question = {"instructions": "Which number?", "targets": ids}
        answered = await client.call_tool("batch", question, progress_callback=told)
        text = answered.content[0].text  # type: ignore[union-attr]
        if era == "legacy":
            assert text.count("number it is") == 12
        else:
            assert text.startswith("This asks 12 child models, which may cost up to $")
        found = await client.read_resource(f"pagein://object/{name}")
        assert found.contents[0].text[0].isdigit()  # type: ignore[union-attr]
        with pytest.raises(Exception, match="not found"):
            await client.read_resource("pagein://object/pg-00000000-00000000")

    with SimulatedProvider(lambda _: [{"text": reply("number it is")}]) as provider:
        model = {
            "PAGEIN_CHILD_MODEL": "anthropic/claude-haiku-4-5",
            "PAGEIN_ANTHROPIC": provider.url,
            "ANTHROPIC_API_KEY": "any",
        }
        with_client(tmp_path, job, era, model, elicitation_callback=agree, list_roots_callback=roots)
    assert heard[11] is not None
    assert heard[11].startswith("Ingested 12/12: ")
    if era != "legacy":
        assert (asked, len(heard)) == ([], 12)
        return
    assert asked[0] == "Put 12 files into the store?"
    assert asked[1].startswith("Ask 12 child models, which may cost up to $")
    assert heard[-1] is not None
    assert heard[-1].startswith("12 of 12 targets asked about, $")


def test_resources_and_prompts_are_read_over_http(engine: Engine, tmp_path: Path) -> None:
    from aiohttp import web
    from aiohttp.test_utils import TestClient, TestServer

    (tmp_path / "b.txt").write_text("stored text\n")
    text = Asked(engine, tmp_path)("ingest", paths=["b.txt"])
    name = text.splitlines()[1].split()[0]

    async def run() -> None:
        app = web.Application()
        tools = offered(USUAL)
        endpoint = HttpEndpoint(FirstAnswers(tools), ToolAnswers(engine, str(tmp_path)))
        app.router.add_route("*", "/mcp", endpoint.handle)
        async with TestClient(TestServer(app)) as client:

            async def post(method: str, **params: object) -> Any:  # noqa: ANN401 - JSON
                body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                return json.loads(await (await client.post("/mcp", json=body)).text())

            read = await post("resources/read", uri=f"pagein://object/{name}")
            assert "stored text" in read["result"]["contents"][0]["text"]
            assert (await post("resources/read", uri="pagein://object/pg-0"))["error"]["code"] == -32602
            assert (await post("resources/read"))["error"]["code"] == -32602
            assert len((await post("prompts/list"))["result"]["prompts"]) == 2

    asyncio.run(run())
