"""The share of thinking in the hidden tokens of a prompt, and its removal by an epoch."""

from dataclasses import replace

import pytest

from pagein import wiring
from pagein.model.bill import Figures
from pagein.model.messages import Usage
from pagein.providers.cache_simulator import Chains
from pagein.providers.prices.price_lookup import Prices, prices
from pagein.replay.policies.ablation import ablation
from pagein.replay.prompt.hidden_tokens import HiddenGrowth
from pagein.replay.prompt.prompt_sizes import SizedCall, grow
from pagein.replay.prompt.prompt_window import PromptWindow
from pagein.replay.session_bill import ReplayTerms, bill_session
from pagein.testing.story import FLOOR, RATIO, Story

STEP = 3.0 + 3500.0  # tokens of a call and of its result


def _thoughtful(story: Story, thought: int, turns: int = 3, *, shown: bool = True) -> Story:
    """Turns of some calls each, with pauses between; every reply but the last ones was thought about for so many tokens, which stay in the prompt."""
    prompt = FLOOR + 14
    for _ in range(turns):
        story.asks("do something ".ljust(28))
        for _ in range(8):
            story = story.thinks() if shown else story
            story.works(3500, usage=Usage(written=round(prompt), output=3 + thought))
            prompt += STEP + thought
        story.says("done", usage=Usage(written=round(prompt), output=2)).waits(8000)
        prompt += 2 + 14
    return story


def _second(story: Story, output: int, grown: int) -> SizedCall:
    story.asks().thinks().works(100, usage=Usage(written=5000, output=output)).says(usage=Usage(written=5000 + grown))
    return grow(story.calls(), 4990.0, RATIO, misses=True)[1]


def test_thinking_is_the_billed_part_of_a_reply_beyond_its_visible_text(story: Story) -> None:
    sized = _second(story, output=53, grown=400)
    assert sized.hidden == pytest.approx(400 - 103)
    assert sized.thought == pytest.approx(50)


def test_thinking_is_never_more_than_what_entered_unseen(story: Story) -> None:
    sized = _second(story, output=5003, grown=400)
    assert sized.thought == sized.hidden == pytest.approx(400 - 103)


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-haiku-4-5-20251001", "gpt-5.5", "a-model-of-tomorrow"])
def test_thinking_dropped_by_the_model_itself_is_no_saving(story: Story, model: str) -> None:
    story.model = model
    assert _second(story, output=53, grown=400).thought == 0


def test_growth_behind_a_reply_without_thinking_is_no_thinking(story: Story) -> None:
    story.asks().works(100, usage=Usage(written=5000, output=53)).says(usage=Usage(written=5400))
    assert grow(story.calls(), 4990.0, RATIO, misses=True)[1].thought == 0


def _entered(story: Story) -> tuple[HiddenGrowth, PromptWindow, SizedCall]:
    one = _second(story, output=53, grown=400)
    growth, window = HiddenGrowth(), PromptWindow(Chains())
    for index in range(1, 5):
        call = replace(one.call, index=index)
        growth.enter(replace(one, call=call, hidden=100.0, thought=60.0, shrunk=0.0), window)
    return growth, window, replace(one, call=replace(one.call, index=5), hidden=0.0, thought=0.0)


def test_an_epoch_takes_the_thinking_behind_its_frontier_that_is_finished(story: Story) -> None:
    growth, window, _ = _entered(story)
    changes = growth.thinking_removed(1, 3, window)
    assert {position: tokens for position, (_, _, tokens) in changes.items()} == {2: 40.0, 3: 40.0}
    window.replace(changes)
    assert growth.thinking_removed(1, 3, window) == {}
    assert window.size == 2 * 100 + 2 * 40


def test_tokens_that_left_here_count_first_when_the_recorded_prompt_shrinks(story: Story) -> None:
    growth, window, last = _entered(story)
    window.replace(growth.thinking_removed(2, 4, window))
    assert window.size == 280
    growth.enter(replace(last, shrunk=120.0), window)  # as many tokens as left here
    assert (
        window.size == 280 - 40
    )  # of the newest, 60 had left, so 40 of it went; of the one before, 20 of what had left
    growth.enter(replace(last, shrunk=40.0), window)
    assert window.size == 280 - 40


def test_tokens_that_left_with_a_shrunk_prompt_are_not_evicted_again(story: Story) -> None:
    growth, window, last = _entered(story)
    growth.enter(replace(last, shrunk=150.0), window)
    changes = growth.thinking_removed(0, 4, window)
    assert {position: tokens for position, (_, _, tokens) in changes.items()} == {1: 40.0, 2: 40.0, 3: 40.0}


def _billed(story: Story, charged: Prices, *names: str) -> dict[str, Figures]:
    recording = story.recording(charged)
    return bill_session(recording, ReplayTerms(charged, wiring.open_for_replay, ("append", *names), stress=False)).bill[
        "policies"
    ]


def test_where_thinking_is_bound_an_epoch_is_billed_without_the_thinking_behind_it(charged: Prices) -> None:
    name = ablation(["tool-loops"])
    with_it = _billed(_thoughtful(Story(), 800), charged, "pagein", name)
    hidden = _billed(_thoughtful(Story(), 800, shown=False), charged, "pagein", name)
    for same in ("append", "pagein"):
        assert with_it[same] == hidden[same]
    assert with_it[name]["epochs"] == hidden[name]["epochs"] != 0
    assert with_it[name]["cost"] < hidden[name]["cost"]


def test_the_thrifty_settings_take_thinking_along_and_their_layer_is_worth_that(charged: Prices) -> None:
    name = ablation(["thinking"])
    rows = _billed(_thoughtful(Story(), 800), charged, "pagein-thrifty", name)
    assert rows["pagein-thrifty"]["cost"] < rows[name]["cost"]
    assert rows["pagein-thrifty"]["epochs"] == rows[name]["epochs"]


def test_where_no_model_is_shown_its_thinking_again_none_is_saved() -> None:
    name = ablation(["thinking"])
    rows = _billed(_thoughtful(Story(), 800), prices("gpt-5.1"), "pagein-thrifty", name)
    assert rows["pagein-thrifty"]["cost"] == rows[name]["cost"]
