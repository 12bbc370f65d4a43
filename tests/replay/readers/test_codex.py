import json
from collections.abc import Callable
from typing import Any

from pagein.model.messages import HostEvent, Message, Other, Text, Thinking, ToolCall, ToolResult, UnreadableLine, Usage
from pagein.policy.clients.profile import patch_lines
from pagein.replay.readers import Source, read_source
from pagein.replay.record.recorded_session import SessionHead
from pagein.replay.record.usage_tally import UsageTotals

Recorded = Callable[[str], list[tuple[SessionHead, list[Any]]]]


def _calls(entries: list[Any]) -> list[Message]:
    return [entry for entry in entries if isinstance(entry, Message) and entry.role == "assistant"]


def test_the_head_tells_model_window_and_instructions(recorded: Recorded) -> None:
    [(head, entries)] = recorded("codex.jsonl")
    assert (head.id, head.agent, head.models, head.window, head.cwd) == (
        "cx-1",
        "codex",
        ("gpt-5.5",),
        258400,
        "/srv/shop",
    )
    assert (entries[0].role, entries[0].blocks) == ("system", (Text("You are a careful coder."),))


def test_a_token_count_belongs_to_the_call_before_it_and_a_repeated_count_is_ignored(recorded: Recorded) -> None:
    [(_, entries)] = recorded("codex.jsonl")
    assert [call.usage for call in _calls(entries)] == [
        Usage(fresh=3000, read=2000, output=60),
        Usage(fresh=200, read=5000, output=90),
        Usage(fresh=200, read=5200, output=4),
        Usage(fresh=200, read=5400, output=15),
        Usage(fresh=900, output=6),
    ]


def test_all_items_up_to_the_outputs_are_one_call(recorded: Recorded) -> None:
    [(_, entries)] = recorded("codex.jsonl")
    first = _calls(entries)[0]
    assert [type(block) for block in first.blocks] == [Thinking, Text, ToolCall, ToolCall]
    assert first.blocks[0] == Thinking("", redacted=True)
    assert first.model == "gpt-5.5"


def test_outputs_tell_the_tool_and_whether_the_command_failed(recorded: Recorded) -> None:
    [(_, entries)] = recorded("codex.jsonl")
    results = [
        (block.name, block.is_error)
        for entry in entries
        if isinstance(entry, Message)
        for block in entry.blocks
        if isinstance(block, ToolResult)
    ]
    assert results == [("exec_command", False), ("exec_command", True), ("apply_patch", False), ("local_shell", False)]


def test_a_patch_tells_its_files_and_the_short_lines_that_it_quotes(recorded: Recorded) -> None:
    [(_, entries)] = recorded("codex.jsonl")
    [patch] = _calls(entries)[1].blocks
    assert isinstance(patch, ToolCall)
    assert [(access.op, access.path) for access in patch.accesses] == [("edit", "basket.py"), ("write", "notes.md")]
    assert patch_lines(patch) == ("def total(net):", "return net * TAX * TAX")


def test_a_turn_that_was_rolled_back_is_left_out(recorded: Recorded) -> None:
    [(head, entries)] = recorded("codex.jsonl")
    said = [
        block.text
        for entry in entries
        if isinstance(entry, Message)
        for block in entry.blocks
        if isinstance(block, Text)
    ]
    assert "Now delete everything." not in said
    assert "Add a note." in said
    assert (head.flags["branches"], head.flags["abandoned_calls"]) == (1, 1)


def test_a_compaction_is_followed_by_what_stands_in_the_window_instead(recorded: Recorded) -> None:
    [(_, entries)] = recorded("codex.jsonl")
    place = next(n for n, entry in enumerate(entries) if isinstance(entry, HostEvent) and entry.kind == "compaction")
    assert json.loads(entries[place].data)["kept"] == 0
    assert entries[place + 1].blocks == (Text("Add a note.", "compact_summary"),)
    assert entries[place + 2].blocks[0] == Other("compaction", '{"type":"compaction","encrypted_content":"gBBB"}')


def test_old_rollouts_of_bare_items_are_read(recorded: Recorded) -> None:
    [(head, entries)] = recorded("codex-bare.jsonl")
    assert head.id == "cx-old"
    assert head.flags == {"no_times": True}
    assert [entry.role for entry in entries] == ["user", "assistant", "tool", "assistant"]


def _line(kind: str, **payload: object) -> dict[str, object]:
    return {"timestamp": "2026-03-02T09:00:00Z", "type": kind, "payload": payload}


def _said(words: str, role: str = "assistant") -> dict[str, object]:
    kind = "output_text" if role == "assistant" else "input_text"
    return _line("response_item", type="message", role=role, content=[{"type": kind, "text": words}])


def _tokens(prompt: int) -> dict[str, int]:
    return {"input_tokens": prompt, "cached_input_tokens": 0, "output_tokens": 5, "total_tokens": prompt + 5}


def _count(prompt: int, total: int) -> dict[str, object]:
    return _line(
        "event_msg", type="token_count", info={"total_token_usage": _tokens(total), "last_token_usage": _tokens(prompt)}
    )


def _record(prompt: int, response: str) -> dict[str, object]:
    return _line("token_usage_record", response_id=response, usage=_tokens(prompt))


def _rollout(*rows: dict[str, object]) -> tuple[list[Message], UsageTotals]:
    begun = _line("session_meta", id="cx-9", cwd="/srv/shop")
    content = b"".join(json.dumps(row).encode() + b"\n" for row in (begun, *rows))
    [session] = read_source(Source("rollout-1.jsonl", content=content))
    calls = _calls(list(session.entries))
    assert session.tally is not None
    return calls, session.tally.totals


def test_a_second_count_in_a_row_is_a_call_without_blocks() -> None:
    calls, told = _rollout(
        _said("go", "user"), _said("one"), _count(900, 900), _count(950, 1850), _said("two"), _count(990, 2840)
    )
    assert [call.usage.prompt if call.usage else None for call in calls] == [900, 950, 990]
    assert [len(call.blocks) for call in calls] == [1, 0, 1]
    assert told == UsageTotals(3, 2840)


def test_words_of_the_user_end_a_call_that_nobody_counted() -> None:
    calls, told = _rollout(_said("go", "user"), _said("one"), _said("more", "user"), _said("two"), _count(950, 950))
    assert [call.blocks for call in calls] == [(Text("one"),), (Text("two"),)]
    assert [call.usage is None for call in calls] == [True, False]
    assert told == UsageTotals(1, 950)


def test_the_call_of_a_compaction_stands_before_it() -> None:
    compacted = _line("compacted", message="All is well.")
    begun = _line("session_meta", id="cx-9")
    rows = [
        begun,
        _said("go", "user"),
        _said("one"),
        _count(900, 900),
        compacted,
        _count(905, 1805),
        _said("two"),
        _count(300, 2105),
    ]
    content = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    [session] = read_source(Source("rollout-1.jsonl", content=content))
    entries = list(session.entries)
    kinds = [
        entry.kind if isinstance(entry, HostEvent) else entry.role
        for entry in entries
        if not isinstance(entry, UnreadableLine)
    ]
    assert kinds == ["user", "assistant", "assistant", "compaction", "user", "assistant"]
    assert [call.usage.prompt for call in _calls(entries) if call.usage] == [900, 905, 300]


def test_an_estimate_after_a_compaction_is_no_call() -> None:
    estimate = _line(
        "event_msg",
        type="token_count",
        info={"total_token_usage": _tokens(900), "last_token_usage": {"total_tokens": 210}},
    )
    calls, told = _rollout(
        _said("go", "user"), _said("one"), _count(900, 900), _line("compacted", message="So far."), estimate
    )
    assert len(calls) == told.calls == 1


def test_usage_that_newer_versions_tell_twice_counts_once() -> None:
    calls, told = _rollout(
        _said("go", "user"),
        *(_said("one"), _count(900, 900), _record(900, "r1")),
        *(_said("two"), _record(950, "r2"), _count(950, 1850)),
        *(_line("compacted", message="So far."), _record(960, "r3")),  # told by the record alone
        *(_said("three"), _record(300, "r4")),
    )
    assert [call.usage.prompt if call.usage else None for call in calls] == [900, 950, 960, 300]
    assert told == UsageTotals(4, 3110)
