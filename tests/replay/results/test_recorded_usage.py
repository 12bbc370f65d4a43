"""What recorded calls cost by the provider's own usage, with sums worked out by hand."""

from dataclasses import replace

import pytest

from pagein.model.bill import RecordedUsage
from pagein.model.messages import HostEvent, Usage
from pagein.providers.prices.price_lookup import prices
from pagein.replay.prompt.billable_session import on_own_cache
from pagein.replay.results.cache_misses import examine_session
from pagein.replay.results.prediction import own_prices
from pagein.replay.results.recorded_usage import sum_of
from pagein.testing.story import Story

OWN = own_prices("claude-opus-4-6")
READ, SHORT, LONG, OUT = 0.1, 1.25, 2.0, OWN.output


def story(*calls: tuple[float, int, int], long: bool) -> Story:
    """Calls as (seconds since the call before, tokens read, tokens written)."""
    told = Story().asks()
    for number, (_, read, written) in enumerate(calls):
        after = calls[number + 1][0] if number + 1 < len(calls) else 1.0
        told.works(1000, wait=after, usage=Usage(read=read, written=written, written_1h=written * long, output=10))
    return told


def usage_of(told: Story) -> RecordedUsage:
    recording = replace(on_own_cache(told.recording(OWN), OWN, misses=False), cold_read=0.0)
    return examine_session(recording, OWN).usage


def test_the_parts_add_up_to_the_whole() -> None:
    found = usage_of(story((0, 0, 20_000), (10, 20_000, 3000), (10, 0, 26_000), long=False))
    assert found["parts"]["read"]["cost"] == pytest.approx(READ * 20_000)
    assert found["parts"]["written"]["cost"] == pytest.approx(SHORT * 49_000)
    assert found["parts"]["output"]["cost"] == pytest.approx(OUT * 30)
    assert sum(one["cost"] for one in found["parts"].values()) == pytest.approx(found["whole"]["cost"])
    assert sum(one["tokens"] for one in found["parts"].values()) == found["whole"]["tokens"] == 69_030
    assert found["whole"]["calls"] == 3
    assert found["whole"]["usd"] == pytest.approx(OWN.usd(found["whole"]["cost"]))


def test_an_hour_would_have_read_what_expired_in_a_pause_of_ten_minutes() -> None:
    found = usage_of(story((0, 0, 20_000), (600, 0, 23_000), (10, 23_000, 3000), long=False))
    assert found["again"]["expired"]["tokens"] == 20_000
    assert found["again"]["expired"]["cost"] == pytest.approx((SHORT - READ) * 20_000)
    lasts = found["lifetimes"]
    assert lasts["recorded"]["cost"] == lasts["5m"]["cost"] == pytest.approx(SHORT * 46_000 + READ * 23_000 + OUT * 30)
    assert lasts["1h"]["cost"] == pytest.approx(LONG * 26_000 + READ * 43_000 + OUT * 30)
    assert found["long_writes"]["all"]["tokens"] == 0


def test_five_minutes_would_have_written_again_what_an_hour_kept() -> None:
    found = usage_of(story((0, 0, 20_000), (600, 20_000, 3000), (10, 23_000, 3000), long=True))
    lasts = found["lifetimes"]
    assert lasts["recorded"]["cost"] == lasts["1h"]["cost"] == pytest.approx(LONG * 26_000 + READ * 43_000 + OUT * 30)
    assert lasts["5m"]["cost"] == pytest.approx(SHORT * 46_000 + READ * 23_000 + OUT * 30)


def test_a_write_for_an_hour_is_used_if_a_call_reads_it_after_a_long_pause() -> None:
    writes = usage_of(story((0, 0, 20_000), (600, 20_000, 3000), (10, 23_000, 4000), (7200, 0, 30_000), long=True))[
        "long_writes"
    ]
    assert writes["all"]["tokens"] == 57_000
    assert writes["unused"]["tokens"] == 37_000, "the first is read ten minutes later, the others never after a pause"
    assert writes["unused"]["cost"] == pytest.approx((LONG - SHORT) * 37_000)
    assert (writes["followed"]["calls"], writes["within_minute"]["calls"]) == (3, 1)


def test_a_pause_of_hours_is_bridged_by_neither() -> None:
    found = usage_of(story((0, 0, 20_000), (7200, 0, 23_000), long=False))
    assert found["lifetimes"]["1h"]["cost"] == pytest.approx(LONG * 43_000 + OUT * 20)


def test_what_a_compaction_makes_the_agent_write_again_is_told_as_such() -> None:
    told = story((0, 0, 20_000), (10, 20_000, 3000), long=False)
    told.entries.append(HostEvent("compaction"))
    told.works(1000, usage=Usage(read=2000, written=6000, output=10))
    assert usage_of(told)["again"]["compaction"]["tokens"] == 6000


def test_what_is_read_beyond_a_window_is_counted_call_by_call() -> None:
    found = usage_of(story((0, 0, 250_000), (10, 250_000, 10_000), (10, 260_000, 190_000), long=False))
    assert found["above"]["200000"]["tokens"] == 60_000 + 250_000
    assert found["above"]["200000"]["cost"] == pytest.approx(READ * 310_000)
    assert (found["above"]["400000"]["calls"], found["above"]["400000"]["tokens"]) == (1, 50_000)


def test_a_cache_without_a_choice_has_no_lifetimes() -> None:
    charged = prices("generic:r=.1,w=1,cache=openai-legacy")
    recording = on_own_cache(story((0, 0, 0), (600, 20_000, 0), long=False).recording(charged), charged, misses=False)
    assert examine_session(recording, charged).usage["lifetimes"] == {}


def test_sessions_add_up() -> None:
    one = usage_of(story((0, 0, 20_000), (600, 0, 23_000), long=False))
    other = usage_of(story((0, 0, 20_000), (10, 20_000, 3000), long=True))
    both = sum_of([one, other])
    assert both["whole"]["tokens"] == one["whole"]["tokens"] + other["whole"]["tokens"]
    assert both["again"] == one["again"]
    assert both["lifetimes"]["1h"]["cost"] == pytest.approx(
        one["lifetimes"]["1h"]["cost"] + other["lifetimes"]["1h"]["cost"]
    )
    assert sum_of([])["whole"] == {"cost": 0, "usd": 0, "calls": 0, "tokens": 0}
