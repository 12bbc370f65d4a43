"""Over HTTP, a client of Messages that marks nothing for the cache pays less with pagein, and never more."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest
from tests.journeys.test_breakpoints_over_http import MODEL, session

from pagein.engine.engine import Settings
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.policy.eviction.residency import PRICED, Residency
from pagein.providers.tokens.counters import ratio_counter
from pagein.simulator.records import ProviderBill
from pagein.testing.recorded_drive import Drive
from pagein.testing.recorded_time import GatewayTerms, SetClock, gateway_at


def bills(said: Sequence[Message], folder: Path, residency: Residency) -> tuple[ProviderBill, ProviderBill]:
    """What a session of a client that marks nothing costs without pagein and with it."""
    found = []
    for name in ("", "ours"):
        clock, drive = SetClock(), Drive(said, "anthropic", MODEL, marks=False)
        with drive.provider(clock) as provider:
            if name:
                with gateway_at(
                    provider.url, folder, GatewayTerms(clock, Settings(residency), ratio_counter(MODEL))
                ) as address:
                    assert not any(one.warning for one in drive.through(address, clock))
            else:
                assert all(one.status == 200 for one in drive.through(provider.url, clock))
            found.append(provider.bill())
    return found[0], found[1]


def small(calls: int) -> list[Message]:
    """Results that are just big enough to leave, so few that our tools weigh more than they do."""
    at = 1_790_000_000.0
    said = [Message("system", (Text("You work. " * 200),), at), Message("user", (Text("look at it"),), at)]
    for number in range(calls):
        at += 15.0
        text = f"{number} " + "word " * (158 if number % 8 == 0 else 3)
        said.append(Message("assistant", (Text("On."), ToolCall(f"c{number}", "bash", "{}")), at, MODEL))
        said.append(Message("tool", (ToolResult(f"c{number}", text, "bash"),), at + 5.0))
    return [*said, Message("assistant", (Text("Done."),), at + 30.0, MODEL)]


def test_a_client_without_breakpoints_pays_half_because_old_results_leave(tmp_path: Path) -> None:
    plain, ours = bills(list(islice(session(), 80)), tmp_path, PRICED)
    assert (plain.refused, ours.refused) == (0, 0)
    assert plain.usage.read == plain.usage.written == ours.usage.read == ours.usage.written == 0
    assert ours.bit < plain.bit / 2


@pytest.mark.parametrize("count", [3, 14, 15, 16, 18, 24])
def test_a_session_that_ends_early_is_never_dearer(count: int, tmp_path: Path) -> None:
    plain, ours = bills(list(islice(session(), count)), tmp_path, PRICED)
    assert ours.bit <= plain.bit


@pytest.mark.parametrize("count", [6, 9, 15, 24, 40])
def test_our_tools_enter_only_with_more_than_they_weigh(count: int, tmp_path: Path) -> None:
    plain, ours = bills(small(count), tmp_path, PRICED)
    assert ours.bit <= plain.bit
