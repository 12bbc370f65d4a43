from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagein.engine.log.pageout import Pager
from pagein.errors import BadInput, NotRecallable
from pagein.model.entries import Entry, MessageEntry, NoteEntry
from pagein.model.identifiers import uuid7
from pagein.model.messages import Message, Text
from pagein.model.objects import ObjectId
from pagein.model.versions import Draft, Provenance
from pagein.model.writes import Write
from pagein.ports import WholeStore
from pagein.store.exchange.exporter import export
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.blob_store import an_object
from pagein.testing.lived_in_store import make_lived_in_store
from pagein.testing.memory_upkeep import MemoryUpkeep
from pagein.testing.upkeep_contract import export_all, import_all, note_entry
from pagein.upkeep import check_store

TEXTS = st.text(st.characters(), max_size=40)  # lone surrogates and NUL among them
BYTES = st.binary(max_size=60) | TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass"))
NAMES = st.sampled_from(["one", "two", "drei ü", "a/b\\c"])
# Databases keep names with these characters spelled out, so they come back as they were only from a database.
HARD_NAMES = NAMES | st.just("four\ud800\0")


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    number = draw(st.integers(0, 3))
    values = st.recursive(
        st.none() | st.booleans() | st.integers(-5, 2**40) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2),
        max_leaves=4,
    )
    return Draft(
        id=uuid7(number, bytes(10)),
        type="note",
        content=draw(st.none() | TEXTS),
        metadata={"path": draw(st.sampled_from(["a.md", "b.md"])), "x": draw(values)},
        additional={"more": draw(values)},
        nickname=draw(st.sampled_from([None, f"name-{number}"])),
        provenance=Provenance(draw(TEXTS)),
        deleted=draw(st.booleans()),
    )


@st.composite
def journals(draw: st.DrawFn, names: st.SearchStrategy[str]) -> tuple[str, list[Entry], int]:
    size = draw(st.integers(1, 6))
    entries = []
    for number in range(size):
        body = draw(
            st.builds(NoteEntry, TEXTS, st.just("{}"))
            | st.builds(lambda text: MessageEntry(Message("user", (Text(text),))), TEXTS)
        )
        parent = str(draw(st.integers(0, number - 1))) if number and draw(st.booleans()) else None
        at = draw(st.none() | st.floats(allow_nan=False, allow_infinity=False))
        entries.append(Entry(str(number), parent, body, at))
    return draw(names), entries, draw(st.integers(0, size - 1))


@st.composite
def steps(draw: st.DrawFn, names: st.SearchStrategy[str] = NAMES) -> list[tuple[str, object]]:
    kinds: dict[str, st.SearchStrategy[object]] = {
        "blob": BYTES,
        "object": st.tuples(BYTES, names),
        "version": drafts(),
        "journal": journals(names),
        "end": names,
    }
    chosen = draw(st.lists(st.sampled_from(sorted(kinds)), max_size=8))
    return [(kind, draw(kinds[kind])) for kind in chosen]


def carry_out(store: WholeStore, history: list[tuple[str, object]]) -> None:
    for number, step in enumerate(history):
        match step:
            case "blob", bytes(content):
                store.put(content)
            case "object", (bytes(content), str(call)):
                store.put_objects([(an_object(store, content, call_id=call), content)])
            case "version", Draft() as draft:
                store.write(Write(f"step {number}", draft, float(number)))
            case "journal", (str(name), list(entries), int(leaf)):
                store.append(name, entries)
                store.append(name, entries[leaf : leaf + 1])
            case "end", str(name):
                store.end_session(name)


SLOWLY = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


@SLOWLY
@given(history=steps())
def test_a_store_survives_export_and_import_unchanged(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, object]]
) -> None:
    here, there = MemoryUpkeep(), SqliteUpkeep(tmp_path_factory.mktemp("stores") / "there.pagein")
    carry_out(here, history)
    comes_back(here, there)


@SLOWLY
@given(history=steps(HARD_NAMES))
def test_a_database_survives_export_and_import_unchanged(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, object]]
) -> None:
    here, there = SqliteUpkeep(tmp_path_factory.mktemp("stores") / "here.pagein"), MemoryUpkeep()
    carry_out(here, history)
    comes_back(here, there)


def comes_back(here: WholeStore, there: WholeStore) -> None:
    lines = export_all(here)
    import_all(there, lines)
    assert export_all(there) == lines
    for store in (here, there):
        assert import_all(store, lines).added == {}
        assert export_all(store) == lines
        store.close()


@pytest.fixture
def lived(tmp_path: Path) -> Iterator[SqliteUpkeep]:
    make_lived_in_store(tmp_path / "lived.pagein", tmp_path / "work", 3, 100)
    store = SqliteUpkeep(tmp_path / "lived.pagein")
    yield store
    store.close()


def test_a_moved_store_recalls_and_proves_all_its_content(tmp_path: Path, fresh: SqliteUpkeep) -> None:
    lived = make_lived_in_store(tmp_path / "lived.pagein", tmp_path / "work", 7, 100)
    assert len(lived.stubs) > 5
    store = SqliteUpkeep(lived.store)
    import_all(fresh, export_all(store))
    store.close()
    pager = Pager(fresh, str(lived.folder.resolve()))
    assert {name: pager.recall(name) for name in lived.stubs} == lived.stubs
    assert check_store(fresh).is_clean


def test_a_moved_store_is_as_small_as_before(tmp_path: Path, fresh: SqliteUpkeep) -> None:
    """Versions are kept as what differs from the one before, also where they came by import."""
    here = SqliteUpkeep(tmp_path / "here.pagein")
    lines = [f"line {n} of a file that is edited again and again {n * 7919}" for n in range(400)]
    for number in range(60):
        lines[number * 5] = f"edited {number}"
        draft = Draft(id=uuid7(1, bytes(10)), type="note", content="\n".join(lines))
        here.write(Write(f"write {number}", draft, float(number)))
    import_all(fresh, export_all(here))
    assert sum(fresh.blob_sizes().values()) == sum(here.blob_sizes().values()) < 3 * len("\n".join(lines))
    here.close()


def test_every_shorter_file_is_refused_with_its_line_and_nothing_is_kept(
    lived: SqliteUpkeep, fresh: SqliteUpkeep
) -> None:
    lines = export_all(lived)
    fresh.put(b"was here")
    before = export_all(fresh)
    for cut in [1, 2, *range(3, len(lines), 37), len(lines) - 1]:
        with pytest.raises(BadInput, match=rf"^file.jsonl, line {cut}: .*cut short; nothing was imported$"):
            import_all(fresh, lines[:cut])
        with pytest.raises(BadInput, match=rf"^file.jsonl, line {cut + 1}: .*middle of this line; nothing"):
            import_all(fresh, [*lines[:cut], lines[cut][:-1]])
    assert export_all(fresh) == before


def test_a_file_with_a_changed_byte_is_refused_wherever_it_is(lived: SqliteUpkeep, fresh: SqliteUpkeep) -> None:
    lines = export_all(lived)
    before = export_all(fresh)
    for place in range(0, len(lines), 23):
        line = bytearray(lines[place])
        at = len(line) // 2
        line[at] ^= 1
        with pytest.raises(BadInput, match=r"file.jsonl, line \d+: "):
            import_all(fresh, [*lines[:place], bytes(line), *lines[place + 1 :]])
    assert export_all(fresh) == before


@pytest.mark.parametrize("place", [1, 4, -2])
def test_a_file_that_lacks_a_line_in_the_middle_is_refused(
    lived: SqliteUpkeep, fresh: SqliteUpkeep, place: int
) -> None:
    lines = export_all(lived)
    del lines[place]
    with pytest.raises(BadInput):
        import_all(fresh, lines)
    assert list(fresh.names()) == []


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([b'{"some":"json"}\n'], "line 1: this is no export of pagein; `pagein export` writes one"),
        ([b'{"pagein":"export","v":2}\n'], "line 1: format 2 was written by a newer pagein"),
        ([b'{"pagein":"export","v":1}\n', b'{"type":"hat"}\n'], "line 2: unknown type of record 'hat'"),
        ([b'{"pagein":"export","v":1}\n', b'{"type":"blob"}\n'], "line 2: the field 'hash' is missing"),
        ([b'{"pagein":"export","v":1}\n', b"[]\n"], "line 2: not a JSON object"),
        ([b'{"pagein":"export","v":1}\n', b"{torn\n"], "line 2: "),
        ([b'{"pagein":"export","v":1}\n', b'{"type":"entry","entry":{}}\n'], "line 2: an entry without a session"),
        ([b'{"pagein":"export","v":1}\n', b'{"type":"key","key":"00"}\n'], "line 2: a key has 32 bytes"),
        ([b"\xff\xfe\x00\n"], "line 1: "),
        ([], "line 0: the file is empty"),
    ],
)
def test_a_file_that_is_no_export_is_refused_with_a_reason(fresh: SqliteUpkeep, lines: list[bytes], why: str) -> None:
    with pytest.raises(BadInput) as caught:
        import_all(fresh, lines)
    assert str(caught.value).startswith(f"file.jsonl, {why}")
    assert str(caught.value).endswith("nothing was imported")


def test_more_behind_the_end_is_refused(fresh: SqliteUpkeep) -> None:
    lines = export_all(MemoryUpkeep())
    with pytest.raises(BadInput, match="more behind the last record"):
        import_all(fresh, [*lines, lines[0]])


# --- meeting what is there already -------------------------------------------------------------------------------


def journal(*names: str) -> list[Entry]:
    parents = (None, *names[:-1])
    return [note_entry(name, parent) for name, parent in zip(names, parents, strict=True)]


def one_session(name: str, *entries: str) -> list[bytes]:
    store = MemoryUpkeep()
    store.append(name, journal(*entries))
    return export_all(store)


@pytest.mark.parametrize(
    ("here", "there", "leaf", "why"),
    [
        ("abc", "ab", "c", "it went on here"),
        ("ab", "abcd", "d", "it went on there"),
        ("abx", "aby", "x", "both went on: here we stay where we are"),
        ("ab", "ab", "b", "they are the same"),
    ],
)
def test_an_import_keeps_or_advances_the_leaf_of_an_existing_session(
    fresh: SqliteUpkeep, here: str, there: str, leaf: str, why: str
) -> None:
    fresh.append("one", journal(*here))
    import_all(fresh, one_session("one", *there))
    assert fresh.leaf("one") == leaf, why
    assert {entry.id for entry in fresh.entries("one") if isinstance(entry, Entry)} == {*here, *there}


def note(number: int, content: str, nickname: str | None = None) -> Draft:
    return Draft(id=uuid7(number, bytes(10)), type="note", content=content, nickname=nickname)


def histories(*drafts: Draft) -> MemoryUpkeep:
    store = MemoryUpkeep()
    for number, draft in enumerate(drafts):
        store.write(Write(f"write {number}", draft, float(number)))
    return store


def test_a_history_goes_on_where_the_one_here_ended(fresh: SqliteUpkeep) -> None:
    import_all(fresh, export_all(histories(note(1, "a"), note(1, "b"))))
    done = import_all(fresh, export_all(histories(note(1, "a"), note(1, "b"), note(1, "c"))))
    assert done.added == {"blob": 1, "version": 1}
    assert [fresh.content(one) for one in fresh.history(note(1, "").id)] == ["a", "b", "c"]


def test_an_older_export_changes_nothing(fresh: SqliteUpkeep) -> None:
    import_all(fresh, export_all(histories(note(1, "a"), note(1, "b"))))
    assert import_all(fresh, export_all(histories(note(1, "a")))).added == {}


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (histories(note(1, "a"), note(1, "x")), "the histories have parted"),
        (histories(note(2, "b", "name")), "nickname_taken"),
    ],
)
def test_an_import_against_the_history_of_the_store_is_refused_whole(
    fresh: SqliteUpkeep, other: MemoryUpkeep, why: str
) -> None:
    import_all(fresh, export_all(histories(note(1, "a"), note(1, "b", "name"))))
    before = export_all(fresh)
    other.append("session", journal("a"))
    with pytest.raises(BadInput, match=why):
        import_all(fresh, export_all(other))
    assert export_all(fresh) == before


@pytest.mark.damages_store
def test_a_store_keeps_its_key_and_recalls_imported_objects(tmp_path: Path, fresh: SqliteUpkeep) -> None:
    lived = make_lived_in_store(tmp_path / "lived.pagein", tmp_path / "work", 3, 60)
    own = fresh.secret()
    store = SqliteUpkeep(lived.store)
    import_all(fresh, export_all(store))
    store.close()
    assert fresh.secret() == own
    pager = Pager(fresh, str(lived.folder.resolve()))
    assert {name: pager.recall(name) for name in lived.stubs} == lived.stubs
    # and of what is given up later it can still tell that it was here
    gone = next(iter(lived.stubs))
    stored = fresh.find(ObjectId.parse(gone))
    assert stored is not None
    fresh.drop_objects([stored.id])
    fresh.drop_blobs([stored.content])
    with pytest.raises(NotRecallable, match="expired"):
        pager.recall(gone)


@pytest.mark.damages_store
def test_an_export_omits_and_reports_damaged_content(lived: SqliteUpkeep, fresh: SqliteUpkeep) -> None:
    stored = next(iter(lived.paged_objects()))
    with lived._database.open_writer() as rows:
        rows.execute("UPDATE blob SET data = x'00' WHERE hash = ?", (bytes.fromhex(stored.content.hex),))
    written: list[bytes] = []
    done = export(lived, written.append)
    assert len(done.lost) == 2
    assert any(str(stored.id) in line for line in done.lost)
    import_all(fresh, written)
    assert fresh.find(stored.id) is None


def test_an_export_is_a_snapshot_while_others_write(tmp_path: Path, fresh: SqliteUpkeep) -> None:
    here, writer = SqliteUpkeep(tmp_path / "here.pagein"), SqliteUpkeep(tmp_path / "here.pagein")
    here.append("one", journal("a"))
    here.put(b"body")
    written: list[bytes] = []

    def write(line: bytes) -> None:
        written.append(line)
        writer.put(b"new %d" % len(written))
        writer.append(f"new {len(written)}", journal("a"))

    export(here, write)
    assert import_all(fresh, written).counts == {"key": 1, "blob": 1, "session": 1, "entry": 1}
    assert len(list(writer.names())) > 3
    here.close()
    writer.close()
