"""The commands about sessions, chats and versions, run as a person runs them, on a real store."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.tools.made_memory import HOUR, MadeSession, file_id
from typer.testing import CliRunner, Result

from pagein.cli import commands_sessions, commands_store, commands_versions
from pagein.errors import PageinError
from pagein.model.versions import Draft, Provenance
from pagein.store.sqlite.sqlite_store import SqliteStore

Run = Callable[..., Result]
MONDAY, TUESDAY = 1_763_000_000.0, 1_763_086_400.0
MAIN = "3f2a9c1e-7b40-4c55-9d1e-000000000001"
OLD = "019a7b00-0000-7000-8000-00000000000a"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A store with a session of Tuesday, its sub-agent, and a session of Monday that was taken in later."""
    path = tmp_path / "store.pagein"
    store = SqliteStore(path)
    app = str(tmp_path / "w" / "src" / "app.py")

    tuesday = MadeSession(store, MAIN, TUESDAY, title="Fix the login", cwd=str(tmp_path / "w"))
    quota = tuesday.thread("quota")
    quota.say("quota")
    main = tuesday.thread("Fix the login")
    main.say("Fix the login\nand its test")
    read = main.file(app, "a = 1\nb = 2\n", "read")
    main.call("toolu_read", "Read", '{"file_path":"src/app.py"}', "a = 1\nb = 2\n", files={"read": read})
    main.answer("I see.", thinking="what about b?")
    main.say("Now change b")
    main.file(app, "a = 1\nb = 3\n", "edit")
    main.call("toolu_edit", "Edit", '{"new":"b = 3"}', "failed", status="fail", files={"edit": read})
    part = main.file(app + ".log", "error\n", "read", known="part", spans=[[40, 40], [90, 95]])
    main.call("toolu_part", "Bash", '{"command":"tail app.log"}', "error\n", files={"read": part})
    main.answer("Done.\x1b[31m")
    sub = tuesday.thread("look around")
    sub.say("look around")
    for number in range(9):
        sub.call(f"toolu_sub{number}", "Grep", "{}", "")
    sub.answer("nothing")

    agent = MadeSession(store, f"{MAIN}/agent-1", TUESDAY + HOUR, title="Review", parent=MAIN)
    reviewer = agent.thread()
    reviewer.say("Review it")
    reviewer.answer("Fine.")

    monday = MadeSession(store, OLD, MONDAY, harness="codex", title="Write the app")
    first = monday.thread()
    first.say("Write the app")
    first.file(app, "a = 1\n", "write")
    first.call("call_1", "apply_patch", "{}", "ok", files={"write": read})
    first.answer("Written.")
    store.close()
    (tmp_path / "w" / "src").mkdir(parents=True)
    (tmp_path / "w" / "src" / "app.py").write_text("a = 1\nb = 4\n", encoding="utf-8")
    return path


@pytest.fixture
def run(place: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    app = typer.Typer()
    for commands in (commands_store, commands_sessions, commands_versions):
        commands.add_to(app)
    monkeypatch.chdir(place.parent / "w")

    def run(command: str, *arguments: str, columns: int = 250) -> Result:
        return CliRunner().invoke(app, [command, "--store", str(place), *arguments], env={"COLUMNS": str(columns)})

    return run


def answer(result: Result) -> Any:  # noqa: ANN401 - JSON
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)


# --- sessions ---


def test_sessions_are_listed_by_when_they_were_active(run: Run) -> None:
    said = answer(run("sessions", "--json"))
    assert [one["session"] for one in said["sessions"]] == [MAIN, OLD]
    newest = said["sessions"][0]
    assert (newest["title"], newest["agent"], newest["turns"], newest["threads"]) == (
        "Fix the login",
        "claude-code",
        2,
        3,
    )
    assert (newest["short"], newest["models"], newest["more"] if "more" in newest else said["more"]) == (
        "3f2a9c1e",
        ["claude-opus-4-6"],
        False,
    )
    assert newest["began"] == TUESDAY
    assert newest["at"] > TUESDAY
    shown = run("sessions").stdout
    assert "3f2a9c1e" in shown
    assert "Write the app" in shown


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (["--sub-agents"], [f"{MAIN}/agent-1", MAIN, OLD]),
        (["--agent", "codex"], [OLD]),
        (["--agent", "claude"], [MAIN]),
        (["--since", str(TUESDAY)], [MAIN]),
        (["--until", str(TUESDAY - 1)], [OLD]),
        (["--limit", "1"], [MAIN]),
        (["--agent", "pi"], []),
    ],
)
def test_sessions_are_chosen(run: Run, asked: list[str], found: list[str]) -> None:
    said = answer(run("sessions", *asked, "--json"))
    assert [one["session"] for one in said["sessions"]] == found
    assert said["more"] == ("--limit" in asked)


def test_a_sub_agent_behind_the_gateway_is_known_by_its_name_and_a_slash_alone_makes_none(
    place: Path, run: Run
) -> None:
    store = SqliteStore(place)
    for number, name in enumerate((f"{MAIN}/agent-2", "fix/login")):  # no journal of the gateway tells a parent
        thread = MadeSession(store, name, TUESDAY + (2 + number) * HOUR, title="Look").thread()
        thread.say("Look")
        thread.answer("Seen.")
    store.close()
    assert [one["session"] for one in answer(run("sessions", "--json"))["sessions"]] == ["fix/login", MAIN, OLD]
    all_of_them = answer(run("sessions", "--sub-agents", "--json"))["sessions"]
    assert {one["session"]: one["parent"] for one in all_of_them}[f"{MAIN}/agent-2"] == MAIN
    assert "(sub-agent) Look" in run("sessions", "--sub-agents").stdout


def test_a_filter_without_a_hit_tells_the_agents_that_there_are(run: Run) -> None:
    assert answer(run("sessions", "--agent", "nope", "--json")) == {
        "sessions": [],
        "more": False,
        "agents": ["claude-code", "codex"],
    }
    assert run("sessions", "--until", "5").stdout == "no session fits; there are sessions of claude-code, codex\n"
    assert answer(run("sessions", "--json"))["agents"] == []


def test_sessions_with_the_same_time_are_all_listed(tmp_path: Path, run: Run) -> None:
    store = SqliteStore(tmp_path / "same.pagein")
    for number in range(130):
        made = MadeSession(store, f"s{number}", TUESDAY)
        made.thread().say("hello")
    store.close()
    said = answer(run("sessions", "--json", "--limit", "1000", "--store", str(tmp_path / "same.pagein")))
    assert {one["session"] for one in said["sessions"]} == {f"s{number}" for number in range(130)}
    assert len(said["sessions"]) == 130
    assert (
        len(answer(run("sessions", "--json", "--limit", "3", "--store", str(tmp_path / "same.pagein")))["sessions"])
        == 3
    )


def test_a_folder_of_another_system_leaves_room_for_the_title(tmp_path: Path, run: Run) -> None:
    store = SqliteStore(tmp_path / "far.pagein")
    folder = r"D:\projects\.worktrees\a-branch-with-a-very-long-name-for-a-folder"
    MadeSession(store, "far", TUESDAY, title="Look at it", cwd=folder).thread().say("Look at it")
    store.close()
    shown = run("sessions", "--store", str(tmp_path / "far.pagein")).stdout
    assert "Look at it" in shown
    assert "D:" not in shown


def test_no_line_about_sessions_is_wider_than_a_narrow_terminal_without_need(run: Run, place: Path) -> None:
    with closing(SqliteStore(place)) as store:
        long = MadeSession(store, "9c41-long", TUESDAY + 9 * HOUR, title="Weigh all the parcels of a shop")
        for _ in range(2):
            long.thread("Weigh all the parcels of a shop").say("Weigh")
    for command in (["sessions", "--sub-agents"], ["objects"], ["backlinks", "app.py"]):
        assert max(map(len, run(*command, columns=40).stdout.splitlines())) <= 40
    head, about, *threads, _, _, _ = run("chat", "9c41-long", columns=40).stdout.splitlines()
    assert head == "claude-code 9c41-long  Weigh all the ..."
    assert about.startswith("chat 0")  # an id is never cut
    assert all(one.endswith(" Weigh all...") for one in threads)
    assert "Weigh all the parcels of a shop" in run("chat", "9c41-long", columns=80).stdout.splitlines()[0]


@pytest.mark.parametrize("width", [80, 100, 120])
def test_narrow_tables_keep_the_words(run: Run, place: Path, width: int) -> None:
    store = SqliteStore(place)
    made = MadeSession(
        store, "9c41-long", TUESDAY + 9 * HOUR, title="Weigh the parcels of a shop", model="a-model-of-a-long-name"
    )
    made.thread().say("Weigh the parcels, all of them")
    path = "/home/somebody/projects/a-shop-with-a-long-name/src/parcels/weight.py"
    name = made.threads[0].file(path, "w = 1\n", "read")
    made.threads[0].call("toolu_weight", "Read", json.dumps({"file_path": path}), "w = 1\n", files={"read": name})
    store.close()

    def shown(*command: str) -> str:
        lines = run(*command, columns=width).stdout.splitlines()
        assert max(map(len, lines[1:] if command[0] == "history" else lines)) <= width
        return "\n".join(lines)

    assert "9c41-long  claude-code" in shown("sessions")
    assert "Weigh the parcels of a shop" in shown("sessions")
    assert "Read .../src/parcels/wei" in shown("backlinks", "weight.py")
    assert "Weigh the parcel" in shown("history", ".../src/parcels/weight.py")
    assert ".../src/parcels/weight.py" in shown("objects", "--type", "file")
    assert "* Read .../src/parcels/weight.py  ok  toolu_weight" in run("chat", "9c41-long").stdout


def test_objects_come_by_their_times_from_page_to_page(run: Run) -> None:
    every = answer(run("objects", "--limit", "1000", "--json"))["objects"]
    times = [one["at"] for one in every]
    assert times == sorted(times, reverse=True)
    assert [one["sequence"] for one in every] != sorted((one["sequence"] for one in every), reverse=True)
    for size in (1, 3):
        found: list[str] = []
        more: list[str] = []
        while True:
            page = answer(run("objects", "--limit", str(size), "--json", *more))
            found += [one["id"] for one in page["objects"]]
            if page["next"] is None:
                break
            more = ["--before", str(page["next"])]
        assert found == [one["id"] for one in every]


def test_each_line_of_the_context_is_shown_once(run: Run, place: Path) -> None:
    store = SqliteStore(place)
    made = MadeSession(store, "s7", TUESDAY)
    made.thread().say("look")
    lines = [f"line {number}" + (" parcel" if number in (3, 5, 12) else "") for number in range(1, 15)]
    made.threads[0].file("/w/parcels.txt", "\n".join(lines), "read")
    store.close()
    shown = run("search", "parcel", "-C", "2", "--type", "file").stdout.splitlines()
    numbers = [int(row.split(":")[0].split("-")[0]) for row in shown if row.startswith("   ") and "line" in row]
    assert numbers == [*range(1, 8), *range(10, 15)]
    assert sum(row.lstrip().startswith(("3:", "5:", "12:")) for row in shown) == 3


def test_a_version_beside_itself_is_warned_of_once(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    result = run("diff", "app.py.log@1..1")
    assert (result.stderr + capfd.readouterr().err).count("is known in part") == 1


# --- chat ---


def test_the_chat_of_the_newest_session_is_the_default(run: Run) -> None:
    shown = run("chat").stdout
    assert "claude-code 3f2a9c1e-7b40  Fix the login" in shown
    assert "--- turn 1" in shown
    assert "> and its test" in shown
    assert "* Read" in shown
    assert "ok  toolu_read" in shown
    assert "fail  toolu_edit" in shown
    assert "what about b?" not in shown
    assert "\x1b" not in shown
    assert "what about b?" in run("chat", "--thinking").stdout


def test_the_main_conversation_is_the_first_that_calls_tools(run: Run) -> None:
    said = answer(run("chat", "--json"))
    assert (said["thread"], len(said["threads"])) == (2, 3)
    assert [turn["said"][0]["text"] for turn in said["turns"]] == ["Fix the login\nand its test", "Now change b"]
    calls = [step for turn in said["turns"] for step in turn["steps"] if step["kind"] == "call"]
    assert [(one["tool"], one["status"], one["object"]) for one in calls] == [
        ("Read", "ok", "toolu_read"),
        ("Edit", "fail", "toolu_edit"),
        ("Bash", "ok", "toolu_part"),
    ]
    assert answer(run("chat", "--thread", "3", "--json"))["title"] == "Fix the login"
    assert len(answer(run("chat", "--thread", "3", "--json"))["turns"]) == 1


def test_a_conversation_goes_on_in_the_threads_after_its_compactions(run: Run, place: Path) -> None:
    store = SqliteStore(place)
    made = MadeSession(store, "compacted-session", TUESDAY + 9 * HOUR)
    first = made.thread()
    first.say("Begin the work")
    first.call("toolu_first", "Bash", "{}", "ok")
    made.thread("title").say("Generate a title for this conversation")
    second = made.thread()
    second.say(
        "This session is being continued from a previous conversation that ran out of context. It was about work."
    )
    second.say("Go on")
    second.call("toolu_second", "Bash", "{}", "ok")
    store.close()
    said = answer(run("chat", "compacted", "--json"))
    assert [(turn["thread"], turn["turn"]) for turn in said["turns"]] == [(1, 1), (3, 1), (3, 2)]
    shown = run("chat", "compacted").stdout
    assert "Begin the work" in shown.partition("=== thread 3, after a compaction")[0]
    assert "> Go on" in shown.partition("=== thread 3, after a compaction")[2]
    assert "Generate a title" not in shown
    for asked in (["--thread", "1"], ["--turn", "1"], ["--as-of", str(TUESDAY + 20 * HOUR)]):
        assert {turn["thread"] for turn in answer(run("chat", "compacted", *asked, "--json"))["turns"]} == {1}
    assert {turn["thread"] for turn in answer(run("chat", "toolu_second", "--json"))["turns"]} == {3}


@pytest.mark.parametrize(
    ("asked", "turns"),
    [
        (["--turn", "2"], [2]),
        (["--turn", "1-2"], [1, 2]),
        (["--turn", "2-9"], [2]),
        (["3f2a9c1e"], [1, 2]),
        (["toolu_edit"], [2]),
        (["toolu_edit", "--turn", "1"], [1]),
        (["3f2a9c1e", "--as-of", str(TUESDAY + 9)], [1]),
        (["019a7b00-0000"], [1]),
    ],
)
def test_turns_are_chosen(run: Run, asked: list[str], turns: list[int]) -> None:
    assert [turn["turn"] for turn in answer(run("chat", *asked, "--json"))["turns"]] == turns


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["chat", "--turn", "9"], "the chat has 1 to 2"),
        (["chat", "--turn", "0"], "not a turn"),
        (["chat", "--thread", "4"], "the session has 1 to 3"),
        (["chat", "src/app.py.log@1", "--thread", "1"], "--thread chooses"),
        (["chat", "nobody"], "`pagein sessions` list what there is"),
        (["chat", "--as-of", "5"], "no version from before that time"),
        (["diff", "src/app.py.log"], "knows one text"),
        (["diff", "src/app.py@1..9"], "its versions are 1 to 3"),
        (["show", "src/app.py@1", "--as-of", "2h"], "so does an option"),
        (["show", "toolu_"], "may be one of several objects"),
    ],
)
def test_a_failure_says_what_to_do(run: Run, asked: list[str], said: str) -> None:
    result = run(*asked)
    assert isinstance(result.exception, PageinError)
    assert said in str(result.exception)


# --- versions ---


def test_a_history_tells_who_wrote_or_saw_which_version(run: Run) -> None:
    said = answer(run("history", "src/app.py", "--json"))
    told = [
        (one["version"], one["op"], one["session"], one["turn"], one["said"], one["known"]) for one in said["versions"]
    ]
    assert told == [
        (2, "edit", MAIN, 2, "Now change b", "whole"),
        (1, "read", MAIN, 1, "Fix the login and its test", "whole"),
        (3, "write", OLD, 1, "Write the app", "whole"),
    ]
    shown = run("history", "src/app.py").stdout
    assert "codex 019a7b00-0000" in shown
    assert "lines 40, 90-95" in run("history", "app.py.log").stdout
    assert answer(run("history", "app.py", "--limit", "1", "--json"))["more"]
    assert "more: --limit 2" in run("history", "app.py", "--limit", "1").stdout


@pytest.mark.parametrize("name", ["src/app.py", "./src/../src/app.py", "app.py", "w/src/app.py"])
def test_a_file_is_named_by_its_path_or_the_end_of_it(run: Run, name: str) -> None:
    assert run("show", name).stdout == "a = 1\nb = 3\n"
    assert run("show", f"{name}@1").stdout == "a = 1\nb = 2\n"
    assert run("show", name, "--as-of", str(TUESDAY - 1)).stdout == "a = 1\n"


def test_an_id_may_be_abbreviated(run: Run, place: Path) -> None:
    app = file_id(str(place.parent / "w" / "src" / "app.py"))
    assert run("show", app[:24]).stdout == "a = 1\nb = 3\n"
    assert run("show", "toolu_pa").stdout == "error\n"


def test_a_session_or_a_nickname_wins_over_the_beginning_of_an_id(run: Run, place: Path) -> None:
    store = SqliteStore(place)
    made = MadeSession(store, "018bcfe5-0000-session-named-like-a-file-id", TUESDAY - HOUR, title="Like an id")
    made.thread().say("hello")
    store.close()
    app = file_id(str(place.parent / "w" / "src" / "app.py"))
    assert app.startswith("018bcfe5")
    assert answer(run("chat", "018bcfe5", "--json"))["title"] == "Like an id"
    answer(run("name", "src/app.py", "019a7b00-nick", "--json"))
    assert isinstance(run("show", "019a7b00").exception, PageinError)  # a session and a nickname begin so
    assert "w/src/app.py" in run("history", "019a7b00-n").stdout


@pytest.mark.parametrize("field", ["last_path", "origin"])
def test_a_deleted_file_is_found_by_the_last_parts_of_its_path(run: Run, place: Path, field: str) -> None:
    store = SqliteStore(place)
    gone = str(place.parent / "w" / "lib" / "gone.py")
    made = MadeSession(store, "s9", TUESDAY)
    made.thread().say("delete it")
    made.threads[0].file(gone, "x = 1\n", "write")
    told = {"metadata": {"last_path": gone}} if field == "last_path" else {"provenance": Provenance(origin=gone)}
    made.put(Draft(id=file_id(gone), type="file", deleted=True, **told))
    store.close()
    assert run("show", "gone.py@1").stdout == "x = 1\n"
    assert run("show", "lib/gone.py@1").stdout == "x = 1\n"
    assert isinstance(run("show", "one.py@1").exception, PageinError)


def test_a_content_known_in_part_says_so(run: Run) -> None:
    result = run("show", "app.py.log")
    assert result.stdout == "error\n"
    assert "known in part: lines 40, 90-95 of the file" in result.stderr
    assert "`pagein chat" in run("show", "3f2a9c1e").stderr


def test_differences_are_shown_between_versions(run: Run, place: Path) -> None:
    last = run("diff", "src/app.py").stdout
    assert "--- a/src/app.py\t\n+++ b/src/app.py\t\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 3\n" in last
    assert "version 1 (" in last
    assert "+b = 3" in run("diff", "src/app.py@3").stdout
    assert "-b = 2" in run("diff", "src/app.py@1..3").stdout
    disk = answer(run("diff", "src/app.py@2..", "--json"))
    assert (disk["added"], disk["removed"], disk["new"]["version"]) == (1, 1, None)
    assert "+b = 4" in disk["diff"]
    assert "no difference" in run("diff", "src/app.py@2..2").stdout
    (place.parent / "w" / "src" / "app.py").unlink()
    assert "No such file" in str(run("diff", "src/app.py@2..").exception)


def test_a_last_line_end_that_no_read_shows_is_no_difference(run: Run, place: Path) -> None:
    store, path = SqliteStore(place), place.parent / "w" / "ends.py"
    made = MadeSession(store, "s8", TUESDAY)
    open_end = {"path": str(path), "op": "read", "known": "whole", "last_end": "unknown"}
    for text, told in (("x = 1\n", {"path": str(path)}), ("x = 2\n", {"path": str(path)}), ("x = 2", open_end)):
        made.put(Draft(id=file_id(str(path)), type="file", content=text, metadata=told))
    store.close()
    path.write_text("x = 2\n")
    last = answer(run("diff", "ends.py", "--json"))
    assert (last["old"]["version"], last["new"]["version"]) == (1, 2)
    assert answer(run("diff", "ends.py@3..", "--json"))["diff"] == ""
    assert answer(run("diff", "ends.py@1..3", "--json"))["diff"].splitlines()[3:] == ["-x = 1", "+x = 2"]


def test_backlinks_tell_the_turns_that_touched_a_file(run: Run) -> None:
    said = answer(run("backlinks", "src/app.py", "--json"))
    told = [
        (one["id"], one["reference"]["relation"], one["session"], one["turn"], one["status"])
        for one in said["backlinks"]
    ]
    assert told == [
        ("toolu_edit", "edit", MAIN, 2, "fail"),
        ("toolu_read", "read", MAIN, 1, "ok"),
        ("call_1", "write", OLD, 1, "ok"),
    ]
    shown = run("backlinks", "src/app.py").stdout
    assert "Now change b" in shown
    assert [one["turn"] for one in answer(run("backlinks", "toolu_read", "--json"))["backlinks"]] == [1]
    assert "more: --limit" in run("backlinks", "app.py", "--limit", "1").stdout


# --- names and views ---


@pytest.mark.parametrize("order", [("name", "src/app.py", "the-app"), ("view", "src/app.py", "path")])
def test_a_named_file_is_still_found_with_the_session_that_wrote_it(run: Run, order: tuple[str, ...]) -> None:
    answer(run(*order, "--json"))
    asked = ("search", "b = 3", "--session", MAIN, "--type", "file", "--versions", "current", "--json")
    assert [hit["path"][-10:] for hit in answer(run(*asked))["hits"]] == ["src/app.py"]


def test_a_nickname_is_good_wherever_an_id_is(run: Run) -> None:
    named = answer(run("name", "src/app.py", "the app", "--json"))
    assert (named["nickname"], named["was"], named["writer"]) == ("the app", None, "client")
    assert run("show", "the app").stdout == "a = 1\nb = 3\n"
    assert run("show", "the app@1").stdout == "a = 1\nb = 2\n"
    said = answer(run("history", "the app", "--json"))
    found = [(one["op"], one["session"], one["turn"]) for one in said["versions"]][:2]
    assert found == [("name", None, None), ("edit", MAIN, 2)], "no session gave the order"
    assert "is named 'app', until now 'the app'" in run("name", "the app", "app").stdout
    assert "has no nickname" in run("name", "app", "--remove").stdout
    assert isinstance(run("show", "the app").exception, PageinError)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["name", "app.py.log", "app"], "already means file"),
        (["name", "app.py.log", "src/app.py"], "already means file"),
        (["name", "app.py.log", "toolu_read"], "already means toolcall"),
        (["name", "app.py.log", MAIN], "already means session 'Fix the login'"),
        (["name", "app.py.log", "log@3"], "reads like a version"),
        (["name", "app.py.log", " log"], "not a nickname"),
        (["name", "nobody", "x"], "no object has the id"),
        (["name", "app"], "or --remove"),
        (["name", "app", "x", "--remove"], "or --remove"),
        (["view", "app", "path", "nothing"], "has no field 'nothing'; it has id, type"),
        (["view", "app", "path", "--default"], "or --default"),
    ],
)
def test_a_name_or_view_that_cannot_be_is_refused(run: Run, asked: list[str], said: str) -> None:
    assert run("name", "src/app.py", "app").exit_code == 0
    result = run(*asked)
    assert isinstance(result.exception, PageinError)
    assert said in str(result.exception)


def test_a_view_shows_the_chosen_fields(run: Run) -> None:
    default = list(answer(run("view", "app.py.log", "--json"))["view"])
    assert default[:3] == ["id", "type", "path"]
    assert answer(run("view", "app.py.log", "path,known", "op", "--json"))["view"] == {
        "path": answer(run("show", "app.py.log", "--json"))["path"],
        "known": "part",
        "op": "read",
    }
    assert "known  part" in run("view", "app.py.log").stdout
    assert list(answer(run("view", "app.py.log", "--default", "--json"))["view"]) == default
