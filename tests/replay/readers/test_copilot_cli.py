from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from pagein.model.messages import FileAccess, HostEvent, Message, Text, Thinking, ToolCall, ToolResult, Usage
from pagein.replay.readers import Source, read_source
from pagein.replay.record.recorded_session import SessionHead
from pagein.replay.record.usage_tally import UsageTotals

Recorded = Callable[[str], list[tuple[SessionHead, list[Any]]]]


def _event(name: str, kind: str, **data: object) -> dict[str, object]:
    return {"type": kind, "data": data, "id": name, "timestamp": "2026-03-02T09:00:00Z", "parentId": None}


def _read(*rows: dict[str, object]) -> list[tuple[SessionHead, list[Any]]]:
    begun = _event("e0", "session.start", sessionId="cp-2", copilotVersion="1.0.70")
    content = b"".join(msgspec.json.encode(row) + b"\n" for row in (begun, *rows))
    return [(session.head, list(session.entries)) for session in read_source(Source("events.jsonl", content=content))]


def test_a_message_of_the_model_is_a_call_with_what_its_events_tell(recorded: Recorded) -> None:
    [(head, entries)] = recorded("copilot-cli.jsonl")
    assert (head.id, head.agent, head.models, head.cwd) == ("cp-1", "copilot-cli", ("claude-sonnet-4.6",), "/srv/shop")
    calls = [entry for entry in entries if isinstance(entry, Message) and entry.role == "assistant"]
    assert [call.id for call in calls] == ["m1", "m2", None, "m3"]
    assert calls[0].blocks == (
        Thinking("Read the file first."),
        Text("I look at it."),
        ToolCall(
            "t1", "view", '{"path":"/srv/shop/basket.py","view_range":[1,2]}', (FileAccess("read", "basket.py", 1, 2),)
        ),
    )
    assert calls[0].usage == Usage(output=40)
    assert calls[2].usage == Usage(fresh=900, read=8000, written=100, output=300)  # it made the summary


def test_the_user_message_is_the_text_that_the_host_sent(recorded: Recorded) -> None:
    [(_, entries)] = recorded("copilot-cli.jsonl")
    assert entries[0].blocks == (Text("<now>2026</now>\nMake the basket faster."),)


def test_results_and_failures_answer_their_calls(recorded: Recorded) -> None:
    [(_, entries)] = recorded("copilot-cli.jsonl")
    assert [entry.blocks[0] for entry in entries if isinstance(entry, Message) and entry.role == "tool"] == [
        ToolResult("t1", "1. def total(net):\n2.     return net * TAX", "view"),
        ToolResult("t2", "no agent of that name", "task", is_error=True),
    ]


def test_a_compaction_is_followed_by_its_summary(recorded: Recorded) -> None:
    [(_, entries)] = recorded("copilot-cli.jsonl")
    place = next(n for n, entry in enumerate(entries) if isinstance(entry, HostEvent))
    assert entries[place].kind == "compaction"
    assert entries[place + 1].blocks[0].injected == "compact_summary"


def test_the_account_at_the_end_tells_how_many_calls_there_were(fixtures: Path) -> None:
    [session] = read_source(Source("events.jsonl", fixtures / "copilot-cli.jsonl"))
    list(session.entries)
    assert session.tally is not None
    assert session.tally.totals == UsageTotals(4, 20000, by_call=False)


def test_a_rewind_removes_everything_from_its_event_on() -> None:
    [(head, entries)] = _read(
        _event("e1", "user.message", content="first"),
        _event("e2", "assistant.message", content="one"),
        _event("e3", "user.message", content="second"),
        _event("e4", "assistant.message", content="two"),
        _event("e5", "session.snapshot_rewind", upToEventId="e3", eventsRemoved=2),
        _event("e6", "user.message", content="third"),
        _event("e7", "assistant.message", content="three"),
    )
    blocks = [block for entry in entries if isinstance(entry, Message) for block in entry.blocks]
    said = [block.text for block in blocks if isinstance(block, Text)]
    assert said == ["first", "one", "third", "three"]
    assert (head.flags["branches"], head.flags["abandoned_calls"]) == (1, 1)


def test_a_sub_agent_is_a_session_of_its_own() -> None:
    found = _read(
        _event("e1", "user.message", content="go"),
        _event(
            "e2", "assistant.message", content="", toolRequests=[{"toolCallId": "t", "name": "task", "arguments": "{}"}]
        ),
        _event("e3", "assistant.message", content="inside", parentToolCallId="t"),
        _event("e4", "tool.execution_complete", toolCallId="t", success=True, result={"content": "done"}),
        _event("e5", "assistant.message", content="outside"),
    )
    assert [(head.id, head.parent) for head, _ in found] == [("cp-2", None), ("cp-2-sub-t", "cp-2")]
    assert [len(entries) for _, entries in found] == [4, 1]
