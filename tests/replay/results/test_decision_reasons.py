"""The reasons of pagein's decisions: their savings add up to the bill, and the reason of an inaction is the true one."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagein import wiring
from pagein.model.bill import Why
from pagein.policy.economics.rewrite_cost import Account
from pagein.policy.eviction.residency import PRICED
from pagein.providers.prices.price_lookup import Prices, prices
from pagein.replay.policies import decision_worth as reckoned
from pagein.replay.policies.baselines import APPEND
from pagein.replay.policies.ledger import Ledger
from pagein.replay.policies.pagein_policy import PageinPolicy, settings_for
from pagein.replay.session_bill import ReplayTerms, bill_session
from pagein.testing.story import Story


def _why(story: Story, charged: Prices, *, stress: bool = False) -> tuple[Why, float]:
    """What is told, and what pagein saved against appending by the bills."""
    names = ("append", "pagein")
    billed = bill_session(
        story.recording(charged), ReplayTerms(charged, wiring.open_for_replay, names, stress, why=True)
    )
    rows = billed.bill["policies"]
    assert billed.why is not None
    return billed.why, rows["append"]["cost"] - rows["pagein"]["cost"]


def _told(why: Why) -> float:
    """All that is told to have been saved, part by part."""
    return why["lifetimes"] + sum(one["realised"] or 0.0 for one in why["decisions"])


def _with_a_pause(story: Story) -> Story:
    story.asks()
    for _ in range(14):
        story.works(950)  # too small to be shown once
    story.waits(2000).asks("good morning")
    for _ in range(14):
        story.works(800)
    return story.says()


def test_a_session_is_told_decision_by_decision(story: Story, charged: Prices) -> None:
    story.asks().works(9000)
    why, saved = _why(_with_a_pause(story), charged)
    first, second = why["decisions"][:2]
    assert (first["kind"], first["reason"], first["paged"], first["call"]) == ("previews", "big output", 1, 1)
    assert (second["kind"], second["reason"]) == ("epoch", "cold cache")
    assert second["paged"] >= 5
    assert second["at"] > 2000
    assert why["saved"] == pytest.approx(saved, abs=1)
    assert _told(why) == pytest.approx(why["saved"], abs=1)


def test_a_rewrite_of_a_cold_cache_is_expected_to_save_at_least_what_is_not_written(
    story: Story, charged: Prices
) -> None:
    (epoch,) = _why(_with_a_pause(story), charged)[0]["decisions"][:1]
    assert epoch["expected"] >= 1.25 * epoch["tokens"] * 0.9
    assert epoch["realised"] is not None
    assert epoch["realised"] >= 1.25 * epoch["tokens"]
    assert epoch["bankroll"] > 0


steps = st.lists(
    st.tuples(st.integers(20, 30_000), st.sampled_from([5.0, 60.0, 400.0]), st.booleans()), min_size=1, max_size=40
)


@settings(max_examples=40, deadline=None)
@given(told=steps, stress=st.booleans())
def test_the_savings_of_the_decisions_add_up_to_the_sessions_saving(
    *, told: list[tuple[int, float, bool]], stress: bool
) -> None:
    charged, story = prices("generic:r=.1,w=1.25,min=1"), Story().asks()
    for size, wait, turn in told:
        story.works(size, wait=wait)
        if turn:
            story.asks("and then?")
    why, saved = _why(story.says(), charged, stress=stress)
    assert why["saved"] == pytest.approx(saved, abs=1)
    assert _told(why) == pytest.approx(saved, abs=2)


@settings(max_examples=25, deadline=None)
@given(steps)
def test_every_rewrite_is_expected_to_save_something(told: list[tuple[int, float, bool]]) -> None:
    charged, story = prices("generic:r=.1,w=1.25,min=1"), Story().asks()
    for size, wait, turn in told * 2:
        story.works(min(size, 3500), wait=wait)
        if turn:
            story.asks("and then?")
    why, _ = _why(story.says(), charged)
    assert all(one["expected"] > 0 for one in why["decisions"])


def test_results_shown_once_are_told_with_the_stubs_that_follow(story: Story, charged: Prices) -> None:
    story.asks()
    for size in (3000, 3000, 20, 20):
        story.works(size)
    why, saved = _why(story.says(), charged)
    assert [(one["kind"], one["call"], one["paged"]) for one in why["decisions"]] == [("shown once", 2, 1)]
    assert why["decisions"][0]["expected"] > 0
    assert why["decisions"][0]["realised"] == pytest.approx(saved, abs=1)
    assert saved > 0


def test_a_recall_is_charged_to_the_decision_that_evicted_its_text(story: Story, charged: Prices) -> None:
    line = "def connect(host: str, port: int, timeout: float = 3.5) -> Socket: ..."
    story.asks().works("x" * 9000 + "\n" + line + "\n" + "y" * 9000)
    story.works(10, args='{"needs":"' + line + '"}').says()
    (only,) = _why(story, charged)[0]["decisions"]
    quiet = Story().asks().works("x" * 9000 + "\n" + line + "\n" + "y" * 9000).works(10).says()
    (other,) = _why(quiet, charged)[0]["decisions"]
    assert only["realised"] is not None
    assert other["realised"] is not None
    assert only["realised"] < other["realised"]


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ([20] * 30, f"no result of {PRICED.min_tokens} tokens and more that may leave was in the window"),
        (
            [950] * 5,
            "nothing was old enough: 5 calls, 20 for reads of files",
        ),
        ([950] * 7, "taking them out"),
    ],
)
def test_where_nothing_left_the_reason_is_told(story: Story, charged: Prices, sizes: list[int], told: str) -> None:
    story.asks()
    for size in sizes:
        story.works(size)
    why, saved = _why(story.says(), charged)
    assert why["decisions"] == []
    assert saved == 0
    assert told in why["idle"]


def test_an_empty_bankroll_is_told_as_the_reason(story: Story, charged: Prices) -> None:
    story.asks()
    for size in [3500] * 12 + [30] * 30:
        story.works(size)
    recording = story.says().recording()
    with PageinPolicy(recording, wiring.open_for_replay, charged, "without-tool-loops") as paging:
        Ledger(recording, paging, charged, stress=False, trace=False).run()
        state = paging._session.journal.state_at(paging._session.leaf)
    residency = settings_for(charged, 300).residency
    assert "more than 0 in hand allow" in reckoned.idle(replace(state, account=Account()), residency)
    rich = replace(state, account=Account(saved=1e9))
    assert "the session ended before" in reckoned.idle(rich, residency)


def test_a_session_too_long_to_be_billed_again_and_again_is_told_as_a_whole(
    story: Story, charged: Prices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reckoned, "_MOST_WORK", 10)
    why, saved = _why(_with_a_pause(story), charged)
    assert why["decisions"]
    assert all(one["realised"] is None for one in why["decisions"])
    assert why["saved"] == pytest.approx(saved, abs=1)


def test_with_no_decision_the_session_is_billed_as_appended(story: Story, charged: Prices) -> None:
    recording = _with_a_pause(story).recording()
    append = Ledger(recording, APPEND, charged, stress=False, trace=False)
    append.run()
    assert reckoned.DecisionWorth(recording, charged, 100, append.tally.cost).why((), "")["saved"] == 0.0
