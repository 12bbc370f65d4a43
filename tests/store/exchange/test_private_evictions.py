"""An evicted text that may show a file which was excluded later is in no export, and in no store that imports one."""

import pytest

from pagein.model.entries import (
    Entry,
    EpochEntry,
    InsertEntry,
    MessageEntry,
    NoteEntry,
    PagedOut,
    Restoration,
    TurnsLeft,
)
from pagein.model.identifiers import uuid7
from pagein.model.journal_notes import IngestNote
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.objects import StoredObject
from pagein.model.versions import Draft
from pagein.model.writes import Write
from pagein.policy.privacy.exclusions import EXCLUDED, WITHHELD
from pagein.store.exchange.exporter import export
from pagein.store.exchange.importer import import_lines
from pagein.store.exchange.rlm_exchange import records_of
from pagein.store.exchange.rlm_format import RlmRecord
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.blob_store import an_object
from pagein.testing.upkeep_contract import export_all, import_all
from pagein.upkeep import check_store

SECRET = "hunter2-is-what-nobody-may-see"  # noqa: S105 - a test's
PLAIN = "a.py"


def call(store: SqliteUpkeep, name: str, arguments: str, answer: str) -> StoredObject:
    """Journal a call and its result, and store the result as an object."""
    said = Message("assistant", (ToolCall(name, "Bash", arguments),))
    result = Message("user", (ToolResult(name, answer, "Bash"),))
    leaf = store.leaf("session")
    entries = [
        Entry(f"{name} call", leaf, MessageEntry(said)),
        Entry(f"{name} result", f"{name} call", MessageEntry(result, (9,))),
    ]
    store.append("session", entries)
    evicted = an_object(store, answer.encode(), call_id=name)
    store.put_objects([(evicted, answer.encode())])
    return evicted


def paged(one: StoredObject, text: str) -> PagedOut:
    stub = f"[evicted: {one.id} | {text}]"
    return PagedOut(one.origin.call_id, str(one.id), one.content, 9, one.chars, stub, 1, 0, short=stub)


def evict(store: SqliteUpkeep, name: str, body: EpochEntry | InsertEntry) -> None:
    store.append("session", [Entry(name, store.leaf("session"), body)])


def tell(store: SqliteUpkeep) -> None:
    """Evict the result of a call about an excluded file, recall it, evict the recall, restore it, and evict its turn."""
    secret = call(store, "secret", '{"command":"make ENV=.env"}', f"PASSWORD={SECRET}")
    plain = call(store, "plain", '{"command":"ls"}', PLAIN)
    evict(store, "epoch 1", EpochEntry(1, 1, (paged(secret, f"PASSWORD={SECRET}"), paged(plain, PLAIN))))
    evict(store, "manifest", InsertEntry("manifest", f"| {plain.id} | {PLAIN} |\n| {secret.id} | {SECRET} |\n"))
    recall = call(store, "recall", f'{{"id":"{secret.id}"}}', f"recalled: {SECRET}")
    evict(store, "epoch 2", EpochEntry(2, 1, (paged(recall, f"recalled: {SECRET}"),)))
    back = Restoration("secret", str(secret.id), f"PASSWORD={SECRET}", 9, 1, 0)
    evict(store, "epoch 3", EpochEntry(3, 1, (), restored=(back,)))
    turns = an_object(store, f"all turns: {SECRET}".encode(), call_id="turns")
    store.put_objects([(turns, f"all turns: {SECRET}".encode())])
    left = TurnsLeft(
        str(turns.id), turns.content, 9, turns.chars, f"{turns.id}: {SECRET}", 9, 0, ((0, 6),), ("secret", "recall"), 1
    )
    evict(store, "epoch 4", EpochEntry(4, 0, (), turns=(left,)))


def test_evicted_texts_about_an_excluded_file_are_in_no_export(store: SqliteUpkeep, fresh: SqliteUpkeep) -> None:
    tell(store)
    lines = export_all(store)
    assert SECRET not in b"".join(lines).decode()
    assert PLAIN in b"".join(lines).decode()
    import_all(fresh, lines)
    held = [fresh.get(one.content).decode() for one in fresh.paged_objects()]
    assert sorted(held) == sorted([WITHHELD, WITHHELD, WITHHELD, PLAIN])
    assert check_store(fresh).findings == []
    assert export_all(fresh) == lines
    # the store of the export keeps what it has
    assert import_all(store, lines).added == {"blob": 0}
    assert store.get(next(iter(store.paged_objects())).content).decode() != WITHHELD
    assert check_store(store).findings == []


def test_evicted_texts_about_an_excluded_file_are_not_imported(
    store: SqliteUpkeep, fresh: SqliteUpkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(store)
    with monkeypatch.context() as earlier:  # an export of a pagein that did not exclude the file yet
        earlier.setattr("pagein.store.exchange.private_evictions.may_show_excluded", lambda *_: False)
        earlier.setattr("pagein.policy.privacy.exclusions.may_show_excluded", lambda *_: False)
        lines = export_all(store)
    assert SECRET in b"".join(lines).decode()
    done = import_all(fresh, lines)
    assert done.withheld
    assert SECRET not in b"".join(export_all(fresh)).decode()
    assert not any(SECRET.encode() in fresh.get(name) for name in fresh.names())
    assert not any(SECRET.encode() in line.line for line in fresh.journal_lines())
    assert check_store(fresh).findings == []


def test_evicted_texts_about_an_excluded_file_do_not_go_to_pi_rlm(store: SqliteUpkeep) -> None:
    tell(store)
    told: list[RlmRecord] = list(records_of(store, "session"))
    assert [one.content for one in told] == [PLAIN]


def test_an_ingested_file_that_was_excluded_later_is_not_exported(store: SqliteUpkeep, fresh: SqliteUpkeep) -> None:
    file = an_object(store, SECRET.encode())
    store.put_objects([(file, SECRET.encode())])
    note = IngestNote(str(file.id), "/w/.env", file.content, file.tokens, file.chars, SECRET)
    store.append("session", [Entry("1", None, NoteEntry.of(note))])
    lines = export_all(store)
    assert SECRET not in b"".join(lines).decode()
    import_all(fresh, lines)
    assert check_store(fresh).findings == []


def test_names_that_the_user_excluded_count_like_the_built_in_ones(store: SqliteUpkeep, fresh: SqliteUpkeep) -> None:
    evicted = call(store, "secret", '{"command":"make E=my.secret"}', SECRET)
    evict(store, "epoch", EpochEntry(1, 1, (paged(evicted, SECRET),)))
    store.write(
        Write("1", Draft(id=uuid7(1, bytes(10)), type="file", content=SECRET, metadata={"path": "/w/my.secret"}), 1.0)
    )
    whole, written = export_all(store), list[bytes]()
    export(store, written.append, patterns=(*EXCLUDED, "*.secret"))
    assert SECRET in b"".join(whole).decode()
    assert SECRET not in b"".join(written).decode()
    import_lines(fresh, whole, "file.jsonl", patterns=(*EXCLUDED, "*.secret"))
    assert SECRET not in b"".join(export_all(fresh)).decode()
    assert check_store(fresh).findings == []
