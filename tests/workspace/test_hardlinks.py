"""An excluded file under a second name that no link tells of."""

import os
from pathlib import Path

import pytest

import pagein
from pagein.policy.privacy.exclusions import EXCLUDED
from pagein.workspace.folder import Folder
from pagein.workspace.hardlinks import names_an_excluded
from pagein.workspace.tree import FileTree

SECRET = "TOKEN=correct-horse-battery-staple\n" * 40


def linked(folder: Path, name: str, other: str) -> Path:
    """A file with two names."""
    for one in (name, other):
        (folder / one).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(SECRET)
    (folder / other).hardlink_to(folder / name)
    return folder / other


@pytest.mark.parametrize("name", [".env", "deep/down/.env.local", "deep/server.pem"])
def test_a_hard_link_does_not_publish_the_secret_behind_it(tmp_path: Path, name: str) -> None:
    linked(tmp_path, name, "docs/notes.txt")
    assert Folder(str(tmp_path)).locate("docs/notes.txt").excluded
    assert not Folder(str(tmp_path), excluded=("*.secret",)).locate("docs/notes.txt").excluded
    (found,) = FileTree(str(tmp_path)).match(["docs"]).files
    assert found.excluded


def test_a_secret_of_the_home_folder_is_known_outside_of_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    linked(tmp_path, "home/.ssh/id_ed25519", "work/notes.txt")
    assert Folder(str(tmp_path / "work")).locate("notes.txt").excluded


def test_two_names_that_are_no_secret_are_none(tmp_path: Path) -> None:
    linked(tmp_path, "a.txt", "b.txt")
    (tmp_path / ".env").write_text("another file")
    assert not Folder(str(tmp_path)).locate("b.txt").excluded
    assert not Folder(str(tmp_path)).locate("nothing.txt").excluded


def test_a_search_that_would_take_too_long_errs_on_the_side_of_keeping(tmp_path: Path) -> None:
    other = linked(tmp_path, "a.txt", "b.txt")
    for number in range(20):
        (tmp_path / f"{number}.txt").write_text("")
    assert names_an_excluded(str(other), str(tmp_path), EXCLUDED, most=10)
    assert not names_an_excluded(str(tmp_path / "1.txt"), str(tmp_path), EXCLUDED, most=0)


def test_a_read_of_a_hard_link_is_shown_and_not_stored(tmp_path: Path) -> None:
    work = tmp_path / "work"
    linked(work, ".env", "notes.txt")
    os.utime(work / "notes.txt")
    with pagein.open(tmp_path / "store.db", workspace=work) as engine:
        session = engine.session("one", workspace=work)
        assert session.read("notes.txt").text == SECRET
        assert dict(session.read("notes.txt").details) == {}
        assert "correct-horse" not in repr(list(session.journal))
    for file in tmp_path.glob("store.db*"):
        assert b"correct-horse" not in file.read_bytes()
