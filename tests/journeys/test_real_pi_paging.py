"""Paging in a real pi: what its model is shown and offered, compaction, resumption, children, and no confabulation."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.agents.agent_drivers import commands_folder
from tests.agents.gateway_process import GatewayProcess
from tests.agents.pi_process import PiPlace, PiProcess, running_pi, shown_results
from tests.agents.pi_terminal import shown_pi

from pagein.simulator import SimulatedProvider

pytestmark = pytest.mark.clients
FOUND = r'rlm_peek\(\\?"(pg-[0-9a-f-]+)'
"""How a model finds the id in a stub."""
RUN = {"tool": "bash", "args": {"command": "python3 rows.py"}}
PEEK = {"tool": "rlm_peek", "args": {"id": "{{id}}", "offset": 0, "length": 50}}
BEFORE_DENYING = "look for it with rlm_search before you say that you do not have it"
NEARLY_FULL, FULL = 186_000, 196_000
"""Of 200,000 tokens: where pi compacts, and where pagein lets it."""


@pytest.fixture
def place() -> Iterator[PiPlace]:
    commands = commands_folder()
    if commands is None:
        pytest.skip("coding agents are not installed: make clients")
    with TemporaryDirectory(prefix="pagein-pi-") as name:
        made = PiPlace(Path(name), commands, compaction={"keepRecentTokens": 10, "enabled": True})
        made.workspace.mkdir()
        rows = "".join(f"print('row', {number}, 'of an output that nobody needs for long')\n" for number in range(400))
        (made.workspace / "rows.py").write_text(rows, encoding="utf-8")
        yield made


@pytest.fixture
def provider() -> Iterator[SimulatedProvider]:
    with SimulatedProvider() as made:
        yield made


def offered(provider: SimulatedProvider, number: int = -1) -> set[str]:
    """The tools of pagein's that a request offered the model."""
    return {one["name"] for one in provider.requests[number].body["tools"] if one["name"].startswith("rlm_")}


def compaction(pi: PiProcess, events: list[dict[str, Any]]) -> dict[str, Any]:
    """How the compaction ended that pi began behind a prompt."""
    ended = [one for one in events if one.get("type") == "compaction_end"]
    return ended[-1] if ended else pi.wait(lambda one: one.get("type") == "compaction_end")


@contextmanager
def gateway_before(place: PiPlace, provider: SimulatedProvider) -> Iterator[str]:
    """A gateway in front of the provider. What pi's extension pages it must leave alone, and offer no tools."""
    gateway = GatewayProcess(place.folder / "gateway")
    with gateway.door(provider.url) as address:
        yield address
    lines = [json.loads(line) for line in gateway.log.read_text(encoding="utf-8").splitlines()]
    calls = [one for one in lines if one["event"] == "call"]
    sessions = list(dict.fromkeys(one["session"] for one in calls))
    assert [max(one["replaced"] for one in calls if one["session"] == name) for name in sessions] == [1, 0]
    assert "The extension pi/" in str([one for one in lines if one["event"] == "notice"])
    offers = [{tool["name"] for tool in one.body["tools"]} for one in provider.requests]
    assert not [one for one in offers if {"peek", "rlm_peek"} <= one]
    assert gateway.failures == {}


def leave_to_gateway(pi: PiProcess, provider: SimulatedProvider) -> None:
    """Do without the extension's paging, and begin another session."""
    pi.prompt([RUN])
    assert "[pagein:" in shown_results(provider)[0], "the gateway takes it out"
    assert pi.command("new_session")["success"]


def search_the_store(pi: PiProcess, place: PiPlace) -> None:
    """Find nothing where there is nothing; take files into the store, and find a word of one of them there."""
    missing = {"tool": "rlm_search", "args": {"pattern": "a text that nobody ever read"}}
    pi.prompt([missing])
    assert "No matches found" in pi.answers()[-1]
    (place.workspace / "toll.py").write_text("def compute_toll(weight):\n    return 3 * weight\n", encoding="utf-8")
    take = {"tool": "rlm_ingest", "args": {"paths": ["toll.py", "rows.py"]}}
    pi.prompt([take], [{"tool": "rlm_search", "args": {"pattern": "compute_toll"}}])
    told, found = pi.answers()[-2:]
    assert "def compute_toll(weight):" in found
    assert found.split("**")[1] in told, "by the id that the model was told"


def test_a_long_session_pages_cancels_compaction_while_it_fits_and_goes_on_in_a_new_process(
    place: PiPlace, provider: SimulatedProvider
) -> None:
    place = replace(place, settings={"XDG_DATA_HOME": str(place.folder / "gateway" / "data")})  # both are of one user
    with gateway_before(place, provider) as address, running_pi(place, provider, address=address) as pi:
        leave_to_gateway(pi, provider)
        assert pi.order("/rlm on") == "Paging is on."
        pi.prompt([RUN], [{"capture": {"id": FOUND}}, PEEK])
        whole, part = pi.answers()
        stub = shown_results(provider)[0]
        assert part.startswith(whole[:50])
        assert BEFORE_DENYING in str(provider.requests[-1].body["system"])
        assert [one for one in pi.events if one.get("method") == "setWidget"][-1]["widgetLines"][0].startswith(
            "pagein: window "
        )

        ended = compaction(pi, pi.prompt(usage=NEARLY_FULL))
        assert ended["aborted"], "the request fits"
        assert "no compaction, since the session fits" in pi.notices()[-1]
        assert not pi.command("compact")["success"]

        search_the_store(pi, place)
        assert shown_results(provider)[0] == stub
        assert "set for this branch" in pi.order("/rlm config maxIngestFiles=9").lower()
        assert "9" in pi.order("/rlm config").split("maxIngestFiles")[1].splitlines()[0]
        assert "pg-" in pi.order("/rlm store")

    first = len(provider.requests)
    with running_pi(place, provider, "-c") as pi:
        pi.prompt([{"capture": {"id": FOUND}}, PEEK])
        assert "rlm_peek" in offered(provider, first), "from the first request on"
        assert BEFORE_DENYING in str(provider.requests[first].body["system"])
        assert shown_results(provider)[0] == stub
        assert pi.answers()[-1] == part

        ended = compaction(pi, pi.prompt(usage=FULL))
        assert not ended["aborted"], "it does not fit, so pi compacts"
        assert "tokensBefore" in ended["result"]

        pi.order("/rlm off")
        pi.prompt([RUN])
        assert shown_results(provider)[-1] == whole, "nothing leaves"
        assert not offered(provider)
        assert BEFORE_DENYING not in str(provider.requests[-1].body["system"])
        pi.order("/rlm on")
        pi.prompt([RUN])
        assert "rlm_peek" in shown_results(provider)[-1], "and again it does"
        assert not [one for one in pi.events if one.get("type") == "extension_error"]


def test_children_are_asked_beside_other_commands_and_cancelled(place: PiPlace, provider: SimulatedProvider) -> None:
    pytest.importorskip("pydantic_ai")
    reply = '{"answer": "400 rows", "confidence": "high", "evidence": []}'
    slow = 'SCRIPT:[[{"wait": 60}, {"text": "too late"}]]'  # the child is shown its target, and its provider acts on it
    (place.workspace / "slow.txt").write_text(slow, encoding="utf-8")
    with SimulatedProvider([[{"text": reply}]]) as children:
        settings = {
            "PAGEIN_PI_PAGING": "true",
            "PAGEIN_CHILD_MODEL": "anthropic/claude-haiku-4-5",
            "PAGEIN_ANTHROPIC": children.url,
            "ANTHROPIC_API_KEY": "any-key",
        }
        with running_pi(replace(place, settings=settings), provider) as pi:
            ask = {"tool": "rlm_query", "args": {"instructions": "How many rows?", "target": ["{{id}}"]}}
            code = {"tool": "rlm_ingest", "args": {"paths": ["rows.py"]}}
            pi.prompt([code], [{"capture": {"id": "(pg-[0-9a-f-]+)"}}, ask])
            assert "400 rows" in pi.answers()[-1]
            assert {"rlm_query", "rlm_batch", "rlm_extract"} <= offered(provider)
            assert "query answered by" in pi.order("/rlm trace")

            take = {"tool": "rlm_ingest", "args": {"paths": ["slow.txt"]}}
            turns = [[take], [{"capture": {"id": "(pg-[0-9a-f-]+)"}}, ask], [{"text": "cancelled"}]]
            first = len(pi.events)
            assert pi.command("prompt", message=f"SCRIPT:{json.dumps(turns)}")["success"]
            pi.wait(lambda one: "querying 0 of 1, 1 children at depth 1" in str(one.get("widgetLines")))
            assert "Active operations: 1" in pi.order("/rlm status"), "it is answered while the child is"
            assert pi.order("/rlm cancel").startswith("Cancelled 1 active operation(s)")
            if not any(one.get("type") == "agent_end" for one in pi.events[first:]):
                pi.wait(lambda one: one.get("type") == "agent_end")
            assert "too late" not in pi.answers()[-1]
            assert pi.order("/rlm cancel") == "No active RLM operations."
            assert not [one for one in pi.events if one.get("type") == "extension_error"]


def test_a_person_at_a_terminal_is_greeted_once_and_sees_the_widget_and_the_overlay(
    place: PiPlace, provider: SimulatedProvider
) -> None:
    paging = replace(place, settings={"PAGEIN_PI_PAGING": "true"}, is_new=True)
    with shown_pi(paging, provider.url) as terminal:
        terminal.wait("pagein is at work")
        terminal.order(f"SCRIPT:{json.dumps([[RUN], [{'text': 'All is in order.'}]])}")
        terminal.wait(r"pagein: window \d+%, 0 stubs and 1 preview,")
        terminal.order("/rlm inspect")
        assert "bash: row 0 of an output" in terminal.wait("Escape closes, arrows and page keys scroll")
        terminal.type("\x1b")
        terminal.wait(
            "row 395 of an output"
        )  # drawn anew without the overlay; the successor draws only what it covered
        search = {"tool": "rlm_search", "args": {"pattern": "row 39.", "limit": 2}}
        terminal.order(f"SCRIPT:{json.dumps([[search], [{'text': 'Found.'}]])}")
        terminal.wait(r'rlm_search pattern="row 39\."')
        terminal.type("/rlm ext")
        terminal.wait("externalize")
        terminal.type("\x7f" * len("/rlm ext"))
        terminal.order("/rlm off")
        terminal.wait("Paging is off")
