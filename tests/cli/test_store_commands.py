"""The commands that look at a store, run as a person runs them, on a real store."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from pagein.cli import commands_store, commands_versions
from pagein.errors import BadInput, PageinError
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, Origin, StoredObject
from pagein.model.references import Reference
from pagein.model.versions import Draft, Provenance, Version, Writer
from pagein.model.writes import Query, Write
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.tools.store_commands import missing_types

FILE, NOTE = "01890a5d-ac96-774b-bcce-b302099a8057", "01890a5d-ac96-774b-bcce-b302099a8058"
Run = Callable[..., Result]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A store with a file of three versions, a note that links to it, a tool call, and something that is gone."""
    path = tmp_path / "store.pagein"
    store = SqliteStore(path)
    for number, content in enumerate(("alpha\nneedle one\n", "alpha\nneedle two\n", "alpha\n"), start=1):
        file = Draft(id=FILE, type="file", content=content, metadata={"path": "/w/src/a.py", "file_type": "python"})
        store.write(Write(f"f{number}", file, 1_700_000_000.0 + number))
    note = Draft(
        id=NOTE,
        type="note",
        nickname="plan",
        content="see the needle\n\x1b[31mred",
        metadata={"path": "/w/plan.md", "links": [Reference(FILE), Reference("nobody")]},
        additional={"summary": "about a needle", "outline": {"parts": ["a"]}},
        provenance=Provenance("/w/plan.md", "human"),
    )
    store.write(Write("n", note, 1_700_000_100.0))
    call = Draft(
        id="toolu_1", type="toolcall", content="output\nof ls", metadata={"tool": "bash", "args": {"command": "ls"}}
    )
    store.write(Write("t", call, 1_700_000_200.0, writer=Writer(session="fix")))
    store.write(Write("g1", Draft(id="toolu_2", type="toolcall", content="x"), 1.0))
    store.write(Write("g2", Draft(id="toolu_2", type="toolcall", deleted=True), 2.0))
    output = b"paged out needle\nsecond line"
    name = ContentHash.of(output)
    origin = Origin("fix", "toolu_9")
    paged = ObjectId.of(name, origin, store.secret())
    stored = StoredObject(paged, name, "toolcall", "/w", origin, "bash: make", tokens=7, chars=len(output))
    assert store.put_objects([(stored, output)]) == frozenset()
    store.close()
    (tmp_path / "paged").write_text(str(paged))
    return path


@pytest.fixture
def paged(place: Path) -> str:
    """The id of what was paged out."""
    return place.with_name("paged").read_text()


@pytest.fixture
def run(place: Path) -> Run:
    app = typer.Typer()
    commands_store.add_to(app)
    commands_versions.add_to(app)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "--store", str(place)], env={"COLUMNS": "160"})

    return run


def answer(result: Result) -> Any:  # noqa: ANN401 - JSON
    assert result.exit_code == 0, result.output
    assert result.output.count("\n") == 1
    return json.loads(result.output)


# --- objects ---


def test_objects_are_listed_newest_first(run: Run) -> None:
    said = answer(run("objects", "--json"))
    assert [(one["id"], one["version"]) for one in said["objects"]] == [("toolu_1", 1), (NOTE, 1), (FILE, 3)]
    assert said["next"] is None
    assert said["objects"][2]["view"]["path"] == "/w/src/a.py"
    assert said["objects"][0]["session"] == "fix"
    shown = run("objects").output
    assert "/w/src/a.py" in shown
    assert 'bash {"command":"ls"}' in shown


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (["--type", "note"], [NOTE]),
        (["--type", "note", "--type", "file"], [NOTE, FILE]),
        (["--path", "src"], [FILE]),
        (["--path", "*.md"], [NOTE]),
        (["--session", "fix"], ["toolu_1"]),
        (["--since", "1700000100"], ["toolu_1", NOTE]),
        (["--until", "2023-11-14T22:13:30+00:00"], [FILE]),
        (["--deleted"], ["toolu_1", NOTE, FILE, "toolu_2"]),
        (["--type", "chat"], []),
    ],
)
def test_objects_are_chosen(run: Run, asked: list[str], found: list[str]) -> None:
    assert [one["id"] for one in answer(run("objects", *asked, "--json"))["objects"]] == found


def test_a_session_is_named_by_its_beginning(run: Run, place: Path) -> None:
    store = SqliteStore(place)
    for number, name in enumerate(("fix-1", "fix-1/agent-a", "do-1", "do-2")):
        session = Draft(id=f"{FILE[:-1]}{number}", type="session", metadata={"session_id": name})
        store.write(Write(name, session, 5.0, writer=Writer(session=name)))
    store.close()
    assert [one["id"] for one in answer(run("objects", "--session", "fix-", "--json"))["objects"]] == [f"{FILE[:-1]}0"]
    assert {one["id"] for one in answer(run("search", "fix", "--session", "fix-", "--json"))["hits"]} == {
        f"{FILE[:-1]}0"
    }
    for asked in (["objects"], ["search", "x"]):
        assert "several sessions: do-1, do-2" in str(run(*asked, "--session", "do").exception)


@pytest.mark.parametrize("asked", [["objects", "--type", "chat"], ["search", "nowhere"]])
def test_an_unknown_session_is_told_and_a_known_one_without_a_match_is_not(
    run: Run, place: Path, asked: list[str]
) -> None:
    with closing(SqliteStore(place)) as store:
        session = Draft(id=f"{FILE[:-1]}0", type="session", metadata={"session_id": "known"})
        store.write(Write("known", session, 5.0))
        store.write(
            Write("wrote", Draft(id="toolu_3", type="toolcall", content="y"), 6.0, writer=Writer(session="wrote"))
        )
    told = run(*asked, "--session", "nobody").exception
    assert isinstance(told, BadInput)
    assert "there is no session 'nobody' in this store; nearest are 'fix'" in str(told)
    for there in ("known", "fix", "wrote"):  # with an object of its own, with an evicted result, with a version
        assert run(*asked, "--session", there).exit_code == 0


def test_a_type_that_the_store_has_no_object_of_is_told(run: Run) -> None:
    for asked in (["objects", "--type", "nots"], ["search", "needle", "--type", "nots"]):
        assert "no object of the type 'nots'; it has file, note, toolcall" in run(*asked).stderr
    assert run("search", "nowhere", "--type", "note").stderr == ""


def test_a_missing_type_costs_one_look_at_all_objects(place: Path) -> None:
    with closing(SqliteStore(place)) as store:
        looks: list[int] = []
        objects = store.objects

        def looking(query: Query) -> Sequence[Version]:
            found = objects(query)
            looks.append(len(found))
            return found

        store.objects = looking  # type: ignore[method-assign]
        assert missing_types(store, ["file", "note"]) == ""
        assert looks.count(0) == 0
        assert missing_types(store, ["nots", "file"]).endswith("'nots'; it has file, note, toolcall")
        assert looks.count(0) == 1


def test_objects_come_in_pages(run: Run) -> None:
    first = answer(run("objects", "--limit", "2", "--json"))
    second = answer(run("objects", "--limit", "2", "--before", str(first["next"]), "--json"))
    assert [one["id"] for page in (first, second) for one in page["objects"]] == ["toolu_1", NOTE, FILE]
    assert f"--before {first['next']}" in run("objects", "--limit", "2").output
    pathed = answer(run("objects", "--limit", "1", "--path", "w", "--json"))
    assert [one["id"] for one in pathed["objects"]] == [NOTE]
    assert pathed["next"] is not None


def test_no_object_is_older_than_the_first(run: Run) -> None:
    assert run("objects", "--before", "0").exit_code == 2
    assert answer(run("objects", "--before", "1", "--json"))["objects"] == []


# --- history ---


def test_a_history_starts_without_what_follows_journals_and_what_searches(place: Path) -> None:
    main = "import atexit, sys; atexit.register(lambda: print(*sys.modules)); from pagein.cli.cli import main; main()"
    command = (sys.executable, "-c", main, "history", FILE, "--json", "--store", str(place))
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "pagein.store.sqlite.sqlite_store" in loaded
    unneeded = {"pagein.memory.indexer", "pagein.memory.session_index", "pagein.store.upkeep.rebuild"}
    assert {one for one in loaded if one.startswith("pagein.store.search")} | (loaded & unneeded) == set()


def test_a_history_has_every_version(run: Run) -> None:
    said = answer(run("history", FILE, "--json"))
    assert [(one["version"], one["chars"]) for one in said["versions"]] == [(3, 6), (2, 17), (1, 17)]
    shown = run("history", FILE).output
    assert "created" in shown
    assert "content" in shown
    assert "2023-11-14 22:13:23" in shown


def test_a_nickname_will_do_for_an_id(run: Run) -> None:
    assert answer(run("history", "plan", "--json"))["id"] == NOTE


# --- show ---


def test_content_is_printed_as_it_was_stored(run: Run) -> None:
    assert run("show", "plan").output == "see the needle\n\x1b[31mred"
    assert run("show", FILE, "--version", "1").output == "alpha\nneedle one\n"
    assert run("show", FILE, "--at", "1700000002").output == "alpha\nneedle two\n"
    assert run("show", "toolu_1", "--lines", "2-9").output == "of ls"
    assert run("show", "plan", "--field", "summary").output == "about a needle"
    assert json.loads(run("show", "plan", "--field", "outline").output) == {"parts": ["a"]}


def test_show_tells_what_is_known(run: Run) -> None:
    said = answer(run("show", "plan", "--json"))
    assert said["content"].startswith("see the needle")
    assert said["additional"] == ["outline", "summary"]
    assert said["provenance"]["generator"] == "human"
    assert [(link["path"], link["id"], link["resolved"]) for link in said["references"]] == [
        ("/metadata/links/0", FILE, True),
        ("/metadata/links/1", "nobody", False),
    ]
    leads, nowhere = said["references"]
    assert (leads["target"]["id"], leads["target"]["type"], leads["why"]) == (FILE, "file", None)
    assert (nowhere["target"], nowhere["why"]) == (None, "no such object")
    shown = run("show", "plan", "--metadata").output
    assert "/metadata/links/0 -> file " in shown
    assert "/metadata/links/1 -/-> nobody: no such object" in shown
    assert said["object_hash"] in shown


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["show", "nobody"], "no object has the id or nickname"),
        (["history", "nobody"], "no object has the id or nickname"),
        (["show", FILE, "--version", "9"], "its versions are 1 to 3"),
        (["show", FILE, "--at", "5"], "no version from before that time"),
        (["show", "plan", "--field", "nothing"], "it has content, outline, summary"),
        (["show", FILE, "--lines", "3-1"], "not a range of lines"),
        (["show", FILE, "--version", "1", "--at", "2h"], "in two ways"),
        (["objects", "--since", "next week"], "not a time"),
        (["search", "(?=a)", "-e"], "lookahead"),
        (["backlinks", "plan", "--pinned", "xyz"], "not a content hash"),
    ],
)
def test_a_missing_object_is_reported_with_a_reason(run: Run, asked: list[str], said: str) -> None:
    result = run(*asked)
    assert isinstance(result.exception, PageinError)
    assert said in str(result.exception)


# --- search in the workspace ---


def test_search_of_code_prints_hits_as_grep_does(run: Run, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a.py").write_text("x = 1\ndef login():\n\x1b[31m\n")
    shown = run("search", "--code", "def login", "--workspace", str(tmp_path / "w"))
    assert shown.exit_code == 0
    assert "a.py  1\n     2: def login():\n" in shown.output
    assert "1 hit, 1 shown; 1 file searched by " in shown.output
    assert "\x1b" not in run("search", "--code", "31m", "--workspace", str(tmp_path / "w")).output
    told = answer(run("search", "--code", r"LOGIN\(", "-e", "-i", "--workspace", str(tmp_path / "w"), "--json"))
    assert [(hit["path"], hit["line"], hit["text"]) for hit in told["hits"]] == [("a.py", 2, "def login():")]


def test_search_of_code_takes_a_literal_as_it_is(run: Run, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a.txt").write_text("see /usr/is\nuses\n")
    told = answer(run("search", "--code", "/usr/is", "--workspace", str(tmp_path / "w"), "--json"))
    assert [hit["line"] for hit in told["hits"]] == [1]


def test_search_of_code_in_a_session_counts_for_its_guards(run: Run, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a.py").write_text("needle\n")
    asked = ("search", "--code", "needle", "--workspace", str(tmp_path / "w"), "--session", "fix", "--json")
    counts = [answer(run(*asked))["meta"]["stabilization"]["metrics_snapshot"]["search_count"] for _ in range(2)]
    assert counts == [1, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--type", "file"], "--type is only valid for a search of the store"),
        (["-C", "2"], "--context is only valid for a search of the store"),
        (["-e", "(?=a)"], "lookahead"),
    ],
)
def test_what_a_search_of_code_does_not_take_is_named(
    run: Run, tmp_path: Path, options: list[str], message: str
) -> None:
    pattern = [] if "-e" in options else ["x"]
    refused = run("search", "--code", *pattern, *options, "--workspace", str(tmp_path)).exception
    assert isinstance(refused, PageinError)
    assert message in str(refused)


# --- search ---


def test_hits_are_shown_under_their_version(run: Run) -> None:
    shown = run("search", "needle", "-C", "1").output
    assert "/w/plan.md" in shown
    assert "v2 (not the newest), file, 2023-11-14 22:13:22" in shown
    assert "     2: needle two" in shown
    assert "     1- alpha" in shown
    assert "in summary" in shown
    assert "\x1b" not in run("search", "red").output


def test_search_answers_as_one_object(run: Run) -> None:
    said = answer(run("search", "NEEDLE", "-i", "--type", "file", "--versions", "all", "--json"))
    assert [(hit["version"], hit["line"], hit["text"]) for hit in said["hits"]] == [
        (2, 2, "needle two"),
        (1, 2, "needle one"),
    ]
    assert said["next"] is None
    assert not said["timed_out"]


def test_search_goes_on_from_page_to_page(run: Run) -> None:
    first = answer(run("search", "needle", "-n", "1", "--json"))
    second = answer(run("search", "needle", "-n", "9", "--next", first["next"], "--json"))
    fields = [hit["field"] for page in (first, second) for hit in page["hits"]]
    assert fields == ["content", "summary", "content", "content"]


def test_search_finds_within_objects_and_fields(run: Run) -> None:
    assert [hit["id"] for hit in answer(run("search", "needle", "--in", FILE, "--json"))["hits"]] == [FILE]
    assert len(answer(run("search", "needle", "--field", "summary", "--json"))["hits"]) == 1
    assert answer(run("search", "ls", "--field", "metadata", "--json"))["hits"][0]["text"] == "args.command: ls"


def test_no_match_is_said(run: Run) -> None:
    assert "no matches" in run("search", "nothing of this kind").output


def test_a_search_leaves_an_index_for_the_next_one(run: Run, place: Path) -> None:
    assert answer(run("search", "no such text", "--json"))["looked_into"] == 8
    assert place.with_name("store.pagein-search").exists()
    assert answer(run("search", "no such text", "--json"))["looked_into"] == 0
    assert len(answer(run("search", "needle", "--json"))["hits"]) == 4


def test_evicted_results_are_found_and_shown(run: Run, paged: str) -> None:
    said = answer(run("search", "paged out needle", "--json"))
    [hit] = said["hits"]
    assert (hit["id"], hit["type"], hit["session"], hit["current"]) == (paged, "toolcall", "fix", True)
    assert (
        answer(run("search", "make", "--field", "metadata", "--json"))["hits"][0]["text"] == "description: bash: make"
    )
    assert [one["id"] for one in answer(run("search", "needle", "--session", "fix", "--json"))["hits"]] == [paged]
    assert [one["id"] for one in answer(run("search", "needle", "--in", paged, "--json"))["hits"]] == [paged]
    assert run("show", paged).output == "paged out needle\nsecond line"
    assert run("show", paged, "--lines", "2").output == "second line"
    assert "bash: make" in run("show", paged, "--metadata").output
    assert answer(run("show", paged, "--json"))["chars"] == 28


# --- backlinks ---


def test_backlinks_tell_who_refers_to_an_object(run: Run) -> None:
    said = answer(run("backlinks", FILE, "--json"))
    assert [(one["id"], one["place"], one["reference"]["id"]) for one in said["backlinks"]] == [
        (NOTE, "/metadata/links/0", FILE)
    ]
    assert [one["id"] for one in answer(run("backlinks", "nobody", "--json"))["backlinks"]] == [NOTE]
    assert "plan.md" in run("backlinks", FILE).output
    assert "nothing refers to toolu_1" in run("backlinks", "toolu_1").output


# --- the store that is named ---


def test_a_missing_store_is_named(tmp_path: Path) -> None:
    app = typer.Typer()
    commands_store.add_to(app)
    commands_versions.add_to(app)
    result = CliRunner().invoke(app, ["objects", "--store", str(tmp_path / "none.pagein")])
    assert "none.pagein" in str(result.exception)
    assert not (tmp_path / "none.pagein").exists()


def test_history_and_objects_name_the_command_for_an_evicted_result(run: Run, paged: str) -> None:
    told = run("history", paged)
    assert isinstance(told.exception, PageinError)
    assert f"`pagein show {paged}` prints it" in str(told.exception)
    assert "`pagein search`" in run("objects", "--type", "chat").stdout


@pytest.mark.parametrize(
    "arguments", [("objects", "--limit"), ("objects", "--before"), ("show", NOTE, "--version")], ids=" ".join
)
def test_a_number_beyond_all_stores_is_refused(run: Run, arguments: tuple[str, ...]) -> None:
    assert run(*arguments, "9" * 26).exit_code == 2


def test_a_search_in_an_object_takes_every_name_that_show_takes(run: Run) -> None:
    for pattern, names in (("needle two", (FILE, "a.py", "/w/src/a.py")), ("the needle", (NOTE, "plan"))):
        found = [answer(run("search", pattern, "--in", name, "--json"))["hits"] for name in names]
        assert found[0]
        assert all(one == found[0] for one in found)


@pytest.mark.parametrize("option", ["--in", "--chat"])
@pytest.mark.parametrize("name", ["bogus", "pg-00000000-00000000", "01"])
def test_a_search_in_what_the_store_does_not_have_is_refused(run: Run, option: str, name: str) -> None:
    refused = run("search", "needle", option, name).exception
    assert isinstance(refused, PageinError)
    assert f"no object has the id or nickname '{name}'" in str(refused)
    assert ("a beginning needs 4 characters or more" in str(refused)) == (len(name) < 4)


def test_the_error_of_a_store_that_cannot_be_read_is_told_once(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as app:
        app.execute("CREATE TABLE user (name)")
    asked = [sys.executable, "-m", "pagein", "objects", "--store", str(other)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603 - the program itself
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "pagein: other.db is a SQLite file, but not a store of pagein; choose another path\n"
