"""Lifetimes and keep-alive requests: chosen only where what was saved pays for them, in figures small enough to check by hand."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pagein.policy.economics.cache_keepalive import (
    CacheLease,
    Lifetimes,
    Request,
    lease_after_keepalive,
    lease_after_request,
    lease_after_restart,
    lease_after_switch,
    lease_after_unreported,
    wants_keepalive,
)
from pagein.policy.economics.cache_lifetimes import UpcomingRequest, chosen
from pagein.providers.prices.token_prices import Cliff

LONG = Lifetimes(asked=3600.0)
SHORT = Lifetimes(asked=300.0)


def _request(at: float, lifetime: float = 300.0, size: float = 50_000.0, new: float = 1000.0) -> Request:
    return Request(at, lifetime, size, new, new)


def _working(saved: float = 50_000.0) -> CacheLease:
    """A session that was written for the short lifetime, at second 0."""
    return CacheLease(300.0, saved=saved, sent=0.0, held=50_000.0)


def _asked(size: float, new: float, *, at: float = 10.0, rewritten: bool = False) -> UpcomingRequest:
    return UpcomingRequest(at, size, new, rewritten)


def test_a_host_that_asks_for_the_short_lifetime_gets_it() -> None:
    assert chosen(CacheLease(300.0), SHORT, _asked(50_000, 50_000), in_hand=1e9) == 300.0


def test_the_short_lifetime_is_chosen_where_what_is_in_hand_pays_for_all_that_a_pause_would_lose() -> None:
    new = 1000.0
    lost = LONG.lost_with(10_000, 10_000)
    assert lost == pytest.approx(1.9 * 10_000)
    enough = lost - 0.75 * new
    assert chosen(CacheLease(3600.0), LONG, _asked(10_000, new), in_hand=enough + 1) == 300.0
    assert chosen(CacheLease(3600.0), LONG, _asked(10_000, new), in_hand=enough - 1) == 3600.0


def test_what_an_anchor_holds_is_not_at_risk_unless_the_window_is_rewritten() -> None:
    anchored = lease_after_request(CacheLease(3600.0), LONG, _request(0.0, 3600.0, 50_000.0, 50_000.0))
    assert anchored.anchored == 50_000
    in_hand = LONG.lost_with(1000, 51_000)
    assert chosen(anchored, LONG, _asked(51_000, 1000), in_hand) == 300.0
    assert chosen(anchored, LONG, _asked(51_000, 1000, rewritten=True), in_hand) == 3600.0
    assert chosen(anchored, LONG, _asked(51_000, 1000, at=4000.0), in_hand) == 3600.0
    short = lease_after_request(anchored, LONG, _request(10.0, 300.0, 51_000.0))
    assert short.anchored == 50_000
    assert short.cached_tokens(500.0) == 50_000
    lost = lease_after_request(
        short, LONG, Request(20.0, 300.0, 52_000.0, 1000.0, 12_000.0)
    )  # the provider lost a fifth
    assert lost.anchored == 0


def test_no_rewrite_is_free_while_an_hour_entry_that_no_answer_proves_may_live() -> None:
    anchored = lease_after_request(CacheLease(3600.0), LONG, _request(0.0, 3600.0, 50_000.0, 50_000.0))
    shrunk = lease_after_request(anchored, LONG, Request(10.0, 300.0, 49_900.0, 0.0, 8.0))  # 100 hidden tokens left
    assert shrunk.anchored == 0  # nothing is spared because of it
    assert shrunk.expires() == 3610.0
    assert shrunk.is_paused(400.0)
    again = lease_after_request(shrunk, LONG, Request(400.0, 300.0, 50_900.0, 1000.0, 1000.0))
    assert again.expires() == 4000.0
    assert again.whole
    rewritten = lease_after_request(again, LONG, Request(500.0, 300.0, 40_000.0, 1000.0, 20_000.0, rewritten=True))
    assert rewritten.expires() == 4100.0  # entries in front of the first change
    assert not rewritten.whole
    lost = lease_after_request(again, LONG, Request(500.0, 300.0, 51_000.0, 100.0, 46_000.0, front=5000.0))
    assert lost.expires() == 800.0  # nothing behind the prompt prefix was read


def test_a_client_that_asks_for_the_short_lifetime_would_have_lost_the_hour_entry_itself() -> None:
    alive = lease_after_keepalive(CacheLease(300.0, saved=9e9, sent=0.0, held=50_000.0), SHORT, 280.0, 5400.0)
    shrunk = lease_after_request(alive, SHORT, Request(290.0, 300.0, 49_900.0, 0.0, 8.0))
    assert shrunk.expires() == 590.0


def test_a_request_without_a_reported_reply_renews_the_hour_entry_that_may_live() -> None:
    anchored = lease_after_request(CacheLease(3600.0), LONG, _request(0.0, 3600.0, 50_000.0, 50_000.0))
    later = lease_after_unreported(anchored, LONG, 1000.0, 300.0)
    assert later.expires() == 4600.0
    assert later.anchored == 0
    assert lease_after_unreported(later, LONG, 9000.0, 300.0).expires() == 9300.0


def test_above_a_price_cliff_all_that_may_be_lost_is_dearer() -> None:
    steep = replace(LONG, cliff=Cliff(40_000, 5.0, 5.0))
    assert steep.keepalive_price(50_000, 100) == pytest.approx(5 * LONG.keepalive_price(50_000, 100))
    assert steep.lost_with(1000, 50_000) == pytest.approx(5 * LONG.lost_with(1000, 50_000))
    assert steep.keepalive_price(30_000) == LONG.keepalive_price(30_000)


def test_every_token_written_for_the_short_lifetime_saves_what_the_long_one_costs_more() -> None:
    first = lease_after_request(CacheLease(3600.0), LONG, _request(0.0, new=20_000))
    assert first.saved == pytest.approx(0.75 * 20_000)
    assert lease_after_request(first, LONG, _request(10.0, 3600.0)).saved == first.saved
    assert lease_after_request(CacheLease(300.0), SHORT, _request(0.0)).saved == 0


def test_a_pause_that_the_hosts_own_lifetime_would_have_bridged_is_a_loss() -> None:
    lost = lease_after_request(_working(), LONG, Request(400.0, 300.0, 51_000.0, 1000.0, 51_000.0))
    assert lost.saved == pytest.approx(50_000 + 0.75 * 1000 - 1.15 * 50_000)


def test_what_the_provider_lost_by_itself_is_not_our_loss_and_takes_what_was_kept_alive() -> None:
    alive = lease_after_keepalive(_working(), LONG, 280.0, 5000.0)
    missed = lease_after_request(alive, LONG, Request(290.0, 300.0, 51_000.0, 1000.0, 51_000.0))
    assert missed.saved == pytest.approx(45_000 + 0.75 * 1000)
    assert missed.anchored == 0


def test_a_window_kept_alive_outlasts_the_pause_and_no_entry_in_front_of_its_end_does() -> None:
    alive = lease_after_keepalive(_working(), LONG, 280.0, 5400.0)
    assert alive.saved == pytest.approx(44_600)
    assert alive.alive(3880.0)
    assert not alive.alive(3881.0)
    back = lease_after_request(alive, LONG, _request(2000.0, size=51_000.0))
    assert back.whole
    assert back.until == 2000.0 + 3600.0
    assert not lease_after_request(alive, LONG, _request(290.0)).whole


def test_after_a_pause_nothing_in_front_is_counted_on_although_less_was_read_than_was_anchored() -> None:
    alive = lease_after_keepalive(_working(), LONG, 280.0, 5000.0)
    shrunk = Request(2000.0, 300.0, 50_500.0, 1000.0, 1000.0, front=5000.0)  # 500 hidden tokens left
    back = lease_after_request(alive, SHORT, shrunk)
    assert back.anchored == 0
    assert back.whole
    assert lease_after_request(back, SHORT, _request(2010.0)).whole
    assert not lease_after_request(back, SHORT, replace(_request(2010.0), rewritten=True)).whole
    assert not lease_after_request(alive, SHORT, replace(shrunk, written=45_500.0)).whole, "all but the front is new"


def test_a_rewrite_or_a_window_begun_anew_ends_what_was_kept_alive() -> None:
    alive = lease_after_keepalive(_working(), LONG, 280.0, 5000.0)
    assert lease_after_request(alive, LONG, replace(_request(290.0), rewritten=True)).anchored == 0
    assert not lease_after_restart(alive).alive(301.0)


def test_what_another_models_cache_may_lose_is_written_off_and_nothing_more_is_exposed_beside_it() -> None:
    gone = lease_after_switch(_working(saved=100_000.0), LONG)
    assert gone.saved == pytest.approx(100_000 - LONG.lost_with(50_000, 50_000))
    assert gone.cached_tokens(1.0) == 0
    assert gone.expires() == 3600.0  # so no rewrite is free before
    assert chosen(gone, LONG, _asked(1000, 1000, at=3600.0), in_hand=1e9) == 3600.0
    assert chosen(gone, LONG, _asked(1000, 1000, at=3601.0), in_hand=1e9) == 300.0
    anchored = lease_after_request(CacheLease(3600.0), LONG, _request(0.0, 3600.0, 50_000.0, 50_000.0))
    assert lease_after_switch(anchored, LONG).saved == anchored.saved
    assert lease_after_switch(_working(), SHORT).saved == _working().saved


def test_nothing_is_kept_alive_that_is_not_paid_for_with_its_answer() -> None:
    price = LONG.keepalive_price(50_000, 1000)
    assert price >= 0.1 * 50_000 + 2.0 * 1000
    assert wants_keepalive(_working(price), LONG, 0, answer=1000)
    assert not wants_keepalive(_working(price - 1), LONG, 0, answer=1000)
    assert wants_keepalive(_working(0), LONG, price, answer=1000)


def test_nothing_is_kept_alive_that_the_long_lifetime_holds_anyway() -> None:
    assert not wants_keepalive(replace(_working(), lifetime=3600.0), LONG, in_hand=1e9)
    held = replace(_working(), anchored=49_000.0, until=3000.0)
    assert not wants_keepalive(held, LONG, in_hand=1e9)


def test_where_the_host_asks_for_the_short_lifetime_somebody_must_have_come_back_before() -> None:
    assert not wants_keepalive(_working(), SHORT, in_hand=1e9)
    returned = lease_after_request(_working(), SHORT, Request(1000.0, 300.0, 50_000.0, 0.0, 50_000.0))
    assert wants_keepalive(returned, SHORT, in_hand=1e9)


_STEPS = st.lists(
    st.tuples(st.floats(1.0, 8000.0), st.floats(0.0, 20_000.0), st.floats(0.0, 5000.0), st.booleans()),
    min_size=1,
    max_size=30,
)
_IN_HAND = st.floats(0.0, 100_000.0)


@example([(1.0, 1.0, 0.0, False), (301.0, 1.0, 0.0, False), (301.0, 0.0, 0.0, False)], LONG, 3.0)  # two losses in turn
@given(_STEPS, st.sampled_from([LONG, SHORT]), _IN_HAND)
def test_it_never_costs_more_than_what_the_host_asks_for_and_what_was_in_hand(
    steps: list[tuple[float, float, float, bool]], terms: Lifetimes, in_hand: float
) -> None:
    """A session that only grows, on a cache that loses nothing: the bill of our lifetimes and keep-alive requests against the host's, after
    every call, whether keep-alive requests are answered or fail.
    """
    lease, now, size, answer = CacheLease(terms.asked), 0.0, 0.0, 0.0
    ours = theirs = 0.0
    last: float | None = None
    for gap, new, says, works in steps:
        if works and last is not None and gap > 280.0 and wants_keepalive(lease, terms, in_hand, answer):
            ours += terms.keepalive_price(size, answer)
            lease = lease_after_keepalive(lease, terms, last + 280.0, terms.keepalive_price(size, answer))
        assert ours <= theirs + in_hand + 1e-6
        now += gap
        bigger = size + answer + new
        lifetime = chosen(lease, terms, UpcomingRequest(now, bigger, bigger - size), in_hand)
        written = bigger - lease.cached_tokens(now)
        theirs_written = bigger - (size if last is not None and now - last <= terms.asked else 0.0)
        ours += terms.read * (bigger - written) + terms.price(lifetime) * written
        theirs += terms.read * (bigger - theirs_written) + terms.price(terms.asked) * theirs_written
        lease = lease_after_request(lease, terms, Request(now, lifetime, bigger, bigger - size, written))
        size, last, answer = bigger, now, says
        assert ours <= theirs + in_hand + 1e-6
