"""Lifetimes and keep-alive requests on recordings: what they cost is charged, and what they save is real under the simulator."""

import pytest

from pagein import wiring
from pagein.model.messages import Usage
from pagein.providers.prices import Prices, prices
from pagein.replay.bridging import KeptLedger
from pagein.replay.keeping import KeptPaging
from pagein.replay.ledger import Ledger
from pagein.replay.policies import APPEND
from pagein.replay.recording import Recording
from pagein.testing.story import Story


def _kept(recording: Recording, charged: Prices) -> KeptLedger:
    with KeptPaging(recording, wiring.open_for_replay, charged) as paging:
        ledger = KeptLedger(recording, paging, charged, stress=False)
        ledger.run()
        paging.prove(ledger.tally)
    return ledger


def _append(recording: Recording, charged: Prices) -> Ledger:
    ledger = Ledger(recording, APPEND, charged, stress=False, trace=False)
    ledger.run()
    return ledger


def _host(story: Story, calls: int, *, hour: bool, tokens: int = 1500) -> Story:
    """A session whose host asks for one lifetime, call by call. Results are small, so that nothing is worth paging out."""
    for _ in range(calls):
        size = 3000 + story.made * (tokens + 10)
        new = min(size, tokens + 10) if story.made else size
        usage = Usage(read=size - new, written=new, written_1h=new if hour else 0, output=20)
        story.works(*[tokens // 15] * 15, usage=usage)
    return story


def test_where_the_host_asks_for_an_hour_the_short_lifetime_is_cheaper(story: Story, charged: Prices) -> None:
    recording = _host(story.asks(), 8, hour=True).says().recording()
    assert recording.ttl == 3600
    ledger = _kept(recording, charged)
    assert ledger.tally.cost < 0.9 * _append(recording, charged).tally.cost


def test_the_front_of_a_session_is_not_written_for_an_hour_although_others_may_hold_it(
    story: Story, charged: Prices
) -> None:
    story.asks()
    for call in range(6):
        new = 150 if call else 20_000
        usage = Usage(read=20_000 + 150 * (call - 1) if call else 0, written=new, written_1h=new, output=20)
        story.works(120, usage=usage)
    recording = story.says().recording()
    assert recording.ttl == 3600
    with KeptPaging(recording, wiring.open_for_replay, charged) as paging:
        ledger = KeptLedger(recording, paging, charged, stress=False)
        ledger.run()
    assert set(paging.course.asked) == set(range(7))
    assert ledger.tally.cost < 0.8 * _append(recording, charged).tally.cost


def test_a_pause_is_bridged_by_one_request_that_is_charged(story: Story, charged: Prices) -> None:
    _host(story.asks(), 8, hour=True).says().waits(1500).asks()
    recording = _host(story, 3, hour=True).says().recording()
    ledger = _kept(recording, charged)
    assert ledger.tally.keep_alives >= 1
    assert 0 < ledger.tally.keep_alive_cost < ledger.tally.cost
    assert ledger.tally.cost < _append(recording, charged).tally.cost
    assert ledger.tally.refused == 0


def test_the_request_behind_the_last_answer_of_a_main_session_is_charged_too(story: Story, charged: Prices) -> None:
    recording = _host(story.asks(), 8, hour=True).says().recording()
    assert _kept(recording, charged).tally.keep_alives == 1


def test_a_host_of_five_minutes_to_which_nobody_came_back_costs_what_it_would_have(
    story: Story, charged: Prices
) -> None:
    recording = _host(story.asks(), 6, hour=False).says().recording()
    ledger = _kept(recording, charged)
    assert ledger.tally.keep_alives == 0
    assert ledger.tally.cost == pytest.approx(_append(recording, charged).tally.cost)


@pytest.mark.parametrize("model", ["gpt-5.1", "gpt-5.6"])
def test_where_nobody_is_asked_for_a_lifetime_nothing_is_kept_alive(story: Story, model: str) -> None:
    _host(story.asks(), 8, hour=True).says().waits(1500).asks()
    recording = _host(story, 3, hour=True).says().recording(prices("generic:r=.1,w=1"))
    ledger = _kept(recording, prices(model))
    assert ledger.tally.keep_alives == 0
