"""A session that is met in its middle costs the same for each of its turns, however many they are: counted in calls of functions."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.call_counts import counted
from tests.engine.test_work_per_call import LINE, body, exchange

import pagein
from pagein.engine.engine import Settings
from pagein.model.messages import Usage
from pagein.policy.eviction.overflow import NO_VALVE, Valve
from pagein.policy.eviction.quote_odds import QuoteOdds
from pagein.policy.eviction.residency import PRICED
from pagein.policy.eviction.residency_rules import USUAL, ResidencyRules, judged_reads
from pagein.testing.eager_residency import eager

FEW = 80
SLACK = 1.25
"""For what is built as a tree, which grows with the logarithm. What grows with the square would be called twice as often for each turn."""
ALLOWED = 200
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
EAGER = Settings(eager(batch_tokens=300, keep_calls=1, min_tokens=60), valve=NO_VALVE)
_UNLIKELY = replace(
    PRICED, rules=ResidencyRules((*USUAL.without_layer("odds").rows, *judged_reads(QuoteOdds(-16_000, (), ()))))
)
SMALL = Settings(_UNLIKELY, valve=Valve(window=4_000))
"""Nearly all of the session must leave. An edit will hardly quote any read, however long the session is."""


def conversation(kind: str, turns: int) -> list[dict[str, Any]]:
    """steps: all of it is work on one wish. turns: each wish is done with one call. pictures: some turns cannot leave, so the others leave
    in many runs.
    """
    found: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "make it work"}]}]
    for turn in range(turns):
        tool, argument = ("Read", "file_path") if turn % 3 else ("Bash", "command")
        found += exchange(f"c{turn}", tool, {argument: f"/w/part-{turn // 4}"}, f"{turn} {LINE * 20}")
        if kind != "steps":
            wish: list[dict[str, Any]] = [{"type": "text", "text": f"now part {turn}, please"}]
            wish += [PICTURE] if kind == "pictures" and turn % 5 == 0 else []
            answer = [{"type": "text", "text": f"part {turn} is done"}]
            found += [{"role": "assistant", "content": answer}, {"role": "user", "content": wish}]
    return found


def calls_to_take_up(folder: Path, kind: str, turns: int, settings: Settings) -> tuple[Counter[str], Counter[str]]:
    """What the first request of a session calls, and the next one with as many new turns again."""
    folder.mkdir()
    found = []
    with pagein.open(folder / "store.db", workspace=folder, settings=settings) as engine:
        for count in (turns, 2 * turns):
            said = body(conversation(kind, count))
            prepared, calls = counted(lambda said=said: engine.prepare(said, "anthropic", at=10.0, hint="one"))  # type: ignore[misc]
            assert prepared.failure is None
            assert prepared.opened is not None or settings is EAGER
            found.append(calls)
            assert engine.observe(prepared, Usage(fresh=3, written=len(prepared.body) // 4, output=10)).failure is None
    return found[0], found[1]


@pytest.mark.parametrize("settings", [EAGER, SMALL], ids=["eager", "full"])
@pytest.mark.parametrize("kind", ["steps", "turns", "pictures"])
def test_twice_as_many_new_turns_call_twice_as_much(kind: str, settings: Settings, tmp_path: Path) -> None:
    few = calls_to_take_up(tmp_path / "few", kind, FEW, settings)
    many = calls_to_take_up(tmp_path / "many", kind, 2 * FEW, settings)
    for small, large in zip(few, many, strict=True):
        limits = {name: 2 * SLACK * small[name] + ALLOWED for name in large}
        assert {name: (small[name], count) for name, count in large.items() if count > limits[name]} == {}
