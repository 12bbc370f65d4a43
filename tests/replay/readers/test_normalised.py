import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pagein.model.messages import (
    FileAccess,
    HostEvent,
    Image,
    Message,
    Other,
    ShownLines,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from pagein.replay.readers import snapshots_beside
from pagein.replay.record.recorded_session import SessionHead

Recorded = Callable[[str], list[tuple[SessionHead, list[Any]]]]


def test_a_normalised_session_tells_who_recorded_it(recorded: Recorded) -> None:
    [(head, _)] = recorded("normalised.jsonl")
    assert (head.id, head.source, head.agent, head.cwd, head.window) == (
        "shop-1",
        "shop",
        "claude-code",
        "/srv/shop",
        200000,
    )
    assert head.models == ("claude-sonnet-5",)
    assert head.parent is None
    assert head.flags == {"context_window": 200000, "agent_version": "9.1"}


def test_blocks_accesses_usage_and_events_come_as_they_were_recorded(recorded: Recorded) -> None:
    [(_, entries)] = recorded("normalised.jsonl")
    first, second, third = entries[:3]
    assert first.blocks == (Text("The basket adds the tax twice."), Text("lint is clean", "hook_success"))
    assert second.usage == Usage(fresh=3, read=1000, written=500, written_1h=500, output=40)
    assert (second.stop, second.id, second.at) == ("tool_use", "m1", 1772442005.0)
    assert second.blocks[0] == Thinking("Look at the total first.")
    assert second.blocks[1] == ToolCall(
        "t1",
        "Read",
        '{"file_path":"/srv/shop/basket.py","offset":10,"limit":2}',
        (FileAccess("read", "basket.py", 10, 11),),
    )
    assert third.blocks[0].shown == ShownLines(10, 2, 40)
    edited = [block for entry in entries if isinstance(entry, Message) for block in entry.blocks][-4]
    assert isinstance(edited, ToolResult)
    assert edited.before == "ab12"
    assert entries[-1].blocks[1:] == (Image("", 1200), Other("hologram", '{"type":"hologram","text":"?"}'))


def test_a_pruned_result_is_an_event_at_the_time_of_its_pruning(recorded: Recorded) -> None:
    [(_, entries)] = recorded("normalised.jsonl")
    kinds = [entry.kind if isinstance(entry, HostEvent) else entry.role for entry in entries]
    assert kinds == ["user", "assistant", "tool", "assistant", "tool", "turn_end", "pruned", "compaction", "user"]
    assert json.loads(entries[6].data) == {"call_ids": ["t1"]}


def test_file_snapshots_beside_a_session_are_read_by_name(fixtures: Path) -> None:
    assert snapshots_beside(fixtures / "normalised.jsonl")["ab12"] == "total = net\n"
    assert len(snapshots_beside(fixtures / "codex.jsonl")) == 0
