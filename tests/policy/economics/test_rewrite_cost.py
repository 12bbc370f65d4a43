"""What a rewrite costs and when it pays, in figures small enough to check by hand."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.policy.economics.rewrite_cost import (
    CAUTION,
    Account,
    Economics,
    Moment,
    account_after_call,
    account_after_rewrite,
    account_with_previews,
    cliff_savings,
    falls_short,
    is_cold,
    pays,
    readable_tokens,
    rewrite_cost,
)
from pagein.policy.eviction.residency import EMPTY, PRICED, Resident, ResidentSet, plan
from pagein.providers.cache_simulator import Breakpoint, CacheRequest, simulate
from pagein.providers.prices.models.anthropic import CACHE as ANTHROPIC
from pagein.providers.prices.token_prices import Cliff

PRICES = Economics(read=0.1, write=1.25, output=5.0, lifetime=300.0, share=0.02)


def _warm(size: int = 100_000, new: int = 1000, *, user_turn: bool = False) -> Moment:
    return Moment(now=10.0, last=0.0, size=size, new=new, user_turn=user_turn)


def _cold(size: int = 100_000) -> Moment:
    return Moment(now=1000.0, last=0.0, size=size, new=1000)


def _standing(calls: int, tokens: int = 2000, *, reads: bool = False, now: int | None = None) -> ResidentSet:
    standing = EMPTY
    for call in range(calls):
        resident = Resident(
            f"c{call}", 2 * call + 1, 0, tokens, call, before=call * (tokens + 100), kind="read" if reads else "result"
        )
        standing = standing.with_resident(resident, PRICED.rules).at_call(call + 1, PRICED.rules)
    return standing.at_call(calls if now is None else now, PRICED.rules)


def test_a_pause_of_the_lifetime_makes_the_cache_cold_and_an_unknown_time_does_not() -> None:
    assert not is_cold(Moment(300.0, 0.0, 1, 1), PRICES)
    assert is_cold(Moment(300.1, 0.0, 1, 1), PRICES)
    assert not is_cold(Moment(None, 0.0, 1, 1), PRICES)
    assert not is_cold(Moment(301.0, None, 1, 1), PRICES)


@given(st.floats(0.0, 1000.0))
def test_the_engine_takes_for_cold_what_the_simulator_does(gap: float) -> None:
    rules = ANTHROPIC.least(1)
    first = CacheRequest(at=0.0, chain=(1,), cumulative=(100.0,), marks=(Breakpoint(1),))
    again = simulate((first, replace(first, at=gap)), rules)[1]
    assert is_cold(Moment(gap, 0.0, 100, 0), replace(PRICES, lifetime=rules.ttl + rules.grace)) == (again.read == 0.0)


def test_a_rewrite_costs_what_stands_behind_it_and_nothing_where_it_is_cold() -> None:
    assert rewrite_cost(_warm(), PRICES, before=40_000, gain=20_000) == pytest.approx(1.15 * 39_000)
    assert rewrite_cost(_cold(), PRICES, before=40_000, gain=20_000) == 0


def test_where_a_cache_holds_whole_requests_only_nothing_in_front_is_counted_on() -> None:
    units = replace(PRICES, keeps_front=False)
    moment = replace(_warm(), floor=7000.0)
    assert rewrite_cost(moment, units, before=40_000, gain=20_000) == pytest.approx(1.15 * (79_000 + 7000))
    assert rewrite_cost(replace(moment, now=1000.0), units, before=40_000, gain=20_000) == 0


def test_carrying_the_window_is_billed_at_the_prices_of_the_cache() -> None:
    account = account_after_call(Account(), _warm(), PRICES)
    assert account.bill == pytest.approx(0.1 * 99_000 + 1.25 * 1000)
    assert account_after_call(Account(), _cold(), PRICES).bill == pytest.approx(1.25 * 100_000)


def test_what_is_absent_is_saved_at_every_call() -> None:
    assert account_after_call(Account(absent=10_000), _warm(), PRICES).saved == pytest.approx(1000)
    assert account_after_call(Account(absent=10_000), _cold(), PRICES).saved == pytest.approx(12_500)


def test_the_rent_must_have_reached_the_price_and_half_of_it_at_a_user_turn() -> None:
    rich = Account(bill=1e9)
    assert not pays(999, 1000, _warm(), PRICES, rich)
    assert pays(1001, 1000, _warm(), PRICES, rich)
    assert pays(501, 1000, _warm(user_turn=True), PRICES, rich)


def test_where_user_turns_do_not_count_they_are_calls_like_any_other() -> None:
    patient, rich = replace(PRICES, user_turns=False), Account(bill=1e9)
    assert not pays(999, 1000, _warm(user_turn=True), patient, rich)
    settings = replace(PRICED, economics=patient)
    spoken, silent = _warm(user_turn=True), _warm()
    for calls in range(30):
        told = plan(_standing(calls), settings, spoken, rich).epoch
        assert told == plan(_standing(calls), settings, silent, rich).epoch


def test_no_rewrite_costs_more_than_the_bankroll() -> None:
    needed = CAUTION * 1000
    assert not pays(5000, 1000, _warm(), PRICES, Account(bill=49_000, saved=needed - 981))
    assert pays(5000, 1000, _warm(), PRICES, Account(bill=49_000, saved=needed - 979))


def test_a_rewrite_is_paid_from_what_was_saved() -> None:
    after = account_after_rewrite(Account(bill=100, saved=50), _warm(), PRICES, cost=30, gain=7)
    assert (after.bill, after.saved, after.absent) == (100, 20, 7)


def test_a_cold_cache_lets_results_go_after_three_calls_and_a_warm_one_keeps_them() -> None:
    standing = _standing(4)
    assert plan(standing, PRICED, _warm(), Account()).epoch is None
    cold = plan(standing, PRICED, _cold(), Account())
    assert cold.epoch is not None
    assert cold.epoch.reason == "cold cache"
    assert [one.born for one in cold.epoch.page_out] == [0, 1]


def test_a_read_stays_longer_than_other_results_even_where_it_is_cold() -> None:
    assert plan(_standing(15, reads=True), PRICED, _cold(), Account()).epoch is None
    later = plan(_standing(25, reads=True), PRICED, _cold(), Account())
    assert later.epoch is not None
    assert len(later.epoch.page_out) == 6


@given(st.lists(st.tuples(st.integers(1, 5000), st.booleans()), max_size=40), st.integers(0, 60))
def test_sums_are_the_sums_of_the_residents(told: list[tuple[int, bool]], later: int) -> None:
    standing = EMPTY
    for call, (tokens, is_read) in enumerate(told):
        resident = Resident(f"c{call}", call, 0, tokens, call, before=call, kind="read" if is_read else "result")
        standing = standing.with_resident(resident, PRICED.rules).at_call(call + 1, PRICED.rules)
    standing = standing.at_call(max(later, len(told)), PRICED.rules)
    old = list(standing.old())
    assert standing.old_tokens == sum(one.tokens for one in old)
    assert standing.old_gain == sum(one.gain for one in old)
    assert standing.ripe_gain == sum(one.gain for one in standing.ripe())
    assert standing.first_before(ripe_too=False) == min((one.before for one in old), default=0)
    assert len(list(standing.all())) == len(told)
    for one in old:
        assert standing.call - one.born >= (20 if one.kind == "read" else 5)


# --- what the client voids, and price cliffs ---


def test_where_the_client_changed_its_front_a_rewrite_is_free_but_not_beyond_what_was_saved() -> None:
    void = replace(PRICES, void=True)
    assert is_cold(_warm(), void)
    assert rewrite_cost(_warm(), void, before=0, gain=10_000) == 0
    settings = replace(PRICED, economics=void)
    poor = plan(_standing(12), settings, _warm(), Account())
    rich = plan(_standing(12), settings, _warm(), Account(saved=1e6))
    assert poor.epoch is None  # the client may change it back while the cache still holds what was there
    assert rich.epoch is not None
    assert rich.epoch.reason == "changed front"


def test_a_rewrite_that_brings_requests_below_a_price_cliff_pays_sooner() -> None:
    standing = _standing(12)
    gain = standing.old_gain
    steep = replace(PRICES, cliff=Cliff(95_000, 2.0, 1.5))
    settings = replace(PRICED, economics=steep)
    assert cliff_savings(_warm(), steep, gain) == pytest.approx(0.1 * 99_000 + 1.25 * 1000)
    below = replace(steep, cliff=Cliff(101_000, 2.0, 1.5))
    assert cliff_savings(_warm(), below, gain) == 0
    out_of_reach = replace(steep, cliff=Cliff(50_000, 2.0, 1.5))
    assert cliff_savings(_warm(), out_of_reach, gain) == 0
    rich = Account(saved=200_000.0)
    assert plan(standing, settings, _warm(), rich).epoch is None  # twice the price of reading is less than writing anew
    steeper = replace(steep, cliff=Cliff(95_000, 5.0, 5.0))
    made = plan(standing, replace(settings, economics=steeper), _warm(), rich)
    assert made.epoch is not None
    assert made.epoch.reason == "price cliff"
    assert made.account.saved > made.alone.saved - rewrite_cost(
        _warm(), steeper, standing.first_before(ripe_too=False), gain
    )
    assert plan(standing, replace(settings, economics=steeper), _warm(), Account()).epoch is None


def test_above_the_cliff_all_of_a_request_is_billed_at_its_price() -> None:
    steep = replace(PRICES, cliff=Cliff(50_000, 2.0, 1.5))
    moment = replace(_warm(), replied=100)
    usual = account_after_call(Account(), moment, PRICES).bill
    assert account_after_call(Account(), moment, steep).bill == pytest.approx(2 * (usual - 500) + 1.5 * 500)


@pytest.mark.parametrize(("scale", "counts"), [(0.5, 0.5), (1.0, 1.0), (2.0, 1.0)])
def test_what_entered_as_a_preview_is_saved_once_at_each_later_call_and_not_twice_at_its_own(
    scale: float, counts: float
) -> None:
    prices = Economics()
    account = account_with_previews(Account(), prices, 1000, scale)
    moment = Moment(now=10.0, last=5.0, size=5000, new=100, scale=scale)
    entered = account_after_call(account, moment, prices)
    assert account.absent == 1000
    assert entered.saved == account.saved
    assert account_after_call(entered, moment, prices).saved - entered.saved == pytest.approx(
        prices.read * counts * 1000
    )


def test_where_the_cache_is_cold_what_others_may_hold_of_the_front_is_no_part_of_the_bill_that_is_risked() -> None:
    with_front = account_after_call(Account(), replace(_cold(), floor=20_000.0), PRICES).bill
    assert with_front - account_after_call(Account(), _cold(), PRICES).bill == pytest.approx(PRICES.read * 20_000)


def test_what_was_written_in_one_go_is_read_up_to_the_last_entry_that_is_sure_to_be_found() -> None:
    account, marked = Account(anew=50_000, found=8000), replace(PRICES, at_marks=True)
    assert readable_tokens(account, marked, 30_000) == 8000
    assert readable_tokens(account, marked, 8000) == 8000
    assert readable_tokens(account, marked, 5000) == 0, "the only entry is behind the change"
    assert readable_tokens(account, marked, 60_000) == 60_000
    assert readable_tokens(account, PRICES, 30_000) == 30_000
    standing = _standing(12)
    cold = plan(standing, replace(PRICED, economics=marked), _cold(), Account())
    assert cold.epoch is not None
    assert cold.account.anew < _cold().size
    stays = [one for one in standing.all() if one not in cold.epoch.page_out]
    assert cold.account.found <= min(one.before for one in stays)


def test_nothing_leaves_a_window_that_would_be_too_small_to_be_cached_without_it() -> None:
    small = replace(PRICES, least=4096)
    assert falls_short(Moment(now=1.0, last=0.0, size=6000, new=0), small, 4000)
    assert not falls_short(Moment(now=1.0, last=0.0, size=60_000, new=0), small, 4000)
    assert falls_short(
        Moment(now=1.0, last=0.0, size=2000, new=0), small, 1000
    )  # it may grow, and would be cached later
    mostly_new = Moment(now=1.0, last=0.0, size=11_000, new=10_000)
    assert falls_short(mostly_new, small, 3000)  # 7,000 of what stays may be half as much
    assert not falls_short(replace(mostly_new, new=3000), small, 3000)  # all that stays is counted
    short = replace(_cold(), size=12_000, new=0)
    settings = replace(PRICED, economics=replace(PRICES, least=12_000))
    assert plan(_standing(12), settings, short, Account(saved=1e9)).epoch is None


@pytest.mark.parametrize(("scale", "counts"), [(0.5, 0.5), (1.0, 1.0), (2.0, 1.0)])
def test_what_enters_as_a_preview_spares_no_more_than_we_count_however_much_of_a_request_nobody_sees(
    scale: float, counts: float
) -> None:
    spared = account_with_previews(Account(), PRICES, 1000, scale).saved
    assert spared == pytest.approx(counts * account_with_previews(Account(), PRICES, 1000, 1.0).saved)
    assert spared <= PRICES.write * 1000
