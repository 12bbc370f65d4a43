"""TTLs and keep-alive requests on recordings: their cost is charged, and their saving is real under the simulator."""

import pytest

from pagein import wiring
from pagein.model.entries import UNCACHED
from pagein.model.messages import Usage
from pagein.policy.economics.cache_trust import UNKNOWN
from pagein.providers.prices.price_lookup import Prices, prices
from pagein.replay.policies.ablation import QUIET
from pagein.replay.policies.baselines import APPEND
from pagein.replay.policies.keepalive_bill import KeptLedger
from pagein.replay.policies.keepalive_policy import KeepAlivePagein
from pagein.replay.policies.ledger import Ledger
from pagein.replay.policies.pagein_policy import PageinPolicy
from pagein.replay.prompt.billable_session import BillableSession
from pagein.testing.story import Story


def _kept(recording: BillableSession, charged: Prices, reserve: float = 0.0) -> KeptLedger:
    with KeepAlivePagein(recording, wiring.open_for_replay, charged) as paging:
        paging.reserve = reserve
        ledger = KeptLedger(recording, paging, charged, stress=False)
        ledger.run()
        paging.prove(ledger.tally)
    return ledger


def _append(recording: BillableSession, charged: Prices) -> Ledger:
    ledger = Ledger(recording, APPEND, charged, stress=False, trace=False)
    ledger.run()
    return ledger


BIG = 40_000  # tokens of an output that enters as a preview


def _host(story: Story, calls: int, *, hour: bool, tokens: int = 1500) -> Story:
    """A session whose host asks for one lifetime, call by call. Its first output enters as a preview, so something is in hand; the others are
    small, so that nothing else is worth paging out.
    """
    for _ in range(calls):
        size = 3000 + (BIG + (story.made - 1) * (tokens // 15 + 10) if story.made else 0)
        new = min(size, BIG if story.made == 1 else tokens + 10) if story.made else size
        usage = Usage(read=size - new, written=new, written_1h=new if hour else 0, output=20)
        story.works(*([tokens // 15] * 15 if story.made else [BIG]), usage=usage)
    return story


def test_where_the_host_asks_for_an_hour_the_short_lifetime_is_cheaper_once_something_is_in_hand(
    story: Story, charged: Prices
) -> None:
    recording = _host(story.asks(), 8, hour=True).says().recording()
    assert recording.ttl == 3600
    with KeepAlivePagein(recording, wiring.open_for_replay, charged) as paging:
        paging.reserve = 0.0
        ledger = KeptLedger(recording, paging, charged, stress=False, trace=True)
        ledger.run()
    assert 0 not in paging.course.ttls  # a pause would lose what is written, and nothing was saved to pay for that
    assert set(paging.course.ttls) >= set(range(2, 9))
    with PageinPolicy(recording, wiring.open_for_replay, charged, QUIET) as quiet:
        alone = Ledger(recording, quiet, charged, stress=False, trace=True)
        alone.run()
    assert ledger.trace is not None
    assert alone.trace is not None
    assert sum(ledger.trace.cost[2:-1]) < 0.9 * sum(alone.trace.cost[2:-1])


def test_a_late_answer_costs_no_more_than_what_was_in_hand(story: Story, charged: Prices) -> None:
    """No keep-alive request can be sent before the model has answered."""
    story.asks()
    for call in range(5):
        size = 20_000 + 2000 * call
        usage = Usage(read=size - 2000 if call else 0, written=2000 if call else size, written_1h=size, output=20)
        story.waits(900 if call == 4 else 5).works(2000, usage=usage)
    recording = story.says().recording()
    ours, theirs = _kept(recording, charged).tally.cost, _append(recording, charged).tally.cost
    assert recording.ttl == 3600
    assert ours <= 1.02 * theirs


def test_an_answer_written_for_an_hour_behind_the_last_call_is_paid_for(story: Story, charged: Prices) -> None:
    usage = Usage(written=10_000, written_1h=10_000, output=20_000)
    recording = story.asks().says("so be it. " * 4000, usage=usage).recording()
    assert _kept(recording, charged).tally.cost <= 1.02 * _append(recording, charged).tally.cost


FIRST = Usage(written=10_000, written_1h=10_000, output=20)
RESERVE = 100_000.0


def test_a_pause_is_bridged_by_one_request_that_is_charged(story: Story, charged: Prices) -> None:
    later = Usage(read=10_000, written=200, written_1h=200, output=20)
    recording = story.asks().says(usage=FIRST).waits(1500).asks().says(usage=later).recording()
    ledger = _kept(recording, charged, RESERVE)
    assert ledger.tally.keep_alives == 1  # the answer to the second request is small, and the rest has an hour's entry
    assert 0 < ledger.tally.keep_alive_cost < ledger.tally.cost
    assert ledger.tally.cost < _append(recording, charged).tally.cost
    assert ledger.tally.refused == 0


def test_the_request_behind_the_last_answer_of_a_main_session_is_charged_too(story: Story, charged: Prices) -> None:
    recording = story.asks().says(usage=FIRST).recording()
    assert _kept(recording, charged, RESERVE).tally.keep_alives == 1


def test_without_a_reserve_the_first_request_has_the_lifetime_that_the_host_asks_for(
    story: Story, charged: Prices
) -> None:
    recording = story.asks().says(usage=FIRST).waits(1500).asks().says().recording()
    assert _kept(recording, charged).tally.keep_alives == 0
    assert _kept(recording, charged).tally.cost == pytest.approx(_append(recording, charged).tally.cost)


def test_a_host_of_five_minutes_to_which_nobody_came_back_is_not_kept_alive(story: Story, charged: Prices) -> None:
    recording = _host(story.asks(), 6, hour=False).says().recording()
    ledger = _kept(recording, charged)
    assert ledger.tally.keep_alives == 0


@pytest.mark.parametrize("model", ["gpt-5.1", "gpt-5.6"])
def test_caches_without_a_ttl_choice_get_no_keep_alive_request(story: Story, model: str) -> None:
    _host(story.asks(), 8, hour=True).says().waits(1500).asks()
    recording = _host(story, 3, hour=True).says().recording(prices("generic:r=.1,w=1"))
    ledger = _kept(recording, prices(model))
    assert ledger.tally.keep_alives == 0


def test_without_the_layer_a_session_is_replayed_as_in_a_new_store(story: Story) -> None:
    recording = _host(story.asks(), 6, hour=True).says().recording()
    with KeepAlivePagein(recording, wiring.open_for_replay, prices("generic:r=.1,w=1.25"), "without-reserve") as paging:
        ledger = KeptLedger(recording, paging, prices("generic:r=.1,w=1.25"), stress=False)
        ledger.run()
        assert not paging.borrows
    assert ledger.tally.cost == _kept(recording, prices("generic:r=.1,w=1.25")).tally.cost


def test_a_loss_at_a_provider_that_documents_its_cache_gives_no_lifetime_back(story: Story, charged: Prices) -> None:
    """The gateway, too, takes its word until the second loss in a row."""
    recording = _host(story.asks(), 6, hour=True).says().recording()
    with KeepAlivePagein(recording, wiring.open_for_replay, charged, QUIET) as paging:
        paging.trust = UNKNOWN
        KeptLedger(recording, paging, charged, stress=False).run()
        assert set(paging.course.ttls) >= set(range(2, 6))


def _rewritten(story: Story, charged: Prices, *, hour: bool, reserve: float) -> dict[int, int | None]:
    """The TTL of each request that rewrites the window, None for that of the host."""
    story.asks()
    for call in range(30):
        size = 3000 * (call + 1)
        usage = Usage(read=size - 3000, written=3000, written_1h=3000 if hour else 0, output=20)
        story.waits(20).works(*[950] * 3, usage=usage)
    recording = story.says().recording()
    with KeepAlivePagein(recording, wiring.open_for_replay, charged, QUIET) as paging:
        paging.reserve = reserve
        ledger = KeptLedger(recording, paging, charged, stress=False, trace=True)
        ledger.run()
    assert ledger.trace is not None
    return {
        one["call"]: paging.course.ttls.get(one["call"]) for one in ledger.trace.epochs if one["reason"] not in UNCACHED
    }


def test_a_rewrite_is_written_for_five_minutes_where_earlier_sessions_pay_for_a_pause_behind_it(
    story: Story, charged: Prices
) -> None:
    rewrites = _rewritten(story, charged, hour=True, reserve=RESERVE)
    assert rewrites
    assert set(rewrites.values()) == {300}


def test_a_rewrite_has_the_host_s_hour_in_a_new_store(story: Story, charged: Prices) -> None:
    rewrites = _rewritten(story, charged, hour=True, reserve=0.0)
    assert None in rewrites.values()
