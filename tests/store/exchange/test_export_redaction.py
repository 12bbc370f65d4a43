import hashlib
import json
from pathlib import Path

import pytest
from tests.memory.told_journal import Journal

from pagein import erasure
from pagein.memory.indexer import Indexer
from pagein.model.entries import Entry, MessageEntry, NoteEntry
from pagein.model.guard_notes import ReadMeasureNote
from pagein.model.identifiers import uuid7
from pagein.model.messages import FileAccess, Message, Text, ToolCall, ToolResult, Withheld
from pagein.model.names import ContentHash
from pagein.model.versions import Draft
from pagein.model.writes import Write
from pagein.policy.privacy.exclusions import WITHHELD
from pagein.store.exchange.export_redaction import ExportRedaction
from pagein.store.exchange.exporter import export
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.upkeep_contract import export_all, import_all
from pagein.upkeep import check_store

SECRET = "hunter2-is-what-nobody-may-see"  # noqa: S105 - a test's


def talk(name: str, arguments: str, answer: str) -> list[Entry]:
    """A call and its answer, as a host told of them."""
    call = Message("assistant", (Text(f"let me look, {name}"), ToolCall(name, "Bash", arguments)))
    result = Message("tool", (ToolResult(name, answer, "Bash"),))
    return [
        Entry(f"{name} call", None, MessageEntry(call)),
        Entry(f"{name} result", f"{name} call", MessageEntry(result, (9,))),
    ]


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ('{"command":"cat .env"}', f"PASSWORD={SECRET}"),
        ('{"command":"grep -r PASS . --include=*.pem"}', f"key.pem: {SECRET}"),
        (json.dumps({"command": f"echo {SECRET} > deploy/.env.local"}), "ok"),
        (json.dumps({"path": "/home/me/id_rsa", "content": SECRET}), "written"),
    ],
)
def test_results_that_may_show_an_excluded_file_are_not_exported(
    store: SqliteUpkeep, arguments: str, answer: str
) -> None:
    store.append("one", [*talk("secret", arguments, answer), *talk("plain", '{"command":"ls"}', "a.py")])
    text = b"".join(export_all(store)).decode()
    assert SECRET not in text
    assert WITHHELD in text
    assert "let me look, secret" in text
    assert "a.py" in text


def test_calls_of_the_same_id_in_another_session_are_not_mixed_up(store: SqliteUpkeep) -> None:
    store.append("one", talk("call", '{"command":"cat .env"}', SECRET))
    store.append("two", talk("call", '{"command":"ls"}', "a.py"))
    text = b"".join(export_all(store)).decode()
    assert SECRET not in text
    assert "a.py" in text


def reading(path: str, content: bytes) -> NoteEntry:
    record = {
        "v": 1,
        "pathKey": path,
        "scopeKey": "full",
        "servedHash": ContentHash.of(content).hex,
        "mode": "full",
        "totalLines": content.count(b"\n") + 1,
        "rangeStart": 1,
        "rangeEnd": content.count(b"\n") + 1,
        "bytes": len(content),
        "spans": [[1, content.count(b"\n") + 1]],
    }
    return NoteEntry("reading", json.dumps({"readcache": record, "baselineBytes": 1, "sentBytes": 1}))


def test_earlier_reads_of_a_now_excluded_file_are_not_exported(store: SqliteUpkeep, fresh: SqliteUpkeep) -> None:
    """A store of before may hold it; an export does not carry it on."""
    store.put_many([SECRET.encode(), b"harmless"])
    entries = [
        Entry("a", None, reading("/w/.env", SECRET.encode())),
        Entry("b", "a", reading("/w/a.py", b"harmless")),
    ]
    store.append("one", entries)
    lines = export_all(store)
    assert SECRET not in b"".join(lines).decode()
    import_all(fresh, lines)
    assert [name.hex for name in fresh.names()] == [ContentHash.of(b"harmless").hex]
    assert fresh.leaf("one") == "b"
    assert check_store(fresh).is_clean


def test_objects_that_are_excluded_files_never_leave_with_all_their_versions(
    store: SqliteUpkeep, fresh: SqliteUpkeep
) -> None:
    secret = Draft(id=uuid7(1, bytes(10)), type="file", content=SECRET, metadata={"path": "/w/.env"})
    plain = Draft(id=uuid7(2, bytes(10)), type="file", content="plain", metadata={"path": "/w/a.py"})
    moved = Draft(id=uuid7(1, bytes(10)), type="file", content=f"{SECRET}!", metadata={"path": "/w/a.txt"})
    for number, draft in enumerate((secret, plain, moved)):
        store.write(Write(str(number), draft, 1.0))
    written: list[bytes] = []
    done = export(store, written.append)
    assert SECRET not in b"".join(written).decode()
    assert done.withheld == 4  # two versions and their contents
    import_all(fresh, written)
    assert [one.id for one in fresh.log()] == [plain.id]


def test_content_shared_with_other_objects_is_exported(store: SqliteUpkeep) -> None:
    store.write(Write("1", Draft(id=uuid7(1, bytes(10)), type="file", content="", metadata={"path": ".env"}), 1.0))
    store.write(Write("2", Draft(id=uuid7(2, bytes(10)), type="file", content="", metadata={"path": "a.py"}), 1.0))
    assert any(b'"text":""' in line for line in export_all(store))


def test_a_redacted_export_imports_and_exports_unchanged(store: SqliteUpkeep, fresh: SqliteUpkeep) -> None:
    store.append("one", talk("secret", '{"command":"cat .env"}', SECRET))
    lines = export_all(store)
    import_all(fresh, lines)
    assert export_all(fresh) == lines


def test_measures_of_files_that_came_to_be_excluded_later_are_left_out() -> None:
    item = hashlib.sha256(b"x").hexdigest()
    notes = [NoteEntry.of(ReadMeasureNote("file", path, item=item)) for path in ("/w/id_rsa", "/w/a.txt")]
    redacted = [ExportRedaction().entry(Entry("x", None, note)).body for note in notes]
    assert redacted == [NoteEntry("withheld", "{}"), notes[1]]


def test_a_call_without_a_forgotten_part_keeps_its_result(
    store: SqliteUpkeep, fresh: SqliteUpkeep, tmp_path: Path
) -> None:
    store.append("one", talk("call", json.dumps({"command": f"echo {SECRET}; ls"}), "a.py"))
    Indexer(store).catch_up()
    assert erasure.forget_texts(store, (SECRET,), None, tmp_path / "log").left == []
    import_all(fresh, export_all(store))
    assert [*fresh.entries("one")] == [*store.entries("one")]
    Indexer(fresh).catch_up()
    assert fresh.content(next(one for one in fresh.log() if one.type == "toolcall")) == "a.py"
    assert check_store(fresh).findings == []


def test_a_call_without_a_part_is_private_where_it_names_an_excluded_file() -> None:
    withheld = Withheld("0" * 32, 40, part=True)
    calls = [ToolCall(name, "Bash", f'{{"command":"cat {name}"}}', withheld=withheld) for name in (".env", "a.py")]
    entries = [Entry("1", None, MessageEntry(Message("assistant", tuple(calls))))]
    entries.append(
        Entry("2", "1", MessageEntry(Message("user", tuple(ToolResult(one.id, SECRET, "Bash") for one in calls))))
    )
    redaction = ExportRedaction()
    body = [redaction.entry(entry) for entry in entries][1].body
    assert isinstance(body, MessageEntry)
    assert [block.text for block in body.message.blocks if isinstance(block, ToolResult)] == [WITHHELD, SECRET]


def tell_of_excluded_files(store: SqliteUpkeep, name: str, arguments: dict[str, str], result: str) -> None:
    """Tell of a call, and remove the journal: its versions stay, and no journal has them any more."""
    journal = Journal(store, name)
    journal.say(f"please, {name}")
    tool, accesses = ("Edit", (FileAccess("edit", "/w/a.py"),)) if "old_string" in arguments else ("Bash", ())
    call = ToolCall(f"toolu_{name}", tool, json.dumps(arguments), accesses)
    journal.add(MessageEntry(Message("assistant", (call,))))
    journal.add(MessageEntry(Message("user", (ToolResult(call.id, result, call.name),))))
    Indexer(store).follow_all([name], 6_000.0)
    store.drop_sessions([name])


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        ({"command": "cat .env"}, SECRET),
        ({"command": "grep -r PASS . --include=*.pem"}, SECRET),
        ({"command": f"echo {SECRET} > .env"}, "ok"),
    ],
)
@pytest.mark.parametrize("by", ["export", "import"])
def test_calls_and_chats_of_removed_journals_do_not_show_excluded_files(
    by: str,
    arguments: dict[str, str],
    result: str,
    store: SqliteUpkeep,
    fresh: SqliteUpkeep,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tell_of_excluded_files(store, "a", arguments, result)
    code = {"file_path": "/w/a.py", "old_string": "x.key", "new_string": "y.key"}
    tell_of_excluded_files(store, "b", code, "done")
    if by == "import":  # as an earlier pagein exported
        monkeypatch.setattr("pagein.store.exchange.exporter.may_show_withheld", lambda *_: False)
    lines = export_all(store)
    if by == "export":
        assert SECRET not in b"".join(lines).decode()
    import_all(fresh, lines)
    assert not any(SECRET.encode() in fresh.get(name) for name in fresh.names())
    assert SECRET not in str([*fresh.log()])
    kept = {one.id for one in fresh.log()}
    assert {one.id for one in store.log() if one.writer.session == "b"} <= kept
    assert "toolu_a" not in kept
    assert check_store(fresh).findings == []
