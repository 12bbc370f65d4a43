"""What a pause shows about a provider: an anchor behind a prefix of five minutes was read after it, or not."""

from dataclasses import replace

import pytest

from pagein.policy.economics.cache_keepalive import CacheLease, Lifetimes
from pagein.policy.economics.cache_trust import TRIED_AGAIN, UNKNOWN, CacheTrust, has_anchor_held, trust_after

SHORT = Lifetimes(asked=300.0)
ANCHORED = CacheLease(300.0, sent=0.0, held=60_000.0, anchored=50_000.0, until=3600.0, short=0.0, mixed=True)


@pytest.mark.parametrize(("read", "held"), [(50_000.0, True), (36_000.0, True), (34_000.0, False), (0.0, False)])
def test_the_first_request_after_a_pause_shows_whether_the_anchor_was_kept(read: float, held: bool) -> None:  # noqa: FBT001
    assert has_anchor_held(ANCHORED, SHORT, 1200.0, read) is held


@pytest.mark.parametrize(
    ("lease", "at"),
    [
        (ANCHORED, 20.0),  # no pause
        (ANCHORED, 340.0),  # entries of five minutes may live a little longer
        (ANCHORED, 3700.0),  # the anchor has expired
        (replace(ANCHORED, mixed=False), 1200.0),  # nothing but hours in front of it
        (replace(ANCHORED, anchored=0.0), 1200.0),
        (CacheLease(300.0), 1200.0),
    ],
)
def test_other_requests_show_nothing(lease: CacheLease, at: float) -> None:
    assert has_anchor_held(lease, SHORT, at, 0.0) is None


@pytest.mark.parametrize(("read", "held"), [(50_000.0, True), (45_000.0, False), (0.0, False)])
def test_a_prompt_prefix_that_others_kept_readable_shows_nothing_of_the_anchor(read: float, held: bool) -> None:  # noqa: FBT001
    assert has_anchor_held(ANCHORED, SHORT, 1200.0, read, front=45_000.0) is held
    assert has_anchor_held(ANCHORED, SHORT, 1200.0, 50_000.0, front=50_000.0) is None


def test_a_keep_alive_request_that_held_proves_both_and_an_anchor_that_failed_disproves_both() -> None:
    assert trust_after(UNKNOWN, "keep_alive", held=True) == CacheTrust("holds", "holds")
    assert trust_after(UNKNOWN, "keep_alive", held=False) == CacheTrust("unknown", "fails")
    assert trust_after(UNKNOWN, "hour", held=True) == CacheTrust("holds", "unknown")
    assert trust_after(UNKNOWN, "hour", held=False) == CacheTrust("fails", "fails")


def test_renewal_is_shown_by_itself_and_outlasts_the_failure_of_the_others() -> None:
    shown = trust_after(UNKNOWN, "renewal", held=True)
    assert shown == CacheTrust(renewal="holds")
    failed = trust_after(shown, "hour", held=False, at=0.0)
    assert failed == CacheTrust("fails", "fails", "holds")
    assert failed.at(TRIED_AGAIN) == shown


def test_a_practice_that_held_before_fails_at_the_second_loss_in_a_row() -> None:
    once = trust_after(CacheTrust("holds", "holds"), "hour", held=False)
    assert once == UNKNOWN
    assert trust_after(once, "hour", held=False) == CacheTrust("fails", "fails")


@pytest.mark.parametrize(("read", "held"), [(50_000.0, True), (20_000.0, False), (17_000.0, None), (0.0, None)])
def test_a_loss_of_what_the_client_itself_asked_an_hour_for_shows_nothing_of_the_anchor(
    read: float,
    held: bool | None,  # noqa: FBT001
) -> None:
    assert has_anchor_held(ANCHORED, Lifetimes(asked=3600.0), 1200.0, read, front=20_000.0) is held
