"""What a peer is billed and blamed for, with peers that are functions."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmarks.peers.driving import Answer
from benchmarks.peers.ours import OURS, replayed
from benchmarks.peers.sessions import load
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.benchmarks.peers.conftest import Bench

from pagein.model.messages import HostEvent, Image, Message, Text, ToolCall, ToolResult, Usage
from pagein.providers.validity import Api
from pagein.replay.policies.baselines import APPEND, Clear, RollingStubs
from pagein.replay.policies.ledger import Ledger, Policy, Recall
from pagein.replay.policies.tally import Tally
from pagein.replay.prompt.billable_session import BillableSession
from pagein.replay.run import ReplayRequest, replay
from pagein.testing.story import FLOOR, RATIO, Story
from pagein.wiring import open_for_replay

ROOT = Path(__file__).resolve().parents[3]
DEMO = ROOT / "examples" / "demo-session.jsonl.gz"
CORPUS = ROOT.parent / "shared" / "corpus" / "mini"
APIS: tuple[Api, ...] = ("anthropic", "openai_chat")
RECALLS: tuple[Recall, Recall] = ("slice", "full")
READ, WRITE = 0.1, 1.25
LINE = "def connect(host: str, port: int, timeout: float = 3.5) -> Socket: ..."

Wire = list[dict[str, Any]]


def same(messages: Wire) -> Wire:
    return messages


def nothing(messages: Wire) -> Wire:
    del messages
    return []


def without_results(messages: Wire, text: str = "gone") -> Wire:
    return with_results(messages, lambda _place, _text: text)


def with_results(messages: Wire, change: Callable[[int, str], str]) -> Wire:
    """Messages in the Anthropic shape with each result's text changed, given its place among the results and its text."""
    place = 0
    for message in messages:
        for block in message["content"]:
            if block["type"] == "tool_result":
                block["content"] = change(place, block["content"])
                place += 1
    return messages


def as_told(tally: Tally) -> tuple[float, ...]:
    return (tally.cost, tally.read, tally.written, tally.fresh, tally.output, tally.floor, tally.calls)


@pytest.mark.parametrize("api", APIS)
def test_a_peer_that_returns_its_input_costs_exactly_append(bench: Bench, story: Story, api: Api) -> None:
    story.asks("x" * 400).works(1000, usage=Usage(written=5000)).works(2000, 10, usage=Usage(read=5000, written=900))
    story.waits(600).asks("and now?").works(300, usage=Usage(read=700, written=9500))  # a recorded miss
    recording = story.says(usage=Usage(read=10_000, written=900)).recording(bench.charged)
    bill = bench.bill(recording, same, api)
    assert as_told(bill.tally) == pytest.approx(as_told(bench.append(recording)), rel=1e-12)
    assert bill.moved == pytest.approx(bill.tally.cost)
    assert (bill.busts, bill.tally.faults, bill.tally.refused, bill.failed, bill.altered) == (0, 0, 0, 0, {})


@given(
    turns=st.lists(
        st.tuples(
            st.lists(st.integers(0, 3000), max_size=3),
            st.booleans(),
            st.sampled_from([0.0, 400.0]),
            st.integers(0, 900),
        ),
        min_size=1,
        max_size=12,
    ),
    api=st.sampled_from(APIS),
)
@settings(deadline=None, max_examples=60)
def test_whatever_was_said_leaving_it_alone_costs_append(turns: list[Any], api: Api) -> None:
    bench, story, size = Bench(), Story().asks(), 4000
    for results, speaks, pause, growth in turns:
        size += sum(results) + growth
        story.works(*results, usage=Usage(written=size)) if results else story.says(" " if speaks else "well")
        story.waits(pause)
        if speaks:
            story.asks("the same words")
    recording = story.says().recording(bench.charged)
    bill = bench.bill(recording, same, api)
    assert as_told(bill.tally) == pytest.approx(as_told(bench.append(recording)), rel=1e-9)
    assert bill.tally.refused == 0


@pytest.mark.parametrize("api", APIS)
def test_what_no_message_can_show_is_billed_and_cannot_be_saved(bench: Bench, story: Story, api: Api) -> None:
    story.asks()
    call = ToolCall("pic", "Read", "{}")
    story.entries.append(Message("assistant", (call, Text("  ")), at=1.0, model="claude-opus-4-6"))
    story.entries.append(Message("tool", (ToolResult("pic", "see", images=(Image("image/png", 900),)),), at=2.0))
    recording = story.says().recording(bench.charged)
    assert bench.bill(recording, same, api).tally.cost == pytest.approx(bench.append(recording).cost)


@pytest.mark.parametrize("api", APIS)
def test_a_peer_that_drops_everything_is_refused_at_every_call_and_saves_nothing(
    bench: Bench, story: Story, api: Api
) -> None:
    recording = story.asks().works(1000).works(2000).says().recording(bench.charged)
    bill = bench.bill(recording, nothing, api)
    assert bill.tally.refused == bill.tally.calls == 3
    assert bill.tally.cost == pytest.approx(bench.append(recording).cost)


def test_dropping_what_answers_a_call_is_refused(bench: Bench, story: Story) -> None:
    recording = story.asks().works(1000).says().recording(bench.charged)
    script = bench.script(recording)
    [first, second] = bench.rendered(script, lambda _w, _t, _l, messages: _answer(messages[:2]))
    assert first.fell == ""
    assert (second.fell, second.why) == ("refused", "M1")


def _answer(messages: Iterable[bytes]) -> Answer:
    return Answer(tuple(messages))


def test_an_answer_that_is_no_message_is_refused(bench: Bench, story: Story) -> None:
    script = bench.script(story.asks().says().recording(bench.charged))
    [only] = bench.rendered(script, lambda _w, _t, _l, _messages: _answer([b"7"]))
    assert only.fell == "refused"


def test_what_was_cut_and_is_repeated_later_is_a_fault_and_is_charged(bench: Bench, story: Story) -> None:
    recording = story.asks().works(LINE + "\n" + "y" * 4000).says(f"as before:\n{LINE}").recording(bench.charged)
    bill = bench.bill(recording, without_results)
    assert bill.tally.faults == 1
    assert bill.tally.recall_cost > 0
    kept = bench.bill(recording, lambda messages: with_results(messages, lambda _place, _text: LINE))
    assert kept.tally.faults == 0, "a digest that keeps the line shows it"
    assert kept.tally.cost < bill.tally.cost


def test_a_recall_brings_back_a_slice_or_all_and_stays_until_the_end(bench: Bench, story: Story) -> None:
    story.asks().works(LINE + "\n" + "y" * 40_000)
    recording = story.says(f"as before:\n{LINE}").asks().says(f"once more:\n{LINE}").recording(bench.charged)
    script = bench.script(recording)
    rendered = bench.rendered(script, lambda _w, _t, _l, messages: _answer(map(_emptied, messages)))
    part, whole = (bench.looks(script, rendered, recall) for recall in RECALLS)
    assert [len(look.copies) for look in part] == [len(look.copies) for look in whole] == [0, 1, 0]
    assert part[1].copies[0].tokens == 1500
    assert whole[1].copies[0].tokens == pytest.approx((40_000 + len(LINE) + 1) / RATIO)


def _emptied(message: bytes) -> bytes:
    return json.dumps(without_results([json.loads(message)])[0]).encode()


def test_a_quote_that_is_cut_is_lost_and_one_that_was_recalled_before_is_seen(bench: Bench, story: Story) -> None:
    story.asks().works("alpha\nbeta\n" + "z" * 4000)
    for number in range(2):
        arguments = json.dumps({"file_path": "a", "old_string": "alpha\nbeta", "new_string": f"x{number}"})
        call = ToolCall(f"e{number}", "Edit", arguments)
        story.entries.append(Message("assistant", (call,), at=story.now, model="claude-opus-4-6"))
        story.entries.append(Message("tool", (ToolResult(f"e{number}", "done"),), at=story.now))
    recording = story.recording(bench.charged)
    tally = bench.bill(recording, without_results).tally
    # the second is seen in the first edit's own arguments
    assert (tally.quotes_total, tally.quotes_visible, tally.quotes_lost) == (2, 1, 1)
    raw = bench.append(recording)
    assert (raw.quotes_visible, raw.quotes_lost) == (2, 0)


def long_story(story: Story, calls: int = 30) -> BillableSession:
    story.asks("x" * 400)
    for _ in range(calls):
        story.works(1000)
    return story.says().recording()


def test_one_late_cut_busts_the_cache_once_and_a_moved_mark_reads_what_stands_before_it(
    bench: Bench, story: Story
) -> None:
    recording = long_story(story)
    sizes = [sized.prompt for sized in recording.sized]

    def late(messages: Wire) -> Wire:
        results = sum(block["type"] == "tool_result" for message in messages for block in message["content"])
        return with_results(messages, lambda place, text: "gone" if place == 0 and results > 28 else text)

    bill = bench.bill(recording, late)
    saved = 1000 - len("gone") / RATIO
    outputs = 5 * sum(sized.output for sized in recording.sized)
    warm = sum(READ * a + WRITE * (b - a) for a, b in zip([0.0, *sizes], sizes[:29], strict=False))
    at_29 = WRITE * (sizes[29] - saved - sizes[0]) + READ * sizes[0]
    last = READ * (sizes[29] - saved) + WRITE * (sizes[30] - sizes[29])
    assert bill.busts == 1
    assert bill.moved is not None
    assert bill.moved == pytest.approx(warm + at_29 + last + outputs)
    # without the mark a provider finds no more than the system prompt
    assert bill.tally.cost == pytest.approx(bill.moved + (WRITE - READ) * (sizes[0] - FLOOR))
    assert bill.altered == {"result": 1}


def test_the_messages_alone_are_read_as_far_as_they_are_the_same(bench: Bench, story: Story) -> None:
    recording = story.asks("x" * 400).works(1000).says().recording(bench.charged)
    first = 400 / RATIO
    second = sum(sum(sized.blocks) for sized in recording.sized)
    assert bench.bill(recording, same).alone == pytest.approx(WRITE * second + READ * first)


def test_a_peer_that_merges_messages_is_followed_by_the_ids_of_calls(bench: Bench, story: Story) -> None:
    recording = story.asks().asks().works(1000).works(2000, usage=Usage(written=9000)).says().recording(bench.charged)
    script = bench.script(recording, "openai_chat")

    def merged(window: int, tokens: float, limit: int, messages: Sequence[bytes]) -> Answer:
        del window, tokens, limit
        return _answer(messages[1:] if len(messages) > 2 else messages)

    rendered = bench.rendered(script, merged)
    assert [one.places for one in rendered] == [(2,), (1, 3), (1, 3, 5)]


def test_a_new_window_is_no_bust_and_begins_with_nothing(bench: Bench, story: Story) -> None:
    story.asks().works(1000)
    story.entries.append(HostEvent("compaction", story.now))
    recording = story.asks("a summary").works(500).says().recording(bench.charged)
    script = bench.script(recording)
    assert [turn.window for turn in script.turns] == [0, 1, 1]
    bill = bench.bill(recording, same)
    assert bill.busts == 0
    assert bill.tally.cost == pytest.approx(bench.append(recording).cost)


@pytest.mark.parametrize("name", OURS[:3])
def test_watching_a_policy_changes_nothing_of_its_bill(bench: Bench, story: Story, name: str) -> None:
    recording = long_story(story)
    plain: Policy = {"append": APPEND, "rolling": RollingStubs(), "clear": Clear()}[name]
    ledger = Ledger(recording, plain, bench.charged, stress=False, trace=False)
    ledger.run()
    watched = replayed(name, recording, bench.charged)
    assert watched.tally == ledger.tally
    assert watched.busts == ledger.tally.epochs
    assert watched.moved is not None
    assert watched.moved <= watched.tally.cost


def test_our_rows_and_the_peers_price_the_messages_alone_alike(bench: Bench, story: Story) -> None:
    recording = long_story(story.asks(), 12)
    assert replayed("append", recording, bench.charged).alone == pytest.approx(bench.bill(recording, same).alone)


def test_a_mask_costs_as_a_peer_what_it_costs_in_the_replay(bench: Bench, story: Story) -> None:
    """Two accounts that share no code of theirs but the simulator agree on a policy that rewrites at every call."""
    recording = long_story(story)
    stub = "s" * int(40 * RATIO)

    def rolling(messages: Wire) -> Wire:
        results = sum(block["type"] == "tool_result" for message in messages for block in message["content"])
        return with_results(messages, lambda place, text: stub if place < results - 10 else text)

    bill, ledger = bench.bill(recording, rolling), replayed("rolling", recording, bench.charged)
    assert as_told(bill.tally) == pytest.approx(as_told(ledger.tally), rel=1e-9)
    assert bill.busts == ledger.busts == 20
    assert bill.moved == pytest.approx(ledger.moved)
    assert bill.alone == pytest.approx(ledger.alone)


def test_the_demo_session_is_sized_as_the_replay_sizes_it(bench: Bench) -> None:
    [session], skipped = load([DEMO])
    assert skipped == []
    recording = session.under(bench.charged)
    asked = ReplayRequest((DEMO,), prices=bench.charged.name, policies=("append",), stress=False, jobs=1)
    row = replay(asked, open_for_replay).bill["policies"]["append"]
    assert bench.append(recording).cost == pytest.approx(row["cost"], abs=0.06)
    bill = bench.bill(recording, same)
    assert bill.tally.cost == pytest.approx(row["cost"], abs=0.06)
    assert bill.tally.quotes_visible == row["quotes_visible"]


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="needs the recorded sessions beside the checkout")
def test_on_recorded_sessions_leaving_things_alone_costs_append_and_is_never_refused(bench: Bench) -> None:
    sessions, _ = load(sorted(CORPUS.glob("*.jsonl.gz")))
    for session in sessions:
        recording = session.under(bench.charged)
        raw = bench.append(recording)
        for api in APIS:
            bill = bench.bill(recording, same, api)
            assert as_told(bill.tally) == pytest.approx(as_told(raw), rel=1e-9), session.name
            seen = (bill.tally.quotes_visible, bill.tally.quotes_lost, bill.tally.faults, bill.tally.refused)
            assert seen == (raw.quotes_visible, 0, 0, 0), session.name
