"""What `pagein blame` answers, on a real store and in real repositories."""

import hashlib
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tools.remembered_files import RememberedFile, remembered_file

from pagein.errors import BadInput, NotRecallable
from pagein.tools.blame_commands import blame
from pagein.tools.blame_exports import agent_trace, git_ai_notes
from pagein.workspace.git_blame import GitAbsence, git_blame

LONG = "a line that nobody else would ever write down, number {}\n"


@pytest.fixture
def file(tmp_path: Path) -> Iterator[RememberedFile]:
    made = remembered_file(tmp_path)
    yield made
    made.store.close()


def text(*letters: str) -> str:
    return "".join(f"{letter}\n" for letter in letters)


# --- what proves what ---


def test_a_write_and_edits_name_session_turn_and_request(file: RememberedFile) -> None:
    file.asks("s1", 1, "make the list")
    file.writes("s1", 1, text("a", "b", "c"))
    file.asks("s2", 3, "insert x")
    file.edits("s2", 3, "b\n", "b\nx\n", known="name")
    assert file.writers() == ["s1/1", "s1/1", "s2/3", "s1/1"]
    found = file.blame()
    assert [source["request"] for source in found["sources"]] == ["make the list", "insert x"]
    assert found["counts"] == {"agent": 4, "person": 0, "mixed": 0, "unknown": 0}
    assert file.blame((3, 3))["lines"][0]["line"] == 3


def test_a_read_proves_no_writer(file: RememberedFile) -> None:
    file.path.write_text(text("a", "b"))
    file.reads("s1", 1)
    file.edits("s1", 1, "b\n", "b\nc\n")
    assert file.writers() == ["unknown", "unknown", "s1/1"]


def test_a_change_that_no_call_explains_is_unknown_also_if_the_watcher_saw_it(file: RememberedFile) -> None:
    file.writes("s1", 1, text("a", "b"))
    file.changes(text("a", "x", "b"))
    assert file.writers() == ["s1/1", "unknown", "s1/1"]
    file.path.write_text(text("a", "x", "b", "y"))
    assert file.writers() == ["s1/1", "unknown", "s1/1", "unknown"]
    assert file.blame()["lines"][3]["match"] == "none"


def test_a_person_is_named_where_a_program_said_so(file: RememberedFile) -> None:
    file.writes("s1", 1, text("one = compute(1)", "two"))
    file.saves(text("one = compute(100)", "two", "three words"))
    assert file.writers() == ["mixed", "s1/1", "person"]
    file.edits("s1", 2, "words", "words more")
    assert file.writers() == ["mixed", "s1/1", "mixed"]


def test_a_session_with_an_old_text_takes_nothing_away_from_another(file: RememberedFile) -> None:
    file.writes("s1", 1, text("a", "b", "c"))
    file.edits("s2", 1, "b\n", "b\nx\n", known="name")
    # s1 still believes the file to be a b c, and so does the version of its edit
    before = text("a", "b", "x", "c", "z")
    file.path.write_text(before)
    args = {"file_path": str(file.path), "old_string": "c\n", "new_string": "c\nz\n"}
    file.version("s1", 2, "edit", text("a", "b", "c", "z"), args=args)
    assert file.writers() == ["s1/1", "s1/1", "s2/1", "s1/1", "s1/2"]


def test_parts_of_a_file_are_joined_by_the_numbers_of_their_lines(file: RememberedFile) -> None:
    file.path.write_text(text(*"abcdefgh"))
    file.reads("s1", 1, (3, 5))
    file.edits("s1", 2, "d\n", "D\nE\n", known="name")
    assert file.writers() == ["unknown"] * 3 + ["s1/2"] * 2 + ["unknown"] * 4


def test_an_edit_of_an_unknown_text_is_found_by_its_neighbours(file: RememberedFile) -> None:
    new = "start\n" + LONG.format(1) + LONG.format(2) + "end"
    file.path.write_text("top\nstart\nend\nbottom\n")
    file.edits("s1", 1, "start\nend", new, known="name")
    assert file.writers() == ["unknown", "unknown", "s1/1", "s1/1", "unknown", "unknown"]


def test_a_bracket_takes_the_answer_of_its_neighbours_or_none(file: RememberedFile) -> None:
    file.writes("s1", 1, "def a {\n  return first(1)\n}\n")
    file.path.write_text("class x {\n  something else()\n}\n")
    assert file.writers() == ["unknown"] * 3
    file.path.write_text("class x {\n\ndef a {\n  return first(1)\n}\n")
    assert file.writers() == ["unknown", "unknown", "s1/1", "s1/1", "s1/1"]


def test_lines_that_moved_or_were_laid_out_anew_say_so(file: RememberedFile) -> None:
    file.writes("s1", 1, "alpha = 'one'\n" + LONG.format(1) + "omega = call(first, second)\nlast = 1\n")
    file.path.write_text('alpha = "one"\nomega = call(\n    first,\n    second,\n)\nlast = 1\n' + LONG.format(1))
    found = file.blame()
    assert [line["answer"] for line in found["lines"]] == ["agent"] * 7
    assert [line["match"] for line in found["lines"]] == ["reformatted"] * 5 + ["exact", "moved"]


def test_a_deleted_file_that_comes_back_keeps_its_writers(file: RememberedFile) -> None:
    file.writes("s1", 1, LONG.format(1) + LONG.format(2))
    file.deletes("s1", 2)
    file.path.write_text(LONG.format(1) + LONG.format(2) + "else\n")
    file.reads("s2", 1)
    assert file.writers() == ["s1/1", "s1/1", "unknown"]


def test_a_file_that_is_gone_is_answered_from_the_store(file: RememberedFile) -> None:
    file.writes("s1", 1, text("a", "b"))
    file.path.unlink()
    found = blame(file.store, str(file.path), None, GitAbsence("the file is gone"))
    assert (found["from"], found["counts"]["agent"]) == ("store", 2)
    with pytest.raises(NotRecallable, match="no whole text"):
        blame(file.store, "/nowhere", None, GitAbsence("the file is gone"))


def test_lines_beyond_the_end_are_refused(file: RememberedFile) -> None:
    file.writes("s1", 1, text("a"))
    with pytest.raises(BadInput, match="has 1 lines"):
        file.blame((5, 6))


# --- git beside it ---


def test_an_older_commit_outranks_a_write_over_an_unknown_text(file: RememberedFile) -> None:
    file.path.write_text(LONG.format(1))
    file.commits(at=file.at - 1000)
    file.writes("s1", 1, LONG.format(1) + LONG.format(2))
    assert file.writers() == ["unknown", "s1/1"]
    found = file.blame()
    assert found["git"]["path"] == "a.txt"
    assert [line["commit"] is None for line in found["lines"]] == [False, True]


def test_without_git_the_reason_is_told(file: RememberedFile, tmp_path: Path) -> None:
    told = git_blame(str(file.path), b"")
    assert told == GitAbsence("the repository has no commit")
    lone = tmp_path / "lone.txt"
    lone.write_text("a")
    assert git_blame(str(lone), b"a") == GitAbsence("the file is in no git repository")
    file.commits()
    file.path.write_text("a")
    assert git_blame(str(file.path), b"a") == GitAbsence("the file is in no commit")


def test_a_repository_without_a_git_program_is_answered_too(
    file: RememberedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.writes("s1", 1, text("a"))
    monkeypatch.setenv("PATH", "")
    assert file.blame()["no_git"] == "git is not installed"


# --- rewrites, as in the table of git-ai: nothing is lost, because nothing is in git ---


def _history(file: RememberedFile) -> list[str]:
    """Two sessions and a person; each line is one letter."""
    file.writes("s1", 1, text("a", "b", "c"))
    file.commits("one")
    file.edits("s1", 2, "c\n", "c\nd\n")
    file.commits("two")
    file.path.write_text(text("a", "P", "b", "c", "d"))
    file.reads("s2", 1)
    file.edits("s2", 1, "d\n", "d\ne\nf\n")
    file.commits("three")
    return ["s1/1", "unknown", "s1/1", "s1/1", "s1/2", "s2/1", "s2/1"]


def test_squash(file: RememberedFile) -> None:
    told = _history(file)
    file.git("reset", "-q", "--soft", "HEAD~2")
    file.commits("squashed", "--amend")
    assert file.writers() == told


def test_amend(file: RememberedFile) -> None:
    told = _history(file)
    file.edits("s3", 1, "a\n", "a\nZ\n", known="name")
    file.commits("three again", "--amend")
    assert file.writers() == [told[0], "s3/1", *told[1:]]


def test_split(file: RememberedFile) -> None:
    told = _history(file)
    whole = file.path.read_text()
    file.git("reset", "-q", "--soft", "HEAD~1")
    file.path.write_text(whole.replace("f\n", ""))
    file.commits("half")
    file.path.write_text(whole)
    file.commits("other half")
    assert file.writers() == told


def test_rebase(file: RememberedFile) -> None:
    told = _history(file)
    file.git("checkout", "-q", "-b", "side", "HEAD~2")
    file.path.write_text(text("Q", "a", "b", "c"))
    file.commits("theirs")
    file.git("checkout", "-q", "main")
    file.git("rebase", "-q", "side")
    assert file.path.read_text() == text("Q", "a", "P", "b", "c", "d", "e", "f")
    assert file.writers() == ["unknown", *told]


def test_reset_and_return(file: RememberedFile) -> None:
    told = _history(file)
    file.git("reset", "-q", "--hard", "HEAD~1")
    assert file.writers() == ["s1/1", "s1/1", "s1/1", "s1/2"]
    file.reads("s3", 1)
    assert file.writers() == ["s1/1", "s1/1", "s1/1", "s1/2"]
    file.git("reset", "-q", "--hard", "ORIG_HEAD")
    answers = file.writers()
    assert answers[-2:] == ["s2/1", "s2/1"]
    assert all(one in (two, "unknown") for one, two in zip(answers, told, strict=True))


def test_stash(file: RememberedFile) -> None:
    told = _history(file)
    file.edits("s2", 2, "a\n", LONG.format(1) + "a\n")
    file.git("stash", "-q")
    file.reads("s3", 1)
    assert file.writers() == told
    file.git("stash", "pop", "-q")
    assert file.writers() == ["s2/2", *told]


def test_merge_with_squash(file: RememberedFile) -> None:
    file.writes("s1", 1, text("a", "b"))
    file.commits("one")
    file.git("checkout", "-q", "-b", "side")
    file.edits("s1", 2, "b\n", "b\nc\n")
    file.commits("two")
    file.git("checkout", "-q", "main")
    file.git("merge", "-q", "--squash", "side")
    file.commits("all")
    assert file.writers() == ["s1/1", "s1/1", "s1/2"]


def test_formatter_and_a_person_between(file: RememberedFile) -> None:
    file.writes("s1", 1, "if x:\n  first_value = make('a', 'b')\n  second_value = make('c')\n")
    file.path.write_text('# mine\nif x:\n    first_value = make("a", "b")\n    second_value = make("c")\n')
    file.reads("s2", 1)
    file.edits("s2", 1, "second_value", "third_value")
    assert file.writers() == ["unknown", "s1/1", "s1/1", "s2/1"]


# --- the same file at other places ---


def test_lines_written_in_a_worktree_are_found_after_the_merge(file: RememberedFile) -> None:
    file.path.write_text("first line of the person\nlast line of the person\n")
    file.reads("s0", 1)
    file.commits()
    tree = file.path.parents[1] / "tree"
    file.git("worktree", "add", "-q", "-b", "side", str(tree))
    there = file.at_path(tree / file.path.name)
    there.reads("s1", 1)
    there.edits("s1", 2, "last", LONG.format(1) + "}\nlast")
    there.commits()
    file.git("merge", "-q", "side")
    assert file.writers() == ["unknown", "s1/2", "s1/2", "unknown"]
    file.at = there.at
    file.edits("s2", 1, "first line", "first words", known="name")
    assert file.writers() == ["s2/1", "s1/2", "s1/2", "unknown"]
    assert there.writers() == ["unknown", "s1/2", "s1/2", "unknown"]


def test_a_renamed_file_keeps_its_writers(file: RememberedFile) -> None:
    file.writes("s1", 1, LONG.format(1) + LONG.format(2) + "end\n")
    file.commits()
    file.git("mv", file.path.name, "b.txt")
    file.commits()
    renamed = file.at_path(file.path.with_name("b.txt"))
    assert renamed.writers() == ["s1/1", "s1/1", "s1/1"]
    renamed.reads("s2", 1)
    renamed.edits("s2", 1, "end\n", "end\nmore\n")
    assert renamed.writers() == ["s1/1", "s1/1", "s1/1", "s2/1"]


# --- exports ---


def _exported(file: RememberedFile) -> None:
    file.works("s1", "claude-code", "claude-opus-4-6")
    file.writes("s1", 1, text("a", "b"))
    file.works("s2", "codex", "gpt-5.5")
    file.edits("s2", 4, "b\n", "b\nc\nd\n", known="name")
    file.path.write_text(file.path.read_text() + "mine\n")


def test_agent_trace_has_the_four_answers_with_hashes_of_the_lines(file: RememberedFile) -> None:
    _exported(file)
    file.commits()
    record = agent_trace(file.blame(), "1.2", 1_800_000_000.0)
    assert re.fullmatch(r"[0-9]+\.[0-9]+", record["version"]), "the pattern of the published schema"
    assert record["timestamp"] == "2027-01-15T08:00:00Z"
    assert record["vcs"]["revision"] == file.git("rev-parse", "HEAD").strip()
    (one,) = record["files"]
    assert one["path"] == "a.txt"
    first, second, rest = one["conversations"]
    assert first["contributor"] == {"type": "ai", "model_id": "anthropic/claude-opus-4-6"}
    assert first["ranges"] == [
        {"start_line": 1, "end_line": 2, "content_hash": "sha256:" + hashlib.sha256(b"a\nb\n").hexdigest()}
    ]
    assert second["url"] == "urn:pagein:session:s2"
    assert [(run["start_line"], run["end_line"]) for run in second["ranges"]] == [(3, 4)]
    assert rest["contributor"] == {"type": "unknown"}
    assert "url" not in rest


def test_agent_trace_names_a_revision_only_for_the_lines_that_stand_in_it(file: RememberedFile) -> None:
    _exported(file)
    file.commits()
    file.path.write_text(file.path.read_text().removeprefix("a\n"))
    assert all(line["commit"] for line in file.blame()["lines"])
    assert "vcs" not in agent_trace(file.blame(), "1.2", 1_800_000_000.0)
    file.commits()
    assert "vcs" in agent_trace(file.blame(), "1.2", 1_800_000_000.0)


def test_agent_trace_names_any_session_by_a_valid_address(file: RememberedFile) -> None:
    file.works("ein Tag/1 ?", "claude-code", "claude-opus-4-6")
    file.writes("ein Tag/1 ?", 1, text("a"))
    (told,) = agent_trace(file.blame(), "1.2", 1_800_000_000.0)["files"][0]["conversations"]
    assert told["url"] == "urn:pagein:session:ein%20Tag/1%20%3F"


def test_git_ai_notes_have_the_lines_of_agents_by_commit(file: RememberedFile) -> None:
    _exported(file)
    with pytest.raises(BadInput, match=r"commit .* first"):
        git_ai_notes(file.blame())
    file.commits()
    head = file.git("rev-parse", "HEAD").strip()
    notes = git_ai_notes(file.blame())
    attested, about = notes[head].split("---\n")
    name = hashlib.sha256(b"claude-code:s1").hexdigest()[:14]
    rows = attested.splitlines()
    assert rows[0] == "a.txt"
    assert rows[1].startswith(f"  s_{name}::t_")
    assert rows[1].endswith(" 1-2")
    assert rows[2].endswith(" 3-4")
    facts = json.loads(about)
    assert facts["schema_version"] == "authorship/3.0.0"
    assert facts["base_commit_sha"] == head
    assert facts["sessions"][f"s_{name}"]["agent_id"] == {"tool": "claude-code", "id": "s1", "model": "claude-opus-4-6"}
    file.git("notes", "--ref=ai", "add", "-m", notes[head])


# --- time ---


def test_a_file_with_many_versions_is_answered_soon(file: RememberedFile) -> None:
    lines = [f"value_{number} = compute({number})" for number in range(1500)]
    file.version("s0", 1, "write", "\n".join(lines))
    for turn in range(150):
        lines[(turn * 37) % 1400 : (turn * 37) % 1400 + 3] = [f"changed_{turn}_{k} = {k}" for k in range(4)]
        file.version(f"s{turn % 7}", turn, "read", "\n".join(lines))
        lines.insert((turn * 53) % 1400, f"inserted_{turn} = {turn}")
        file.version(f"s{turn % 7}", turn, "edit", "\n".join(lines))
    file.path.write_text("\n".join(lines))
    start = time.process_time()
    found = blame(file.store, str(file.path), file.path.read_text(), GitAbsence("not asked"))
    assert found["counts"]["agent"] > 1000
    assert time.process_time() - start < 2
