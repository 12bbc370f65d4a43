"""`pagein peek` and `pagein ingest`, as a person or a script runs them."""

import json
import os
import subprocess
import sys

from tests.command_server import run_command
from tests.tools.recall_sessions import Room, long_text


def pagein(room: Room, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PAGEIN_STORE": str(room.store)}
    environment.pop("PAGEIN_SESSION", None)
    return run_command(*arguments, cwd=room.folder, env=environment)


def test_a_part_is_shown_with_its_hint_and_without_a_session_nothing_is_journaled(room: Room) -> None:
    session = room.session()
    [name] = room.paged(session, long_text("first"))
    done = pagein(room, "peek", name, "--length", "12")
    total = len(long_text("first"))
    expected = f"first line 1\n[Showing 0\u201312 of {total} chars. Use offset=12 to continue.]\n"
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, expected, b"")
    assert pagein(room, "peek", name, "--line", "2", "--lines", "1").stdout.startswith(b"first line 2 of the output\n")
    assert room.session().recalls.holdings.recalls == 0
    assert pagein(room, "peek", name, "-s", "main", "--length", "12").stdout.decode() == expected
    assert room.session().recalls.holdings.recalls == 1


def test_a_shell_sees_a_part_without_the_second_in_which_the_engine_starts(room: Room) -> None:
    [name] = room.paged(room.session(), long_text("first"))
    main = "import atexit, sys; atexit.register(lambda: print(*sys.modules)); from pagein.cli.cli import main; main()"
    command = (sys.executable, "-c", main, "peek", name, "--store", str(room.store), "--workspace", str(room.folder))
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own
    shown, _, loaded = done.stdout.rstrip().rpartition("\n")
    assert shown.startswith("first line 1 of the output\n")
    assert "pagein.store.sqlite.sqlite_store" in loaded.split()
    assert {"pagein.engine.engine", "pagein.engine.session", "pagein.workspace"}.isdisjoint(loaded.split())


def test_a_part_from_the_top_tells_how_to_see_the_place_of_an_edit(room: Room) -> None:
    [name, short] = room.paged(room.session(), long_text("first", 200), long_text("second"))
    hint = "[--around TEXT shows the lines around a text to edit.]"
    assert pagein(room, "peek", name).stdout.decode().endswith(f"Use offset=2000 to continue.]\n{hint}\n")
    assert hint not in pagein(room, "peek", short).stdout.decode()
    placed = pagein(room, "peek", name, "--around", "first line 150 of")
    assert placed.stdout.startswith(b"first line 130 of the output\n")
    assert hint not in placed.stdout.decode()


def test_peek_prints_a_whole_text_byte_for_byte(room: Room) -> None:
    text = long_text("first") + "caf\u00e9 \ud800\r\nno end of line"
    [name] = room.paged(room.session(), text)
    done = pagein(room, "peek", name, "--all")
    assert done.stdout == text.encode("utf-8", "surrogatepass")


def test_json_holds_the_answer_and_nothing_else(room: Room) -> None:
    [name] = room.paged(room.session(), long_text("first"))
    told = json.loads(pagein(room, "peek", name, "--offset", "6", "--length", "4", "--json").stdout)
    assert told["details"]["next"] == {"offset": 10}
    assert told["text"].startswith("line\n[Showing 6")
    assert not told["is_error"]


def test_a_missing_object_ends_with_status_2_and_the_reason(room: Room) -> None:
    room.paged(room.session(), long_text("first"))
    for arguments in (["pg-00000000-00000000"], ["pg-00000000-00000000", "-s", "main"]):
        done = pagein(room, "peek", *arguments)
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"never existed in this store" in done.stderr
    assert (
        b"not both"
        in pagein(room, "peek", room.paged(room.session(), long_text("x"))[0], "--line", "1", "--offset", "2").stderr
    )


def test_files_are_ingested_and_found_by_the_session(room: Room) -> None:
    room.put("src/a.py", "needle = 1\n")
    room.put(".env", "KEY=1")
    done = pagein(room, "ingest", "src", ".env", "-s", "main")
    told = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert "src/a.py" in told
    assert "Skipped 1 files: .env (excluded)" in told
    again = json.loads(pagein(room, "ingest", "src", "-s", "main", "--json").stdout)
    assert [one["known"] for one in again["details"]["files"]] == [True]
    assert room.session().recalls.holdings.count == 1
    nothing = pagein(room, "ingest", "*.rs", "-s", "main")
    assert (nothing.returncode, nothing.stdout) == (2, b"")
    assert b"No files matched the provided paths." in nothing.stderr


def test_stats_tell_of_a_session_that_is_kept_and_of_no_other(room: Room) -> None:
    room.paged(room.session(), long_text("first"))
    done = pagein(room, "stats", "-s", "main", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["details"]["epochs"], told["details"]["stubs"]) == (0, 1, 1)
    assert pagein(room, "stats", "-s", "main").stdout.startswith(b"RLM Status: ON\nStore objects: 1\n")
    missing = pagein(room, "stats", "-s", "other")
    assert missing.returncode == 2
    assert b"other" in missing.stderr


def test_status_counts_the_recalls_of_every_session_beside_the_stress_model(room: Room) -> None:
    session = room.session()
    first, _ = room.paged(session, long_text("first"), long_text("second"))
    pagein(room, "peek", first, "-s", "main", "--length", "12")
    told = json.loads(pagein(room, "status", "--recalls", "--json", "--url", "http://127.0.0.1:9").stdout)
    evicted = told["recalls"]["evicted"]
    assert (evicted["absent"], evicted["recalled"]) == (2, 1)
    assert (
        "2 evicted texts: 1 (50 %) recalled by the model"
        in pagein(room, "status", "--recalls", "--url", "http://127.0.0.1:9").stdout.decode()
    )
    assert "recalls" not in json.loads(pagein(room, "status", "--json", "--url", "http://127.0.0.1:9").stdout)


def test_status_tells_of_a_missing_store_though_recalls_were_asked_for(room: Room) -> None:
    done = pagein(room, "status", "--recalls", "--url", "http://127.0.0.1:9", "--store", "missing.db")
    assert done.returncode == 0
    assert b"there is no store at" in done.stdout
