import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pagein.errors import BadInput
from pagein.model.messages import HostEvent, Image, Message, ShownLines, Text, ToolResult, UnreadableLine, Usage
from pagein.replay.readers import Source, read_source
from pagein.replay.record.recorded_session import SessionHead

Sources = Callable[[Path], list[Source]]
Recorded = Callable[[str], list[tuple[SessionHead, list[Any]]]]


def _calls(entries: list[Any]) -> list[Message]:
    return [entry for entry in entries if isinstance(entry, Message) and entry.role == "assistant"]


def _results(entries: list[Any]) -> list[ToolResult]:
    return [
        block
        for entry in entries
        if isinstance(entry, Message)
        for block in entry.blocks
        if isinstance(block, ToolResult)
    ]


def test_each_step_of_a_message_is_a_model_call_with_its_own_usage(recorded: Recorded) -> None:
    [(head, entries)] = recorded("opencode-export.json")
    assert (head.id, head.agent, head.models, head.cwd) == ("ses_shop1", "opencode", ("gpt-5.4",), "/srv/shop")
    assert [call.usage for call in _calls(entries)] == [
        Usage(fresh=800, output=40),
        Usage(fresh=100, read=800, output=6),
        Usage(fresh=20, read=900, output=30),
        Usage(fresh=15, read=930, output=3),
        Usage(fresh=30, read=940, output=25),
        None,
    ]
    assert [call.stop for call in _calls(entries)][-2:] == ["stop", "aborted"]


def test_results_of_one_step_are_one_message_with_errors_and_shown_lines(recorded: Recorded) -> None:
    [(_, entries)] = recorded("opencode-export.json")
    assert [(result.name, result.is_error, result.shown) for result in _results(entries)] == [
        ("read", False, ShownLines(1, 2, 2)),
        ("read", True, None),
        ("edit", False, None),
    ]
    assert sum(isinstance(entry, Message) and entry.role == "tool" for entry in entries) == 2


def test_a_pruned_result_and_a_compaction_are_events(recorded: Recorded) -> None:
    [(_, entries)] = recorded("opencode-export.json")
    events = [entry for entry in entries if isinstance(entry, HostEvent)]
    assert [event.kind for event in events] == ["pruned", "compaction"]
    assert json.loads(events[0].data) == {"call_ids": ["call_1"]}
    assert json.loads(events[1].data) == {"kept": 3, "behind_kept": 2, "summary_chars": 15}
    place = entries.index(events[1])
    assert entries[place + 1].blocks == (Text("TAX is 1.3 now.", "compact_summary"),)


def test_text_added_by_the_host_is_distinguished_from_the_users(recorded: Recorded) -> None:
    [(_, entries)] = recorded("opencode-export.json")
    assert entries[0].blocks == (
        Text("Where is the tax?"),
        Text("Called the Read tool", "synthetic"),
        Image("image/png", 4),
    )


def test_the_storage_folder_holds_the_same_session(sources: Sources, fixtures: Path) -> None:
    [source] = sources(fixtures / "opencode")
    [session] = read_source(source)
    stored = list(session.entries)
    [exported] = read_source(Source("export", fixtures / "opencode-export.json"))
    assert stored[:4] == list(exported.entries)[:4]
    assert session.head.models == ("gpt-5.4",)


def test_a_reverted_session_ends_where_it_was_reverted_to(fixtures: Path) -> None:
    document = json.loads((fixtures / "opencode-export.json").read_text())
    document["info"]["revert"] = {"messageID": "msg_04"}
    [session] = read_source(Source("x.json", content=json.dumps(document).encode()))
    assert [entry.role for entry in session.entries if isinstance(entry, Message)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


def test_the_database_of_newer_versions_is_read_one_session_at_a_time(
    sources: Sources, fixtures: Path, tmp_path: Path
) -> None:
    document = json.loads((fixtures / "opencode-export.json").read_text())
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(
            "CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT, time_updated INTEGER);"
            "CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);"
            "CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT);",
        )
        for session in ("ses_shop1", "ses_shop2"):
            database.execute(
                "INSERT INTO session VALUES (?, NULL, '/srv/shop', 'Tax', '1.3', 1772442000000)", (session,)
            )
        for message in document["messages"]:
            info = {key: value for key, value in message["info"].items() if key not in ("id", "sessionID")}
            row = (message["info"]["id"], "ses_shop1", info["time"]["created"], json.dumps(info))
            database.execute("INSERT INTO message VALUES (?, ?, ?, ?)", row)
            for part in message["parts"]:
                told = {key: value for key, value in part.items() if key not in ("id", "sessionID", "messageID")}
                row = (part["id"], message["info"]["id"], "ses_shop1", json.dumps(told))
                database.execute("INSERT INTO part VALUES (?, ?, ?, ?)", row)
        database.execute("INSERT INTO message VALUES ('msg_99', 'ses_shop1', 99999999999999, '{torn')")
    found = sources(tmp_path)
    assert [source.member for source in found] == ["ses_shop1", "ses_shop2"]
    [stored] = read_source(found[0])
    [exported] = read_source(Source("export", fixtures / "opencode-export.json"))
    *entries, damaged = stored.entries
    assert [entry for entry in entries if entry.__class__ is not HostEvent or entry.kind != "pruned"] == [
        entry for entry in exported.entries if entry.__class__ is not HostEvent or entry.kind != "pruned"
    ]
    assert isinstance(damaged, UnreadableLine)
    assert "msg_99" in damaged.why
    assert stored.head.models == ("gpt-5.4",)


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE recipes (name TEXT)")
    with pytest.raises(BadInput, match="not an OpenCode database"):
        list(read_source(Source("opencode.db", path)))
