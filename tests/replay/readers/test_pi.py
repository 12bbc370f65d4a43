import json
from collections.abc import Callable
from typing import Any

import pytest

from pagein.errors import BadInput
from pagein.model.messages import HostEvent, Message, Text, Thinking, ToolCall, ToolResult, Usage
from pagein.replay.readers import Source, read_source
from pagein.replay.record.recorded_session import SessionHead

Recorded = Callable[[str], list[tuple[SessionHead, list[Any]]]]


def _texts(entries: list[Any]) -> list[str]:
    return [
        block.text
        for entry in entries
        if isinstance(entry, Message)
        for block in entry.blocks
        if isinstance(block, Text)
    ]


def test_version_1_is_a_line_of_messages(recorded: Recorded) -> None:
    [(head, entries)] = recorded("pi-v1.jsonl")
    assert (head.id, head.source, head.agent, head.cwd) == ("pi-one", "pi", "pi", "/srv/shop")
    assert head.models == ("claude-opus-4-5", "claude-sonnet-4-5")
    assert "branches" not in head.flags
    calls = [entry for entry in entries if isinstance(entry, Message) and entry.role == "assistant"]
    assert [call.usage for call in calls] == [
        Usage(fresh=4, written=900, output=20),
        Usage(fresh=1, read=900, written=60, output=12),
        Usage(),
    ]


def test_an_aborted_message_keeps_its_reason_so_that_a_replay_can_pass_it_over(recorded: Recorded) -> None:
    [(_, entries)] = recorded("pi-v1.jsonl")
    last = entries[-1]
    assert (last.stop, last.blocks) == ("aborted", ())


def test_version_1_counts_the_messages_kept_by_a_compaction_over_the_lines_of_the_file(recorded: Recorded) -> None:
    [(_, entries)] = recorded("pi-v1.jsonl")
    place = next(n for n, entry in enumerate(entries) if isinstance(entry, HostEvent))
    assert json.loads(entries[place].data) == {"kept": 2, "tokens_before": 973, "summary_chars": 25}
    [summary] = entries[place + 1].blocks
    assert summary.injected == "compact_summary"
    assert "Cart is to become Basket." in summary.text


def test_the_path_to_the_last_entry_is_replayed_and_what_it_left_is_counted(recorded: Recorded) -> None:
    [(head, entries)] = recorded("pi-v3.jsonl")
    assert head.flags == {"branches": 1, "abandoned_calls": 2}
    said = _texts(entries)
    assert "Delete it." not in said
    came_back = "The following is a summary of a branch that this conversation came back from:"
    assert said[:2] == [
        "Why is the receipt empty?",
        f"{came_back}\n\n<summary>\nDeleting was tried and undone.</summary>",
    ]
    assert said[-2:] == ["Thanks.", "You are welcome."]


def test_a_compaction_keeps_the_messages_from_its_first_kept_entry_on(recorded: Recorded) -> None:
    [(_, entries)] = recorded("pi-v3.jsonl")
    place = next(n for n, entry in enumerate(entries) if isinstance(entry, HostEvent) and entry.kind == "compaction")
    kept = json.loads(entries[place].data)["kept"]
    before = [entry for entry in entries[:place] if isinstance(entry, Message)][-kept:]
    assert [entry.role for entry in before] == ["tool", "user", "user"]
    [result] = before[0].blocks
    assert isinstance(result, ToolResult)
    assert result.call_id == "c2"


def test_text_inserted_by_the_host_is_distinguished_from_the_users(recorded: Recorded) -> None:
    [(_, entries)] = recorded("pi-v3.jsonl")
    injected = [
        (block.injected, block.text)
        for entry in entries
        if isinstance(entry, Message)
        for block in entry.blocks
        if isinstance(block, Text) and block.injected in ("bash_execution", "lint")
    ]
    assert injected == [("bash_execution", "$ pytest -q\n1 passed"), ("lint", "no findings")]


def test_thinking_keeps_its_signature_and_calls_their_accesses(recorded: Recorded) -> None:
    [(_, entries)] = recorded("pi-v3.jsonl")
    blocks = [block for entry in entries if isinstance(entry, Message) for block in entry.blocks]
    assert blocks[1] == Thinking("The printer module.", "sig")
    shell, edit = (block for block in blocks if isinstance(block, ToolCall))
    assert [(access.op, access.path, access.start, access.end, access.via) for access in shell.accesses] == [
        ("read", "print.py", 1, 5, "shell"),
    ]
    assert [(access.op, access.path) for access in edit.accesses] == [("edit", "print.py")]


def test_lines_of_the_same_shape_are_no_pi_session_without_anything_that_only_pi_writes() -> None:
    said = {"role": "user", "content": [{"type": "text", "text": "go"}]}
    line = {"type": "message", "id": "m1", "parentId": "m0", "timestamp": "2026-03-02T09:00:00Z", "message": said}
    begun = {"type": "session_start", "id": "m0", "title": "another agent's"}
    content = b"".join(json.dumps(row).encode() + b"\n" for row in (begun, line))
    with pytest.raises(BadInput, match="none that only pi writes"):
        list(read_source(Source("other.jsonl", content=content)))
    header = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-03-02T09:00:00Z"}
    [session] = read_source(Source("pi.jsonl", content=json.dumps(header).encode() + b"\n" + content))
    assert session.head.agent == "pi"
