"""A recording larger than its window: `pagein` continues where `append` could not, and every evicted text can be
recalled.
"""

import random
from dataclasses import replace

import pytest

from pagein import wiring
from pagein.providers.prices.price_lookup import Prices
from pagein.replay.policies.baselines import APPEND
from pagein.replay.policies.ledger import Ledger
from pagein.replay.policies.pagein_policy import PageinPolicy
from pagein.replay.prompt.billable_session import BillableSession
from pagein.replay.prompt.context_limit import window_of
from pagein.testing.story import Story, filler

WINDOW = 20_000


def in_window(story: Story, window: int = WINDOW) -> BillableSession:
    recording = story.recording()
    return replace(recording, head=replace(recording.head, window=window))


def played(recording: BillableSession, charged: Prices) -> tuple[Ledger, float]:
    """The ledger behind `pagein`, and the largest window that it had."""
    largest = 0.0

    class Watched(Ledger):
        def _serve(self, *args: object, **more: object) -> object:  # type: ignore[override]
            nonlocal largest
            largest = max(largest, self.window.size)
            return super()._serve(*args, **more)  # type: ignore[arg-type]

    with PageinPolicy(recording, wiring.open_for_replay, charged) as paging:
        ledger = Watched(recording, paging, charged, stress=True, trace=True)
        ledger.run()
        paging.prove(ledger.tally)
    return ledger, largest


def prose(turns: int) -> Story:
    story = Story()
    for number in range(turns):
        story.asks(f"question {number} " + filler(f"q{number}", 300)).says(
            f"answer {number} " + filler(f"a{number}", 600)
        )
    return story


def test_a_session_of_prose_three_times_its_window_stays_within_it(charged: Prices) -> None:
    recording = in_window(prose(70))
    assert sum(block.chars for block in recording.calls.blocks) / 2 > 3 * WINDOW
    appended = Ledger(recording, APPEND, charged, stress=False, trace=False)
    appended.run()
    assert appended.window.size > 3 * WINDOW
    ledger, largest = played(recording, charged)
    assert largest < WINDOW
    assert ledger.tally.epochs >= 3
    assert (ledger.tally.refused, ledger.tally.unrecoverable_bytes) == (0, 0)


def test_needs_of_a_later_turn_in_an_evicted_turn_are_recalled(charged: Prices) -> None:
    line = "def connect(host: str, port: int, timeout: float = 3.5) -> Socket: ..."
    story = Story().asks("look").works(line + "\n" + filler("w", 60)).says("seen")
    for number in range(40):
        story.asks(f"question {number} " + filler(f"q{number}", 300)).says(filler(f"a{number}", 600))
    recording = in_window(story.asks("and now").says(f"as it was:\n{line}"))
    ledger, largest = played(recording, charged)
    assert ledger.tally.faults == 1
    assert ledger.tally.unrecoverable_bytes == 0
    assert largest < WINDOW


@pytest.mark.parametrize("seed", range(6))
def test_random_recordings_in_a_full_window_lose_no_byte(seed: int, charged: Prices) -> None:
    draw, story = random.Random(seed), Story()  # noqa: S311 -- reproducible, not secret
    for number in range(60):
        story.asks(f"{number} " + filler(f"q{number}", draw.choice([5, 200, 3000])))
        for _ in range(draw.choice([0, 0, 1, 3])):
            story.works(*[draw.choice([20, 150, 900]) for _ in range(draw.choice([1, 2]))])
        story.says(filler(f"a{number}", draw.choice([5, 400, 900])))
    ledger, _ = played(in_window(story), charged)
    assert (ledger.tally.refused, ledger.tally.unrecoverable_bytes) == (0, 0)


def test_a_recording_that_fits_its_window_is_billed_unchanged(charged: Prices) -> None:
    recording = prose(10).recording()
    assert window_of(recording, charged) == charged.window
    appended = Ledger(recording, APPEND, charged, stress=True, trace=False)
    appended.run()
    assert played(recording, charged)[0].tally.epochs == 0
