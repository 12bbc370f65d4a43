"""Each layer of pagein's policy can be removed, and its effect disappears with it."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from pagein import wiring
from pagein.errors import BadSetting
from pagein.model.bill import Figures
from pagein.model.messages import FileAccess, Message, ToolCall, ToolResult, Usage
from pagein.policy.economics.rewrite_cost import Account, Moment
from pagein.policy.eviction.residency import EMPTY, plan
from pagein.providers.prices.price_lookup import Prices, prices
from pagein.replay.policies.ablation import LAYERS, ablation, layers_missing, planner_settings
from pagein.replay.policies.pagein_policy import settings_for
from pagein.replay.run import ReplayRequest, replay
from pagein.replay.session_bill import ReplayTerms, bill_session
from pagein.testing.story import Story

MINI = Path(__file__).parents[2] / "fixtures" / "sessions" / "claude-code.jsonl"


def _billed(story: Story, charged: Prices, *without: str) -> dict[str, Figures]:
    """The bills of pagein, and without a layer. Nothing is shown once, or the epochs would have little to do here."""
    planned = {
        "pagein": ablation(["shown-once"]),
        **{ablation([one]): ablation([one, "shown-once"]) for one in without},
    }
    terms = ReplayTerms(charged, wiring.open_for_replay, ("append", *planned.values()), stress=False)
    rows = bill_session(story.recording(charged), terms).bill["policies"]
    return {"append": rows["append"], **{name: rows[one] for name, one in planned.items()}}


def _busy(story: Story) -> Story:
    """Big outputs, middling ones, a pause that outlives the cache, turns of a person, and an end long after."""
    story.asks()
    for number in range(90):
        story.works(6000 if number % 9 == 4 else 2500)
        if number % 20 == 13:
            story.asks("and now?")
        if number == 40:
            story.waits(2000).asks("good morning")
    return story.says()


def test_without_births_and_epochs_nothing_leaves_and_the_bill_is_that_of_appending(
    story: Story, charged: Prices
) -> None:
    _busy(story)
    names = ("append", "pagein", ablation(["birth", "epochs", "marks", "reserve"]))
    terms = ReplayTerms(charged, wiring.open_for_replay, names, stress=True)
    rows = bill_session(story.recording(charged), terms).bill["policies"]
    assert rows["pagein"]["cost"] < rows["append"]["cost"]
    bare = rows[names[2]]
    assert (bare["stubs"], bare["epochs"], bare["faults"]) == (0, 0, 0)
    assert bare["cost"] == rows["append"]["cost"]


def test_without_births_nothing_enters_as_a_preview(story: Story, charged: Prices) -> None:
    story.asks().works(9000).says()
    rows = _billed(story, charged, "birth")
    assert (rows["pagein"]["stubs"], rows["without-birth"]["stubs"]) == (1, 0)


def test_without_results_shown_once_every_output_is_cached(story: Story, charged: Prices) -> None:
    story.asks()
    for _ in range(6):
        story.works(3000)
    terms = ReplayTerms(charged, wiring.open_for_replay, ("append", "pagein", ablation(["shown-once"])), stress=False)
    rows = bill_session(story.says().recording(charged), terms).bill["policies"]
    assert rows["pagein"]["fresh"] > 0 == rows["without-shown-once"]["fresh"]
    assert rows["pagein"]["stubs"]
    assert rows["pagein"]["epochs"] == 0  # nothing that was cached is written again
    assert rows["pagein"]["cost"] < rows["without-shown-once"]["cost"]


def test_without_epochs_only_previews_are_left(story: Story, charged: Prices) -> None:
    rows = _billed(_busy(story), charged, "epochs")
    assert rows["pagein"]["epochs"]
    assert rows["without-epochs"]["epochs"] == 0
    assert rows["without-epochs"]["stubs"]


def test_without_the_bankroll_a_rewrite_comes_earlier(story: Story, charged: Prices) -> None:
    story.asks()
    for _ in range(60):
        story.works(3000)
    rows = _billed(story.says(), charged, "bankroll")
    assert (rows["without-bankroll"]["epochs"] or 0) > (rows["pagein"]["epochs"] or 0)


def test_without_the_clock_a_pause_is_no_reason(story: Story, charged: Prices) -> None:
    story.asks()
    for _ in range(12):
        story.works(4000)
    story.waits(2000).works(10).says()
    rows = _billed(story, charged, "cold")
    assert (rows["pagein"]["epochs"], rows["without-cold"]["epochs"]) == (1, 0)


def test_without_marks_the_cache_reads_less_of_each_prompt_and_the_session_costs_more(
    story: Story, charged: Prices
) -> None:
    """The session knows that no entry ends at the frontier, so it rewrites at other times."""
    rows = _billed(_busy(story), charged, "marks")
    without, usual = rows["without-marks"], rows["pagein"]
    assert without["read"] / without["prompt_tokens"] < usual["read"] / usual["prompt_tokens"]
    assert without["cost"] > usual["cost"]


def test_outside_tool_loops_a_rewrite_waits_for_the_user(story: Story, charged: Prices) -> None:
    story.asks()
    for size in [9000] * 3 + [3500] * 60:
        story.works(size)
    looping = _billed(story.says(), charged, "tool-loops")
    assert looping["pagein"]["epochs"]
    assert looping["without-tool-loops"]["epochs"] == 0
    spoken = _billed(story.asks("and now?").works(10).says(), charged, "tool-loops")
    assert spoken["without-tool-loops"]["epochs"] == 1


def test_without_keep_alive_the_bill_is_that_of_the_quiet_policy(story: Story) -> None:
    charged = prices("generic:r=.1,w=1.25,w1h=2")
    story.asks()
    for number in range(20):
        usage = Usage(read=3000 + 20_000 * number, written=20_000, written_1h=20_000, output=20)
        story.works(20_000, usage=usage)
    recording = story.says().waits(1500).asks().works(20).says().recording(charged)
    # with previews, or with results shown once, too little is left to keep alive here
    kept, bare = ablation(["birth", "shown-once"]), ablation(["birth", "keep-alive", "shown-once"])
    names = ("append", "pagein-quiet", ablation(["keep-alive"]), kept, bare)
    rows = bill_session(recording, ReplayTerms(charged, wiring.open_for_replay, names)).bill["policies"]
    assert rows[kept]["keep_alives"]
    assert rows[kept]["cost"] < rows[bare]["cost"]
    assert rows["pagein-quiet"] == rows["without-keep-alive"]


@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_changes_how_pagein_plans_and_leaves_the_session_whole(
    story: Story, charged: Prices, name: str
) -> None:
    settings = settings_for(charged, 300)
    assert planner_settings(ablation([name]), settings) != planner_settings("pagein", settings)
    row = _billed(_busy(story), charged, name)[ablation([name])]
    assert (row["refused"], row["unrecoverable_bytes"]) == (0, 0)


@pytest.mark.parametrize("name", LAYERS)
def test_a_plan_without_a_layer_is_still_a_plan_at_every_moment(name: str) -> None:
    residency = planner_settings(ablation([name]), settings_for(prices("claude-opus-4-6"), 300)).settings.residency
    for now in (0.0, 1e9):
        made = plan(EMPTY, residency, Moment(now, 0.0, 0, 0, user_turn=True), Account())
        assert made.epoch is None
        assert math.isfinite(made.account.bill)


def test_layers_are_named_in_one_order_and_unknown_ones_refused_with_the_list() -> None:
    assert ablation(["cold", " birth"]) == "without-birth+cold"
    assert layers_missing("without-birth+cold") == ("birth", "cold")
    assert layers_missing("pagein") == ()
    assert layers_missing("append") is None
    with pytest.raises(
        BadSetting,
        match=r"'berth' \(did you mean 'birth'\?\); the layers are birth, shown-once, rereads, epochs, files, reading, odds, marks",
    ):
        ablation(["berth"])


def test_an_ablated_policy_stands_behind_pagein_in_the_bill() -> None:
    asked = ReplayRequest((MINI,), policies=("append",), without=("cold", "birth,marks", "marks,birth"), jobs=1)
    bill = replay(asked, wiring.open_for_replay).bill
    assert list(bill["policies"]) == ["append", "pagein", "without-cold", "without-birth+marks"]


def test_arguments_are_masked_by_the_thrifty_settings_alone_and_not_without_that_layer(charged: Prices) -> None:
    settings = settings_for(charged, 300)
    assert planner_settings("pagein", settings).settings.residency.arguments is None
    thrifty = planner_settings("pagein-thrifty", settings).settings.residency
    bare = planner_settings("without-arguments", settings).settings.residency
    assert thrifty.arguments is not None
    assert bare == replace(thrifty, arguments=None)
    assert bare.economics == settings.residency.economics


def test_text_of_files_left_alone_leaves_the_bill_of_the_thrifty_settings(story: Story, charged: Prices) -> None:
    text = "".join(f"line {n} that is written\n" for n in range(300))
    story.asks()
    for number in range(40):
        path = f"/w/{number}.py"
        write = ToolCall(
            f"w{number}",
            "Write",
            json.dumps({"file_path": path, "content": f"{number}\n{text}"}),
            (FileAccess("write", path),),
        )
        story.entries.append(Message("assistant", (write,), at=story.now, model="claude-opus-4-6"))
        story.entries.append(Message("tool", (ToolResult(write.id, "ok"),), at=story.now))
        story.waits(4000 if number == 25 else 5)
    story.says()
    names = ("append", "pagein-thrifty", "without-arguments")
    rows = bill_session(
        story.recording(charged), ReplayTerms(charged, wiring.open_for_replay, names, stress=False)
    ).bill["policies"]
    masked, bare = rows["pagein-thrifty"], rows["without-arguments"]
    assert masked["cost"] < 0.95 * bare["cost"]
    assert bare["stubs"] == 0
    assert masked["stubs"]
    assert (masked["refused"], masked["unrecoverable_bytes"], masked["quotes_lost"]) == (0, 0, 0)
