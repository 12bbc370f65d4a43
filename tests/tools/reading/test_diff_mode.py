"""`read` with mode=diff_preview: a file against what git keeps, against a stored version, against a proposed text."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tools.reading.reading_calls import error_of, guarded, meta_of, read
from tests.tools.recall_sessions import Room

from pagein.engine.reads.session_reads import ReadResult
from pagein.testing.desk import numbered_text

pytest.importorskip("pygit2")


def git(folder: Path, *arguments: str) -> str:
    options = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always")
    command = ["git", *options, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603 - git


@pytest.fixture
def repository(room: Room) -> Room:
    """A repository with a commit of a.txt, 60 lines."""
    git(room.folder, "init", "-q")
    room.put("a.txt", numbered_text(60))
    git(room.folder, "add", ".")
    git(room.folder, "commit", "-qm", "first")
    return room


def diff(told: ReadResult) -> str:
    """The diff in an answer, as `patch` reads it."""
    at = told.text.find("--- ")
    return told.text[at:] if at >= 0 else ""


def applied(folder: Path, old: str, patch: str) -> str:
    (folder / "old").write_bytes(old.encode())
    subprocess.run(["patch", "-s", "--binary", "old"], cwd=folder, input=patch.encode(), check=True)  # noqa: S607
    return (folder / "old").read_bytes().decode()


def test_a_change_against_each_state_of_git(repository: Room) -> None:
    base = git(repository.folder, "rev-parse", "HEAD")
    repository.put("a.txt", numbered_text(60).replace("line 30 ", "line thirty "))
    git(repository.folder, "add", ".")
    repository.put("a.txt", numbered_text(60).replace("line 30 ", "line thirty ").replace("line 50 ", "line fifty "))
    session = guarded(repository)
    head = read(session, "diff_preview", "a.txt")
    assert (meta_of(head)["against"], meta_of(head)["hunks"]) == ("HEAD", 2)
    assert "+line thirty " in head.text
    assert "+line fifty " in head.text
    index = read(session, "diff_preview", "a.txt", against="INDEX")
    assert (meta_of(index)["hunks"], meta_of(index)["added"], meta_of(index)["removed"]) == (1, 1, 1)
    assert index.details["location"] == {"file": "a.txt", "line": 47, "end_line": 53}
    assert diff(read(session, "diff_preview", "a.txt", against=f"commit:{base}")) == diff(head)
    assert diff(read(session, "diff_preview", "a.txt", against=f"commit:{base[:10]}")) == diff(head)
    same = read(session, "diff_preview", "a.txt", against="WORKTREE")
    assert (meta_of(same)["hunks"], same.text) == (
        0, "a.txt: nothing to compare. With against='WORKTREE' give a proposed text in 'content'.\n"
    )  # fmt: skip


def test_a_proposed_text_is_a_dry_run(repository: Room) -> None:
    text = numbered_text(60).replace("line 30 ", "line thirty ")
    told = read(guarded(repository), "diff_preview", "a.txt", against="WORKTREE", content=text)
    assert meta_of(told)["hunks"] == 1
    assert (repository.folder / "a.txt").read_text() == numbered_text(60)


def test_a_stored_version_is_a_base(repository: Room) -> None:
    session = guarded(repository)
    session.read("a.txt")
    session.keep()
    repository.put("a.txt", numbered_text(60).replace("line 7 ", "line seven "))
    found = next(one for one in session.objects.find() if one.type == "file")
    told = read(session, "diff_preview", "a.txt", against=f"snapshot:{found.id}@{found.number}")
    assert "+line seven " in told.text
    error = error_of(read(session, "diff_preview", "a.txt", against="snapshot:nobody@3"))
    assert error["code"] == "UNKNOWN_BASE"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (numbered_text(200), numbered_text(200).replace("line 3", "row 3").replace("line 17", "x")),
        ("a\nb\nc", "a\nb\nc\n"),
        ("a\r\nb\r\n", "a\r\nc\r\n"),
        ("", "a\n"),
        ("a\u2028b\n\x0cc\n", "a\u2028b\nd\n"),
    ],
)
def test_the_hunks_of_all_pages_are_the_whole_diff(room: Room, tmp_path: Path, old: str, new: str) -> None:
    git(room.folder, "init", "-q")
    room.put("a.txt", old)
    git(room.folder, "add", ".")
    git(room.folder, "commit", "-qm", "first", "--allow-empty")
    room.put("a.txt", new)
    session = guarded(room)
    hunks, labels, offset = "", "", 1
    while True:
        told = read(session, "diff_preview", "a.txt", offset=offset, max_preview_chars=2_500)
        text = diff(told)
        labels = "\n".join(text.split("\n")[:2]) + "\n"
        hunks += text[text.index("@@") :].split("[pagein: ")[0]
        if "next_offset" not in meta_of(told):
            break
        assert meta_of(told)["next_offset"] > offset
        offset = meta_of(told)["next_offset"]
    assert applied(tmp_path, old, labels + hunks) == new


def test_headers_of_all_hunks_come_first_and_no_hunk_is_torn(repository: Room) -> None:
    lines = numbered_text(400).split("\n")
    repository.put("a.txt", "\n".join(lines))
    git(repository.folder, "commit", "-qam", "longer")
    lines[::40] = ["x" * 300] * len(lines[::40])
    repository.put("a.txt", "\n".join(lines))
    told = read(guarded(repository), "diff_preview", "a.txt", max_preview_chars=3_000)
    assert len(told.text) <= 3_000
    meta = meta_of(told)
    assert meta["hunks"] == 11
    listed = re.findall(r"^(\d+)\. @@ .* @@ \+1 -[01]$", told.text, re.MULTILINE)
    assert listed == [str(number) for number in range(1, 12)]
    shown = re.findall(r"^@@ .* @@$", told.text, re.MULTILINE)
    assert meta["left_out"] == list(range(len(shown) + 1, 12))
    assert told.text.endswith(
        f"[pagein: hunks {len(shown) + 1}-11 of 11 left out. Use offset={len(shown) + 1} to continue.]\n"
    )
    assert (meta["preview_degraded"], meta["truncated"]) == (True, True)
    assert meta["next_calls"] == [
        {
            "tool": "read",
            "arguments": {"mode": "diff_preview", "target": "a.txt", "against": "HEAD", "offset": len(shown) + 1},
        }
    ]


def test_a_hunk_that_never_fits_is_named_with_its_lines(repository: Room) -> None:
    repository.put("a.txt", "".join(f"{number} {'x' * 80}\n" for number in range(500)))
    session = guarded(repository)
    told = read(session, "diff_preview", "a.txt", max_preview_chars=2_000)
    assert len(told.text) <= 2_000
    assert "hunk 1 has" in told.text
    assert "@@ -1,60 +1,500 @@" not in told.text, "the only hunk is not listed and not shown"
    arguments = meta_of(told)["next_calls"][0]["arguments"]
    assert (arguments["mode"], arguments["start_line"], arguments["end_line"]) == ("snippet", 1, 500)


def test_without_preview_only_statistics_are_told(repository: Room) -> None:
    repository.put("a.txt", numbered_text(60).replace("line 3", "row 3"))
    told = read(guarded(repository), "diff_preview", "a.txt", preview_mode="none")
    assert "+row 3" not in told.text
    assert told.text.startswith("a.txt: 2 hunks, +11 -11, from HEAD (")


def test_a_text_that_cannot_be_parsed_is_told_with_its_line(repository: Room) -> None:
    pytest.importorskip("tree_sitter")
    repository.put("a.py", "def f():\n    return 1\n\n\ndef g(:\n    return\n")
    told = read(guarded(repository), "diff_preview", "a.py")
    assert meta_of(told)["syntax_errors"][0]["line"] == 5
    assert "syntax: line 5: " in told.text
    assert meta_of(read(guarded(repository, name="b"), "diff_preview", "a.txt"))["syntax_errors"] is None
    repository.put("a.py", "def f():\n    return 1\n")
    assert meta_of(read(guarded(repository, name="c"), "diff_preview", "a.py"))["syntax_errors"] == []


# --- states of git that are no plain change


def test_new_and_deleted_files(repository: Room) -> None:
    repository.put("new.txt", "one\ntwo\n")
    session = guarded(repository)
    new = read(session, "diff_preview", "new.txt")
    assert "new file: HEAD (" in new.text
    assert diff(new).startswith("--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n")
    (repository.folder / "a.txt").unlink()
    gone = read(session, "diff_preview", "a.txt")
    assert "deleted file: it is not on the disk" in gone.text
    assert (meta_of(gone)["added"], meta_of(gone)["removed"]) == (0, 60)
    assert error_of(read(session, "diff_preview", "never.txt"))["code"] == "NOT_FOUND"


@pytest.mark.parametrize("against", ["HEAD", "INDEX"])
def test_a_renamed_file_is_compared_with_its_earlier_name(repository: Room, against: str) -> None:
    (repository.folder / "a.txt").unlink()
    repository.put("sub/b.txt", numbered_text(60).replace("line 30 ", "line thirty "))
    told = read(guarded(repository), "diff_preview", "sub/b.txt", against=against)
    assert "renamed from a.txt" in told.text
    assert diff(told).startswith("--- a/a.txt\n+++ b/sub/b.txt\n@@ -27,7 +27,7 @@")


def test_an_excluded_file_is_not_shown_as_the_earlier_name_of_another(repository: Room) -> None:
    repository.put(".env", "".join(f"SETTING_{number}=secret\n" for number in range(9)))
    git(repository.folder, "add", ".")
    git(repository.folder, "commit", "-qm", "by accident")
    text = (repository.folder / ".env").read_text()
    (repository.folder / ".env").unlink()
    repository.put("settings.txt", text.replace("SETTING_8=secret\n", ""))
    told = read(guarded(repository), "diff_preview", "settings.txt")
    assert "SETTING_8" not in told.text
    assert "renamed" not in told.text


def test_a_repository_without_a_commit(room: Room) -> None:
    git(room.folder, "init", "-q")
    room.put("a.txt", "one\n")
    told = read(guarded(room), "diff_preview", "a.txt")
    assert "HEAD (no commit yet)" in told.text
    assert "+one" in told.text


def test_a_changed_mode(repository: Room) -> None:
    (repository.folder / "a.txt").chmod(0o755)
    told = read(guarded(repository), "diff_preview", "a.txt")
    assert told.text.split("\n")[1] == "mode changed from 100644 to 100755"
    assert meta_of(told)["hunks"] == 0


def test_binary_files_are_said_to_differ(repository: Room) -> None:
    repository.put("a.bin", b"\0\1\2")
    git(repository.folder, "add", ".")
    git(repository.folder, "commit", "-qm", "binary")
    session = guarded(repository)
    assert "no differences" in read(session, "diff_preview", "a.bin").text
    repository.put("a.bin", b"\0\1\2\3")
    told = read(session, "diff_preview", "a.bin")
    assert "binary files differ: 3 bytes became 4 bytes" in told.text
    assert diff(told) == ""


def test_a_pointer_of_git_lfs_is_no_text_of_the_file(repository: Room) -> None:
    import hashlib

    content = b"large\n" * 100
    oid = hashlib.sha256(content).hexdigest()
    repository.put("big.dat", f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n")
    git(repository.folder, "add", ".")
    git(repository.folder, "commit", "-qm", "pointer")
    repository.put("big.dat", content)
    session = guarded(repository)
    assert (
        "a pointer to a large file (git-lfs); the file on the disk is the same"
        in read(session, "diff_preview", "big.dat").text
    )
    repository.put("big.dat", content + b"more\n")
    assert "the file on the disk is another" in read(session, "diff_preview", "big.dat").text


def test_a_submodule_is_told_by_its_commits(repository: Room, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "x.txt").write_text("x\n")
    git(other, "add", ".")
    git(other, "commit", "-qm", "one")
    git(repository.folder, "submodule", "add", "-q", str(other), "lib")
    git(repository.folder, "commit", "-qm", "with lib")
    session = guarded(repository)
    then = git(repository.folder / "lib", "rev-parse", "HEAD")
    assert "is a submodule, at the same commit as HEAD" in read(session, "diff_preview", "lib").text
    (repository.folder / "lib" / "x.txt").write_text("y\n")
    git(repository.folder / "lib", "commit", "-qam", "two")
    now = git(repository.folder / "lib", "rev-parse", "HEAD")
    told = read(session, "diff_preview", "lib")
    assert meta_of(told)["submodule"] == {"from": then, "to": now}
    assert error_of(read(session, "file", "lib"))["code"] == "IS_DIRECTORY"


def test_a_conflict_has_no_one_text_in_the_index(repository: Room) -> None:
    git(repository.folder, "checkout", "-qb", "side")
    repository.put("a.txt", "side\n")
    git(repository.folder, "commit", "-qam", "side")
    git(repository.folder, "checkout", "-q", "-")
    repository.put("a.txt", "main\n")
    git(repository.folder, "commit", "-qam", "main")
    with pytest.raises(subprocess.CalledProcessError):
        git(repository.folder, "merge", "side")
    session = guarded(repository)
    assert error_of(read(session, "diff_preview", "a.txt", against="INDEX"))["code"] == "UNMERGED"
    assert "+<<<<<<< HEAD" in read(session, "diff_preview", "a.txt").text


def test_line_ends_that_git_converts_are_no_difference(repository: Room) -> None:
    git(repository.folder, "config", "core.autocrlf", "true")
    repository.put("a.txt", numbered_text(60).replace("\n", "\r\n").replace("line 7 ", "line seven "))
    told = read(guarded(repository), "diff_preview", "a.txt")
    assert (meta_of(told)["added"], meta_of(told)["removed"]) == (1, 1)


def test_commits_that_do_not_exist_and_other_expressions_are_refused(repository: Room) -> None:
    session = guarded(repository)
    for name in ("0" * 40, "main", "HEAD~1", "zz", "../../x"):
        assert error_of(read(session, "diff_preview", "a.txt", against=f"commit:{name}"))["code"] == "UNKNOWN_BASE"


def test_an_object_that_was_not_fetched_is_no_crash(repository: Room) -> None:
    repository.put("a.txt", "changed\n")
    name = git(repository.folder, "rev-parse", "HEAD:a.txt")
    (repository.folder / ".git" / "objects" / name[:2] / name[2:]).unlink()
    error = error_of(read(guarded(repository), "diff_preview", "a.txt"))
    assert (error["code"], name in error["message"]) == ("UNKNOWN_BASE", True)


def test_files_that_are_too_large_are_not_compared(repository: Room) -> None:
    repository.put("big.txt", "x\n" * 9_000_000)
    assert error_of(read(guarded(repository), "diff_preview", "big.txt"))["code"] == "FILE_TOO_LARGE"


def test_without_a_repository_the_remedy_is_told(room: Room) -> None:
    room.put("a.txt", "x\n")
    error = error_of(read(guarded(room), "diff_preview", "a.txt"))
    assert error["code"] == "NO_REPOSITORY"
    assert "against='snapshot:" in error["message"]
    assert read(guarded(room, name="b"), "diff_preview", "a.txt", against="WORKTREE", content="y\n").details["ok"]


def test_without_the_extra_the_remedy_is_told(repository: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygit2", None)  # as if it were not installed
    error = error_of(read(guarded(repository), "diff_preview", "a.txt"))
    assert error["code"] == "NO_GIT"
    assert "pip install 'pagein[git]'" in error["message"]


def test_nothing_in_the_repository_is_changed(repository: Room) -> None:
    repository.put("a.txt", "changed\n")
    repository.put("new.txt", "new\n")
    before = {path: path.read_bytes() for path in (repository.folder / ".git").rglob("*") if path.is_file()}
    session = guarded(repository)
    for against in ("HEAD", "INDEX"):
        read(session, "diff_preview", "a.txt", against=against)
        read(session, "diff_preview", "new.txt", against=against)
    after = {path: path.read_bytes() for path in (repository.folder / ".git").rglob("*") if path.is_file()}
    assert after == before


def test_what_continues_a_diff_compares_with_the_same_state(repository: Room) -> None:
    lines = numbered_text(60).replace("line 5 ", "line five ").replace("line 30 ", "line thirty ")
    repository.put("a.txt", lines)
    git(repository.folder, "add", ".")
    repository.put("a.txt", numbered_text(60).replace("line 50 ", "line fifty "))
    session = guarded(repository)
    told = read(session, "diff_preview", "a.txt", against="INDEX", limit=1)
    [call] = meta_of(told)["next_calls"]
    assert call["arguments"] == {"mode": "diff_preview", "target": "a.txt", "against": "INDEX", "offset": 2}
    # a call with a proposed text would have to repeat it
    proposed = read(session, "diff_preview", "a.txt", against="WORKTREE", content=lines, limit=1)
    assert (meta_of(proposed)["next_calls"], meta_of(proposed)["next_offset"]) == ([], 2)


def test_one_who_follows_the_offsets_passes_hunks_that_never_fit(repository: Room) -> None:
    lines = numbered_text(60).split("\n")
    lines[4], lines[30], lines[55] = "x" * 900, "y" * 900, "z" * 900
    repository.put("a.txt", "\n".join(lines))
    session, offset, seen = guarded(repository), 1, []
    while True:
        told = read(session, "diff_preview", "a.txt", max_preview_chars=400, offset=offset)
        seen.append(offset)
        assert told.text.endswith("\n")
        assert len(told.text) <= 400
        if "next_offset" not in meta_of(told):
            break
        offset = meta_of(told)["next_offset"]
        assert f"Use offset={offset} to continue" in told.text
    assert seen == [1, 2, 3]
    assert meta_of(told)["truncated"] is True


def test_a_small_answer_has_only_whole_lines(repository: Room) -> None:
    repository.put("a.txt", "other\n" * 50)
    told = read(guarded(repository), "diff_preview", "a.txt", max_preview_chars=100)
    assert len(told.text) <= 100
    assert told.text.endswith("\n")


def test_the_workspace_itself_is_a_folder(repository: Room) -> None:
    error = error_of(read(guarded(repository), "diff_preview", "."))
    assert (error["code"], error["message"]) == ("IS_DIRECTORY", ". is a folder. Name a file in it, such as a.txt.")


def test_a_link_is_compared_by_where_it_leads(repository: Room) -> None:
    link = repository.folder / "link.txt"
    link.symlink_to("a.txt")
    (repository.folder / "was_file").write_text("12345")
    git(repository.folder, "add", ".")
    git(repository.folder, "commit", "-qm", "link")
    base = git(repository.folder, "rev-parse", "HEAD")[:10]
    repository.put("a.txt", numbered_text(60).replace("line 30 ", "line thirty "))
    session = guarded(repository)
    same = read(session, "diff_preview", "link.txt")
    assert same.text == f"link.txt is a link to a.txt, as in HEAD ({base})\nCompare a.txt for the text behind it.\n"
    assert same.details["location"] == {"file": "link.txt", "line": None, "end_line": None}
    [call] = meta_of(same)["next_calls"]
    assert "+line thirty " in read(session, **call["arguments"]).text
    link.unlink()
    link.symlink_to("gone.txt")
    assert read(session, "diff_preview", "link.txt").text == (
        f"link.txt is a link to gone.txt; in HEAD ({base}) it leads to a.txt\n"
    )
    assert "; in INDEX it leads to a.txt" in read(session, "diff_preview", "link.txt", against="INDEX").text
    (repository.folder / "was_file").unlink()
    (repository.folder / "was_file").symlink_to("a.txt")
    assert f"; in HEAD ({base}) it is a file of 5 bytes\n" in read(session, "diff_preview", "was_file").text
    (repository.folder / "new").symlink_to("a.txt")
    assert f"and new: HEAD ({base}) has nothing there" in read(session, "diff_preview", "new").text
    link.unlink()
    link.symlink_to("a.txt")
    proposed = read(session, "diff_preview", "link.txt", content="x\n")
    assert (meta_of(proposed)["added"], meta_of(proposed)["removed"]) == (1, 60), "a proposed text is one of the file"


def test_a_text_in_another_encoding_is_not_called_binary(repository: Room) -> None:
    repository.put("latin.txt", "ä\n".encode("latin-1"))
    repository.put("a.bin", b"a\0b")
    session = guarded(repository)
    assert "files that are not UTF-8 differ: no file became 2 bytes" in read(session, "diff_preview", "latin.txt").text
    assert "binary files differ: no file became 3 bytes" in read(session, "diff_preview", "a.bin").text


def test_an_unusable_base_comes_with_a_call_that_works(repository: Room) -> None:
    session = guarded(repository)
    [call] = error_of(read(session, "diff_preview", "a.txt", against="commit:abcdef12"))["next_calls"]
    assert read(session, **call["arguments"]).details["ok"]
    assert error_of(read(session, "diff_preview", "gone.txt", against="commit:abcdef12"))["next_calls"] == []
