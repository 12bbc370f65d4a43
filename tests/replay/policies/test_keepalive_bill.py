"""The marks of a session that is kept alive, call by call, under the simulator."""

from collections.abc import Sequence
from dataclasses import dataclass

from pagein.providers.cache_simulator import CacheUsage
from pagein.providers.prices.price_lookup import Prices
from pagein.replay.policies.keepalive_bill import KeptLedger
from pagein.replay.policies.ledger import Ledger, Recall
from pagein.replay.prompt.model_calls import Block
from pagein.replay.prompt.prompt_changes import Hide, Removable
from pagein.replay.prompt.prompt_sizes import FIVE_MINUTES, SizedCall
from pagein.testing.story import Story


@dataclass
class Scripted:
    """Keeps the window alive behind one call, and pages out what a later call saw first. frontier_mark: which result the mark stands before."""

    kept_behind: int
    hides_at: int
    hides_born: int
    frontier_mark: int = 1

    name: str = "scripted"
    recall: Recall = "slice"
    ttl: int | None = FIVE_MINUTES
    caches: bool = True
    exposable: float = 0.0

    def decide(self, sized: SizedCall, ledger: Ledger) -> Hide:
        if sized.call.index != self.hides_at:
            return Hide()
        self.frontier_mark += 1
        return Hide([(one, 10.0) for one in ledger.resident if one.born == self.hides_born])

    def frontier(self, ledger: Ledger) -> int:
        return ledger.resident[self.frontier_mark].position if len(ledger.resident) > self.frontier_mark else 0

    def note_recall(self, copy: Removable, ledger: Ledger) -> None: ...

    def note_usage(self, sized: SizedCall, served: CacheUsage) -> None: ...

    def keeps(self, sized: SizedCall, answered: Sequence[Block]) -> bool:
        return sized.call.index == self.kept_behind

    def note_keepalive(self, sized: SizedCall, at: float, cost: float) -> None: ...


def test_a_rewrite_behind_a_second_pause_asks_for_no_more_marks_than_there_are(story: Story, charged: Prices) -> None:
    story.asks()
    for call in range(12):
        story.works(1000, wait=400.0 if call in (4, 10) else 10.0)
    recording = story.says().recording()
    policy = Scripted(kept_behind=4, hides_at=11, hides_born=8)
    ledger = KeptLedger(recording, policy, charged, stress=False, trace=True)
    ledger.run()
    assert ledger.tally.keep_alives == 1
    assert ledger.trace is not None
    # what was kept alive behind call 4 is read: the front and five results
    assert ledger.trace.read[11] > 5 * 1000


def test_a_keep_alive_request_ends_with_the_answer_before_an_immediate_next_call(story: Story, charged: Prices) -> None:
    story.asks().works(4000).works(4000).says("that is one half").waits(600).says("and that is the other").waits(10)
    recording = story.asks().works(4000).says().recording()
    assert recording.calls.blocks[recording.calls.calls[3].blocks[1] - 1].kind != "user"  # nobody spoke between
    policy = Scripted(kept_behind=2, hides_at=-1, hides_born=-1)
    ledger = KeptLedger(recording, policy, charged, stress=False, trace=True)
    ledger.run()
    assert ledger.tally.keep_alives == 1
    assert ledger.trace is not None
    assert ledger.trace.read[3] > 8000  # the entry that the request left is found, and all of the window is read


def test_no_keep_alive_request_is_sent_before_the_answer(story: Story, charged: Prices) -> None:
    story.asks().works(4000).works(4000).waits(600)  # the model takes ten minutes to answer what it was shown
    recording = story.works(4000).says().recording()
    assert recording.calls.calls[2].answered_at - recording.calls.calls[2].at == 600
    policy = Scripted(kept_behind=2, hides_at=-1, hides_born=-1)
    ledger = KeptLedger(recording, policy, charged, stress=False)
    ledger.run()
    assert ledger.tally.keep_alives == 0
