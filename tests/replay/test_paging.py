"""The engine at work on recordings: what it hides can be had back, and costs what the ledger says."""

import sqlite3
from contextlib import closing
from pathlib import Path

from pagein import wiring
from pagein.engine.engine import Engine, Settings
from pagein.policy.residency import Residency
from pagein.ports import TokenCounter
from pagein.providers.prices import Prices
from pagein.replay.ledger import Ledger
from pagein.replay.paging import Paging
from pagein.replay.policies import APPEND_5M
from pagein.replay.recording import Recording
from pagein.testing.story import Story


def _bill(recording: Recording, charged: Prices, *, stress: bool = False) -> Ledger:
    with Paging(recording, wiring.open) as paging:
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


def test_a_session_that_gives_nothing_to_page_out_costs_exactly_what_appending_costs(
    story: Story, charged: Prices
) -> None:
    recording = _long(story, 40, 50).recording()
    append = Ledger(recording, APPEND_5M, charged, stress=False, trace=False)
    append.run()
    assert _bill(recording, charged, stress=True).tally == append.tally


def test_what_a_later_step_needs_is_answered_from_the_store(story: Story, charged: Prices) -> None:
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
    with Paging(_long(story).recording(), wiring.open) as paging:
        ledger = Ledger(story.recording(), paging, charged, stress=False, trace=False)
        ledger.run()
        assert ledger.tally.stubs > 0
        _forget_everything(paging)
        paging.prove(ledger.tally)
    assert ledger.tally.unrecoverable_bytes > 0


def _forget_everything(paging: Paging) -> None:
    with closing(sqlite3.connect(Path(paging._folder.name) / "store.db")) as store, store:
        store.execute("DELETE FROM blob")


def test_the_settings_of_the_engine_are_the_ones_that_decide(story: Story, charged: Prices) -> None:
    never = Settings(residency=Residency(batch_tokens=10**9))

    def patient(store: Path, *, counter: TokenCounter) -> Engine:
        return wiring.open(store, counter=counter, settings=never)

    with Paging(_long(story).recording(), patient) as paging:
        ledger = Ledger(story.recording(), paging, charged, stress=False, trace=False)
        ledger.run()
    assert ledger.tally.epochs == 0
