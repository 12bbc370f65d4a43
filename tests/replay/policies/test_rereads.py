"""Reads made again in a replay: answered as behind the gateway, charged, and met where their text stands."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.watched_engine import WatchedEngine
from tests.policy.clients.working_clients import REPEATED, Talk

from pagein import wiring
from pagein.engine.engine import Settings
from pagein.model.bill import Figures
from pagein.model.messages import ToolCall, ToolResult
from pagein.policy.clients.profile import accesses
from pagein.policy.clients.profiles import profile_by_calls
from pagein.providers.prices.price_lookup import Prices, prices
from pagein.replay.policies.baselines import APPEND
from pagein.replay.policies.ledger import Ledger
from pagein.replay.policies.pagein_policy import PageinPolicy
from pagein.replay.prompt.billable_session import BillableSession
from pagein.replay.session_bill import ReplayTerms, bill_session
from pagein.testing.eager_residency import eager
from pagein.testing.story import RATIO, Story

FILE = "".join(f"def line_{n}_of_the_file() -> None: ...  # with words of its own\n" for n in range(1, 201))
NEVER = Settings(residency=eager(batch_tokens=10**9))
CLIENTS = ("claude-code", "codex", "opencode", "pi")
CHARGED = prices("generic:r=.1,w=1.25,min=1")


def told(talk: Talk, *, wait: float = 5.0) -> Story:
    """The conversation as its client records it: with what its tools said."""
    story = Story().asks()
    for message in talk.sent:
        blocks = tuple(
            replace(block, text=talk.truth[block.call_id])
            if isinstance(block, ToolResult)
            else replace(block, accesses=accesses(block.name, block.arguments))
            if isinstance(block, ToolCall)
            else block
            for block in message.blocks
        )
        story.entries.append(replace(message, blocks=blocks, at=story.now, model="claude-opus-4-6"))
        story.waits(wait if message.role == "assistant" else 0)
    return story


def run(recording: BillableSession, usual: Settings = NEVER) -> Ledger:
    """Under the settings that are given, whatever the prices."""

    def opened(store, *, counter, settings):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return WatchedEngine(store, counter=counter, settings=replace(usual, rereads=settings.rereads))

    with PageinPolicy(recording, opened, CHARGED) as paging:
        ledger = Ledger(recording, paging, CHARGED, stress=False, trace=True)
        ledger.run()
        paging.prove(ledger.tally)
    assert (ledger.tally.refused, ledger.tally.unrecoverable_bytes) == (0, 0)
    return ledger


def rows(recording: BillableSession, charged: Prices = CHARGED) -> dict[str, Figures]:
    names = ("append", "pagein-quiet", "without-rereads+keep-alive")
    return bill_session(recording, ReplayTerms(charged, wiring.open_for_replay, names, stress=False)).bill["policies"]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_file_read_again_enters_as_a_marker_and_costs_what_its_characters_weigh(client: str) -> None:
    talk = Talk(client, {"a.py": FILE})
    talk.read("a.py")
    marker = talk.read("a.py")
    assert len(marker) < 300
    recording = told(talk).says().recording(CHARGED)
    ledger = run(recording)
    assert ledger.tally.stubs == 1
    assert ledger.trace is not None
    last = ledger.trace.parts[-1]
    assert last["stubs"] == pytest.approx(len(marker) / RATIO)
    assert last["results"] == pytest.approx(len(talk.truth["c0"]) / RATIO)


def test_without_the_layer_the_bill_is_that_of_reads_that_enter_whole() -> None:
    talk = Talk("claude-code", {"a.py": FILE})
    for _ in range(4):
        talk.read("a.py")
    bill = rows(told(talk).says().recording(CHARGED))
    assert bill["pagein-quiet"]["cost"] < bill["append"]["cost"] == bill["without-rereads+keep-alive"]["cost"]
    assert (bill["pagein-quiet"]["stubs"], bill["without-rereads+keep-alive"]["stubs"]) == (2, 0)


def test_a_need_for_marked_lines_is_met_by_the_text_behind_the_marker() -> None:
    talk = Talk("claude-code", {"a.py": FILE})
    talk.read("a.py")
    talk.read("a.py")
    lines = FILE.split("\n")
    talk.edit("a.py", 50, lines[50:53], ["something else"])
    tally = run(told(talk).says(f"it was\n{lines[10]}").recording(CHARGED)).tally
    assert (tally.quotes_total, tally.quotes_visible, tally.quotes_lost, tally.faults) == (1, 1, 0, 0)


def test_a_read_with_line_numbers_is_met_by_one_without_and_the_other_way_round() -> None:
    numbered = "".join(f"{n:6}\t{line}\n" for n, line in enumerate(FILE.split("\n")[:-1], 1))
    for first, then in (
        (("cat a.py", FILE), ("cat -n a.py", numbered)),
        (("cat -n a.py", numbered), ("cat a.py", FILE)),
    ):
        talk = Talk("pi", {})
        talk.call("bash", {"command": first[0]}, first[1])
        talk.call("read", {"path": "a.py"}, FILE)
        assert talk.sent[-1].blocks[0].text != FILE  # type: ignore[union-attr]
        talk.call("bash", {"command": then[0]}, then[1])
        lines = FILE.split("\n")
        talk.files["a.py"] = FILE
        talk.edit("a.py", 50, lines[50:53], ["something else"])
        tally = run(told(talk).says(f"it was\n{lines[10]}").recording(CHARGED)).tally
        assert (tally.quotes_visible, tally.quotes_lost, tally.faults) == (1, 0, 0)


def test_lines_that_only_the_answer_shows_are_met_by_the_answer() -> None:
    talk = Talk("claude-code", {"a.py": FILE})
    talk.read("a.py", 1, 60)
    answer = talk.read("a.py")
    lines = FILE.split("\n")
    assert lines[99] in answer
    assert lines[10] not in answer
    talk.edit("a.py", 99, lines[99:102], ["something else"])
    tally = run(told(talk).says().recording(CHARGED)).tally
    assert (tally.quotes_visible, tally.quotes_lost, tally.faults) == (1, 0, 0)


EAGER = Settings(residency=eager(batch_tokens=100, keep_calls=2, keep_reads=2, min_tokens=60))


def test_a_marker_is_evicted_with_its_base_and_later_needs_are_recalled() -> None:
    talk = Talk("claude-code", {"a.py": FILE, "b.py": FILE.replace("line", "other")})
    talk.read("a.py")
    talk.read("a.py")
    for _ in range(12):
        talk.call("Bash", {"command": "make"}, "x" * 4000)
    ledger = run(told(talk).says(f"it was\n{FILE.split(chr(10))[10]}").recording(CHARGED), EAGER)
    assert ledger.tally.faults == 1
    results = [block for block in ledger.recording.calls.blocks if block.kind == "result"]
    assert {results[0].ordinal, results[1].ordinal} <= ledger.shown.hidden.keys()
    assert not ledger.shown.answers


def test_a_read_that_a_marker_stands_for_was_not_paged_out_when_it_is_read_again() -> None:
    talk = Talk("claude-code", {"a.py": FILE})
    for _ in range(5):
        talk.read("a.py")
    assert run(told(talk).says().recording(CHARGED)).tally.rereads == 0


def test_an_evicted_text_that_a_client_treats_as_shown_is_shown_again_and_charged() -> None:
    talk = Talk("claude-code", {"a.py": FILE})
    talk.read("a.py")
    for _ in range(8):
        talk.call("Bash", {"command": "make"}, "x" * 4000)
    talk.call("Read", {"file_path": "a.py"}, REPEATED)
    lines = FILE.split("\n")
    talk.edit("a.py", 50, lines[50:53], ["something else"])
    recording = told(talk).says().recording(CHARGED)
    ledger = run(recording, EAGER)
    again = next(one for one in ledger.resident if one.key[0] == "a")
    assert again.tokens == pytest.approx(len(talk.truth["c0"]) / RATIO)
    assert (ledger.tally.quotes_visible, ledger.tally.quotes_lost, ledger.tally.faults) == (1, 0, 0)


def test_a_notice_that_a_call_wrote_text_of_ours_is_charged() -> None:
    talk = Talk("claude-code", {"a.py": FILE})
    talk.read("a.py")
    marker = talk.read("a.py")
    plain = told(talk).says().recording(CHARGED)
    talk.call("Write", {"file_path": "b.py", "content": f"{marker}\nand more\n"}, "Wrote it.")
    ledger = run(told(talk).says().recording(CHARGED))
    assert ledger.trace is not None
    before = run(plain).trace
    assert before is not None
    assert ledger.trace.parts[-1]["stubs"] > before.parts[-1]["stubs"] + 20
    assert "n" in {key[0] for key in ledger.window._keys}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["read", "part", "edit", "change", "write", "shell", "repeat"]),
        st.sampled_from(["a.py", "b.py"]),
        st.integers(0, 100),
        st.sampled_from([5.0, 400.0]),
    ),
    min_size=4,
    max_size=30,
)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(CLIENTS), STEPS)
def test_sessions_that_read_again_are_held_to_every_law_and_cost_no_more_by_our_doing(
    client: str, steps: list[tuple[str, str, int, float]]
) -> None:
    talk = Talk(client, {"a.py": FILE, "b.py": FILE.replace("line", "other")})
    for act, path, at, _ in steps:
        lines = talk.files[path].split("\n")
        match act:
            case "read":
                talk.read(path)
            case "part":
                talk.read(path, at + 1, 15)
            case "edit":
                talk.edit(path, at, lines[at : at + 2], [f"{at} is another"])
            case "change":
                talk.files[path] = "\n".join((*lines[:at], f"{at} came from elsewhere", *lines[at:]))
            case "write":
                talk.write(path, "\n".join((*lines[:at], f"{at} was written")))
            case "shell":
                talk.call("Bash", {"command": "make"}, "x" * 4000)
            case _:
                earlier = _reads(talk, path)
                if earlier:
                    talk.call(*earlier[0], REPEATED)
    recording = told(talk, wait=steps[0][3]).says().recording(CHARGED)
    for usual in (NEVER, EAGER, Settings()):
        run(recording, usual)
    append = Ledger(recording, APPEND, CHARGED, stress=False, trace=False)
    append.run()
    row = rows(recording)["pagein-quiet"]
    assert row["cost"] - (row["recall_cost"] or 0) <= 1.02 * append.tally.cost


def _reads(talk: Talk, path: str) -> list[tuple[str, dict[str, object]]]:
    calls = [block for one in talk.sent for block in one.blocks if isinstance(block, ToolCall)]
    return [
        (one.name, json.loads(one.arguments)) for one in calls if path in one.arguments and "old" not in one.arguments
    ]


def test_whose_tools_were_called_is_told_by_the_calls() -> None:
    for client in CLIENTS:
        talk = Talk(client, {"a.py": FILE})
        talk.read("a.py", 2, 3)
        calls = [block for one in talk.sent for block in one.blocks if isinstance(block, ToolCall)]
        assert profile_by_calls(calls).name == client
    assert profile_by_calls([ToolCall("c", "get_weather", '{"city": "Ulm"}')]).name == "other"
    assert profile_by_calls([ToolCall("c", "Read", "no json")]).name == "other"
    assert profile_by_calls([]).name == "other"


def test_a_client_with_ambiguous_reads_is_recognised_by_its_other_calls() -> None:
    talk = Talk("gemini-cli", {"a.py": FILE})
    talk.call("run_shell_command", {"command": "ls", "dir_path": "/shop"}, "Output: a.py\nProcess Group PGID: 7")
    talk.read("a.py")
    assert talk.read("a.py") == "[readcache: unchanged, 201 lines]"
    calls = [block for one in talk.sent for block in one.blocks if isinstance(block, ToolCall)]
    assert profile_by_calls(calls).name == "gemini-cli"
    assert profile_by_calls(calls[1:]).name == "other"
    assert run(told(talk).says().recording(CHARGED)).tally.stubs == 1


def test_sessions_of_strangers_are_billed_as_before() -> None:
    story = Story().asks()
    for _ in range(3):
        story.works("".join(f"{n}\tsome text that comes again\n" for n in range(60)))
    bill = rows(story.says().recording(CHARGED))
    assert bill["append"]["cost"] == bill["pagein-quiet"]["cost"]
