"""The engine on recordings: its evicted texts can be recalled, and it costs as much as the ledger says."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagein import wiring
from pagein.engine.engine import Engine, Settings
from pagein.ports import TokenCounter
from pagein.providers.prices.price_lookup import Prices, prices
from pagein.replay.policies.baselines import APPEND, APPEND_5M
from pagein.replay.policies.ledger import Ledger
from pagein.replay.policies.pagein_policy import OpenEngine, PageinPolicy, settings_for
from pagein.replay.prompt.billable_session import BillableSession
from pagein.testing.eager_residency import eager
from pagein.testing.story import Story


def by_age(store: Path, *, counter: TokenCounter, settings: Settings) -> Engine:  # noqa: ARG001 overruled
    """Evicts by age alone, so that small stories are enough."""
    early = Settings(residency=eager(batch_tokens=40_000, keep_calls=10))
    return wiring.open_for_replay(store, counter=counter, settings=early)


def _bill(
    recording: BillableSession, charged: Prices, open_engine: OpenEngine = by_age, *, stress: bool = False
) -> Ledger:
    with PageinPolicy(recording, open_engine, charged) as paging:
        ledger = Ledger(recording, paging, charged, stress=stress, trace=True)
        ledger.run()
        paging.prove(ledger.tally)
    return ledger


def _long(story: Story, calls: int = 40, tokens: int = 4000) -> Story:
    story.asks()
    for _ in range(calls):
        story.works(tokens)
    return story.says()


def test_old_results_leave_in_one_batch_and_come_back_byte_for_byte(story: Story, charged: Prices) -> None:
    ledger = _bill(_long(story).recording(), charged)
    assert ledger.tally.epochs >= 1
    assert ledger.tally.stubs >= 10
    assert ledger.tally.unrecoverable_bytes == 0
    assert ledger.tally.refused == 0


def test_paging_out_is_cheaper_than_carrying_on_a_long_session(story: Story, charged: Prices) -> None:
    recording = _long(story, 80).recording()
    append = Ledger(recording, APPEND_5M, charged, stress=False, trace=False)
    append.run()
    assert _bill(recording, charged).tally.cost < 0.9 * append.tally.cost


def test_a_session_without_evictions_costs_exactly_as_much_as_append(story: Story, charged: Prices) -> None:
    recording = _long(story, 40, 50).recording()
    append = Ledger(recording, APPEND_5M, charged, stress=False, trace=False)
    append.run()
    assert _bill(recording, charged, stress=True).tally == append.tally


def test_needs_of_later_steps_are_answered_from_the_store(story: Story, charged: Prices) -> None:
    line = "def connect(host: str, port: int, timeout: float = 3.5) -> Socket: ..."
    story.asks().works(line + "\n" + "y" * 9000)
    _long(story)
    story.asks().says(f"as it was:\n{line}")
    ledger = _bill(story.recording(), charged)
    assert ledger.tally.faults == 1
    assert ledger.tally.unrecoverable_bytes == 0
    assert ledger.trace is not None
    assert ledger.trace.parts[-1]["recalled"] > 0


def test_a_lost_store_is_counted_and_not_hidden(story: Story, charged: Prices) -> None:
    with PageinPolicy(_long(story).recording(), by_age, charged) as paging:
        ledger = Ledger(story.recording(), paging, charged, stress=False, trace=False)
        ledger.run()
        assert ledger.tally.stubs > 0
        _forget_everything(paging)
        paging.prove(ledger.tally)
    assert ledger.tally.unrecoverable_bytes > 0


def _forget_everything(paging: PageinPolicy) -> None:
    with closing(sqlite3.connect(Path(paging._folder.name) / "store.db")) as store, store:
        store.execute("DELETE FROM blob")


def test_the_settings_of_the_engine_decide(story: Story, charged: Prices) -> None:
    never = Settings(residency=eager(batch_tokens=10**9))

    def patient(store: Path, *, counter: TokenCounter, settings: Settings) -> Engine:  # noqa: ARG001 overruled
        return wiring.open(store, counter=counter, settings=never)

    with PageinPolicy(_long(story).recording(), patient, charged) as paging:
        ledger = Ledger(story.recording(), paging, charged, stress=False, trace=False)
        ledger.run()
    assert ledger.tally.epochs == 0


def test_where_the_cache_is_cold_anyway_paging_out_is_free(story: Story, charged: Prices) -> None:
    story.asks()
    for _ in range(12):
        story.works(950)  # too small to be shown once
    story.waits(1000).asks("a new task")
    for _ in range(12):
        story.works(500)
    recording = story.says().recording()
    ledger = _bill(recording, charged, wiring.open_for_replay)
    assert ledger.trace is not None
    assert ledger.trace.epochs[0]["reason"] == "cold cache"
    append = Ledger(recording, APPEND_5M, charged, stress=False, trace=False)
    append.run()
    assert ledger.tally.cost < append.tally.cost


steps = st.lists(
    st.tuples(st.integers(20, 30_000), st.sampled_from([5.0, 20.0, 60.0, 400.0]), st.booleans()),
    min_size=1,
    max_size=60,
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_no_session_costs_over_two_percent_more_by_the_engines_own_doing(told: list[tuple[int, float, bool]]) -> None:
    """Law 5, under the simulator, on sessions that may end or pause anywhere. Recalls are reported apart."""
    charged = prices("generic:r=.1,w=1.25,min=1")
    story = Story().asks()
    for size, wait, turn in told:
        story.works(size, wait=wait)
        if turn:
            story.asks("and then?")
    recording = story.says().recording()
    append = Ledger(recording, APPEND_5M, charged, stress=False, trace=False)
    append.run()
    ledger = _bill(recording, charged, wiring.open_for_replay)
    assert ledger.tally.cost - ledger.tally.recall_cost <= 1.02 * append.tally.cost
    assert ledger.tally.unrecoverable_bytes == 0
    assert ledger.tally.refused == 0


@pytest.mark.parametrize(
    ("spec", "asked", "lifetime", "read", "write"),
    [
        ("claude-opus-4-6", 300, 300.0, 0.1, 1.25),
        ("claude-opus-4-6", 3600, 3600.0, 0.1, 2.0),
        ("gpt-6.1-sol", 300, 1800.0, 0.05, 1.25),
        ("gpt-6.1-sol", 3600, 43_200.0, 0.05, 2.5),
        ("generic:cache=openai-legacy", 3600, 600.0, 0.1, 1.0),  # one lifetime, and no fee for writes
        ("gemini-2.5-pro", 300, 300.0, 0.19, 1.0),  # nine of ten hits
        ("generic:cache=none", 300, 300.0, 1.0, 1.0),
    ],
)
def test_the_engine_is_told_how_long_the_priced_cache_lives(
    spec: str, asked: int, lifetime: float, read: float, write: float
) -> None:
    economics = settings_for(prices(spec), asked).residency.economics
    assert economics is not None
    assert economics.lifetime == lifetime
    assert economics.read == pytest.approx(read)
    assert economics.write == write


@pytest.mark.parametrize("spec", ["gpt-6.1-sol", "deepseek-v4-pro", "self-hosted", "generic:cache=none"])
def test_pauses_that_a_cache_survives_are_no_reason_to_rewrite(spec: str) -> None:
    """Pauses of ten minutes are long for one cache and short for another; either way nobody pays for our doing."""
    charged, story = prices(spec), Story().asks()
    for _ in range(25):
        story.works(3000, wait=600)
    recording = story.says().recording(charged)
    plain = Ledger(recording, APPEND, charged, stress=False, trace=False)
    plain.run()
    paged = _bill(recording, charged, wiring.open_for_replay).tally
    assert paged.cost - paged.recall_cost <= 1.02 * plain.tally.cost


@pytest.mark.parametrize(("small", "big"), [(1500, 3000), (500, 3000), (500, 3500)])
def test_neither_peak_hours_nor_a_cache_of_whole_requests_let_a_rewrite_cost_more_than_is_in_hand(
    small: int, big: int
) -> None:
    """The session runs into hours in which all is twice as dear, on a cache that forgets requests of an hour ago."""
    charged, story = prices("deepseek-v4-pro"), Story().asks()
    assert charged.peak is not None
    for number in range(200):
        story.works(small if number % 3 else big, wait=20)
        if number % 40 == 39:
            story.asks("and now?")
    recording = story.says().recording(charged)
    plain = Ledger(recording, APPEND, charged, stress=False, trace=False)
    plain.run()
    assert _bill(recording, charged, wiring.open_for_replay).tally.cost <= 1.02 * plain.tally.cost
    economics = settings_for(charged, 300).residency.economics
    assert economics is not None
    assert (economics.keeps_front, economics.peak) == (False, charged.peak)
