"""Lifetimes and keep-alive requests: chosen only where what was saved pays for them, in figures small enough to check by hand."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.policy.keepalive import BESIDE, Lease, Lifetimes, Request, begun_anew, chosen, keeps, kept, sent

LONG = Lifetimes(asked=3600.0)
SHORT = Lifetimes(asked=300.0)


def _request(at: float, lifetime: float = 300.0, size: float = 50_000.0, new: float = 1000.0) -> Request:
    return Request(at, lifetime, size, new, new)


def _working(saved: float = 50_000.0) -> Lease:
    """A session that was written for the short lifetime, at second 0."""
    return Lease(300.0, saved=saved, sent=0.0, held=50_000.0)


def test_a_host_that_asks_for_the_short_lifetime_gets_it() -> None:
    assert chosen(Lease(300.0), SHORT, size=50_000, new=50_000, spare=1e9) == 300.0


def test_the_short_lifetime_is_chosen_where_what_it_saves_pays_for_one_keep_alive_request() -> None:
    price = LONG.kept_for(10_000)
    assert price == pytest.approx(0.1 * 10_000 + BESIDE)
    enough = price / 0.75
    assert chosen(Lease(3600.0), LONG, size=10_000, new=enough + 1, spare=0) == 300.0
    assert chosen(Lease(3600.0), LONG, size=10_000, new=enough - 1, spare=0) == 3600.0


def test_every_token_written_for_the_short_lifetime_saves_what_the_long_one_costs_more() -> None:
    first = sent(Lease(3600.0), LONG, _request(0.0, new=20_000))
    assert first.saved == pytest.approx(0.75 * 20_000)
    assert sent(first, LONG, _request(10.0, 3600.0)).saved == first.saved
    assert sent(Lease(300.0), SHORT, _request(0.0)).saved == 0


def test_a_pause_that_the_hosts_own_lifetime_would_have_bridged_is_a_loss() -> None:
    lost = sent(_working(), LONG, Request(400.0, 300.0, 51_000.0, 1000.0, 51_000.0))
    assert lost.saved == pytest.approx(50_000 + 0.75 * 1000 - 1.15 * 50_000)


def test_what_the_provider_lost_by_itself_is_not_our_loss_and_takes_what_was_kept_alive() -> None:
    alive = kept(_working(), LONG, 280.0, 5000.0)
    missed = sent(alive, LONG, Request(290.0, 300.0, 51_000.0, 1000.0, 51_000.0))
    assert missed.saved == pytest.approx(45_000 + 0.75 * 1000)
    assert missed.anchored == 0


def test_a_window_kept_alive_outlasts_the_pause_and_no_entry_in_front_of_its_end_does() -> None:
    alive = kept(_working(), LONG, 280.0, 5400.0)
    assert alive.saved == pytest.approx(44_600)
    assert alive.alive(3880.0)
    assert not alive.alive(3881.0)
    back = sent(alive, LONG, _request(2000.0))
    assert back.whole
    assert back.until == 2000.0 + 3600.0
    assert not sent(alive, LONG, _request(290.0)).whole


def test_a_rewrite_or_a_window_begun_anew_ends_what_was_kept_alive() -> None:
    alive = kept(_working(), LONG, 280.0, 5000.0)
    assert sent(alive, LONG, replace(_request(290.0), rewritten=True)).anchored == 0
    assert not begun_anew(alive).alive(301.0)


def test_nothing_is_kept_alive_that_is_not_paid_for() -> None:
    price = LONG.kept_for(50_000)
    assert keeps(_working(price), LONG, spare=0)
    assert not keeps(_working(price - 1), LONG, spare=0)
    assert keeps(_working(0), LONG, spare=price)


def test_nothing_is_kept_alive_that_the_long_lifetime_holds_anyway() -> None:
    assert not keeps(replace(_working(), lifetime=3600.0), LONG, spare=1e9)
    held = replace(_working(), anchored=49_000.0, until=3000.0)
    assert not keeps(held, LONG, spare=1e9)


def test_where_the_host_asks_for_the_short_lifetime_somebody_must_have_come_back_before() -> None:
    assert not keeps(_working(), SHORT, spare=1e9)
    returned = sent(_working(), SHORT, Request(1000.0, 300.0, 50_000.0, 0.0, 50_000.0))
    assert keeps(returned, SHORT, spare=1e9)


_STEPS = st.lists(st.tuples(st.floats(1.0, 8000.0), st.floats(0.0, 20_000.0)), min_size=1, max_size=30)


@given(_STEPS, st.sampled_from([LONG, SHORT]))
def test_it_costs_no_more_than_what_the_host_asks_for_but_for_tails_not_worth_a_request(
    steps: list[tuple[float, float]], terms: Lifetimes
) -> None:
    """A session that only grows, on a cache that loses nothing: the bill of our lifetimes and keep-alive requests against the host's."""
    lease, now, size = Lease(terms.asked), 0.0, 0.0
    ours = theirs = 0.0
    held_long = float("-inf")  # until when a keep-alive request holds the window
    last: float | None = None
    for gap, new in steps:
        if last is not None and gap > 280.0 and keeps(lease, terms, spare=0.0):
            ours += terms.kept_for(size)
            lease = kept(lease, terms, last + 280.0, terms.kept_for(size))
            held_long = last + 280.0 + 3600.0
        now += gap
        lifetime = chosen(lease, terms, size + new, new, spare=0.0)
        warm = last is not None and (now - last <= lease.lifetime or now <= held_long)
        theirs_warm = last is not None and now - last <= terms.asked
        bigger = size + new
        written = new if warm else bigger
        ours += terms.read * (bigger - written) + terms.price(lifetime) * written
        theirs += (
            (terms.read * size + terms.price(terms.asked) * new) if theirs_warm else terms.price(terms.asked) * bigger
        )
        lease = sent(lease, terms, Request(now, lifetime, bigger, new, written))
        held_long = lease.until if lease.anchored else float("-inf")
        size, last = bigger, now
    assert ours <= theirs + _tails(steps)


def _tails(steps: list[tuple[float, float]]) -> float:
    """What may be lost because it was not worth a keep-alive request: less than one, per pause."""
    size = sum(new for _, new in steps)
    return sum(gap > 280.0 for gap, _ in steps) * (0.1 * size + BESIDE) / 0.7
