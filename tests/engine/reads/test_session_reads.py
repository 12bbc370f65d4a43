"""Reading through a session, as a caller of the library sees it."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.reads.read_resources import Outside
from pagein.errors import HostError, StoreError
from pagein.model.documents import Document, LocatedFile
from pagein.model.entries import CompactionEntry, NoteEntry
from pagein.model.journal_notes import OtherNote, WithheldReadNote
from pagein.model.names import ContentHash
from pagein.policy.reads.read_request import ReadingSettings
from pagein.ports import Signal
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing.desk import Desk, mode_of, numbered_text
from pagein.testing.memory_journals import MemoryJournals
from pagein.tools.read import READ, REFRESH
from pagein.wiring import default_counter
from pagein.workspace.folder import Folder


def stored(desk: Desk) -> list[bytes]:
    store = SqliteStore(desk.store)
    try:
        return [store.get(name) for name in store.names()]
    finally:
        store.close()


# --- what a read carries -------------------------------------------------------------------------------------------


def test_the_first_read_carries_metadata_of_what_it_emitted(desk: Desk) -> None:
    content = numbered_text(60)
    file = desk.put("a.txt", content)
    result = desk.session().read("a.txt")
    assert result.text == content
    assert result.details["readcache"] == {
        "v": 1,
        "pathKey": str(file),
        "scopeKey": "full",
        "servedHash": ContentHash.of(content.encode()).hex,
        "mode": "full",
        "totalLines": 61,
        "rangeStart": 1,
        "rangeEnd": 61,
        "bytes": len(content),
        "spans": [[1, 61]],
    }


def test_a_line_suffix_reads_those_lines(desk: Desk) -> None:
    desk.put("a.txt", "1\n2\n3\n4\n5\n")
    result = desk.session().read("a.txt:2-4")
    assert result.text == "2\n3\n4\n\n[2 more lines in file. Use offset=5 to continue.]"
    assert mode_of(result) == "full"
    readcache = result.details["readcache"]
    assert isinstance(readcache, dict)
    assert (readcache["scopeKey"], readcache["spans"]) == ("r:2:4", [[2, 4]])


def test_a_malformed_suffix_is_an_error_for_the_model(desk: Desk) -> None:
    desk.put("a.txt", "1\n")
    result = desk.session().read("a.txt:8-2")
    assert result.is_error
    assert result.text == 'Invalid range "8-2": end line must be greater than or equal to start line.'


def test_a_truncated_first_read_proves_only_what_it_showed(desk: Desk) -> None:
    desk.put("a.txt", "".join(f"{n}\n" for n in range(2499)))
    session = desk.session()
    assert session.read("a.txt").text.endswith("[Showing lines 1-2000 of 2500. Use offset=2001 to continue.]")
    rest = session.read("a.txt", 2001)
    assert rest.text.startswith("2000\n2001\n")
    assert mode_of(rest) == "full"
    assert session.read("a.txt").text == "[readcache: unchanged, 2500 lines]"


def test_an_over_long_first_line_proves_nothing(desk: Desk) -> None:
    desk.put("a.txt", "x" * 60000 + "\nshort")
    session = desk.session()
    for _ in range(2):
        assert session.read("a.txt").text.startswith("[Line 1 is 58.6KB, exceeds 50.0KB limit.")
    assert session.read("a.txt", 2).text == "short"


def test_bypassing_the_cache_shows_the_text_and_counts_as_shown(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    session = desk.session()
    session.read("a.txt")
    assert mode_of(session.read("a.txt", bypass_cache=True)) == "full"
    assert mode_of(session.read("a.txt")) == "unchanged"
    assert mode_of(READ.call(session, {"path": "a.txt", "bypass_cache": True}, None)) == "full"


@pytest.mark.parametrize(("offset", "limit"), [(0, None), (1.5, None), (-2, None), (None, 0), (None, -1)])
def test_odd_arguments_get_the_hosts_answer_and_prove_nothing(
    desk: Desk, offset: float | None, limit: float | None
) -> None:
    desk.put("a.txt", numbered_text(60))
    session = desk.session()
    result = session.read("a.txt", offset, limit)
    assert not result.is_error
    assert dict(result.details) == {}
    assert mode_of(session.read("a.txt")) == "full"


@pytest.mark.parametrize("content", ["", "x", "\ufeffa\n", "a\r\nb\r\n", "a\0b\n" * 20, "no newline at the end"])
def test_no_answer_is_longer_than_the_text_and_every_text_is_exact(desk: Desk, content: str) -> None:
    desk.put("a.txt", content)
    session = desk.session()
    assert session.read("a.txt").text == content
    again = session.read("a.txt")
    assert again.text == content or len(again.text) < len(content)
    assert content.encode() in stored(desk)


def test_text_that_looks_like_a_marker_is_text(desk: Desk) -> None:
    content = "[readcache: unchanged, 61 lines]\n" * 60
    desk.put("a.txt", content)
    session = desk.session()
    assert session.read("a.txt").text == content
    assert session.read("a.txt").text == "[readcache: unchanged, 61 lines]"


# --- one file, many names -----------------------------------------------------------------------------------------


def test_all_names_of_a_file_share_what_is_known_of_it(desk: Desk) -> None:
    file = desk.put("src/a.txt", numbered_text(60))
    (desk.folder / "link.txt").symlink_to("src/a.txt")
    (desk.folder / "hard.txt").hardlink_to(file)
    session = desk.session()
    session.read("src/a.txt")
    for name in ("link.txt", "src/../src/a.txt", str(file), "@src/a.txt", "hard.txt"):
        assert session.read(name).text == "[readcache: unchanged, 61 lines]", name


def test_a_path_may_be_a_path(desk: Desk) -> None:
    file = desk.put("a.txt", numbered_text(60))
    session = desk.session()
    assert mode_of(session.read(file)) == "full"
    assert mode_of(session.read(Path("a.txt"), 2, 9)) == "unchanged_range"
    assert session.refresh(Path("a.txt"), 2, 9).text == "[readcache-refresh] invalidated lines 2-10 for a.txt"
    assert session.note_edit(Path("a.txt"), "line 1 ::", "line one ::").failure is None
    assert session.note_write(Path("a.txt"), "x").lines.count == 1


def test_a_refresh_by_one_name_holds_for_the_others(desk: Desk) -> None:
    file = desk.put("a.txt", numbered_text(60))
    (desk.folder / "hard.txt").hardlink_to(file)
    session = desk.session()
    session.read("a.txt")
    session.refresh("hard.txt")
    assert mode_of(session.read("a.txt")) == "full"


def test_a_session_reads_in_the_folder_it_is_given(desk: Desk, tmp_path: Path) -> None:
    desk.put("a.txt", "here")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.txt").write_text("there")
    session = desk.session()
    assert session.read("a.txt").text == "here"
    session.work_in(str(tmp_path / "other"))
    assert session.read("a.txt").text == "there"


# --- what must not be stored ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [".env.local", "server.key", ".npmrc", "id_ed25519", "CERT.PEM"])
def test_excluded_files_are_shown_and_never_kept(desk: Desk, name: str) -> None:
    desk.put(name, "SECRET=1\n" * 40)
    (desk.folder / "innocent.txt").symlink_to(name)
    session = desk.session()
    for asked in (name, name, "innocent.txt", f"{name}:2-9"):
        result = session.read(asked)
        assert "SECRET=1" in result.text
        assert dict(result.details) == {}
    session.note_write(name, "SECRET=2\n" * 40)
    session.note_edit(name, "SECRET=1", "SECRET=3")
    # keyed digests, by which another process knows the text when it is said there
    assert {type(one.body.note) for one in session.journal if isinstance(one.body, NoteEntry)} == {WithheldReadNote}
    assert "SECRET" not in repr(list(session.journal))
    assert b"SECRET" not in b"".join(path.read_bytes() for path in desk.store.parent.glob("*"))


def test_a_large_file_is_stored_whole_unless_it_holds_a_key(desk: Desk) -> None:
    content, key = numbered_text(9_000), "ghp_" + "aB3dE6gH9" * 4
    desk.put("large.txt", content)
    desk.put("private.txt", f"{content}token: {key}\n")
    session = desk.session()
    assert "readcache" in session.read("large.txt").details
    assert "readcache" not in session.read("private.txt").details
    assert stored(desk) == [content.encode()]


def test_a_large_file_is_read_at_the_end_of_the_process_too(desk: Desk) -> None:
    desk.put("large.txt", numbered_text(9_000))
    code = f"""
import atexit, pagein
session = pagein.open({str(desk.store)!r}, workspace={str(desk.folder)!r}).session("late")
atexit.register(lambda: print("readcache" in session.read("large.txt").details))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)  # noqa: S603
    assert (done.stdout, done.stderr) == ("True\n", "")


# --- the model's own writes -------------------------------------------------------------------------------------


def test_what_the_model_wrote_it_knows(desk: Desk) -> None:
    content = numbered_text(60)
    session = desk.session()
    desk.put("new.txt", content)
    assert session.note_write("new.txt", content).lines.count == 61
    assert session.read("new.txt").text == "[readcache: unchanged, 61 lines]"


def test_what_was_written_may_not_be_what_is_there(desk: Desk) -> None:
    session = desk.session()
    session.note_write("new.txt", numbered_text(60))
    changed = numbered_text(60).replace("line 30 ", "LINE 30 ")
    desk.put("new.txt", changed)
    result = session.read("new.txt")
    assert "LINE 30 ::" in result.text
    assert len(result.text) < len(changed) / 2


@pytest.mark.parametrize("applied_first", [True, False])
def test_an_edit_carries_what_was_known_around_it(desk: Desk, applied_first: bool) -> None:  # noqa: FBT001 - a case
    before = numbered_text(100)
    old, new = "line 50 :: original text payload\n", "".join(f"new line {n} of the edit\n" for n in range(8))
    after = before.replace(old, new)
    desk.put("a.txt", before)
    session = desk.session()
    session.read("a.txt")
    if applied_first:
        desk.put("a.txt", after)
    learned = session.note_edit("a.txt", old, new)
    desk.put("a.txt", after)
    assert learned.failure is None
    assert learned.lines.runs == ((50, 57),)
    assert session.read("a.txt").text == "[readcache: unchanged, 108 lines]"


def test_an_edit_of_all_occurrences_is_understood(desk: Desk) -> None:
    before = numbered_text(60)
    desk.put("a.txt", before)
    session = desk.session()
    session.read("a.txt:1-20")
    desk.put("a.txt", before.replace("original", "edited"))
    assert session.note_edit("a.txt", "original", "edited").failure is None
    # every line was touched, so nothing of it is known
    assert session.read("a.txt:1-20").text.startswith("line 1 :: edited text payload\n")


def test_an_edit_of_a_file_never_read_teaches_only_what_was_written(desk: Desk) -> None:
    new = "".join(f"new line {n} of the edit\n" for n in range(8))
    desk.put("a.txt", "a\n" + new + "b\n")
    session = desk.session()
    assert session.note_edit("a.txt", "gone\n", new).lines.runs == ((2, 9),)
    assert session.read("a.txt:2-9").text.startswith(
        "new line 0 of the edit\n"
    )  # an edit's text stands under no number
    assert session.read("a.txt:2-9").text == "[readcache: unchanged in lines 2-9 of 11]"
    assert session.read("a.txt:1-1").text.startswith("a\n")


def test_an_edit_that_fits_nothing_teaches_nothing(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    session = desk.session()
    learned = session.note_edit("a.txt", "not there", "not there either")
    assert (learned.failure, learned.lines.count, session.leaf) == (None, 0, None)


def test_an_edit_that_fits_nothing_leaves_no_line_known_for_nobody_can_tell_where_it_was(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    session = desk.session()
    session.read("a.txt")
    desk.put("a.txt", numbered_text(50))
    learned = session.note_edit("a.txt", "not there", "not there either")
    assert (learned.failure, learned.lines.count) == (None, 0)
    assert session.read("a.txt:10-40").text.startswith(numbered_text(60).split("\n")[9])


def test_text_that_cannot_be_written_is_reported_and_costs_nothing(desk: Desk) -> None:
    session = desk.session()
    assert session.note_write("a.txt", "\ud800").failure is not None
    assert session.note_edit("missing.txt", "a", "b").failure is not None


# --- forks and refreshes ----------------------------------------------------------------------------------------


def test_a_fork_outlives_its_process_and_needs_a_free_name(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    source = desk.session("source")
    source.read("a.txt")
    source.fork("fork")
    assert mode_of(desk.session("fork").read("a.txt")) == "unchanged"
    with pytest.raises(Exception, match="there is a session 'fork' already"):
        source.fork("fork")
    with pytest.raises(Exception, match="there is a session 'source' already"):
        desk.session("other").fork("source")


def test_a_fork_begins_with_what_other_processes_added_to_its_session(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    source = desk.session("source")
    source.read("a.txt", 1, 5)
    other = desk.session("source")
    other.read("a.txt")
    fork = source.fork("fork")
    assert fork.leaf == other.leaf
    assert mode_of(fork.read("a.txt")) == "unchanged"


def test_a_fork_knows_of_a_compaction_and_of_a_refresh_by_another_process(desk: Desk) -> None:
    text = numbered_text(60)
    desk.put("a.txt", text)
    source = desk.session("source")
    source.read("a.txt")
    desk.session("source").refresh("a.txt")
    assert source.fork("refreshed").read("a.txt").text == text
    source.read("a.txt")
    desk.session("source").compact()
    assert source.fork("compacted").read("a.txt").text == text


def test_the_status_of_a_session_tells_of_reads_by_other_processes(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    source = desk.session("source")
    source.read("a.txt")
    desk.session("source").read("a.txt")
    assert source.status() == desk.session("source").status()


def test_a_fork_in_memory_is_a_fork(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(numbered_text(60))
    with pagein.open(store=":memory:") as engine:
        source = engine.session("source", workspace=tmp_path)
        source.read("a.txt")
        fork = source.fork("fork")
        source.compact()
        assert mode_of(fork.read("a.txt")) == "unchanged"
        assert engine.session("fork") is fork


def test_a_refresh_says_what_it_did_and_what_was_wrong(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    session = desk.session()
    assert session.refresh("a.txt:50-99").text == "[readcache-refresh] invalidated lines 50-61 for a.txt"
    assert session.refresh("a.txt:1-99").text == "[readcache-refresh] invalidated full scope for a.txt"
    assert session.refresh("a.txt", 50).text == "[readcache-refresh] invalidated lines 50-61 for a.txt"
    assert session.refresh("gone.txt", 5, 2).text == "[readcache-refresh] invalidated lines 5-6 for gone.txt"
    assert session.refresh("gone.txt", 5).text == "[readcache-refresh] invalidated full scope for gone.txt"
    assert session.refresh("a.txt", 0).text == 'Invalid offset "0". Offset must be a positive integer.'
    assert session.refresh("a.txt", 1, 0.5).text == 'Invalid limit "0.5". Limit must be a positive integer.'
    assert session.refresh("a.txt", 99).is_error
    assert session.refresh("a.txt:8-2").is_error


def test_a_tool_tells_the_model_what_is_wrong_with_its_arguments(desk: Desk) -> None:
    session = desk.session()
    for tool in (READ, REFRESH):
        result = tool.call(session, {"file": "a.txt", "offset": "3"}, None)
        assert result.is_error
        assert result.text.startswith(
            f'Validation failed for tool "{tool.name}":\n  - path: must be a text\n  - offset'
        )
    desk.put("a.txt", "a")
    assert REFRESH.call(session, {"path": "a.txt:0"}, None).is_error


# --- status -----------------------------------------------------------------------------------------------------


def test_the_status_counts_what_the_host_would_really_have_sent(desk: Desk) -> None:
    desk.put("big.txt", "".join(f"{n:-<99}\n" for n in range(2000)))
    session = desk.session()
    shown = len(session.read("big.txt").text)
    session.read("big.txt", 513, 512)
    session.read("big.txt", 1, 512)
    status = session.status()
    # 512 lines and the host's notice, not the 200 kB of the file
    notice = "\n\n[1489 more lines in file. Use offset=513 to continue.]"
    marker = "[readcache: unchanged in lines 1-512 of 2001]"
    assert status.saved == 51199 + len(notice) - len(marker)
    assert status.baseline - status.sent == status.saved
    assert status.sent < shown + 2 * 51300
    assert status.text.split("\n") == [
        "[readcache-status]",
        "tracked scopes: 1 across 1 files",
        "replay window: 3 entries (start index 0)",
        "mode counts: full=2, unchanged=0, unchanged_range=1, diff=0, baseline_fallback=0",
        f"estimated savings: ~{-(-status.saved // 4)} tokens ({status.saved / 1024:.1f} KiB)",
        f"object store: 1 objects, {status.store.size / 1024:.1f} KiB" if status.store else "",
    ]


def test_the_status_begins_anew_at_a_compaction(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    session = desk.session()
    session.read("a.txt")
    session.read("a.txt")
    session.compact()
    status = session.status()
    assert (status.entries, status.start, status.saved, status.files, status.scopes) == (0, 3, 0, 0, 0)
    assert session.read("a.txt").text == numbered_text(60)
    assert session.status().modes == {"full": 1}


@pytest.mark.damages_store
def test_strange_records_are_counted_and_create_no_trust(desk: Desk) -> None:
    file = desk.put("a.txt", numbered_text(60))
    session = desk.session()
    version = ContentHash.of(numbered_text(60).encode()).hex
    for data in ("not json", "[]", '{"readcache":{"v":1,"mode":"full"}}', f'{{"v":1,"kind":"x","pathKey":"{file}"}}'):
        session.note(OtherNote("reading", data))
    session.note(OtherNote("reading", f'{{"v":1,"kind":"authored","pathKey":"{file}","servedHash":"{version}"}}'))
    session.note(OtherNote("another fold", '{"readcache":{}}'))
    assert session.status().malformed == 5
    assert mode_of(session.read("a.txt")) == "full"


# --- failing open -----------------------------------------------------------------------------------------------


class Failing(MemoryJournals):
    """A store whose named operation fails."""

    def __init__(self, *operations: str) -> None:
        super().__init__()
        self.operations = operations

    def __getattribute__(self, name: str) -> object:
        if name != "operations" and name in object.__getattribute__(self, "operations"):

            def fail(*_: object, **__: object) -> None:
                raise StoreError(f"{name}: no space left on device")

            return fail
        return super().__getattribute__(name)


def engine_on(store: MemoryJournals, folder: Path) -> Engine:
    outside = Outside(store, Folder, str(folder), lambda: 1.0)
    return Engine(blobs=store, journals=store, counter=default_counter(), outside=outside)


@pytest.mark.parametrize("operation", ["put", "has", "append", "news", "exclusive"])
def test_a_store_that_fails_costs_the_saving_and_never_the_read(desk: Desk, operation: str) -> None:
    desk.put("a.txt", numbered_text(60))
    store = Failing()
    with engine_on(store, desk.folder) as engine:
        session = engine.session("s")
        store.operations = (operation,)
        for _ in range(2):
            result = session.read("a.txt")
            assert (result.text, dict(result.details), result.is_error) == (numbered_text(60), {}, False)
            assert result.failure is not None
            assert "no space left" in result.failure
        store.operations = ()
        # nothing was claimed while it failed
        assert mode_of(session.read("a.txt")) == "full"
        assert mode_of(session.read("a.txt")) == "unchanged"


def test_a_store_that_fails_from_the_start_still_gives_a_session_that_reads(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    store = Failing("news", "append", "exclusive", "leaf")
    with engine_on(store, desk.folder) as engine:
        assert engine.session("s").read("a.txt").text == numbered_text(60)
        assert engine.session("s").status().store is not None


def test_a_store_that_cannot_be_asked_keeps_no_fork_from_reading(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    desk.store.parent.mkdir()
    desk.store.write_bytes(b"no database" * 100)
    forked = desk.session("s").fork("t")
    assert forked.read("a.txt").text == numbered_text(60)


@pytest.mark.parametrize("operation", ["append", "exclusive"])
def test_what_forgets_holds_at_once_even_where_it_cannot_be_kept(desk: Desk, operation: str) -> None:
    desk.put("a.txt", numbered_text(60))
    store = Failing()
    with engine_on(store, desk.folder) as engine:
        session = engine.session("s")
        session.read("a.txt")
        store.operations = (operation,)
        session.compact()
        store.operations = ()
        assert mode_of(session.read("a.txt")) == "full"
        store.operations = (operation,)
        assert session.refresh("a.txt").failure is not None
        store.operations = ()
        assert mode_of(session.read("a.txt")) == "full"
    bodies = [entry.body for entry in store.entries("s") if hasattr(entry, "body")]
    assert any(isinstance(body, CompactionEntry) for body in bodies)
    assert any(isinstance(body, NoteEntry) and '"invalidate"' in body.data for body in bodies)


@pytest.mark.damages_store
def test_a_lost_or_damaged_base_costs_the_diff_and_nothing_else(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(300))
    session = desk.session()
    session.read("a.txt")
    session.status()
    with sqlite3.connect(desk.store) as connection:
        connection.execute("DELETE FROM blob")
    connection.close()
    changed = numbered_text(300).replace("line 200 ", "LINE 200 ")
    desk.put("a.txt", changed)
    result = session.read("a.txt")
    assert (result.text, mode_of(result)) == (changed, "baseline_fallback")
    with sqlite3.connect(desk.store) as connection:
        connection.execute("UPDATE blob SET data = x'00'")
    connection.close()
    desk.put("a.txt", numbered_text(300))
    again = session.read("a.txt")
    # the version from before is still known, and needs no bytes to be told unchanged; a diff would
    assert mode_of(again) in ("baseline_fallback", "full")
    assert again.text == numbered_text(300)


def test_a_store_that_is_no_store_is_reported_and_read_around(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    desk.store.parent.mkdir()
    desk.store.write_bytes(b"this is no database, but some file of the user's own" * 100)
    before = desk.store.read_bytes()
    session = desk.session()
    result = session.read("a.txt")
    assert (result.text, result.is_error) == (numbered_text(60), False)
    assert result.failure is not None
    assert session.status().store is None
    assert "object store: unavailable" in session.status().text
    assert desk.store.read_bytes() == before


def test_a_closed_engine_still_answers_as_the_host_would(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    session = desk.session()
    session.read("a.txt")
    desk.close()
    result = session.read("a.txt")
    assert (result.text, result.failure) == (numbered_text(60), "StoreError: store s.pagein is closed")


def test_even_a_bug_of_ours_costs_no_read(desk: Desk) -> None:
    class Buggy(Folder):
        def same_file(self, located: LocatedFile, among: object) -> str | None:
            raise ZeroDivisionError("a bug")

    desk.put("a.txt", numbered_text(60))
    store = MemoryJournals()
    outside = Outside(store, Buggy, str(desk.folder), lambda: 1.0)
    with Engine(blobs=store, counter=default_counter(), outside=outside) as engine:
        result = engine.session("s").read("a.txt")
    assert (result.text, result.failure) == (numbered_text(60), "ZeroDivisionError: a bug")


def test_a_file_that_changes_while_it_is_read_is_hashed_shown_and_stored_as_one(desk: Desk) -> None:
    class Racing(Folder):
        """Changes the file behind every reading of it."""

        def read(self, located: LocatedFile, signal: Signal | None = None) -> Document:
            document = super().read(located, signal)
            Path(located.absolute).write_text(numbered_text(60, f"after {document.hash.hex[:8]}"))
            return document

    desk.put("a.txt", numbered_text(60))
    store = MemoryJournals()
    outside = Outside(store, Racing, str(desk.folder), lambda: 1.0)
    with Engine(blobs=store, counter=default_counter(), outside=outside) as engine:
        result = engine.session("s").read("a.txt")
    assert result.text == numbered_text(60)
    readcache = result.details["readcache"]
    assert isinstance(readcache, dict)
    assert readcache["servedHash"] == ContentHash.of(numbered_text(60).encode()).hex
    assert [store.get(name) for name in store.names()] == [numbered_text(60).encode()]


def test_a_session_without_a_workspace_says_so() -> None:
    store = MemoryJournals()
    with (
        Engine(blobs=store, counter=default_counter()) as engine,
        pytest.raises(HostError, match="without a workspace"),
    ):
        engine.session("s").read("a.txt")


def test_names_with_bytes_that_are_no_text_are_read(desk: Desk) -> None:
    name = os.fsdecode(b"odd-\xff.txt")
    (desk.folder / name).write_text(numbered_text(60))
    session = desk.session()
    assert mode_of(session.read(name)) == "full"
    assert mode_of(desk.session().read(name)) == "unchanged"


# --- settings ---------------------------------------------------------------------------------------------------


def test_what_is_excluded_and_what_is_answered_are_settings(desk: Desk) -> None:
    desk.put("plan.secret", numbered_text(60))
    desk.put("a.txt", numbered_text(60))
    settings = Settings(reading=ReadingSettings(new_answers=False, cap_lines=50), excluded=("*.secret",))
    with pagein.open(store=desk.store, settings=settings) as engine:
        session = engine.session("s", workspace=desk.folder)
        assert dict(session.read("plan.secret", 1, 5).details) == {}
        assert session.read("a.txt").text.endswith("[Showing lines 1-50 of 61. Use offset=51 to continue.]")
        # the specification's own answers know no partly known read
        assert mode_of(session.read("a.txt:40-61")) == "full"
