"""The second table of `pagein tune`: what the recorded calls cost, and what follows for the agent's own cache."""

import io
from collections.abc import Mapping

import pytest
from rich.console import Console

from pagein.model.bill import RecordedUsage, UsageLine
from pagein.replay.results.recorded_usage import sum_of
from pagein.ui.recorded_usage_view import show_usage


def line(cost: float, tokens: int = 1000, calls: int = 10) -> UsageLine:
    return UsageLine(cost=cost, usd=cost / 100, calls=calls, tokens=tokens)


def usage(lifetimes: Mapping[str, float]) -> RecordedUsage:
    return RecordedUsage(
        whole=line(100_000.0),
        parts={
            name: line(cost)
            for name, cost in (("read", 65_000.0), ("written", 20_000.0), ("fresh", 5000.0), ("output", 1e4))
        },
        again={"expired": line(9000.0, 1200, 3), "look-back": line(500.0, 50, 1), "no marks": line(500.0, 50, 1)},
        above={"200000": line(18_000.0), "400000": line(0.0, 0, 0)},
        lifetimes={name: line(cost) for name, cost in lifetimes.items()},
        long_writes={
            "all": line(100.0, 1000),
            "unused": line(37.5, 370),
            "followed": line(0.0, 900, 10),
            "within_minute": line(0.0, 800, 9),
        },
    )


def shown(found: RecordedUsage, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show_usage(console, found)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [60, 78, 80, 120])
def test_every_width_shows_every_figure(width: int) -> None:
    text = shown(usage({"recorded": 100_000.0, "5m": 90_000.0, "1h": 100_000.0}), width)
    assert "\u2026" not in text
    assert max(map(len, text.splitlines())) <= width
    assert all(figure in text for figure in ("$650.00", "65 %", "$90.00", "9 %", "$180.00", "18 %"))


def test_causes_without_words_of_their_own_stand_together_and_empty_sizes_are_left_out() -> None:
    text = shown(usage({}))
    assert "another cause      2     100   $10.00" in text
    assert "200,000" in text
    assert "400,000" not in text
    assert "5 calls paid 1.30k tokens again, 65 % of all that was not read from the cache." in text
    assert "The agent's own cache lifetime" not in text


def test_the_lifetime_that_saves_is_named_with_its_variable() -> None:
    text = " ".join(shown(usage({"recorded": 100_000.0, "5m": 90_000.0, "1h": 101_000.0})).split())
    assert "with five minutes $900.00 (-10.0 %), with an hour $1,010.00 (+1.0 %)" in text
    assert "five minutes would save 10.0 %: start Claude Code with FORCE_PROMPT_CACHING_5M=1." in text
    assert (
        "37 % were never read after a pause of more than five minutes; the premium for them was $0.38. 90 % of these"
        in text
    )


def test_a_lifetime_that_saves_nothing_is_not_advised() -> None:
    text = shown(usage({"recorded": 100_000.0, "5m": 99_600.0, "1h": 110_000.0}))
    assert "Neither lifetime would save half a percent" in text
    assert "PROMPT_CACHING" not in text


def test_recordings_without_usage_say_so() -> None:
    assert "No recorded call reports its usage" in shown(sum_of([]))
