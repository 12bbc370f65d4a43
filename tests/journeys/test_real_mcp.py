"""Real coding agents call pagein's tools over MCP: a second read is answered by its receipt, an earlier session is found."""

import json
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from tests.agents import GatewayProcess, Job, Place, commands_folder, work
from tests.agents.agent_drivers import Setup
from tests.agents.branching_runs import AgentDesk
from tests.agents.jobs import CallStep, FillStep, JobPrompt, SayStep, Screenplay, WriteStep
from tests.agents.mcp_servers import SERVED, environment

import pagein
from pagein.gateway.curation.session_hints import from_headers
from pagein.gateway.guard_reports import GuardReports
from pagein.installation.agents import AGENTS
from pagein.model.messages import Message, Text
from pagein.simulator import SimulatedProvider

pytestmark = pytest.mark.clients

LINES: Final = "".join(f"value_{number} = compute({number})  # of the table\n" for number in range(80))
RECEIPT: Final = r"\[known=([0-9a-f]{10})\]"
MARKER: Final = "[readcache: unchanged, 81 lines]"


SMALL: Final = LINES[: LINES.index("value_60 ")]
OWN_MARKER: Final = "[readcache: unchanged, 61 lines]"
MAIN, FORK, FULL = "main", "fork", 250_000


def _earlier_session(store: Path, workspace: Path) -> None:
    with pagein.open(store, workspace=workspace) as engine:
        session = engine.session("earlier", workspace=workspace)
        session.append(Message("user", (Text("the invoice rounding is wrong for Swiss francs"),)))
        session.append(Message("assistant", (Text("I rounded to five centimes in billing"),)))
        session.advance(at=1000.0)


@pytest.mark.parametrize("name", SERVED)
def test_a_real_agent_reads_again_by_receipt_and_finds_an_earlier_session(name: str) -> None:
    commands = commands_folder()
    if commands is None:
        pytest.skip("coding agents are not installed: make clients")
    served = SERVED[name]
    call = served.call
    with TemporaryDirectory(prefix="pagein-agents-") as folder:
        place, store = Place(Path(folder) / "agent", commands), Path(folder) / "store.db"
        _earlier_session(store, place.workspace)
        calls: list[CallStep | SayStep] = [
            call("read", mode="file", target="table.py"),
            call("read", {"tag": RECEIPT}, mode="file", target="table.py", known=["{{tag}}"]),
            call("read", mode="file", target="table.py"),  # proven by what the agent writes down
            call("search", pattern="five centimes"),
            call("peek", {"id": r"\*\*([0-9A-Za-z_.:-]+@\d+)\*\*"}, id="{{id}}"),
            SayStep("Rounded to five centimes."),
        ]
        prompt = JobPrompt("mcp", "What about the table?", tuple((one,) for one in calls))
        done = work(served.agent(store), Job("mcp", {"table.py": LINES}, (prompt,)), place)
    assert (done.answers, done.files, done.bill.refused) == (("Rounded to five centimes.",), {"table.py": LINES}, 0)
    last = json.dumps(done.last_body)
    results = _results(done.last_body)
    assert last.count("value_79 = compute(79)") == 1
    assert sum(one.endswith(MARKER) for one in results) == 2
    assert any("I rounded to five centimes in billing" in one for one in results)


@pytest.mark.parametrize(
    ("name", "has_gateway"),
    [("claude-code", False), ("codex", False), ("opencode-anthropic", False), ("claude-code", True)],
)
def test_a_real_agents_own_transcript_proves_what_its_model_still_sees(name: str, *, has_gateway: bool) -> None:
    """No receipt is quoted. Each marker stands in a request with the text that it stands for: after a fork and a compaction."""
    commands = commands_folder()
    if commands is None:
        pytest.skip("coding agents are not installed: make clients")
    served = SERVED[name]
    read = (served.call("read", mode="file", target="table.py"),)

    def prompt(words: str, *steps: tuple[CallStep, ...], more: tuple[FillStep, ...] = ()) -> JobPrompt:
        return JobPrompt(words, "What about the table?", (*steps, (SayStep(f"{words} done."), *more)))

    full = (FillStep(FULL),) if name != "claude-code" else ()  # then it compacts before the next prompt
    prompts = (
        prompt("greet"),
        prompt("fork"),
        prompt("twice", read, read),
        prompt("forked", read),
        prompt("again", read, more=full),
    )
    last = prompt("later", (served.call("search", pattern="twice done"),), read)
    with TemporaryDirectory(prefix="pagein-agents-") as folder:
        place, store = Place(Path(folder) / "agent", commands), Path(folder) / "store.db"
        place.home.mkdir(parents=True)
        place.workspace.mkdir(parents=True)
        (place.workspace / "table.py").write_text(SMALL)
        agent = served.agent(store)
        play = Screenplay(agent.speech, place.workspace, thinks=agent.thinks, by_tool=agent.lists_tools)
        gateway = GatewayProcess(Path(folder) / "gateway", store=str(store)) if has_gateway else None
        with (
            SimulatedProvider(play.scripts(Job("proof", {}, (*prompts, last)))) as provider,
            gateway.door(provider.url) if gateway else nullcontext(provider.url) as address,
        ):
            desk = AgentDesk(agent, place, address)
            answers = [desk.ask(prompts[0].words, MAIN), desk.ask(prompts[1].words, FORK, fork_of=MAIN)]
            answers += [desk.ask(one.words, name) for one, name in zip(prompts[2:], (MAIN, FORK, MAIN), strict=True)]
            if name == "claude-code":
                desk.ask("/compact", MAIN)
            answers.append(desk.ask(last.words, MAIN))
            sent = [one.body for one in provider.requests if one.body is not None]
    wanted = [f"{one.name} done." for one in (*prompts, last)]
    if name == "opencode-anthropic":  # it may compact at once, and then asks the model by itself whether to go on
        answers[4] = answers[4].replace("ok (unscripted)", "again done.")
    assert answers == wanted
    shown = [
        (any(SMALL in one for one in found), any(OWN_MARKER in one for one in found)) for found in map(_results, sent)
    ]
    assert (True, True) in shown
    assert (False, True) not in shown
    *_, found, shown_again = _results(sent[-1])
    assert shown_again.count("value_59 ") == 1  # behind the compaction the text is shown again
    assert "twice done." in found  # and what was said before it is found


def test_the_hook_keeps_a_marker_out_of_a_file_of_claude_codes() -> None:
    commands = commands_folder()
    if commands is None:
        pytest.skip("coding agents are not installed: make clients")
    read = CallStep("mcp__pagein__read", {"mode": "file", "target": "table.py"})
    steps = (read, read, WriteStep("copy.py", f"# {OWN_MARKER}\n"), WriteStep("own.py", SMALL), SayStep("Done."))
    with TemporaryDirectory(prefix="pagein-agents-") as folder:
        place, store = Place(Path(folder) / "agent", commands), Path(folder) / "store.db"
        agent = SERVED["claude-code"].agent(store)
        settings = {
            "env": {"PAGEIN_STORE": str(store), "XDG_DATA_HOME": folder, **environment()},
            "hooks": {"PreToolUse": [AGENTS["claude-code"].user_hooks[0].entry(["PAGEIN", "mcp"])]},
        }
        text = json.dumps(settings).replace("PAGEIN hook", f"{sys.executable} -m pagein hook")

        def setup(address: str, model: str) -> Setup:
            return replace(agent.setup(address, model), files={"claude/settings.json": text})

        prompt = JobPrompt("guard", "Copy the table.", tuple((one,) for one in steps))
        done = work(replace(agent, setup=setup), Job("guard", {"table.py": SMALL}, (prompt,)), place)
        sessions = {hint.name for one in done.records if (hint := from_headers(one.headers.items())) is not None}
        reports = GuardReports(Path(folder) / "pagein" / "guards")
        assert [reports.is_guarded(session, str(store)) for session in sessions] == [True], "as a gateway would ask"
    assert done.files == {"table.py": SMALL, "own.py": SMALL}
    results = _results(done.last_body)
    assert any("Nothing was written." in one and OWN_MARKER in one for one in results)


def _results(body: Any) -> list[str]:  # noqa: ANN401 - a request of any wire format
    """The texts of the tool results in a request of any of these agents."""
    found = []
    for message in body.get("messages", []):
        blocks = message["content"] if isinstance(message["content"], list) else []
        for block in blocks:
            if block.get("type") == "tool_result":
                content = block["content"]
                found.append(content if isinstance(content, str) else "".join(one.get("text", "") for one in content))
    for item in body.get("input", []):
        if item.get("type") == "function_call_output":
            output = item["output"]
            found.append(output if isinstance(output, str) else "".join(one.get("text", "") for one in output))
    return found
