import json
from collections.abc import Callable
from typing import Any

import msgspec

from pagein.model.messages import HostEvent, Message, Text, Thinking, ToolCall, ToolResult, Usage
from pagein.replay.readers import Source, read_source
from pagein.replay.record.recorded_session import CARRIED_OVER, RecordedSession, SessionHead
from pagein.replay.record.usage_tally import UsageTotals

Recorded = Callable[[str], list[tuple[SessionHead, list[Any]]]]


def _message(name: str, kind: str, content: object, **more: object) -> dict[str, object]:
    return {"id": name, "timestamp": "2026-03-02T09:00:00Z", "type": kind, "content": content, **more}


def _tokens(prompt: int, cached: int = 0) -> dict[str, int]:
    return {"input": prompt, "output": 5, "cached": cached, "thoughts": 0, "tool": 0, "total": prompt + 5}


def _lines(*rows: dict[str, object], label: str = "session-1.jsonl") -> tuple[RecordedSession, list[Any]]:
    head: dict[str, object] = {"sessionId": "gm-2", "projectHash": "0f", "startTime": "2026-03-02T09:00:00Z"}
    content = b"".join(msgspec.json.encode(row) + b"\n" for row in (head, *rows))
    [session] = read_source(Source(label, content=content))
    return session, list(session.entries)


def _words(entries: list[Any]) -> list[str]:
    return [b.text for e in entries if isinstance(e, Message) for b in e.blocks if isinstance(b, Text)]


def test_a_record_is_one_session_of_as_many_calls_as_it_holds_messages_of_the_model(recorded: Recorded) -> None:
    [(head, entries)] = recorded("gemini-cli.json")
    assert (head.id, head.agent, head.models, head.cwd) == ("gm-1", "gemini-cli", ("gemini-2.5-pro",), "/srv/shop")
    assert head.flags == {}
    calls = [entry for entry in entries if isinstance(entry, Message) and entry.role == "assistant"]
    assert [call.usage for call in calls] == [
        Usage(fresh=600, read=400, output=50),
        Usage(fresh=200, read=1000, output=12),
    ]
    assert [type(block) for block in calls[0].blocks] == [Thinking, Text, ToolCall, ToolCall]
    assert [entry.kind for entry in entries if isinstance(entry, HostEvent)] == ["api_error"]


def test_results_follow_the_call_that_asked_for_them(recorded: Recorded) -> None:
    [(_, entries)] = recorded("gemini-cli.json")
    [said] = [entry for entry in entries if isinstance(entry, Message) and entry.role == "tool"]
    results = [block for block in said.blocks if isinstance(block, ToolResult)]
    assert [(one.call_id, one.name, one.is_error) for one in results] == [
        ("read_file-1", "read_file", False),
        ("run_shell_command-1", "run_shell_command", True),
    ]
    assert results[0].text == "def total(net):\n    return net * TAX\n"
    [call] = [entry for entry in entries if isinstance(entry, Message) and len(entry.blocks) == 4]
    reads = [access.path for block in call.blocks if isinstance(block, ToolCall) for access in block.accesses]
    assert reads == ["basket.py", "rules.md"]


def test_a_record_in_one_line_is_no_request_log() -> None:
    rows = [_message(f"g{n}", "gemini", "ok", tokens=_tokens(1000 + n)) for n in range(38)]
    record = {"sessionId": "gm-3", "projectHash": "0f", "startTime": "2026-03-02T09:00:00Z", "messages": rows}
    for content in (
        msgspec.json.encode(record),
        msgspec.json.encode(record) + b"\n",
        json.dumps(record, indent=2).encode(),
    ):
        [session] = read_source(Source("session-3.json", content=content))
        assert session.head.agent == "gemini-cli"
        assert sum(isinstance(entry, Message) for entry in session.entries) == 38
        assert session.tally is not None
        assert session.tally.totals == UsageTotals(38, sum(range(1000, 1038)))


def test_a_later_line_of_a_message_takes_its_place() -> None:
    call = {"id": "c", "name": "read_file", "args": {"file_path": "a.py"}, "status": "executing", "timestamp": "x"}
    done = {**call, "status": "success", "result": [{"functionResponse": {"id": "c", "response": {"output": "text"}}}]}
    session, entries = _lines(
        _message("u", "user", "go"),
        _message("g", "gemini", ""),
        _message("g", "gemini", "", toolCalls=[call]),
        _message("g", "gemini", "", toolCalls=[done], tokens=_tokens(900)),
        {"$set": {"lastUpdated": "2026-03-02T09:00:09Z"}},
    )
    assert [entry.role for entry in entries] == ["user", "assistant", "tool"]
    assert entries[1].usage == Usage(fresh=900, output=5)
    assert session.head.id == "gm-2"


def test_a_rewind_removes_its_message_and_all_later_ones() -> None:
    session, entries = _lines(
        _message("u1", "user", "first"),
        _message("g1", "gemini", "one", tokens=_tokens(900)),
        _message("u2", "user", "second"),
        _message("g2", "gemini", "two", tokens=_tokens(950)),
        {"$rewindTo": "u2"},
        _message("u3", "user", "third"),
        _message("g3", "gemini", "three", tokens=_tokens(960)),
    )
    assert _words(entries) == ["first", "one", "third", "three"]
    assert (session.head.flags["branches"], session.head.flags["abandoned_calls"]) == (1, 1)


def test_a_summary_in_front_of_what_was_kept_is_a_compaction_and_no_call() -> None:
    said = [_message("u1", "user", "first"), _message("g1", "gemini", "one", tokens=_tokens(900))]
    said += [_message("u2", "user", "second"), _message("g2", "gemini", "two", tokens=_tokens(950))]
    summary = [_message("s1", "user", "<state_snapshot/>"), _message("s2", "gemini", "Got it.")]
    session, entries = _lines(*said, {"$set": {"messages": [*summary, *said[2:]]}}, _message("u3", "user", "third"))
    [place] = [n for n, entry in enumerate(entries) if isinstance(entry, HostEvent)]
    assert (entries[place].kind, json.loads(entries[place].data)) == ("compaction", {"kept": 2})
    assert entries[place + 1].blocks == (Text("<state_snapshot/>", "compact_summary"),)
    assert entries[place + 2].stop == CARRIED_OVER
    assert _words(entries)[-1] == "third"
    assert session.tally is not None
    assert session.tally.totals.calls == 2


def test_tool_calls_without_words_belong_to_the_call_before_them() -> None:
    call = {"id": "c", "name": "read_file", "args": {}, "status": "success", "timestamp": "x", "result": "text"}
    _, entries = _lines(
        _message("g1", "gemini", "one", tokens=_tokens(900)), _message("g2", "gemini", "", toolCalls=[call])
    )
    assert [entry.role for entry in entries] == ["assistant", "tool"]
    assert isinstance(entries[0].blocks[-1], ToolCall)
    assert entries[1].blocks == (ToolResult("c", "text", "read_file"),)


def test_a_sub_agent_names_the_session_whose_folder_it_lies_in() -> None:
    session, _ = _lines({"$set": {"kind": "subagent"}}, _message("g", "gemini", "ok"), label="chats/gm-1/gm-9.jsonl")
    assert (session.head.agent, session.head.parent) == ("gemini-cli/subagent", "gm-1")
