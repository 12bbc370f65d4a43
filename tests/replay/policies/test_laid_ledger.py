"""Sessions in layouts: the inline layout costs what append-only costs, recalls are charged, layouts never hide a need."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from pagein.model.laid_prompts import LaidPrompt, LayoutFacts, PromptContents
from pagein.model.messages import FileAccess, Message, ToolCall, ToolResult
from pagein.policy.layouts.pooled_window import SPEC
from pagein.providers.prices.price_lookup import Prices
from pagein.providers.tokens.counters import counter_for
from pagein.providers.wire.tool_offers import ToolOffer, definition
from pagein.replay.policies.baselines import APPEND
from pagein.replay.policies.laid_ledger import LaidLedger
from pagein.replay.policies.laid_sessions import (
    POOL_TOOLS,
    LaidSession,
    PooledSession,
    RecordedConversation,
    WantedText,
)
from pagein.replay.policies.laid_tiers import TieredSession
from pagein.replay.policies.ledger import Ledger
from pagein.replay.prompt.billable_session import BillableSession
from pagein.replay.prompt.prompt_sizes import SizedCall
from pagein.testing.inline_layout import InlineLayout
from pagein.testing.story import Story
from pagein.tools.pools import POOL_TOOLS as TOOLS_FOR_POOLS

NEEDED = "a line that the model quotes much later, long enough to count: 0123456789"


def bill(recording: BillableSession, session: LaidSession, charged: Prices, *, stress: bool = False) -> LaidLedger:
    ledger = LaidLedger(recording, session, charged, stress=stress, trace=True)
    ledger.run()
    return ledger


def reads(story: Story, path: str, text: str) -> Story:
    story.made += 1
    name = f"call-{story.made}"
    call = ToolCall(name, "Read", json.dumps({"file_path": path}), (FileAccess("read", path),))
    numbered = "\n".join(f"{number:6}→{line}" for number, line in enumerate(text.split("\n"), 1))
    story.entries += [
        Message("assistant", (call,), at=story.now, model=story.model, stop="tool_use"),
        Message("tool", (ToolResult(name, numbered, "Read"),), at=story.now + 10),
    ]
    story.now += 10
    return story


def test_the_tools_for_pools_are_charged_as_they_are_sent() -> None:
    offers = (ToolOffer(tool.name, tool.description, dict(tool.schema)) for tool in TOOLS_FOR_POOLS)
    sent = json.dumps([definition(offer, "anthropic") for offer in offers])
    assert counter_for("claude-sonnet-4-5").count(sent) == pytest.approx(POOL_TOOLS, rel=0.05)


class InlineSession:
    """The inline layout: nothing leaves."""

    name = "inline"
    overhead = 0.0
    epochs = replaced = 0

    def __init__(self, recording: BillableSession) -> None:
        self._talk = RecordedConversation(recording)
        self._covered = 0

    def begin(self) -> None:
        self._talk.clear()
        self._covered = 0

    def enter(self, sized: SizedCall, *, cold: bool) -> None:
        del cold
        self._talk.add(sized)

    def prompt(self) -> LaidPrompt:
        contents = PromptContents(conversation=self._talk.messages)
        laid = InlineLayout().lay_out(None, LayoutFacts(contents, self._talk.count, covered=self._covered))
        self._covered = laid.covered
        return laid

    def shows(self, text: WantedText) -> bool:
        del text
        return True

    def bring_back(self, wanted: Sequence[WantedText]) -> None:
        del wanted

    def left(self) -> Iterable[int]:
        return ()


def test_the_inline_layout_costs_what_append_only_costs(story: Story, charged: Prices) -> None:
    recording = story.asks("x" * 400).works(1000, 300).works(2000).waits(400).asks("y").works(50).says().recording()
    expected = Ledger(recording, APPEND, charged, stress=False, trace=False)
    expected.run()
    found = bill(recording, InlineSession(recording), charged).tally
    assert found.cost == pytest.approx(expected.tally.cost)
    assert (found.read, found.written) == pytest.approx((expected.tally.read, expected.tally.written))


def long_session(story: Story) -> BillableSession:
    story.asks("x" * 400).works(f"{NEEDED}\n" + "filler text of a result\n" * 200)
    for number in range(40):
        story.works(f"{number} " * 3000)
    story.waits(400)
    for _ in range(35):
        story.works("after a pause, all may move")
    return story.says(f"As it said: \n{NEEDED}\n").recording()


def test_what_has_left_is_recalled_and_charged(story: Story, charged: Prices) -> None:
    recording = long_session(story)
    ledger = bill(recording, PooledSession(recording, charged), charged)
    assert (ledger.tally.faults, ledger.tally.epochs > 0) == (1, True)
    assert ledger.tally.recall_cost > 0
    assert ledger.session.shows(WantedText(2))  # it is there again
    free = bill(recording, PooledSession(recording, charged), charged, stress=False)
    drawn = bill(recording, PooledSession(recording, charged), charged, stress=True)
    assert drawn.tally.stress_recalls > 0
    assert drawn.tally.recall_cost > free.tally.recall_cost


def test_a_recorded_miss_is_charged_once_where_a_recall_sends_a_request_more(story: Story, charged: Prices) -> None:
    recording = long_session(story)
    missed = replace(recording, sized=(*recording.sized[:-1], replace(recording.sized[-1], cap=0.0)))
    free, paid = (bill(one, PooledSession(one, charged), charged, stress=False).tally for one in (recording, missed))
    assert free.faults == paid.faults == 1
    assert paid.recall_cost == pytest.approx(free.recall_cost)
    assert paid.cost > free.cost


def test_by_the_letter_the_active_contents_are_sent_anew_with_every_request(story: Story, charged: Prices) -> None:
    recording = long_session(story)
    kept = bill(recording, PooledSession(recording, charged), charged).tally
    spec = bill(recording, PooledSession(recording, charged, SPEC, name="pooled-spec"), charged).tally
    assert spec.fresh > 10 * kept.fresh
    assert spec.cost > kept.cost


@pytest.mark.parametrize("layout", ["pooled", "tiered"])
def test_a_file_that_is_read_twice_is_sent_once(story: Story, charged: Prices, layout: str) -> None:
    text = "\n".join(f"line {number} of the file" for number in range(400))
    reads(reads(story.asks("x" * 400), "/repo/a.py", text), "/repo/a.py", text).says()
    recording = story.recording()
    session = TieredSession(recording, charged) if layout == "tiered" else PooledSession(recording, charged)
    bill(recording, session, charged)
    assert sum(block.text.count("line 7 of the file") for block in session.prompt().blocks) == 1
