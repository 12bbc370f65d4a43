"""Why a cache was read less than it might have been."""

from dataclasses import replace

import pytest

from pagein.providers.caches.cache_doctor import CallFacts, diagnose
from pagein.providers.caches.cache_values import Reason
from pagein.providers.prices.models.anthropic import CACHE as ANTHROPIC
from pagein.providers.prices.models.deepseek import CACHE as DEEPSEEK

MISSED = CallFacts(prompt=10_000, read=0, expected=9_000, predicted=0, reason="not_found", rules=ANTHROPIC)


def test_a_call_that_read_what_was_left_is_well() -> None:
    assert diagnose(replace(MISSED, read=8_900, predicted=9_000)).cause == "none"


def test_a_first_call_has_nothing_to_read() -> None:
    assert diagnose(replace(MISSED, expected=None)).cause == "first"


def test_what_the_simulator_says_was_there_and_was_not_read_is_unexplained() -> None:
    found = diagnose(replace(MISSED, predicted=9_000, reason="hit"))
    assert (found.cause, found.who, found.shortfall) == ("unexplained", "provider", 9_000)


def test_a_change_does_not_explain_a_read_that_fell_short_of_what_it_left() -> None:
    assert diagnose(replace(MISSED, predicted=5_000, place=7)).cause == "unexplained"


def test_our_own_epoch_is_ours_unless_sizes_that_the_provider_told_prove_that_it_lost_more() -> None:
    ours = replace(MISSED, predicted=5_000, place=7, by_us=True)
    assert diagnose(ours).who == "us"
    assert diagnose(replace(ours, read=4_000)).who == "us"
    assert diagnose(replace(ours, proven=1_000)).who == "us"
    lost = diagnose(replace(ours, proven=5_000))
    assert (lost.cause, lost.who) == ("unexplained", "provider")


def test_an_error_of_the_estimate_is_told_as_one() -> None:
    found = diagnose(replace(MISSED, predicted=9_000, read=6_000, proven=6_100))
    assert (found.cause, found.who) == ("estimate", "nobody")
    assert "estimate" in found.words


def test_the_first_part_of_the_prompt_that_changed_is_named() -> None:
    found = diagnose(replace(MISSED, changed=("headers", "system", "tools"), place=0))
    assert (found.cause, found.who) == ("tools", "client")


@pytest.mark.parametrize(("by_us", "who", "words"), [(True, "us", "pagein"), (False, "client", "the client")])
def test_a_changed_message_is_named_with_who_changed_it(by_us: bool, who: str, words: str) -> None:  # noqa: FBT001 -- a case
    found = diagnose(replace(MISSED, place=4, by_us=by_us))
    assert (found.cause, found.who, found.place) == ("messages", who, 4)
    assert words in found.words
    assert "message 4" in found.words


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("expired", "expired"),
        ("unanswered", "unanswered"),
        ("no_marks", "no marks"),
        ("below_minimum", "below minimum"),
        ("no_cache", "no cache"),
    ],
)
def test_what_the_simulator_knows_is_the_explanation(reason: Reason, cause: str) -> None:
    found = diagnose(replace(MISSED, reason=reason))
    assert found.cause == cause
    assert found.words


def test_too_many_blocks_behind_the_last_mark_are_told_only_where_there_is_a_look_back() -> None:
    assert diagnose(replace(MISSED, blocks=25)).cause == "look-back"
    assert diagnose(replace(MISSED, blocks=19)).cause == "unexplained"
    assert diagnose(replace(MISSED, blocks=25, rules=replace(DEEPSEEK, lookback=None))).cause == "unexplained"


def test_a_shorter_prompt_is_not_held_to_more_than_it_has() -> None:
    assert diagnose(replace(MISSED, prompt=3_000, read=2_900, predicted=2_900, reason="hit")).cause == "none"
