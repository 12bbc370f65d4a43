"""Over HTTP, pagein's cache breakpoints let epochs read the part before their first change, and make nothing more
expensive.
"""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from pagein.engine.engine import Settings
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.providers.tokens.counters import ratio_counter
from pagein.simulator.records import ProviderBill
from pagein.testing.eager_residency import eager
from pagein.testing.recorded_drive import Drive
from pagein.testing.recorded_time import GatewayTerms, SetClock, gateway_at

MODEL = "claude-sonnet-4-5"
RESIDENCY = eager(batch_tokens=9000, keep_calls=2, min_tokens=200)
NOON = 1_790_000_000.0
CALLS = 60


def session() -> Iterator[Message]:
    """Many calls of medium size, with a user who comes back now and then, and no pause that lets the cache go."""
    at = NOON
    yield Message("system", (Text("You work on a repository. " * 400),), at)
    yield Message("user", (Text("look at everything"),), at)
    for number in range(CALLS):
        at += 15.0
        calls = [
            ToolCall(f"c{number}_{part}", "bash", json.dumps({"command": f"make {number}.{part}"})) for part in "ab"
        ]
        yield Message("assistant", (Text(f"Part {number}."), *calls), at, MODEL)
        lines = "\n".join(f"{line} of {number} built in {line * number} ms" for line in range(60))
        yield Message("tool", tuple(ToolResult(one.id, f"{one.id}\n{lines}", "bash") for one in calls), at + 5.0)
        if number % 15 == 14:
            yield Message("assistant", (Text(f"All up to {number} is built."),), at + 9.0, MODEL)
            yield Message("user", (Text("go on"),), at + 12.0)
    yield Message("assistant", (Text("Done."),), at + 30.0, MODEL)


def driven(settings: Settings, folder: Path) -> tuple[ProviderBill, list[tuple[int, int]]]:
    """The bill through a gateway, and of each call the tokens that were read, and all of its prompt."""
    clock, drive = SetClock(), Drive(list(session()), "anthropic", MODEL)
    with drive.provider(clock) as provider:
        with gateway_at(provider.url, folder, GatewayTerms(clock, settings, ratio_counter(MODEL))) as address:
            found = list(drive.through(address, clock))
        assert not any(one.warning for one in found)
        usages = [one.response["usage"] for one in found]
        names = ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens")
        return provider.bill(), [(one[names[0]], sum(one[name] for name in names)) for one in usages]


def epochs(calls: list[tuple[int, int]]) -> list[int]:
    """What was read by the calls whose prompts are shorter than those before."""
    return [now[0] for before, now in pairwise(calls) if now[1] < before[1]]


def test_epochs_read_what_stands_in_front_of_them(tmp_path: Path) -> None:
    ours, read = driven(Settings(RESIDENCY), tmp_path / "ours")
    theirs, plain = driven(Settings(RESIDENCY, marks="respected"), tmp_path / "theirs")
    assert (ours.refused, theirs.refused) == (0, 0)
    # with the first epoch tools of ours enter, in front of all that the cache holds
    first, *others = epochs(read)
    assert first == 0
    assert len(others) > 1
    assert min(others) > 0
    assert sum(epochs(read)) > sum(epochs(plain))
    assert ours.bit < theirs.bit
    assert ours.usage.written < theirs.usage.written
