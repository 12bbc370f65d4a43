import contextlib
import json
import random
import shutil
import signal
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pagein.engine.log.pageout import Pager
from pagein.errors import StoreError
from pagein.model.entries import Entry, EpochEntry, NoteEntry, ThinkingObject, is_bridge
from pagein.model.identifiers import uuid7
from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.versions import Draft, Version
from pagein.model.writes import Write
from pagein.store.sql.short_names import entry_key
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.store.upkeep.store_check import CheckReport
from pagein.testing.lived_in_store import LivedIn, make_lived_in_store
from pagein.testing.memory_upkeep import MemoryUpkeep
from pagein.testing.upkeep_contract import export_all, note_entry
from pagein.upkeep import check_store, repair_store

pytestmark = pytest.mark.damages_store
MAIN = "session = (SELECT number FROM writer_session WHERE name = 'main')"


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> LivedIn:
    folder = tmp_path_factory.mktemp("lived")
    return make_lived_in_store(folder / "one.pagein", folder / "work", 11, 120)


@pytest.fixture
def lived(once: LivedIn, tmp_path: Path) -> LivedIn:
    """The same life for every test, each with a store of its own."""
    return replace(once, store=Path(shutil.copy(once.store, tmp_path / "one.pagein")))


@pytest.fixture
def store(lived: LivedIn) -> Iterator[SqliteUpkeep]:
    store = SqliteUpkeep(lived.store)
    yield store
    store.close()


def sql(path: Path, statement: str, *values: object) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def kinds(report: CheckReport) -> set[str]:
    return {one.kind for one in report.findings}


@pytest.mark.parametrize("seed", range(8))
def test_a_store_that_was_only_lived_in_is_clean(tmp_path: Path, seed: int) -> None:
    lived = make_lived_in_store(tmp_path / "one.pagein", tmp_path / "work", seed, 100)
    store = SqliteUpkeep(lived.store)
    report = check_store(store)
    assert report.findings == []
    assert {"blob", "object", "version", "reference", "session", "entry", "stub"} <= report.counts.keys()
    store.close()


def test_an_empty_store_is_clean(tmp_path: Path) -> None:
    store = SqliteUpkeep(tmp_path / "one.pagein")
    assert check_store(store).is_clean
    store.close()


def test_checking_changes_nothing(store: SqliteUpkeep, lived: LivedIn) -> None:
    sql(lived.store, "UPDATE blob SET data = x'00' WHERE number % 3 = 0")
    sql(lived.store, "UPDATE session SET leaf = 'nowhere'")
    before = [sql(lived.store, f"SELECT * FROM {table}") for table in ("blob", "object", "journal", "session")]  # noqa: S608
    assert not check_store(store).is_clean
    assert [sql(lived.store, f"SELECT * FROM {table}") for table in ("blob", "object", "journal", "session")] == before  # noqa: S608


HARMS = {
    "a damaged blob": ("UPDATE blob SET data = x'00' WHERE hash = (SELECT hash FROM object LIMIT 1)", {"blob", "object", "stub"}),
    "a lost blob": ("DELETE FROM blob WHERE base IS NULL AND hash = (SELECT hash FROM object LIMIT 1)", {"object", "stub"}),
    "a lost object": ("DELETE FROM object WHERE id = (SELECT id FROM object LIMIT 1)", {"stub"}),
    "an object with other content": ("UPDATE object SET hash = (SELECT max(hash) FROM object) WHERE id = (SELECT min(id) FROM object)", {"stub", "object"}),
    "an object of other length": ("UPDATE object SET chars = chars + 1 WHERE id = (SELECT min(id) FROM object)", {"object"}),
    "an entry that cannot be unpacked": ("UPDATE journal SET line = x'00', codec = 1 WHERE number = (SELECT max(number) FROM journal)", {"entry"}),
    "an entry that says nothing": ("UPDATE journal SET line = x'7b746f726e', codec = 0 WHERE number = (SELECT max(number) FROM journal)", {"entry"}),
    "a lost entry": (f"DELETE FROM journal WHERE number = (SELECT min(number) + 3 FROM journal WHERE {MAIN})", {"entry"}),  # noqa: S608 -- a constant
    "a session that stands nowhere": ("UPDATE session SET leaf = 'nowhere' WHERE name = 'main'", {"session"}),
    "a version whose record was changed": ("UPDATE version SET record = '{\"type\":\"nope\"}' WHERE sequence = 2", {"version"}),
    "a lost version": ("DELETE FROM version WHERE sequence = 2", {"version"}),
    "a version of another number": ("UPDATE version SET number = 77 WHERE sequence = (SELECT max(sequence) FROM version)", {"version"}),
    "a lost reference": ("DELETE FROM reference", {"reference"}),
    "a nickname that leads nowhere": ("UPDATE document SET nickname = 'other' WHERE number = (SELECT number FROM document WHERE nickname IS NOT NULL LIMIT 1)", {"version"}),
    "a head that is not the newest": ("UPDATE document SET head = head - 1 + (SELECT 0) WHERE number = (SELECT document FROM version GROUP BY document HAVING count(*) > 1 LIMIT 1)", {"version"}),
}  # fmt: skip


@pytest.mark.parametrize("harm", HARMS)
def test_every_kind_of_damage_is_found(store: SqliteUpkeep, lived: LivedIn, harm: str) -> None:
    statement, expected = HARMS[harm]
    if harm == "a head that is not the newest":
        found = sql(
            lived.store,
            "SELECT document, min(sequence) FROM version GROUP BY document HAVING count(*) > 1 LIMIT 1",
        )
        sql(lived.store, "UPDATE document SET head = ? WHERE number = ?", found[0][1], found[0][0])
    else:
        sql(lived.store, statement)
    report = check_store(store)
    assert not report.is_clean
    assert expected & kinds(report), report.findings


@pytest.mark.parametrize("seed", range(12))
def test_a_file_whose_pages_were_overwritten_is_found_and_stops_nobody(
    store: SqliteUpkeep, lived: LivedIn, seed: int
) -> None:
    store.close()
    size = lived.store.stat().st_size
    dice = random.Random(seed)  # noqa: S311 - a test's dice
    with lived.store.open("r+b") as file:
        for _ in range(20):
            file.seek(dice.randrange(size // 3, size))
            file.write(bytes(dice.randrange(256) for _ in range(40)))
    fresh = SqliteUpkeep(lived.store)
    with contextlib.suppress(StoreError):  # so damaged that nothing can be read
        assert not check_store(fresh).is_clean
    fresh.close()


# --- repair ------------------------------------------------------------------------------------------------------


def repaired(store: SqliteUpkeep, lived: LivedIn) -> CheckReport:
    report = repair_store(store, lived.store.with_suffix(".salvaged"))
    assert check_store(store).is_clean == report.is_clean
    return report


def recalls_all(store: SqliteUpkeep, lived: LivedIn) -> bool:
    pager = Pager(store, str(lived.folder.resolve()))
    return {name: pager.recall(name) for name in lived.stubs} == lived.stubs


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE blob SET data = x'00' WHERE hash IN (SELECT hash FROM object)",
        "DELETE FROM blob WHERE hash IN (SELECT hash FROM object)",
        "UPDATE blob SET codec = 9 WHERE hash IN (SELECT hash FROM object)",
        "DELETE FROM object WHERE rowid % 2",
    ],
)
def test_a_repair_restores_evicted_content_from_the_journal(store: SqliteUpkeep, lived: LivedIn, harm: str) -> None:
    """Law 1 has two legs: the journal says what every result was."""
    sql(lived.store, harm)
    report = repaired(store, lived)
    assert report.findings
    assert all(one.repaired for one in report.findings)
    assert recalls_all(store, lived)


def test_a_session_without_a_leaf_continues_at_its_last_whole_entry(store: SqliteUpkeep, lived: LivedIn) -> None:
    last = [entry.id for entry in store.entries("main") if isinstance(entry, Entry)][-1]
    sql(lived.store, "UPDATE session SET leaf = 'nowhere' WHERE name = 'main'")
    assert repaired(store, lived).is_clean
    assert store.leaf("main") == last


def test_a_line_that_a_bridge_takes_the_place_of_is_kept_elsewhere(store: SqliteUpkeep, lived: LivedIn) -> None:
    sql(
        lived.store,
        "UPDATE journal SET line = x'7b746f726e', codec = 0 WHERE number = (SELECT max(number) FROM journal)",
    )
    # the session stood there, and stands at the bridge now
    assert [(one.kind, one.repaired) for one in repaired(store, lived).findings] == [
        ("session", True),
        ("entry", False),
    ]
    salvaged = lived.store.with_suffix(".salvaged")
    (record,) = map(json.loads, salvaged.read_text().splitlines())
    assert set(record) == {"session", "place", "line"}
    assert salvaged.stat().st_mode & 0o777 == 0o600
    assert recalls_all(store, lived)


def test_a_journal_that_is_lost_whole_keeps_the_places_of_its_entries(store: SqliteUpkeep, lived: LivedIn) -> None:
    leaf, names = store.leaf("main"), [entry.id for entry in store.entries("main") if isinstance(entry, Entry)]
    sql(lived.store, f"UPDATE journal SET line = x'7b746f726e', codec = 0 WHERE {MAIN}")  # noqa: S608 -- a constant
    assert not repaired(store, lived).is_clean
    assert store.leaf("main") == leaf
    assert [entry.id for entry in store.entries("main") if isinstance(entry, Entry)] == names


@pytest.mark.parametrize(
    "harm", ["DELETE FROM journal WHERE number = ?", "UPDATE journal SET line = x'01' WHERE number = ?"]
)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_entries_behind_a_lost_entry_are_kept(store: SqliteUpkeep, lived: LivedIn, harm: str, share: float) -> None:
    """One damaged entry once sent 83 of 178 into a side file that no command read back, and all was said to be well."""
    before = {place: entry for place, entry in store.news("main") if isinstance(entry, Entry)}
    (place,) = [one for one in before if sum(other < one for other in before) == int(share * len(before))]
    sql(lived.store, harm, place)
    report = repaired(store, lived)
    assert not report.is_clean
    assert f"{before[place].id!r} was lost" in "".join(one.why for one in report.findings if not one.repaired)
    after = {place: entry for place, entry in store.news("main") if isinstance(entry, Entry)}
    lost = after.pop(place)
    assert (lost.id, is_bridge(lost)) == (before.pop(place).id, True)
    assert after == before
    assert not check_store(store).is_clean


def test_a_session_of_which_only_its_place_is_left_stays(store: SqliteUpkeep, lived: LivedIn) -> None:
    leaf = store.leaf("main")
    sql(lived.store, f"DELETE FROM journal WHERE {MAIN}")  # noqa: S608 -- a constant
    repaired(store, lived)
    left = [one for one in store.entries("main") if isinstance(one, Entry)]
    assert (store.leaf("main"), [one.id for one in left], [*map(is_bridge, left)]) == (leaf, [leaf], [True])


def test_a_repeated_entry_replaces_its_bridge(store: SqliteUpkeep, lived: LivedIn) -> None:
    before = list(store.entries("main"))
    said = before[7]
    assert isinstance(said, Entry)
    sql(lived.store, f"DELETE FROM journal WHERE {MAIN} AND id = ?", entry_key(said.id))  # noqa: S608 -- a constant
    repaired(store, lived)
    assert list(store.entries("main")) != before
    store.append("main", [said])
    assert list(store.entries("main")) == before


def test_irreparable_faults_are_reported_apart_from_repaired_ones(store: SqliteUpkeep, lived: LivedIn) -> None:
    sql(
        lived.store,
        "UPDATE blob SET data = x'00' WHERE hash = (SELECT content_hash FROM version WHERE content_hash IS NOT NULL LIMIT 1)",
    )
    sql(lived.store, "UPDATE session SET leaf = 'nowhere' WHERE name = 'main'")
    report = repaired(store, lived)
    assert not report.is_clean
    assert {(one.kind, one.repaired) for one in report.findings} >= {("session", True), ("blob", False)}
    before = export_all(store)
    assert not repaired(store, lived).is_clean
    assert export_all(store) == before


def test_a_repair_of_a_clean_store_changes_nothing(store: SqliteUpkeep, lived: LivedIn) -> None:
    before = export_all(store)
    assert repaired(store, lived).findings == []
    assert export_all(store) == before
    assert not lived.store.with_suffix(".salvaged").exists()


@pytest.mark.parametrize("seed", range(6))
def test_after_any_damage_to_journals_a_second_repair_has_nothing_to_do(
    store: SqliteUpkeep, lived: LivedIn, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311 - a test's dice
    numbers = [number for (number,) in sql(lived.store, "SELECT number FROM journal")]
    for number in dice.sample(numbers, 12):
        harm = dice.choice(["DELETE FROM journal WHERE number = ?", "UPDATE journal SET line = x'01' WHERE number = ?"])
        sql(lived.store, harm, number)
    repaired(store, lived)
    before = export_all(store)
    second = repaired(store, lived)
    # an answer may have lost the ground that an entry before it was; that is told, and cannot be mended
    assert kinds(second) <= {"answer", "stub", "entry"}
    assert export_all(store) == before


# --- references --------------------------------------------------------------------------------------------------


def note(number: int, **more: object) -> Draft:
    return Draft(id=uuid7(number, bytes(10)), type="note", content="text", metadata=more)


def test_a_reference_to_a_missing_target_is_no_fault(store: SqliteUpkeep) -> None:
    store.write(Write("r", note(90, to=Reference(uuid7(91, bytes(10)))), 1.0))
    report = check_store(store)
    assert (report.is_clean, report.unresolved) == (True, 1)


def test_a_nickname_that_is_the_id_of_another_object_is_no_fault(store: SqliteUpkeep) -> None:
    store.write(Write("r1", replace(note(94), nickname="call-7"), 1.0))
    store.write(Write("r2", Draft(id="call-7", type="toolcall"), 2.0))
    assert check_store(store).is_clean


def test_a_reference_whose_pin_lies_is_a_fault(store: SqliteUpkeep) -> None:
    store.write(Write("r1", note(92), 1.0))
    made = store.current(uuid7(92, bytes(10)))
    assert made is not None
    pin = made.pin()
    lying = Reference(made.id, type(pin)(pin.at, pin.object, pin.object, pin.content))
    store.write(Write("r2", note(93, to=lying), 2.0))
    report = check_store(store)
    assert kinds(report) == {"reference"}


# --- what a stub claims ------------------------------------------------------------------------------------------


def test_a_stub_without_the_id_of_its_object_is_found(store: SqliteUpkeep) -> None:
    (paged, *_) = (
        one
        for name in ("main",)
        for entry in store.entries(name)
        if isinstance(entry, Entry) and isinstance(entry.body, EpochEntry)
        for one in entry.body.paged
    )
    forged = type(paged)(**{**{name: getattr(paged, name) for name in paged.__slots__}, "stub": "[something else]"})
    store.append("forged", [Entry("a", None, EpochEntry(1, 0, (forged,)))])
    report = check_store(store)
    assert [(one.kind, one.why) for one in report.findings] == [("stub", "its text does not name it")]


def test_lost_thinking_is_found_by_a_check(store: SqliteUpkeep) -> None:
    pager = Pager(store, "here")
    kept = pager.keep_thinking("thinker", 1, "it is the parser", 4)
    store.append("thinker", [Entry("a", None, EpochEntry(1, 0, (), thought=kept))])
    assert check_store(store).is_clean
    other = ThinkingObject(kept.object_id, ContentHash.of(b"something else"), 4, 16)
    nobody = replace(kept, object_id=kept.object_id[:-1] + ("0" if kept.object_id[-1] != "0" else "1"))
    for name, lost in (("b", other), ("c", nobody)):
        store.append(name, [Entry(name, None, EpochEntry(1, 0, (), thought=lost))])
    found = [(one.kind, one.why) for one in check_store(store).findings]
    assert found == [("thinking", "its object holds other content"), ("thinking", "its object is gone")]


def test_notes_of_other_folds_are_nobodys_fault(store: SqliteUpkeep) -> None:
    store.append("other", [Entry("a", None, NoteEntry("somebody else's", "not json")), note_entry("b", "a")])
    assert check_store(store).is_clean


@pytest.mark.parametrize("name", ["four\ud800\0", "a\\b", "ü"])
def test_names_that_databases_spell_out_are_no_fault(store: SqliteUpkeep, name: str) -> None:
    store.append(name, [Entry(name, None, NoteEntry("n", "{}"))])
    assert check_store(store).is_clean


# --- what cannot be looked at ------------------------------------------------------------------------------------


def test_versions_behind_unreadable_ones_are_checked_too() -> None:
    class Holed(MemoryUpkeep):
        def log(self, after: int = 0, limit: int | None = None) -> Sequence[Version]:
            found = super().log(after, limit)
            if any(20 <= version.sequence < 90 for version in found):
                raise StoreError("the disk is damaged")
            return found

    store = Holed()
    for number in range(100):
        store.write(Write(f"r{number}", note(number), 1.0))
    report = check_store(store)
    assert len([one for one in report.findings if "the disk is damaged" in one.why]) == 70
    assert report.counts["version"] == 30


def test_a_server_lost_during_a_check_ends_the_check() -> None:
    class Away(MemoryUpkeep):
        def log(self, after: int = 0, limit: int | None = None) -> Sequence[Version]:
            raise StoreError(f"the server is away: {after}, {limit}")

    with _no_longer_than(20):
        report = check_store(Away())
    assert kinds(report) == {"version"}


@contextlib.contextmanager
def _no_longer_than(seconds: int) -> Iterator[None]:
    def ended(_number: int, _frame: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, ended)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class _TooLong(BaseException):
    """It did not come to its end."""
