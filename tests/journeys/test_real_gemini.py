"""The real Gemini CLI does a job of one prompt twice: straight at its provider, and through a gateway that it knows nothing of."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.agents import GEMINI_CLI, ONE_PROMPT, GatewayProcess, Outcome, Place, commands_folder, work

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def runs() -> Iterator[tuple[Outcome, Outcome, GatewayProcess]]:
    commands = commands_folder()
    if commands is None:
        pytest.skip("coding agents are not installed: make clients")
    with TemporaryDirectory(prefix="pagein-agents-") as name:
        gateway = GatewayProcess(Path(name) / "gateway")
        place = Place(Path(name) / "agent", commands)
        yield work(GEMINI_CLI, ONE_PROMPT, place), work(GEMINI_CLI, ONE_PROMPT, place, gateway), gateway


def test_it_gives_the_same_answer_and_leaves_the_same_files(runs: tuple[Outcome, Outcome, GatewayProcess]) -> None:
    direct, through, gateway = runs
    assert through.answers == direct.answers == ("The ledger is open; its reports are in order.",)
    assert through.files == direct.files
    assert "LEDGER_OPENED = True" in through.files["src/ledger.py"]
    assert gateway.failures == {}


def test_no_request_is_refused_and_each_signature_comes_back(runs: tuple[Outcome, Outcome, GatewayProcess]) -> None:
    """The provider reads each signature, and refuses one that is missing or not its own (G4)."""
    for outcome in runs[:2]:
        assert (outcome.bill.refused, outcome.bill.failed) == (0, 0)
        body = outcome.last_body
        assert body is not None
        calls = [part for one in body["contents"] for part in one["parts"] if "functionCall" in part]
        assert sum("thoughtSignature" in part for part in calls) >= len(ONE_PROMPT.prompts[0].calls) - 1


def test_big_results_enter_as_previews_and_are_recalled_through_the_gateway(
    runs: tuple[Outcome, Outcome, GatewayProcess],
) -> None:
    direct, through, _ = runs
    last = through.last_body
    assert last is not None
    assert "[pagein: " in str(last["contents"])
    assert any(part.get("functionCall", {}).get("name") == "peek" for one in last["contents"] for part in one["parts"])
    assert through.bill.bit < 0.95 * direct.bill.bit
