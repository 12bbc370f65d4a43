"""`pagein symbols`, run as a person runs it."""

import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Ran

from pagein.errors import BadSetting
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.workspace.symbols.grammars import check_grammars, load_grammar
from pagein.workspace.symbols.languages import LANGUAGES

Run = Callable[..., Ran]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    (made / "src").mkdir(parents=True)
    (made / "src" / "app.py").write_text("import os\n\nclass Server:\n    def start(self): return stop()\n")
    (made / "src" / "more.py").write_text(
        "from app import Server\n\ndef stop(): pass\n\ndef start(): Server().start()\n"
    )
    (made / ".env.py").write_text("def secret(): pass\n")
    return made


def test_the_files_of_the_workspace(run: Run, folder: Path) -> None:
    done = run("symbols", cwd=folder)
    head, first, second, scan, note = (line.split() for line in done.out.rstrip().split("\n"))
    assert head == ["file", "language", "definitions", "refs", "in", "refs", "out"]
    assert sorted((first[0], second[0])) == ["src/app.py", "src/more.py"]
    assert (
        " ".join(scan) == "# 2 files with symbols (2 parsed now), 0 failed, 0 in other languages, 1 excluded, 0 ignored"
    )
    assert "approximate" in note


def test_folders_of_other_peoples_code_are_listed_only_by_their_own_name(run: Run, folder: Path) -> None:
    for place in ("vendor/lib", "dist"):
        (folder / place).mkdir(parents=True)
        (folder / place / "app.py").write_text("class Server:\n    def start(self): return 1\n")
    out = run("symbols", cwd=folder).out
    assert "vendor" not in out.partition("#")[0]
    assert "# 2 files in vendor, node_modules or dist left out; name such a folder to list it\n" in out
    told = json.loads(run("symbols", "--json", cwd=folder).out)
    assert ([one["path"] for one in told["files"]], told["left_out"]) == (["src/app.py", "src/more.py"], 2)
    named = json.loads(run("symbols", "vendor/lib", "--json", cwd=folder).out)
    assert ([one["path"] for one in named["files"]], named["left_out"]) == (["vendor/lib/app.py"], 0)
    assert "src/app.py:4-4 method Server.start" in run("symbols", "Server.start", cwd=folder).out
    assert "dist/app.py:2-2 method" in run("symbols", "Server.start", "--path", "dist", cwd=folder).out
    (folder / "pagein.toml").write_text('guard_folders = "off"\n')
    assert json.loads(run("symbols", "--json", cwd=folder).out)["left_out"] == 0


def test_the_definitions_of_a_file(run: Run, folder: Path) -> None:
    rows = run("symbols", folder / "src" / "app.py", "-w", folder).out.split("\n")
    assert rows[1].split() == ["3-4", "class", "2", "Server", "class", "Server"]
    assert rows[2].split() == ["4-4", "method", "1", "Server.start", "def", "start(self)"]


def test_a_tree(run: Run, folder: Path) -> None:
    out = run("symbols", "src", "--tree", "--question", "server", cwd=folder).out
    assert "src/app.py <-2 ->1\n  imports os\n  3: class Server\n    4: def start(self)\n" in out


def test_a_definition_and_several(run: Run, folder: Path) -> None:
    out = run("symbols", "Server.start", "--context", cwd=folder).out.split("\n")
    assert out[0] == "src/app.py:4-4 method Server.start, 1 references (by name)"
    assert [line.split()[0] for line in out[1:4]] == ["1", "3", "4"]
    found = json.loads(run("symbols", "start", "--json", cwd=folder).out)
    assert [one["id"] for one in found["candidates"]] == ["src/app.py#Server.start", "src/more.py#start"]
    assert "start may mean 2 definitions" in run("symbols", "start", cwd=folder).out
    one = json.loads(run("symbols", "start", "--path", "src/more.py", "--json", cwd=folder).out)
    assert (one["kind"], one["first"], one["text"]) == ("definition", 5, "def start(): Server().start()")


def test_json_has_all(run: Run, folder: Path) -> None:
    found = json.loads(run("symbols", "--json", "--characters", "5000", cwd=folder).out)
    assert (found["kind"], found["is_whole"], found["total"], found["scan"]["excluded"]) == ("map", True, 2, 1)
    assert {name for file in found["files"] for one in file["definitions"] for name in [one["qualified"]]} == {
        "Server",
        "Server.start",
        "stop",
        "start",
    }


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("Serverr",), "nothing is defined as 'Serverr'; similar names: Server (2 files were looked at)"),
        (("secret",), "nothing is defined as 'secret' (2 files were looked at)"),
        (("src/nothing.py",), "no such file or folder: src/nothing.py"),
        (("..",), "is outside of the workspace"),
        (("Server", "--tree"), "--tree, --question and --characters are about files"),
        (("src", "--context"), "--path and --context go with the name of a definition"),
        (("--tree", "--json"), "give one of them"),
        (("Server", "--path", "[z-a]"), "not a glob"),
        ((".env.py",), "no symbols in .env.py"),
    ],
)
def test_what_cannot_be_answered_is_told(run: Run, folder: Path, arguments: tuple[str, ...], reason: str) -> None:
    done = run("symbols", *arguments, cwd=folder)
    assert (done.status, done.out) == (2, "")
    assert reason in done.err


def test_symbols_are_kept_in_the_store_if_there_is_one(run: Run, folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.pagein"
    assert json.loads(run("symbols", "--json", "--store", store, cwd=folder).out)["scan"]["parsed"] == 2
    assert not store.exists()
    with contextlib.closing(SqliteStore(store)) as made:
        made.put(b"a store exists once something is in it")
    parsed = [
        json.loads(run("symbols", "--json", "--store", store, cwd=folder).out)["scan"]["parsed"] for _ in range(2)
    ]
    assert parsed == [2, 0]
    assert run("check", "--store", store, cwd=folder).status == 0
    assert run("gc", "--store", store, cwd=folder).status == 0
    assert json.loads(run("symbols", "--json", "--store", store, cwd=folder).out)["scan"]["files"] == 2


def test_without_the_extra_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    load_grammar.cache_clear()
    for act in (check_grammars, lambda: load_grammar("python")):
        with pytest.raises(BadSetting, match=r"pip install 'pagein\[symbols\]'"):
            act()


def test_one_missing_grammar_costs_its_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, LANGUAGES[0].module, None)
    load_grammar.cache_clear()
    check_grammars()
    with pytest.raises(BadSetting, match="pip install"):
        load_grammar(LANGUAGES[0].name)


def test_a_forgotten_name_is_kept_no_more(run: Run, folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.pagein"
    with contextlib.closing(SqliteStore(store)) as made:
        made.put(b"a store exists once something is in it")
    (folder / "src" / "own.py").write_text("def forgettable_name(): pass\n")
    run("symbols", "--store", store, cwd=folder)
    assert any(b"forgettable_name" in content for content in contents(store))
    assert run("forget", "forgettable_name", "--store", store, cwd=folder).status == 0
    found = json.loads(run("symbols", "forgettable_name", "--json", "--store", store, cwd=folder).out)
    assert found["path"] == "src/own.py"
    assert not any(b"forgettable_name" in content for content in contents(store))


def contents(store: Path) -> list[bytes]:
    with contextlib.closing(SqliteStore(store)) as kept:
        return [kept.get(name) for name in kept.names()]
