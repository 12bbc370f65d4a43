"""Prices: which row a specification names, and what a call costs by it."""

import contextlib
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.errors import BadSetting
from pagein.model.messages import Usage
from pagein.providers.cache_simulator import CacheUsage, bill
from pagein.providers.prices.price_lookup import cost, models_with_prices, prices
from pagein.providers.prices.price_table import ALIASES, CATALOGUE
from pagein.providers.prices.token_prices import Peak


@pytest.mark.parametrize(
    ("recorded", "name"),
    [
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-sonnet-5-5", "claude-sonnet-5-5"),
        ("claude-sonnet-4.6", "claude-sonnet-4-6"),
        ("anthropic/claude-opus-4.6", "claude-opus-4-6"),
        ("anthropic/claude-sonnet-4.5:thinking", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("anthropic.claude-haiku-5-5", "claude-haiku-5-5"),
        ("claude-haiku-4-5@20251001", "claude-haiku-4-5"),
        ("claude-3-5-haiku-latest", "claude-haiku-3-5"),
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("CLAUDE-OPUS-4-6[1m]", "claude-opus-4-6"),
        ("gpt-5.3-codex", "gpt-5.3-codex"),
        ("gpt-5.3-codex-spark", "gpt-5.3-codex"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("openai/gpt-5.5", "gpt-5.5"),
        ("gpt-5.6-sol", "gpt-5.6-sol"),
        ("deepseek/deepseek-v4-pro", "deepseek-v4-pro"),
    ],
)
def test_models_are_known_by_the_ids_that_hosts_record(recorded: str, name: str) -> None:
    assert prices(recorded).name == name


def test_a_price_holds_from_its_day_on() -> None:
    reads = {day: prices(f"claude-sonnet-5-5@{day}").read for day in ("2026-10-06", "2026-10-07", "2027-01-01")}
    assert list(reads.values()) == [0.1, 0.05, 0.05]
    assert prices("claude-sonnet-5-5", date(2026, 10, 6)).read == 0.1
    assert prices("claude-sonnet-5-5").read == 0.05


def test_a_day_before_the_first_price_gets_the_first() -> None:
    assert prices("claude-sonnet-5-5@2026-01-01").valid_from == date(2026, 9, 28)


def test_a_date_in_the_specification_wins_over_the_day_asked_for() -> None:
    assert prices("claude-sonnet-5-5@2026-10-06", date(2026, 11, 1)).read == 0.1


def test_a_window_written_behind_the_model_holds() -> None:
    assert (prices("claude-sonnet-4-5").window, prices("claude-sonnet-4-5[1m]").window) == (200_000, 1_000_000)


@pytest.mark.parametrize("spec", ["sonnet", "claude-opus-9", "gpt-7", "", "gtp-4o"])
def test_an_unknown_model_names_the_generic_form(spec: str) -> None:
    with pytest.raises(BadSetting, match="generic:r="):
        prices(spec)


def test_an_unknown_model_names_its_near_matches() -> None:
    with pytest.raises(BadSetting, match="near: claude-sonnet-5-5"):
        prices("claude-sonet-5-5")


def test_generic_prices_take_their_multipliers_from_the_specification() -> None:
    made = prices("generic:r=.05, w=1.5,w1h=3,out=4,min=512,in=2,window=100000")
    assert (made.read, made.write_5m, made.write_1h, made.output) == (0.05, 1.5, 3, 4)
    assert (made.cache.min_prefix, made.input_usd, made.window) == (512, 2, 100_000)
    assert made.usd(1e6) == 2


def test_generic_prices_are_those_of_the_notes_unless_told_otherwise() -> None:
    made = prices("generic")
    assert (made.read, made.write_5m, made.write_1h, made.output, made.usd(5)) == (0.1, 1.25, 2, 5, None)
    assert prices("generic:cache=openai-legacy").write_5m == 1
    assert prices("generic:cache=openai-legacy").cache.min_prefix == 1024


@pytest.mark.parametrize(
    "spec",
    ["generic:r", "generic:x=1", "generic:r=a", "generic:r=-1", "generic:r=nan", "generic:r=1,r=2", "generic:cache=no"],
)
def test_an_ill_formed_generic_price_is_refused(spec: str) -> None:
    with pytest.raises(BadSetting):
        prices(spec)


def test_a_date_that_does_not_exist_is_refused() -> None:
    with pytest.raises(BadSetting, match="2026-02-30"):
        prices("claude-sonnet-5@2026-02-30")


@given(st.text(max_size=40))
def test_any_specification_gives_prices_or_a_setting_error(spec: str) -> None:
    with contextlib.suppress(BadSetting):
        assert prices(spec).name


def test_every_model_resolves_by_its_own_name_and_every_alias_to_a_model() -> None:
    assert [prices(name).name for name in models_with_prices()] == list(CATALOGUE)
    assert all(prices(alias).name == name for alias, name in ALIASES.items())


def test_a_price_cliff_stands_inside_the_window() -> None:
    assert all(row.cliff.above < row.window for rows in CATALOGUE.values() for row in rows if row.cliff)


def test_rows_are_dated_in_order_sourced_and_sane() -> None:
    for rows in CATALOGUE.values():
        days = [row.valid_from or date.min for row in rows]
        assert days == sorted(set(days))
        for row in rows:
            assert row.source.startswith(("D:", "S:", "M:"))
            assert 0 <= row.read <= 1 <= row.write_5m <= row.write_1h
            assert row.cache.min_prefix >= 0
            assert row.output > 1


@pytest.mark.parametrize(
    ("model", "into", "read", "out"),
    [
        ("claude-opus-5", 5, 0.5, 25),
        ("claude-opus-5-5", 4, 0.2, 20),
        ("claude-fable-5-1", 10, 0.25, 50),
        ("claude-fable-5-2", 8, 0.2, 40),
        ("gpt-6.1-sol", 2, 0.1, 10),
        ("gpt-5.6-luna", 0.2, 0.02, 1.2),
        ("gpt-4.1", 2, 0.5, 8),
        ("deepseek-v4-flash", 0.15, 0.003, 0.6),
        ("deepseek-v4-pro", 0.66, 0.022, 1.98),
    ],
)
def test_a_million_tokens_cost_what_the_table_says(model: str, into: float, read: float, out: float) -> None:
    table = prices(model)
    per_class = [CacheUsage(0, 0, 0, 1e5, 0), CacheUsage(1e5, 0, 0, 0, 0), CacheUsage(0, 0, 0, 0, 1e5)]
    dollars = [table.usd(bill(served, table)) for served in per_class]
    assert dollars == [pytest.approx(each / 10) for each in (into, read, out)]


def test_above_the_cliff_prompt_and_output_cost_more_each_by_its_factor() -> None:
    sol = prices("gpt-5.6-sol")
    below = bill(CacheUsage(0, 0, 0, 272_000, 1000), sol)
    above = bill(CacheUsage(272_001, 0, 0, 0, 1000), sol)
    assert below == pytest.approx(272_000 + 6 * 1000)
    assert above == pytest.approx(2 * 0.1 * 272_001 + 1.5 * 6 * 1000)


@pytest.mark.parametrize(
    ("moment", "peak"),
    [
        (datetime(2026, 11, 20, 0, 59, 59, tzinfo=UTC), False),
        (datetime(2026, 11, 20, 1, tzinfo=UTC), True),
        (datetime(2026, 11, 20, 4, tzinfo=UTC), False),
        (datetime(2026, 11, 20, 9, 59, tzinfo=UTC), True),
        (datetime(2026, 11, 21, 2, tzinfo=UTC), False),
        (datetime(2026, 11, 22, 2, tzinfo=UTC), False),
        (datetime(2026, 11, 23, 2, tzinfo=UTC), True),
    ],
)
def test_peak_hours_are_those_of_working_days(moment: datetime, peak: bool) -> None:  # noqa: FBT001  a column of the table
    flash = prices("deepseek-v4-flash")
    served = CacheUsage(0, 0, 0, 1000, 0)
    assert bill(served, flash, moment.timestamp()) == (2000 if peak else 1000)
    assert bill(served, flash) == 1000


@given(st.floats(0, 4e9))
def test_peak_weekdays_agree_with_the_calendar(at: float) -> None:
    all_day = Peak(2, ((0, 24),))
    assert all_day.covers(at) == (datetime.fromtimestamp(at, tz=UTC).weekday() < 5)


def test_recorded_usage_costs_what_the_same_simulated_call_costs() -> None:
    usage = Usage(fresh=100, read=2000, written=700, written_1h=300, output=50)
    table = prices("claude-haiku-5-5")
    assert cost(usage, table) == pytest.approx(bill(CacheUsage(2000, 400, 300, 100, 50), table))
    assert cost(usage, table) == pytest.approx(100 + 200 + 400 * 1.25 + 300 * 2 + 50 * 5)
