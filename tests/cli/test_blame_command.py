"""`pagein blame`, run as a person runs it."""

import gc
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Ran
from tests.tools.made_memory import MadeSession
from tests.tools.remembered_files import RememberedFile, remembered_file

from pagein.cli.archive_access import in_archive
from pagein.store.sqlite.sqlite_store import SqliteStore

Run = Callable[..., Ran]


@pytest.fixture
def file(tmp_path: Path) -> RememberedFile:
    made = remembered_file(tmp_path)
    made.works("0193f00d-session", "claude-code", "claude-opus-4-6")
    made.asks("0193f00d-session", 2, "please write   the first lines of the list")
    made.writes("0193f00d-session", 2, "alpha\nbeta\n")
    made.path.write_text("alpha\nbeta\ngamma\n")
    made.commits()
    made.store.close()
    return made


def asked(file: RememberedFile, *more: str) -> tuple[str, ...]:
    return "blame", str(file.path), "--store", str(file.path.parents[1] / "store.pagein"), *more


def test_a_table_like_that_of_git(run: Run, file: RememberedFile) -> None:
    done = run(*asked(file), COLUMNS="150")
    head, first, second, third, counts = (row.rstrip() for row in done.out.rstrip().split("\n"))
    assert head.split() == ["answer", "session", "turn", "when", "(UTC)", "request", "match", "commit", "line", "text"]
    assert first.startswith("agent   0193f00d 2")
    assert "please write the first li..." in first
    assert first.endswith("1 alpha")
    assert "please" not in second
    assert third.startswith("unknown ")
    assert counts == "3 lines: agent 2 (67 %), person 0 (0 %), mixed 0 (0 %), unknown 1 (33 %); 1 known version"


def test_no_garbage_is_looked_for_while_a_command_answers(file: RememberedFile) -> None:
    assert gc.isenabled()
    assert not in_archive(asked(file)[-1], None, lambda _: gc.isenabled())
    assert gc.isenabled()


def test_lines_as_json(run: Run, file: RememberedFile) -> None:
    found = json.loads(run(*asked(file, "--line", "2-3", "--json")).out)
    assert [(line["line"], line["answer"], line["match"]) for line in found["lines"]] == [
        (2, "agent", "exact"),
        (3, "unknown", "none"),
    ]
    assert found["sources"][0]["request"] == "please write   the first lines of the list"


def test_the_formats_of_others(run: Run, file: RememberedFile) -> None:
    record = json.loads(run(*asked(file, "--agent-trace")).out)
    assert record["files"][0]["conversations"][0]["contributor"]["model_id"] == "anthropic/claude-opus-4-6"
    note = run(*asked(file, "--git-ai")).out
    assert note.startswith("commit ")
    assert "\na.txt\n  s_" in note


def test_a_file_of_another_system_is_answered_from_the_store(run: Run, tmp_path: Path) -> None:
    far = tmp_path / "far.pagein"
    store = SqliteStore(far)
    made = MadeSession(store, "s", 1_700_000_000.0)
    made.thread().say("write it")
    made.threads[0].file("D:/shop/a.py", "a = 1\n", "write")
    store.close()
    for name in ("D:/shop/a.py", r"D:\shop\a.py"):
        found = json.loads(run("blame", name, "--store", far, "--json").out)
        assert (found["path"], len(found["lines"])) == ("D:/shop/a.py", 1)
    done = run("blame", "D:/shop/b.py", "--store", far)
    assert (done.status, str(tmp_path) in done.err) == (2, False)
    assert "D:/shop/b.py" in done.err


def test_a_file_is_known_by_a_link_to_its_folder_too(run: Run, file: RememberedFile, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file.path.parent)
    found = json.loads(run("blame", str(link / "a.txt"), *asked(file)[2:], "--json").out)
    assert found["counts"]["agent"] == 2


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--json", "--git-ai"), "one of them"),
        (("--line", "3-1"), "not a range"),
        (("--line", "9"), "has 3 lines"),
    ],
)
def test_what_cannot_be_answered_is_refused(run: Run, file: RememberedFile, more: tuple[str, ...], why: str) -> None:
    done = run(*asked(file, *more))
    assert done.status == 2
    assert why in done.err


def test_a_folder_and_a_binary_file_have_no_lines(run: Run, file: RememberedFile) -> None:
    store = str(file.path.parents[1] / "store.pagein")
    assert "is no file" in run("blame", str(file.path.parent), "--store", store).err
    file.path.write_bytes(b"\0")
    assert "is binary" in run(*asked(file)).err
