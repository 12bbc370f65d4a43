import json
from collections.abc import Callable
from typing import Any

from pagein.model.messages import HostEvent, Message, Other, Text, Thinking, ToolCall, ToolResult, Usage
from pagein.policy.clients.accesses import patch_lines
from pagein.replay.recorded import SessionHead

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


def test_a_token_count_belongs_to_the_call_before_it_and_a_repeated_one_to_none(recorded: Recorded) -> None:
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
