"""The rows of the readcache specification's test matrix (section 21) that need files, stores and processes."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pagein.model.entries import NoteEntry
from pagein.model.journal_notes import ReadNote
from pagein.model.names import ContentHash
from pagein.model.read_events import FileRefresh
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing.desk import Desk, mode_of, numbered_text
from pagein.tools.read import READ, REFRESH, TOOLS

PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)


def test_matrix_11_a_read_on_one_branch_leaks_nothing_into_another(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60, "one"))
    desk.put("b.txt", numbered_text(60, "two"))
    session = desk.session()
    session.read("b.txt")
    fork_point = session.leaf
    session.read("a.txt")
    session.move(fork_point)
    assert mode_of(session.read("a.txt")) == "full"
    assert mode_of(session.read("b.txt")) == "unchanged"


def test_matrix_12_going_back_before_a_compaction_brings_back_what_was_known_there(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    session = desk.session()
    session.read("a.txt")
    before = session.leaf
    session.compact()
    assert mode_of(session.read("a.txt")) == "full"
    session.move(before)
    assert mode_of(session.read("a.txt")) == "unchanged"


def test_matrix_15_the_first_read_after_a_compaction_shows_the_text(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    session = desk.session()
    session.read("a.txt")
    session.read("a.txt:10-30")
    session.compact()
    assert mode_of(session.read("a.txt:10-30")) == "full"
    assert session.read("a.txt").text.startswith("line 1 ::")


def test_matrix_16_a_fork_knows_the_branch_so_far_and_goes_its_own_way(desk: Desk) -> None:
    first, second = numbered_text(60, "v1"), numbered_text(60, "v2")
    desk.put("a.txt", first)
    source = desk.session("source")
    source.read("a.txt")
    fork = source.fork("fork")
    desk.put("a.txt", second)
    assert mode_of(source.read("a.txt")) != "unchanged"
    desk.put("a.txt", first)
    assert mode_of(fork.read("a.txt")) == "unchanged"
    source.compact()
    assert mode_of(fork.read("a.txt")) == "unchanged"
    assert mode_of(source.read("a.txt")) == "full"


def test_matrix_17_another_process_finds_the_session_where_it_was_left(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    desk.session("s").read("a.txt")
    assert desk.session("s").read("a.txt").text == "[readcache: unchanged, 61 lines]"
    assert mode_of(desk.session("t").read("a.txt")) == "full"


def test_matrix_17_nothing_but_the_store_is_needed_to_resume(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    desk.session("s").read("a.txt")
    assert [path.name for path in desk.folder.iterdir()] == ["a.txt"]


def test_matrix_20_many_writers_of_the_same_content_store_it_once_and_whole(desk: Desk) -> None:
    content = numbered_text(500)
    desk.put("a.txt", content)
    sessions = [desk.session(f"s{n}") for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda session: session.read("a.txt"), sessions))
    assert {result.text for result in results} == {content}
    store = SqliteStore(desk.store)
    assert list(store.names()) == [ContentHash.of(content.encode())]
    assert store.get(ContentHash.of(content.encode())) == content.encode()
    store.close()


def test_matrix_22_a_read_called_off_while_it_compares_is_off_and_changes_nothing(desk: Desk) -> None:
    class OnceStored:
        """Set as soon as the store is asked for the earlier version."""

        def __init__(self) -> None:
            self.asked = 0

        def is_set(self) -> bool:
            self.asked += 1
            return self.asked > 3

    desk.put("a.txt", numbered_text(1600, "one"))
    session = desk.session()
    session.read("a.txt")
    before = session.leaf
    desk.put("a.txt", numbered_text(1600, "two"))
    result = session.read("a.txt", signal=OnceStored())
    assert (result.text, result.is_error, dict(result.details)) == ("Operation aborted", True, {})
    assert session.leaf == before
    assert mode_of(desk.session().read("a.txt")) == "baseline_fallback"


def test_matrix_22_a_read_called_off_before_it_begins_reads_nothing(desk: Desk) -> None:
    signal = threading.Event()
    signal.set()
    desk.put("a.txt", numbered_text(10))
    result = desk.session().read("a.txt", signal=signal)
    assert (result.text, result.is_error) == ("Operation aborted", True)


def test_matrix_23_images_and_binaries_pass_through(desk: Desk) -> None:
    desk.put("a.png", PNG)
    desk.put("a.bin", bytes.fromhex("fffe00f8"))
    session = desk.session()
    for _ in range(2):
        picture = session.read("a.png")
        assert picture.text == "Read image file [image/png]"
        assert (picture.images[0].media_type, dict(picture.details)) == ("image/png", {})
        binary = session.read("a.bin")
        assert (binary.text, dict(binary.details)) == ("\ufffd\ufffd\0\ufffd", {})
    assert session.leaf is None
    store = SqliteStore(desk.store)
    assert list(store.names()) == []
    store.close()


def test_matrix_24_truncation_is_told_as_the_host_tells_it(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(2200))
    result = desk.session().read("a.txt")
    assert mode_of(result) == "full"
    truncation = result.details["truncation"]
    assert isinstance(truncation, dict)
    assert (truncation["truncated"], truncation["truncatedBy"], truncation["outputLines"]) == (True, "bytes", 1494)
    assert result.text == truncation["content"] + (
        "\n\n[Showing lines 1-1494 of 2201 (50.0KB limit). Use offset=1495 to continue.]"
    )


def test_matrix_24_a_cut_text_with_markers_in_it_still_tells_of_the_cut(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(2200))
    session = desk.session()
    session.read("a.txt:100-200")
    result = session.read("a.txt")
    assert mode_of(result) == "partly_known"
    assert result.text.endswith("Use offset=1495 to continue.]")
    truncation = result.details["truncation"]
    assert isinstance(truncation, dict)
    assert result.text.startswith(truncation["content"] + "\n\n[Showing lines")


def test_matrix_24_a_marker_tells_of_no_cut(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(2200))
    session = desk.session()
    session.read("a.txt")
    session.read("a.txt:1495-2201")
    result = session.read("a.txt")
    assert (mode_of(result), "truncation" in result.details) == ("unchanged", False)


def test_matrix_25_a_result_has_the_shape_of_the_hosts_own(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    session = desk.session()
    for _ in range(2):
        result = session.read("a.txt")
        assert isinstance(result.text, str)
        assert set(result.details) == {"readcache"}
        assert (result.is_error, result.images) == (False, ())
    error = session.read("missing.txt")
    missing = desk.folder / "missing.txt"
    assert error.text == f"ENOENT: no such file or directory, access '{missing}'"
    assert (error.is_error, dict(error.details)) == (True, {})


def test_matrix_26_the_tool_has_the_name_and_the_arguments_of_the_hosts_own(desk: Desk) -> None:
    assert READ.name == "read"
    assert {name: field["type"] for name, field in READ.schema["properties"].items()} == {
        "path": "string",
        "offset": "number",
        "limit": "number",
    }
    assert READ.schema["required"] == ["path"]
    desk.put("a.txt", numbered_text(20))
    result = READ.call(desk.session(), {"path": "a.txt", "offset": 3, "limit": 2}, None)
    assert result.text.startswith("line 3 :: original text payload\nline 4 :: original text payload\n\n[17 more lines")


def test_matrix_27_a_refresh_is_journaled_and_the_next_read_shows_the_text(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    session = desk.session()
    session.read("a.txt")
    assert session.refresh("a.txt").text == "[readcache-refresh] invalidated full scope for a.txt"
    assert session.leaf is not None
    body = session.journal.entry(session.leaf).body
    assert isinstance(body, NoteEntry)
    assert isinstance(body.note, ReadNote)
    assert isinstance(body.note.event, FileRefresh)
    assert mode_of(session.read("a.txt")) == "full"
    assert mode_of(session.read("a.txt")) == "unchanged"


def test_matrix_27_a_refresh_of_lines_shows_those_lines(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    session = desk.session()
    session.read("a.txt")
    result = session.refresh("a.txt", 10, 11)
    assert result.text == "[readcache-refresh] invalidated lines 10-20 for a.txt"
    shown = session.read("a.txt", 10, 11).text
    assert shown == "\n".join(numbered_text(60).split("\n")[9:20]) + (
        "\n\n[41 more lines in file. Use offset=21 to continue.]"
    )
    assert mode_of(session.read("a.txt:30-40")) == "unchanged_range"


def test_matrix_28_the_tool_refreshes_as_the_command_does(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    session = desk.session()
    session.read("a.txt")
    by_tool = REFRESH.call(session, {"path": "a.txt:10-20"}, None)
    assert by_tool == session.refresh("a.txt:10-20") == session.refresh("a.txt", 10, 11)
    assert mode_of(session.read("a.txt:10-20")) in ("full", "baseline_fallback")
    assert [tool.name for tool in TOOLS] == ["read", "readcache_refresh"]


@pytest.mark.parametrize(("offset", "limit"), [(None, None), (10, 11)])
def test_matrix_29_a_refresh_outlives_its_process(desk: Desk, offset: int | None, limit: int | None) -> None:
    desk.put("a.txt", numbered_text(60))
    session = desk.session("s")
    session.read("a.txt")
    session.refresh("a.txt", offset, limit)
    again = desk.session("s").read("a.txt", offset, limit)
    assert mode_of(again) in ("full", "baseline_fallback")
    assert mode_of(desk.session("s").read("a.txt", offset, limit)) in ("unchanged", "unchanged_range")


def test_the_store_can_be_read_by_its_user_alone(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    desk.session().read("a.txt")
    modes = {path.name: path.stat().st_mode & 0o077 for path in (desk.store.parent, *desk.store.parent.iterdir())}
    assert set(modes.values()) == {0}


def test_a_folder_may_be_named_as_the_store(tmp_path: Path) -> None:
    desk = Desk(tmp_path, tmp_path / "stores")
    desk.store.mkdir()
    desk.put("a.txt", numbered_text(60))
    desk.session().read("a.txt")
    assert mode_of(desk.session().read("a.txt")) == "unchanged"
    for engine in desk.engines:
        engine.close()
