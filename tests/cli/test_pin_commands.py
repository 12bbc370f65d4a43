"""The hand from the command line: another process on a session that is running."""

import json
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest
from tests.command_server import run_text_command
from tests.engine.window.sized_sessions import ASK, PRICED, begun, body, ids, says, shown, spoken, turn, whole

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.errors import BadInput
from pagein.model.cache_notes import CacheMissNote
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.tools.pin_commands import departures, existing_session

SETTINGS = Settings(PRICED)


def opened(folder: Path) -> Engine:
    return pagein.open(folder / "store.db", workspace=folder, settings=SETTINGS)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    said = [*arguments, "--store", str(folder / "store.db"), "--workspace", str(folder)]
    return run_text_command(*said, env={**os.environ, "COLUMNS": "100"})


def told(folder: Path, *arguments: str) -> dict[str, object]:
    done = run(folder, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def test_a_hand_is_laid_on_a_running_session_from_another_process(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine)
        assert told(tmp_path, "pin", "one", "a")["target"] == "a"
        told(tmp_path, "drop", "one", "d", "--now")
        says(session, turn("f"))
        assert "a" in whole(session)
        assert not {"b", "d"} & whole(session)
        told(tmp_path, "restore", "one", ids(session)["b"], "--now")
        told(tmp_path, "pin", "one", "--text", "Never touch the migrations.")
        says(session, turn("g"))
        assert shown(session)["b"] == body("b")
        assert any("Never touch the migrations." in text for text in spoken(session))
        epochs = told(tmp_path, "window", "one", "--why")["epochs"]
        assert isinstance(epochs, list)
        assert ids(session)["d"] in {one["id"] for one in epochs[1]["left"]}
        assert all(one["tool"] and one["what"] for one in epochs[1]["left"]), "a person knows what left"
        assert (epochs[1]["reason"], epochs[0]["back"]) == ("the user's word", ["b"])
        assert departures(session)["text"].splitlines()[0].endswith("left, 1 came back")
        told(tmp_path, "unpin", "one", "a")
        told(tmp_path, "veto", "one", "f")
        told(tmp_path, "epoch", "one")
        says(session, turn("h"), turn("i"), turn("j"))
        assert "f" in whole(session)
        assert "a" not in whole(session)


def test_a_session_is_whole_that_is_opened_while_its_agent_stores_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent stores a call between the two questions that another process asks of the journal."""
    with opened(tmp_path) as running, opened(tmp_path) as other:
        session = begun(running)
        journals = other._journals
        assert journals is not None
        ask, left = journals.leaf, [turn("f")]

        def leaf(name: str) -> str | None:
            while left:
                says(session, left.pop())
            return ask(name)

        monkeypatch.setattr(journals, "leaf", leaf)
        found = existing_session(other, "one", lambda: ())
        assert [one.call_id for one in found.hand.window()] == [*"abcdef"]


def read_of(name: str, path: str) -> list[Message]:
    """A read of a file, with its result."""
    call = ToolCall(name, "Read", json.dumps({"file_path": path}))
    return [Message("assistant", (call,)), Message("tool", (ToolResult(name, body(name), "Read"),))]


def marks(folder: Path) -> dict[str, list[str]]:
    results = told(folder, "window", "one")["results"]
    assert isinstance(results, list)
    return {one["call_id"]: one["marks"] for one in results}


def test_a_file_is_pinned_by_its_name_in_every_result_that_shows_it(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine, "ab")
        says(session, read_of("first", "/w/src/app.py"), turn("c"), read_of("again", "/w/src/app.py"))
        says(session, read_of("other", "/w/lib/map.py"), turn("d"))
        done = run(tmp_path, "pin", "one", "app.py")
        assert done.stdout == "app.py stays in the window from now on: 2 results show it\n"
        assert marks(tmp_path) == {
            "a": [],
            "b": [],
            "first": ["pinned"],
            "c": [],
            "again": ["pinned"],
            "other": [],
            "d": [],
        }
        session.hand.epoch()
        says(session, turn("e"), turn("f"), turn("g"))
        assert {"first", "again"} <= whole(session)
        assert "other" not in whole(session)
        done = run(tmp_path, "pin", "one", "lib/map.py", "--now")
        back = "stays, and comes back into the window with the next epoch, which the next call opens"
        assert done.stdout == f"lib/map.py {back}: 1 result shows it\n"
        says(session, turn("h"))
        assert "other" in whole(session), "one that left comes back"
        now = run(tmp_path, "pin", "one", "h", "--now").stdout
        assert now == "h stays in the window from now on; the next call opens an epoch\n"
        told(tmp_path, "unpin", "one", "h")
        told(tmp_path, "unpin", "one", "src/app.py")
        assert {call for call, held in marks(tmp_path).items() if held} == {"other"}


def test_a_file_leaves_and_comes_back_by_its_name_and_the_rest_is_told(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine, "a")
        says(session, read_of("first", "/w/src/app.py"), turn("c"), read_of("again", "/w/src/app.py"), turn("d"))
        assert run(tmp_path, "drop", "one", "app.py", "--now").stdout == (
            "app.py leaves the window with the next epoch, which the next call opens: 2 results show it\n"
        )
        says(session, turn("e"))
        assert not {"first", "again"} & whole(session)
        assert run(tmp_path, "drop", "one", "app.py").returncode == 2, "both are out already"
        told(tmp_path, "restore", "one", "first", "--now")
        says(session, turn("f"))
        done = told(tmp_path, "restore", "one", "app.py", "--now")["text"]
        assert "1 result shows it. The same is not possible for 1 more: first is in the window as it is" in str(done)
        says(session, turn("g"))
        assert {"first", "again"} <= whole(session)
        told(tmp_path, "veto", "one", "app.py")
        assert [held for call, held in marks(tmp_path).items() if call in ("first", "again")] == [["vetoed"]] * 2


def test_the_window_tells_why_the_cache_was_missed_in_the_words_of_both(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine, "a")
        session.note(CacheMissNote("tools", "client", 4100, "the tools changed", "tools changed, 4000 tokens"))
        says(session, turn("b"))
    answer = told(tmp_path, "window", "one", "--why")
    assert isinstance(answer["misses"], list)
    assert [one["told"] for one in answer["misses"]] == ["tools changed, 4000 tokens"]
    assert "4,100 tokens; the tools changed; the provider says: tools changed, 4000 tokens" in str(answer["text"])


def test_a_name_of_several_files_pins_none_of_them(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine, "a")
        says(session, read_of("one", "/w/src/app.py"), read_of("two", "/w/tests/app.py"))
        done = run(tmp_path, "pin", "one", "app.py")
        assert done.returncode == 2
        assert "app.py names 2 files: /w/src/app.py, /w/tests/app.py; write more of the path" in done.stderr
        assert run(tmp_path, "pin", "one", "pp.py").returncode == 2, "the end of a path is whole names"
        assert not any(marks(tmp_path).values())


def test_one_session_is_switched_off_and_on_from_another_process(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine)
        assert run(tmp_path, "off", "--session", "one").stdout == "off for one, from its next call on\n"
        says(session, turn("f"))
        before = whole(session)
        session.hand.drop("d")
        session.hand.epoch()
        says(session, turn("g"), turn("h"))
        assert before <= whole(session)
        assert run(tmp_path, "on", "--session", "one").returncode == 0
        session.hand.epoch()
        says(session, turn("i"))
        assert "d" not in whole(session)


def test_the_beginning_of_a_name_is_enough_if_only_one_session_has_it(tmp_path: Path) -> None:
    names = ["one", "two-x", "two-y"]
    with opened(tmp_path) as engine:
        begun(engine, "a")
        assert existing_session(engine, "on", lambda: names).name == "one"
        with pytest.raises(BadInput, match=r"2 sessions of this store begin with 'two-': two-x, two-y; write more"):
            existing_session(engine, "two-", lambda: names)
        with pytest.raises(BadInput, match=r"those it holds: one, two-x, two-y$"):
            existing_session(engine, "three", lambda: names)


def test_the_window_is_listed_for_people_and_for_programs(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine, "ab")
        session.hand.pin("a")
        session.hand.say("be kind")
    answer = told(tmp_path, "window", "one")
    results = answer["results"]
    assert isinstance(results, list)
    assert [(one["call_id"], one["form"], one["marks"]) for one in results] == [
        ("a", "whole", ["pinned"]),
        ("b", "whole", []),
    ]
    lines = run(tmp_path, "window", "one").stdout.splitlines()
    assert lines[0].startswith("a  whole  ")
    assert "pinned" in lines[0]
    assert lines[2].startswith("text-")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("pin", "nobody", "a"), "there is no session 'nobody' in this store; those it holds: one"),
        (("pin", "one", "zzz"), "no tool result 'zzz'"),
        (("pin", "one"), "name an OBJECT or give --text"),
        (("pin", "one", "a", "--text", "x"), "name an OBJECT or give --text"),
        (("restore", "one", "a"), "nothing to restore"),
        (("restore", "one", "pg-00000000-00000000"), "never existed"),
        (("unpin", "one", "--text", "text-none"), "pinned: none"),
        (("pin", "one", "--text", "  "), "empty"),
    ],
)
def test_an_impossible_order_is_refused_with_a_reason(
    tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    with opened(tmp_path) as engine:
        begun(engine, "a")
    done = run(tmp_path, *arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [("window", "one"), ("pin", "one", "a"), ("reads", "--session", "one")],
    ids=["window", "pin", "reads"],
)
def test_a_pin_command_on_an_unknown_session_says_so_and_creates_no_store(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = run(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no store at" in done.stderr
    assert not list(tmp_path.iterdir())
    with opened(tmp_path) as engine:
        begun(engine, "a")
    done = run(tmp_path, *(argument.replace("one", "won") for argument in arguments))
    assert "there is no session 'won' in this store; those it holds: one" in done.stderr


def test_a_store_that_cannot_be_written_is_told_and_nothing_is_claimed(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        begun(engine, "a").append(ASK)
    (tmp_path / "store.db").write_bytes(b"this is no database" * 100)
    done = run(tmp_path, "pin", "one", "a")
    assert done.returncode == 2
    assert done.stderr.startswith("pagein: ")
    assert not done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("pin", "one", "--text", "be kind"),
        ("pin", "one", "a"),
        ("epoch", "one"),
        ("ingest", "a.txt", "--session", "one"),
    ],
    ids=["text", "result", "epoch", "ingest"],
)
def test_an_order_on_a_locked_store_fails_and_claims_nothing(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "a.txt").write_text("text\n")
    with opened(tmp_path) as engine:
        begun(engine, "a").append(ASK)
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    done = run(tmp_path, *arguments)
    other.close()
    assert (done.returncode, done.stdout) == (2, "")
    assert "locked" in done.stderr
