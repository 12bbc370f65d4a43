"""Cache lifetimes and keep-alive requests over HTTP: a session with pauses, through the gateway, at providers that keep what they document and at others."""

import json
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from pagein import wiring
from pagein.engine.engine import Settings
from pagein.gateway.settings import GatewaySettings
from pagein.model.cache_notes import CacheVerdictNote
from pagein.model.messages import Message, Text, ToolCall, ToolResult, Usage
from pagein.policy.economics.cache_trust import UNKNOWN, CacheTrust
from pagein.policy.economics.savings_reserve import RESERVE, Exposure, SessionRequest
from pagein.providers.tokens.counters import RatioCounter, ratio_counter
from pagein.simulator.provider_settings import CacheKind, ProviderSettings
from pagein.simulator.provider_thread import SimulatedProvider
from pagein.testing.recorded_drive import Drive
from pagein.testing.recorded_time import GatewayTerms, SetClock, WakingClock, gateway_at

NOON = 1_790_000_000.0
MODEL = "claude-sonnet-4-5"
LATER = NOON + 90_000.0
MOST = 1.02
LAST = 9


def worked(pauses: int, *, long: bool, last: int = 40) -> Iterator[Message]:
    """A person at work: turns of ten calls with small results, and a pause of 20 minutes after each turn.

    last: size of a turn's last result.
    """
    at, number = NOON, 0
    usage = Usage(read=1000, written=1000, written_1h=1000 if long else 0, output=20)
    yield Message("system", (Text("You work on a repository. " * 1200),), at)
    yield Message("user", (Text("look at everything " * 2000),), at)
    for _ in range(pauses + 1):
        for place in range(10):
            at, number = at + 20.0, number + 1
            call = ToolCall(f"call_{number}", "bash", json.dumps({"command": f"make part-{number}"}))
            yield Message("assistant", (Text(f"Part {number}."), call), at, MODEL, usage=usage)
            at += 70.0 if number == 3 else 5.0
            told = f"part {number} is built. " * (last if place == LAST else 40)
            yield Message("tool", (ToolResult(call.id, told, "bash"),), at)
        at += 20.0
        yield Message("assistant", (Text(f"All up to {number} is built."),), at, MODEL, usage=usage)
        at += 1200.0
        yield Message("user", (Text("go on"),), at)


def bills(folder: Path, drive: Drive, cache: CacheKind, *, keep_alive: bool = False) -> tuple[float, float, int]:
    """Return the cost without and with a gateway, in BIT, and the number of requests that the gateway added."""
    clock = SetClock()
    with drive.provider(clock, cache) as provider:
        assert all(one.status == 200 for one in drive.through(provider.url, clock))
        direct = provider.bill()
    waking = WakingClock()
    with drive.provider(waking, cache) as provider:
        terms = GatewayTerms(waking, Settings(), ratio_counter(drive.model), keep_alive)
        with gateway_at(provider.url, folder, terms) as address:
            found = list(drive.through(address, waking))
        through = provider.bill()
    assert all(one.status == 200 for one in found)
    assert (direct.refused, through.refused) == (0, 0)
    return direct.bit, through.bit, through.requests - direct.requests


def trust(folder: Path) -> CacheTrust:
    """What the next process on the store knows."""
    with wiring.open(folder / "store.db", workspace=folder) as engine:
        return engine.evidence.trust(MODEL)


def prove(folder: Path) -> None:
    """Another session on the same store has shown that the provider keeps what it documents."""
    folder.mkdir()
    with wiring.open(folder / "store.db", workspace=folder) as engine:
        engine.evidence.add(CacheVerdictNote(MODEL, "hour", held=True, at=NOON))


def test_lifetimes_are_chosen_by_default_and_pay_with_pauses(tmp_path: Path) -> None:
    direct, through, added = bills(tmp_path, Drive(list(worked(4, long=False)), "anthropic", MODEL), "documented")
    assert added == 0
    assert through < 0.9 * direct
    assert trust(tmp_path).hour == "holds"


def test_a_client_that_asks_for_an_hour_pays_no_more_and_less_once_it_is_known_that_entries_are_kept(
    tmp_path: Path,
) -> None:
    drive = Drive(list(worked(4, long=True)), "anthropic", MODEL)
    direct, first, _ = bills(tmp_path / "first", drive, "documented")
    prove(tmp_path / "proven")
    _, proven, _ = bills(tmp_path / "proven", drive, "documented")
    assert first <= MOST * direct
    assert proven < 0.99 * direct


def test_a_store_that_has_saved_lets_a_session_begin_with_five_minutes_and_anchor_each_answer(tmp_path: Path) -> None:
    drive = Drive(list(worked(2, long=True)), "anthropic", MODEL)
    prove(tmp_path / "proven")
    _, proven, _ = bills(tmp_path / "proven", drive, "documented")
    prove(tmp_path / "earned")
    with wiring.open(tmp_path / "earned" / "store.db", workspace=tmp_path / "earned") as engine:
        engine.evidence.add_savings(600_000.0, NOON)
    direct, earned, _ = bills(tmp_path / "earned", drive, "documented")
    assert earned < 0.95 * direct, "less the prompt prefix, which keeps its hour"
    assert earned < 0.95 * proven
    with wiring.open(tmp_path / "earned" / "store.db", workspace=tmp_path / "earned") as engine:
        reserve = engine.evidence.lend(
            SessionRequest("next", LATER), SessionRequest("next", None), Exposure(0.0, 0.0, 0.0, LATER)
        )
        assert reserve == RESERVE, "what was saved outlives the process"


def test_a_keep_alive_request_pays_and_proves_itself(tmp_path: Path) -> None:
    drive = Drive(list(worked(4, long=False, last=1300)), "anthropic", MODEL)
    _, without, _ = bills(tmp_path / "without", drive, "documented")
    direct, through, added = bills(tmp_path / "with", drive, "documented", keep_alive=True)
    assert added > 0
    assert through < min(without, 0.9 * direct)
    assert trust(tmp_path / "with") == CacheTrust("holds", "holds")


@dataclass
class RestingCounter:
    """A counter that once rests for longer than a gateway waits for a decision, as a machine without time does."""

    counted: RatioCounter = field(default_factory=lambda: ratio_counter(MODEL))
    is_rested: bool = False

    def count(self, text: str, kind: Literal["result", "said", "user", "system"] = "result") -> float:
        if not self.is_rested:
            self.is_rested = True
            time.sleep(GatewaySettings().budget + 0.1)
        return self.counted.count(text, kind)


def test_a_slow_machine_changes_no_decision_of_a_driven_session(tmp_path: Path) -> None:
    clock, counter = SetClock(), RestingCounter()
    drive = Drive(list(worked(0, long=False)), "anthropic", MODEL)
    terms = GatewayTerms(clock, Settings(), counter)
    with drive.provider(clock) as provider, gateway_at(provider.url, tmp_path, terms) as address:
        warned = [one.warning for one in drive.through(address, clock) if one.warning]
    assert counter.is_rested
    assert not warned


@pytest.mark.parametrize("cache", ["unrefreshed", "short-hour"])
@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("keep_alive", [False, True])
def test_a_provider_that_keeps_less_costs_no_more_than_the_price_of_one_try(
    tmp_path: Path, cache: CacheKind, *, long: bool, keep_alive: bool
) -> None:
    drive = Drive(list(worked(4, long=long)), "anthropic", MODEL)
    direct, through, added = bills(tmp_path, drive, cache, keep_alive=keep_alive)
    assert through <= MOST * direct
    assert added <= 1
    assert trust(tmp_path) == (UNKNOWN if long else CacheTrust("fails", "fails"))


PIXEL = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


def asked_over_http(folder: Path | None, last: list[list[dict[str, Any]]]) -> float:
    """The cost of a session, in BIT: small results, some of them after a minute, then one turn with these results."""
    clock = SetClock(NOON)
    spoken: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "look"}]}]
    system = [{"type": "text", "text": "You work on a repository. " * 4000, "cache_control": {"type": "ephemeral"}}]
    small, least = [[{"type": "text", "text": "part is built. " * 100}]], [[{"type": "text", "text": "ok"}]]
    turns: list[list[list[dict[str, Any]]]] = [*[small] * 8, last, least, least]
    settings = ProviderSettings(now=clock.now)

    def speak(address: str) -> None:
        for number, results in enumerate(turns):
            clock.set(clock.now() + (70.0 if number % 4 == 3 else 5.0))
            marked = [*spoken[:-1], {**spoken[-1], "content": [*spoken[-1]["content"]]}]
            marked[-1]["content"][-1] = {**marked[-1]["content"][-1], "cache_control": {"type": "ephemeral"}}
            body = {"model": MODEL, "max_tokens": 900, "system": system, "tools": TOOLS, "messages": marked}
            body["metadata"] = {"user_id": "user_x_account__session_abc"}
            headers = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}
            request = urllib.request.Request(address + "/v1/messages", json.dumps(body).encode(), headers)  # noqa: S310
            with urllib.request.urlopen(request) as answer:  # noqa: S310 -- loopback
                said = json.loads(answer.read())["content"]
            ids = [f"toolu_{number}_{place}" for place in range(len(results))]
            calls = [{"type": "tool_use", "id": one, "name": "Bash", "input": {"command": "make"}} for one in ids]
            found = [
                {"type": "tool_result", "tool_use_id": one, "content": text}
                for one, text in zip(ids, results, strict=True)
            ]
            spoken.extend([{"role": "assistant", "content": [*said, *calls]}, {"role": "user", "content": found}])

    with SimulatedProvider([[{"text": "now"}]] * len(turns), settings) as provider:
        if folder is None:
            speak(provider.url)
        else:
            terms = GatewayTerms(clock, Settings(), ratio_counter(MODEL), trusted=MODEL)
            with gateway_at(provider.url, folder, terms) as address:
                speak(address)
        assert provider.bill().refused == 0
        return provider.bill().bit


TOOLS = [{"name": "Bash", "description": "d", "input_schema": {"type": "object"}}]


def test_a_request_with_the_first_image_which_voids_the_cached_messages_is_no_anchor(tmp_path: Path) -> None:
    last: list[list[dict[str, Any]]] = [[{"type": "text", "text": "seen"}, PIXEL]]
    assert asked_over_http(tmp_path, last) <= MOST * asked_over_http(None, last)
