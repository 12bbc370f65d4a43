"""Bills small enough to be worked out by hand."""

import json
from dataclasses import replace

import pytest

from pagein.model.messages import HostEvent, Message, ToolCall, Usage
from pagein.providers.prices.price_lookup import Prices, prices
from pagein.replay.policies.baselines import APPEND, APPEND_1H, APPEND_5M, NONE, Clear, Compact, RollingStubs
from pagein.replay.policies.ledger import Ledger, Policy
from pagein.replay.prompt.billable_session import BillableSession, record
from pagein.replay.prompt.prompt_sizes import SourceFacts
from pagein.replay.record.recorded_session import SessionHead
from pagein.testing.story import FLOOR, RATIO, Story

READ, WRITE, OUT = 0.1, 1.25, 5.0


def _bill(recording: BillableSession, policy: Policy, charged: Prices, *, stress: bool = False) -> Ledger:
    ledger = Ledger(recording, policy, charged, stress=stress, trace=True)
    ledger.run()
    return ledger


def _sizes(recording: BillableSession) -> list[float]:
    return [sized.prompt for sized in recording.sized]


def _outputs(recording: BillableSession) -> float:
    return OUT * sum(sized.output for sized in recording.sized)


def test_appending_writes_every_token_once_and_reads_it_after(story: Story, charged: Prices) -> None:
    recording = story.asks("x" * 400).works(1000).works(2000).says().recording()
    sizes = _sizes(recording)
    expected = sum(READ * a + WRITE * (b - a) for a, b in zip([0.0, *sizes], sizes, strict=False))
    assert _bill(recording, APPEND, charged).tally.cost == pytest.approx(expected + _outputs(recording))


def test_without_a_cache_every_token_costs_its_full_price(story: Story, charged: Prices) -> None:
    recording = story.asks("x" * 400).works(1000).works(2000).says().recording()
    assert _bill(recording, NONE, charged).tally.cost == pytest.approx(sum(_sizes(recording)) + _outputs(recording))


def test_a_pause_beyond_the_lifetime_writes_all_again_for_five_minutes_and_nothing_for_an_hour(
    story: Story, charged: Prices
) -> None:
    recording = story.asks("x" * 400).works(1000).waits(600).asks("y").says().recording()
    first, second = _sizes(recording)
    short = _bill(recording, APPEND_5M, charged).tally
    long = _bill(recording, APPEND_1H, charged).tally
    assert short.cost == pytest.approx(WRITE * (first + second) + _outputs(recording))
    assert long.cost == pytest.approx(2 * second + READ * first + _outputs(recording))


def test_a_recorded_miss_holds_for_every_policy(story: Story, charged: Prices) -> None:
    story.asks("x" * 400).works(1000, usage=Usage(written=5000)).works(10, usage=Usage(read=700, written=5500))
    recording = story.says(usage=Usage(read=6200, written=20)).recording()
    trace = _bill(recording, APPEND, charged).trace
    assert trace is not None
    assert trace.read[1] == pytest.approx(700)
    assert trace.read[2] == pytest.approx(_sizes(recording)[1])


def test_a_rolling_mask_rewrites_the_tail_at_every_call(story: Story, charged: Prices) -> None:
    story.asks()
    for _ in range(14):
        story.works(1000)
    recording = story.says().recording()
    ledger = _bill(recording, RollingStubs(keep=10), charged)
    assert ledger.tally.stubs == 4
    assert ledger.tally.epochs == 4
    assert ledger.tally.cost > _bill(recording, APPEND, charged).tally.cost


def test_clearing_keeps_the_newest_three_results_above_its_trigger(story: Story, charged: Prices) -> None:
    story.asks()
    for _ in range(6):
        story.works(30_000)
    ledger = _bill(story.says().recording(), Clear(), charged)
    assert len(ledger.resident) == 3
    assert ledger.tally.stubs == 3


def test_a_compaction_costs_a_request_and_leaves_floor_and_summary(story: Story, charged: Prices) -> None:
    story.asks()
    for _ in range(6):
        story.works(30_000)
    recording = story.says().recording()
    ledger = _bill(recording, Compact(window=100_000), charged)
    assert ledger.tally.epochs >= 1
    assert ledger.window.size < 80_000 + 30_000
    assert ledger.tally.calls == len(recording.sized)


def test_a_text_quoted_by_a_later_step_is_recalled_once_and_charged(story: Story, charged: Prices) -> None:
    line = "def connect(host: str, port: int, timeout: float = 3.5) -> Socket: ..."
    story.asks().works(line + "\n" + "y" * 4000)
    for _ in range(12):
        story.works(1000)
    story.says(f"as before:\n{line}").asks().says(f"and again:\n{line}")
    ledger = _bill(story.recording(), RollingStubs(keep=10), charged)
    assert ledger.tally.faults == 1
    assert ledger.tally.recall_cost > 0
    assert ledger.trace is not None
    assert ledger.trace.parts[-1]["recalled"] > 0


def test_a_recorded_miss_is_charged_once_where_a_recall_sends_a_request_more(story: Story, charged: Prices) -> None:
    line = "def connect(host: str, port: int, timeout: float = 3.5) -> Socket: ..."
    story.asks().works(line + "\n" + "y" * 4000)
    for _ in range(12):
        story.works(1000)
    recording = story.says(f"as before:\n{line}").recording()
    missed = replace(recording, sized=(*recording.sized[:-1], replace(recording.sized[-1], cap=0.0)))
    free, paid = (_bill(one, RollingStubs(keep=10), charged) for one in (recording, missed))
    assert free.tally.faults == paid.tally.faults == 1
    assert free.served is not None
    assert paid.tally.cost - free.tally.cost == pytest.approx((WRITE - READ) * free.served.read)


def test_stress_recalls_are_the_same_on_every_run(story: Story, charged: Prices) -> None:
    story.asks()
    for _ in range(60):
        story.works(1000)
    recording = story.says().recording()
    once, twice = (_bill(recording, RollingStubs(keep=5), charged, stress=True).tally for _ in range(2))
    assert once.stress_recalls == twice.stress_recalls > 0
    assert once.cost == twice.cost
    assert once.cost > _bill(recording, RollingStubs(keep=5), charged).tally.cost


def test_an_edit_whose_quote_is_hidden_counts_as_lost(story: Story, charged: Prices) -> None:
    story.asks().works("alpha\nbeta\n" + "z" * 4000)
    for _ in range(12):
        story.works(1000)
    edit = ToolCall("e", "Edit", json.dumps({"file_path": "a", "old_string": "alpha\nbeta", "new_string": "x"}))
    story.entries.append(Message("assistant", (edit,), at=story.now, model="claude-opus-4-6"))
    recording = story.recording()
    shown, hidden = _bill(recording, APPEND, charged).tally, _bill(recording, RollingStubs(), charged).tally
    assert (shown.quotes_total, shown.quotes_visible, shown.quotes_lost) == (1, 1, 0)
    assert (hidden.quotes_total, hidden.quotes_visible, hidden.quotes_lost) == (1, 0, 1)


def test_a_session_without_large_results_costs_the_same_under_every_policy(story: Story, charged: Prices) -> None:
    story.asks()
    for _ in range(30):
        story.works(50)
    recording = story.says().recording()
    costs = {_bill(recording, policy, charged).tally.cost for policy in (APPEND, RollingStubs(), Clear(), Compact())}
    assert len(costs) == 1


def test_the_floor_is_counted_in_every_request(story: Story, charged: Prices) -> None:
    recording = story.asks().works(100).says().recording()
    assert _bill(recording, APPEND, charged).tally.floor == 2 * FLOOR


def test_after_a_compaction_only_the_kept_prefix_is_read_in_every_kind_of_cache(story: Story) -> None:
    story.asks("x" * 400).works(1000)
    story.entries.append(HostEvent("compaction"))
    calls = story.asks("y" * 400).says().calls()
    for spec in ("generic:r=.1,w=1.25,min=1", "generic:cache=openai-legacy,min=1", "self-hosted"):
        charged = prices(spec)
        head = SessionHead("story", "tests", "claude-code", "story.jsonl")
        recording = record(head, calls, SourceFacts({"main": FLOOR}, 512, 0.0), RATIO, charged)
        trace = _bill(recording, APPEND, charged).trace
        assert trace is not None
        assert trace.read[1] == 512, spec


def test_no_more_than_the_floor_stays_warm_across_a_pause(story: Story, charged: Prices) -> None:
    calls = story.asks("x" * 400).works(1000).works(1000).waits(4000).asks("y").says().calls()
    head = SessionHead("story", "tests", "claude-code", "story.jsonl")
    recording = record(head, calls, SourceFacts({"main": FLOOR}, FLOOR, 50_000.0), RATIO, charged)
    trace = _bill(recording, APPEND, charged).trace
    assert trace is not None
    assert trace.read[2] == FLOOR
    assert trace.written[1] > 0
