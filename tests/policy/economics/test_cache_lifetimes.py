"""When a request is anchored: what pauses would cost on average, against the price of the anchor."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.policy.economics.cache_keepalive import PAUSES, CacheLease, Lifetimes, Request, lease_after_request
from pagein.policy.economics.cache_lifetimes import (
    ShortRewrite,
    UpcomingRequest,
    chosen,
    exposable,
    short_rewrite,
)
from pagein.providers.prices.token_prices import Cliff

SHORT = Lifetimes(asked=300.0)
LONG = Lifetimes(asked=3600.0)
WAITED = CacheLease(300.0, sent=0.0, held=60_000.0, calls=10, stops=1)
"""A session of a client that asks for five minutes, with no anchor, in which somebody let it wait once."""


def _next(new: float = 500.0, at: float = 20.0) -> UpcomingRequest:
    return UpcomingRequest(at, 60_000.0 + new, new)


def test_a_request_with_little_news_is_anchored_when_pauses_would_have_cost_as_much() -> None:
    risk = WAITED.pause_rate * 1.15 * 60_500.0
    assert WAITED.pause_rate == pytest.approx(PAUSES * 50 / 60)
    assert risk > 0.75 * 500
    assert chosen(WAITED, SHORT, _next(), in_hand=376.0) == 3600.0
    assert chosen(WAITED, SHORT, _next(), in_hand=374.0) == 300.0  # the anchor is paid from the sum in hand
    assert chosen(WAITED, SHORT, _next(new=5000.0), in_hand=1e9) == 300.0  # dear news wait
    assert chosen(replace(WAITED, feared=4000.0), SHORT, _next(new=5000.0), in_hand=1e9) == 3600.0


def test_above_a_price_cliff_an_anchor_costs_more_of_the_sum_in_hand() -> None:
    steep = replace(SHORT, cliff=Cliff(above=60_000, input=5.0, output=5.0))
    assert chosen(WAITED, steep, _next(), in_hand=5 * 376.0) == 3600.0
    assert chosen(WAITED, steep, _next(), in_hand=5 * 374.0) == 300.0
    anchor = Request(20.0, 3600.0, 60_500.0, 500.0, 500.0)
    assert lease_after_request(WAITED, SHORT, anchor).saved == -375.0
    assert lease_after_request(WAITED, steep, anchor).saved == 5 * -375.0
    spared = replace(anchor, lifetime=300.0)
    client = replace(WAITED, lifetime=3600.0)
    assert lease_after_request(client, replace(steep, asked=3600.0), spared).saved == 375.0, (
        "savings count at their least"
    )


def test_a_session_that_nobody_lets_wait_buys_no_anchor() -> None:
    assert chosen(replace(WAITED, stops=0), SHORT, _next(), in_hand=1e9) == 300.0


def test_a_request_that_may_have_lost_its_cache_buys_no_anchor() -> None:
    anchored = replace(WAITED, anchored=60_000.0, until=3600.0, feared=1e6)
    assert chosen(anchored, SHORT, _next(at=200.0), in_hand=1e9) == 3600.0
    assert chosen(anchored, SHORT, _next(at=400.0), in_hand=1e9) == 300.0


def test_a_request_whose_cache_entry_may_not_be_found_buys_no_anchor() -> None:
    assert chosen(WAITED, SHORT, _next(), in_hand=376.0) == 3600.0
    assert chosen(WAITED, SHORT, replace(_next(), is_found=False), in_hand=1e9) == 300.0


def test_an_anchor_begins_the_sum_anew_and_pauses_make_the_next_ones_more_frequent() -> None:
    feared = lease_after_request(WAITED, SHORT, Request(20.0, 300.0, 60_500.0, 500.0, 500.0))
    assert feared.feared == pytest.approx(WAITED.pause_rate * 1.15 * 60_500.0)
    anchored = lease_after_request(WAITED, SHORT, Request(20.0, 3600.0, 60_500.0, 500.0, 500.0))
    assert (anchored.feared, anchored.anchored, anchored.mixed) == (0.0, 60_500.0, False)
    back = lease_after_request(anchored, SHORT, Request(1000.0, 300.0, 61_000.0, 500.0, 500.0))
    assert back.returns == 1
    assert back.pause_rate > anchored.pause_rate
    assert back.saved > 0.9 * 1.15 * 60_500.0


def test_an_untested_provider_gets_one_anchor_of_a_session_and_an_hour_stays_an_hour() -> None:
    untested = replace(SHORT, is_proven=False)
    first = replace(WAITED, feared=1e6, short=0.0)
    assert chosen(first, untested, _next(), in_hand=1e9) == 3600.0
    assert chosen(replace(first, anchored=60_000.0, until=3600.0), untested, _next(), in_hand=1e9) == 300.0
    hour = CacheLease(3600.0, sent=0.0, held=60_000.0, anchored=60_000.0, until=3600.0)
    assert chosen(hour, LONG, _next(), in_hand=2000.0) == 300.0
    assert chosen(hour, replace(LONG, is_proven=False), _next(), in_hand=1e9) == 3600.0


def test_an_untested_provider_gets_no_anchor_where_reads_may_not_have_renewed_the_window() -> None:
    """The anchor's request could write the whole window at the long price."""
    untested = replace(SHORT, is_proven=False)
    lease = lease_after_request(replace(WAITED, feared=1e6), untested, Request(10.0, 300.0, 60_000.0, 0.0, 500.0))
    assert chosen(lease, untested, _next(at=200.0), in_hand=1e9) == 3600.0
    assert chosen(lease, untested, _next(at=300.0), in_hand=1e9) == 300.0
    for at in (200.0, 365.0):  # the entry of 10.0 is read, once within its TTL and once just after it
        lease = lease_after_request(lease, untested, Request(at, 300.0, 60_000.0, 0.0, 0.0))
    assert chosen(lease, untested, _next(at=375.0), in_hand=1e9) == 300.0
    shown = lease_after_request(lease, untested, Request(400.0, 300.0, 60_000.0, 0.0, 0.0))
    assert chosen(shown, untested, _next(at=410.0), in_hand=1e9) == 3600.0
    lost = lease_after_request(lease, untested, Request(400.0, 300.0, 60_000.0, 0.0, 60_000.0))
    rewritten = lease_after_request(lease, untested, Request(400.0, 300.0, 60_000.0, 0.0, 0.0, rewritten=True))
    paused = lease_after_request(lease, untested, Request(700.0, 300.0, 60_000.0, 0.0, 0.0))
    for one in (lost, rewritten, paused):
        assert one.sent is not None
        again = lease_after_request(one, untested, Request(one.sent + 200, 300.0, 60_000.0, 0.0, 0.0))
        assert chosen(replace(again, feared=1e6), untested, _next(at=one.sent + 290), in_hand=1e9) == 300.0


@given(st.floats(0, 1e5), st.floats(0, 1e5), st.floats(0, 1e5), st.integers(0, 9), st.floats(1, 4000))
def test_a_client_of_five_minutes_never_pays_more_than_is_in_hand(
    feared: float, new: float, in_hand: float, stops: int, at: float
) -> None:
    lease = replace(WAITED, feared=feared, stops=stops)
    if chosen(lease, SHORT, UpcomingRequest(at, 60_000.0 + new, new), in_hand) == 3600.0:
        assert 0.75 * new <= in_hand


SAID = UpcomingRequest(20.0, 64_000.0, 4000.0, said=300.0)


def test_behind_the_last_answer_as_much_is_exposed_as_the_sum_in_hand_pays_for() -> None:
    lease = CacheLease(3600.0, sent=0.0, held=60_000.0, calls=10, anchored=60_000.0, until=3600.0)
    assert exposable(lease, LONG, SAID, in_hand=0.0) == 0
    assert exposable(lease, LONG, SAID, in_hand=1150.0) == pytest.approx(1000.0)
    lost = 1000.0 * (1.9 - 0.75)  # an hour's price to write it again, less what the short TTL spared
    assert lost == pytest.approx(1150.0)
    assert exposable(lease, LONG, SAID, in_hand=1e9) == 0, "all of it is covered, and an anchor is not due"
    assert exposable(replace(lease, feared=4000.0), LONG, SAID, in_hand=1e9) == 3700.0


def test_a_client_of_five_minutes_buys_its_anchor_behind_the_last_answer_for_the_price_of_the_answer() -> None:
    lease = replace(WAITED, feared=300.0)
    assert exposable(lease, SHORT, SAID, in_hand=0.75 * 300 + 1) == 3700.0
    assert exposable(lease, SHORT, SAID, in_hand=0.75 * 300 - 1) == 0
    assert exposable(lease, replace(SHORT, is_proven=False), replace(SAID, at=700.0), in_hand=1e9) == 0


def test_a_request_whose_cache_may_be_lost_is_not_split() -> None:
    lease = CacheLease(300.0, sent=0.0, held=60_000.0, calls=10, feared=4000.0)
    assert exposable(lease, LONG, SAID, in_hand=1e9) > 0
    assert exposable(lease, LONG, replace(SAID, is_found=False), in_hand=1e9) == 0
    assert exposable(lease, LONG, replace(SAID, at=400.0), in_hand=1e9) == 0


def _rewrite(in_hand: float, *, at: float = 20.0, lease: CacheLease | None = None) -> ShortRewrite:
    held = lease or CacheLease(3600.0, sent=0.0, held=60_000.0, anchored=60_000.0, until=3600.0)
    found = short_rewrite(held, LONG, UpcomingRequest(at, 61_000.0, 1000.0), in_hand)
    assert found is not None
    return found


def test_a_rewrite_has_the_short_lifetime_where_what_it_leaves_in_hand_pays_for_the_whole_window() -> None:
    cost, gain = 1.15 * 20_000, 10_000
    needed = 1.5 * cost + 1.9 * (61_000 - gain)
    assert _rewrite(needed + 1).is_covered(cost, gain)
    assert not _rewrite(needed - 1).is_covered(cost, gain)
    assert _rewrite(needed - 1).is_covered(cost - 10, gain)
    assert _rewrite(0.0).write == 1.25


def test_a_rewrite_behind_a_long_pause_is_free_and_spares_the_higher_price_of_all_that_it_writes() -> None:
    lease = CacheLease(3600.0, sent=0.0, held=60_000.0, calls=50)
    new = UpcomingRequest(9000.0, 61_000.0, 61_000.0)
    covered = 1.9 * 51_000 - 0.75 * 51_000
    for in_hand, is_covered in ((covered + 1, True), (covered - 1, False)):
        found = short_rewrite(lease, LONG, new, in_hand)
        assert found is not None
        assert found.is_covered(0.0, 10_000) == is_covered


def test_a_rewrite_of_few_tokens_anchors_the_window_again_when_pauses_would_cost_as_much() -> None:
    assert _rewrite(1e9).is_covered(1.15 * 20_000, 0)
    assert not _rewrite(1e9).is_covered(1.15 * 500, 0)


def test_a_client_of_five_minutes_pays_no_hour_for_what_a_rewrite_writes_again() -> None:
    lease = replace(WAITED, feared=1e6)
    assert chosen(lease, SHORT, _next(), in_hand=1e9) == 3600.0
    assert short_rewrite(lease, SHORT, _next(), in_hand=1e9) is None


def test_behind_another_cache_a_rewrite_has_the_client_s_lifetime() -> None:
    lease = CacheLease(3600.0, sent=0.0, held=60_000.0, calls=50, elsewhere=3600.0)
    assert not _rewrite(1e9, lease=lease).is_covered(1.15 * 20_000, 0)
