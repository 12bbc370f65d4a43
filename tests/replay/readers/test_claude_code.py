import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.model.messages import HostEvent, Message, ShownLines, Text, Thinking, ToolCall, ToolResult, Usage
from pagein.replay.readers import Source, read_source
from pagein.replay.record.recorded_session import SessionHead

Recorded = Callable[[str], list[tuple[SessionHead, list[Any]]]]


def _main(recorded: Recorded) -> tuple[SessionHead, list[Any]]:
    return recorded("claude-code.jsonl")[0]


def _said(entries: list[Any], role: str) -> list[str]:
    return [
        block.text
        for entry in entries
        if isinstance(entry, Message) and entry.role == role
        for block in entry.blocks
        if isinstance(block, Text)
    ]


def test_the_lines_of_one_model_call_are_one_message_with_its_last_usage(recorded: Recorded) -> None:
    _, entries = _main(recorded)
    call = next(entry for entry in entries if isinstance(entry, Message) and entry.role == "assistant")
    assert [type(block) for block in call.blocks] == [Thinking, ToolCall, ToolCall]
    assert call.usage == Usage(fresh=2, read=100, written=900, written_1h=900, output=55)
    assert (call.id, call.stop, call.at) == ("m1", "tool_use", 1772442004.0)


def test_results_of_parallel_calls_follow_the_whole_message(recorded: Recorded) -> None:
    _, entries = _main(recorded)
    results = [
        (block.call_id, block.name, block.is_error)
        for entry in entries
        if isinstance(entry, Message)
        for block in entry.blocks
        if isinstance(block, ToolResult)
    ]
    assert results[:2] == [("t1", "Read", False), ("t2", "Bash", True)]
    asked: set[str] = set()
    for entry in entries:
        for block in entry.blocks if isinstance(entry, Message) else ():
            if isinstance(block, ToolCall):
                asked.add(block.id)
            if isinstance(block, ToolResult):
                assert block.call_id in asked


def test_a_read_tells_which_lines_it_shows(recorded: Recorded) -> None:
    _, entries = _main(recorded)
    shown = [
        block.shown
        for entry in entries
        if isinstance(entry, Message)
        for block in entry.blocks
        if isinstance(block, ToolResult)
    ]
    assert shown[:2] == [ShownLines(1, 3, 3), None]


def test_a_withdrawn_prompt_is_left_out_with_its_answer(recorded: Recorded) -> None:
    head, entries = _main(recorded)
    assert "Rewrite it in C." not in _said(entries, "user")
    assert "That is a lot of work." not in _said(entries, "assistant")
    assert (head.flags["branches"], head.flags["abandoned_calls"]) == (1, 1)


def test_lines_that_stand_in_the_file_twice_are_read_once(recorded: Recorded) -> None:
    head, entries = _main(recorded)
    assert head.flags["repeated_lines"] == 2
    assert _said(entries, "user").count("Make the basket faster.") == 1
    assert _said(entries, "assistant").count("The tax is looked up each time.") == 1


def test_inserted_text_has_its_kind_and_empty_attachments_are_ignored(recorded: Recorded) -> None:
    _, entries = _main(recorded)
    injected = [
        (block.injected, block.text.split("\n")[0])
        for entry in entries
        if isinstance(entry, Message) and entry.role == "user"
        for block in entry.blocks
        if isinstance(block, Text) and block.injected
    ]
    assert injected == [
        ("nested_memory", "Contents of /srv/shop/RULES.md:"),
        ("system_reminder", "<system-reminder>be brief</system-reminder>"),
        ("compact_summary", "This session is being continued. The tax is cached."),
        ("meta", "Caveat: local commands follow."),
    ]


def test_a_compaction_tells_how_many_messages_the_host_kept(recorded: Recorded) -> None:
    _, entries = _main(recorded)
    place = next(n for n, entry in enumerate(entries) if isinstance(entry, HostEvent) and entry.kind == "compaction")
    assert json.loads(entries[place].data) == {"trigger": "auto", "preTokens": 1324, "kept": 2}
    kept = [entry for entry in entries[:place] if isinstance(entry, Message)][-2:]
    assert [entry.role for entry in kept] == ["tool", "assistant"]
    assert _said(entries[place:], "user")[-2:] == ["And the tests?", "Caveat: local commands follow."]


def test_a_message_that_the_client_made_up_about_an_error_is_marked(recorded: Recorded) -> None:
    _, entries = _main(recorded)
    made_up = [entry for entry in entries if isinstance(entry, Message) and entry.model == "<synthetic>"]
    assert [entry.stop for entry in made_up] == ["error"]
    assert [entry.kind for entry in entries if isinstance(entry, HostEvent)] == ["turn_end", "api_error", "compaction"]


def test_a_sub_agent_inside_the_file_is_a_session_of_its_own(recorded: Recorded) -> None:
    _, (head, entries) = recorded("claude-code.jsonl")
    assert (head.id, head.parent, head.agent) == ("cc-1-sub-x1", "cc-1", "claude-code/subagent")
    assert head.models == ("claude-haiku-4-5",)
    assert [entry.role for entry in entries] == ["user", "assistant", "tool", "assistant"]


def test_a_sub_agent_in_a_file_of_its_own_names_its_parent(recorded: Recorded) -> None:
    [(head, entries)] = recorded("claude-project/cc-1/subagents/agent-a7f.jsonl")
    assert (head.id, head.parent) == ("cc-1-sub-a7f", "cc-1")
    assert len(entries) == 2


def _line(uuid: str, parent: str | None, kind: str, **more: object) -> dict[str, Any]:
    row = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "isSidechain": False}
    return {**row, "timestamp": "2026-03-02T09:00:00Z", **more}


def _prompt(uuid: str, parent: str | None, words: str = "go") -> dict[str, Any]:
    return _line(uuid, parent, "user", message={"role": "user", "content": words})


def _answer(uuid: str, parent: str | None, call: str) -> dict[str, Any]:
    content = [{"type": "text", "text": uuid}]
    message = {"id": call, "role": "assistant", "model": "m", "content": content, "usage": {"input_tokens": 1}}
    return _line(uuid, parent, "assistant", message=message)


def _read(rows: list[dict[str, Any]]) -> list[tuple[SessionHead, list[Any]]]:
    content = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
    return [(session.head, list(session.entries)) for session in read_source(Source("t.jsonl", content=content))]


def test_two_transcripts_in_one_file_are_two_sessions() -> None:
    second = [{**row, "sessionId": "z"} for row in (_prompt("q1", None), _answer("b1", "q1", "n1"))]
    found = _read([_prompt("p1", None), _answer("a1", "p1", "m1"), *second])
    assert [head.id for head, _ in found] == ["s", "z"]
    assert [len(entries) for _, entries in found] == [2, 2]


def test_going_back_to_the_start_leaves_everything_before_behind() -> None:
    [(head, entries)] = _read(
        [_prompt("p1", None), _answer("a1", "p1", "m1"), _prompt("p2", None), _answer("a2", "p2", "m2")]
    )
    assert [entry.blocks[0].text for entry in entries] == ["go", "a2"]
    assert head.flags["abandoned_calls"] == 1


def test_an_interruption_beside_parallel_results_is_no_branch() -> None:
    def result(uuid: str, parent: str | None, call: str) -> dict[str, Any]:
        content = [{"type": "tool_result", "tool_use_id": call, "content": "x"}]
        return _line(uuid, parent, "user", message={"role": "user", "content": content})

    rows = [_prompt("p1", None), _answer("a1", "p1", "m1"), _answer("a2", "a1", "m1"), result("r1", "a1", "t1")]
    rows += [result("r2", "a2", "t2"), _prompt("p2", "r1", "[Request interrupted]"), _answer("a3", "p2", "m2")]
    [(head, entries)] = _read(rows)
    assert "branches" not in head.flags
    assert [entry.role for entry in entries] == ["user", "assistant", "tool", "tool", "user", "assistant"]


def test_a_parent_missing_from_the_file_is_tolerated() -> None:
    [(head, entries)] = _read(
        [_prompt("p1", "gone"), _answer("a1", "p1", "m1"), _prompt("p2", "lost"), _answer("a2", "p2", "m2")]
    )
    assert len(entries) == 4
    assert "branches" not in head.flags


@given(st.lists(st.integers(0, 8), max_size=12))
@pytest.mark.filterwarnings("error")
def test_after_any_rewinds_the_messages_are_the_path_to_the_last_prompt(backs: list[int]) -> None:
    rows, parents, tip = [], {}, None
    chain: list[str] = []
    for n, back in enumerate(backs):
        for _ in range(2 * min(back, len(chain) // 2) if back > 5 else 0):
            chain.pop()
        tip = chain[-1] if chain else None
        rows += [_prompt(f"p{n}", tip, f"p{n}"), _answer(f"a{n}", f"p{n}", f"m{n}")]
        parents[f"p{n}"] = tip
        chain += [f"p{n}", f"a{n}"]
    if not rows:
        return
    [(head, entries)] = _read(rows)
    assert [entry.blocks[0].text for entry in entries] == chain
    lost = len(backs) - len(chain) // 2
    assert head.flags.get("abandoned_calls", 0) == lost
    assert all(one.role != two.role for one, two in pairwise(entries))


def test_a_branch_that_goes_on_after_a_rewind_is_the_session_and_the_other_is_left() -> None:
    rows = [_prompt("p1", None, "p1"), _answer("a1", "p1", "m1"), _prompt("p2", "a1", "p2"), _answer("a2", "p2", "m2")]
    rows += [_prompt("q2", "a1", "q2"), _answer("b2", "q2", "n2")]  # a rewind to the first answer
    rows += [_prompt("p3", "a2", "p3"), _answer("a3", "p3", "m3")]  # and the way that was left goes on
    [(head, entries)] = _read(rows)
    assert [entry.blocks[0].text for entry in entries] == ["p1", "a1", "p2", "a2", "p3", "a3"]
    assert (head.flags["branches"], head.flags["abandoned_calls"]) == (1, 1)


def test_two_processes_that_write_one_transcript_by_turns_are_two_ways() -> None:
    rows = [_prompt("p", None, "p"), _answer("a", "p", "m")]
    tips = {"x": "a", "y": "a"}
    for n in range(6):
        for name, tip in list(tips.items()):
            rows += [_prompt(f"{name}p{n}", tip), _answer(f"{name}a{n}", f"{name}p{n}", f"{name}m{n}")]
            tips[name] = f"{name}a{n}"
    [(head, entries)] = _read(rows)
    answers = [entry.blocks[0].text for entry in entries if entry.role == "assistant"]
    assert answers == ["a", *(f"ya{n}" for n in range(6))]
    assert (head.flags["branches"], head.flags["abandoned_calls"]) == (1, 6)


@given(st.data())
def test_after_any_interleaving_the_messages_are_the_way_to_the_last_line(data: st.DataObject) -> None:
    """An oracle that knows the parents alone: from the last line up to the root."""
    rows: list[dict[str, Any]] = [_prompt("p0", None, "p0"), _answer("a0", "p0", "m0")]
    above: dict[str, str | None] = {"p0": None, "a0": "p0"}
    for n in range(1, data.draw(st.integers(1, 12), "turns")):
        tip = data.draw(st.sampled_from([name for name in above if name.startswith("a")]), f"tip{n}")
        rows += [_prompt(f"p{n}", tip, f"p{n}"), _answer(f"a{n}", f"p{n}", f"m{n}")]
        above |= {f"p{n}": tip, f"a{n}": f"p{n}"}
    way: list[str] = []
    place: str | None = list(above)[-1]
    while place is not None:
        way.insert(0, place)
        place = above[place]
    [(head, entries)] = _read(rows)
    assert [entry.blocks[0].text for entry in entries] == way
    assert head.flags.get("abandoned_calls", 0) == (len(above) - len(way)) // 2
