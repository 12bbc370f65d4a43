"""`ingest`: which files are taken, what is said of the others, and what is never stored."""

import os
import threading

import pytest
from tests.tools.recall_sessions import Room, ask

from pagein.engine.recall.ingest import IngestLimits, IngestReport
from pagein.engine.session import Session
from pagein.model.entries import Entry, NoteEntry
from pagein.model.objects import ObjectId
from pagein.store.exchange.export_redaction import ExportRedaction
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.store.upkeep.collection import Retention, plan
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.tools.calls import Call, ConsentQuestion
from pagein.tools.ingest import INGEST
from pagein.workspace.tree import FileTree


def run(session: Session, *patterns: str, limits: IngestLimits | None = None) -> IngestReport:
    assert session.folder is not None
    ingesting = session.recalls.ingest_below(session.folder)
    assert ingesting is not None
    return ingesting.ingest(patterns, limits=limits)


def taken(session: Session, *patterns: str) -> list[str]:
    return [one.path for one in run(session, *patterns).done]


def skipped(report: IngestReport) -> dict[str, str]:
    return dict(report.skipped)


def test_a_file_goes_into_the_store_and_comes_back_exactly(room: Room) -> None:
    room.put("src/app.py", "print('hello')\r\nlast line é")
    session = room.session()
    answer = ask(session, "ingest", paths=["src/app.py"])
    names = answer.details["objectIds"]
    assert isinstance(names, list)
    [name] = names
    assert answer.text == f"Ingested 1 files. Object IDs:\n{name} src/app.py (27 tokens)"
    assert ask(room.session("other"), "peek", id=name).text == "print('hello')\r\nlast line é"
    assert ask(session, "search", pattern="hello").text.startswith("Found 1 match(es):")


def test_globs_braces_and_folders_mean_their_files(room: Room) -> None:
    for name in ("a.py", "b.md", "src/c.py", "src/deep/d.py", "src/deep/e.rst", ".hidden/f.py"):
        room.put(name, name)
    session = room.session()
    assert taken(session, "*.py") == ["a.py"]
    assert taken(session, "**/*.py") == [".hidden/f.py", "a.py", "src/c.py", "src/deep/d.py"]
    assert taken(session, "src/**/*.{py,rst}") == ["src/c.py", "src/deep/d.py", "src/deep/e.rst"]
    assert taken(session, "src/deep") == ["src/deep/d.py", "src/deep/e.rst"]
    assert taken(session, "./src/?.py", "src/[cd].py") == ["src/c.py"]
    assert taken(session, str(room.folder / "src" / "*.py")) == ["src/c.py"]
    assert taken(session, "src/{c,deep/d}.py", "b.md") == ["b.md", "src/c.py", "src/deep/d.py"]


def test_a_name_with_the_signs_of_a_glob_is_that_file(room: Room) -> None:
    room.put("pages/[id].tsx", "one")
    room.put("pages/i.tsx", "two")
    assert taken(room.session(), "pages/[id].tsx") == ["pages/[id].tsx"]


def test_what_git_ignores_is_passed_over_unless_it_is_named(room: Room) -> None:
    room.put(".gitignore", "build/\n*.log\n!keep.log\n/only-here.txt\n[bad\n")
    room.put("sub/.gitignore", "!*.log\nsecret-plans.txt\n")
    for name in (
        "build/out.js", "a.log", "keep.log", "only-here.txt", "sub/only-here.txt", "sub/b.log", "sub/secret-plans.txt",
        "sub/more/secret-plans.txt", "secret-plans.txt", "node_modules/x/i.js", "sub/node_modules/i.js", ".git/config",
    ):  # fmt: skip
        room.put(name, name)
    session = room.session()
    assert taken(session, "**/*") == [
        ".gitignore", "keep.log", "secret-plans.txt", "sub/.gitignore", "sub/b.log", "sub/only-here.txt",
    ]  # fmt: skip
    assert taken(session, "a.log", "build/out.js") == ["a.log", "build/out.js"]
    assert skipped(run(session, ".git/config")) == {".git/config": "excluded"}


def test_rules_of_the_repository_around_the_workspace_hold_too(room: Room) -> None:
    inner = room.folder / "packages" / "one"
    room.put(".git/info/exclude", "*.tmp\n")
    room.put(".gitignore", "generated/\n")
    for name in ("a.py", "b.tmp", "generated/c.py"):
        room.put(f"packages/one/{name}", name)
    session = room.session()
    session.work_in(str(inner))
    assert taken(session, "**/*") == ["a.py"]


def test_nothing_outside_of_the_workspace_is_taken(room: Room) -> None:
    outside = room.folder.parent / "outside.txt"
    outside.write_text("private")
    (room.folder.parent / "far").mkdir()
    (room.folder.parent / "far" / "f.txt").write_text("private")
    (room.folder / "link.txt").symlink_to(outside)
    (room.folder / "folder").symlink_to(room.folder.parent / "far")
    room.put("in.txt", "mine")
    (room.folder / "inner-link.txt").symlink_to(room.folder / "in.txt")
    session = room.session()
    report = run(session, "../outside.txt", str(outside), "../*.txt", "folder/*", "folder", "~/x", "**/*.txt")
    assert [one.path for one in report.done] == ["in.txt"]
    assert set(skipped(report).values()) == {"outside the workspace"}
    assert [one.path for one in FileTree(str(room.folder)).match(["*", "link.txt", "folder/*"]).files] == ["in.txt"]
    stored = SqliteStore(room.store)
    assert b"private" not in b"".join(stored.get(name) for name in stored.names())
    stored.close()


def test_a_file_that_became_a_link_meanwhile_is_not_stored(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    file = room.put("a.txt", "mine")
    secret = room.folder.parent / "secret.txt"
    secret.write_text("private")
    session = room.session()
    assert session.folder is not None
    ingesting = session.recalls.ingest_below(session.folder)
    assert ingesting is not None
    tree = ingesting._tree
    found = tree.match(["a.txt"])
    file.unlink()
    file.symlink_to(secret)
    monkeypatch.setattr(ingesting, "_tree", _Fixed(tree, found))
    assert ingesting.ingest(["a.txt"]).skipped == (("a.txt", "outside the workspace"),)


class _Fixed:
    """The tree as it was when it was asked; reading goes to the disk as it is."""

    def __init__(self, tree: object, found: object) -> None:
        self._tree, self._found = tree, found

    def match(self, *_: object) -> object:
        return self._found

    def text(self, *arguments: object) -> object:
        return self._tree.text(*arguments)  # type: ignore[attr-defined]  # a FileTree


def test_what_must_not_be_stored_is_not_read(room: Room) -> None:
    """Law 9, by every name that leads to the file."""
    room.put(".env", "KEY=hunter2")
    room.put("certs/server.pem", "hunter2")
    (room.folder / "notes.txt").symlink_to(room.folder / ".env")
    (room.folder / "id_rsa").write_text("hunter2")
    (room.folder / "certs" / "plain.key").symlink_to(room.put("plain.txt", "fine"))
    session = room.session()
    report = run(session, ".env", "**/*", "notes.txt")
    assert {one.path for one in report.done} <= {"plain.txt"}
    assert {why for _, why in report.skipped} == {"excluded"}
    store = SqliteStore(room.store)
    assert all(b"hunter2" not in store.get(name) for name in store.names())
    store.close()
    assert "hunter2" not in str(room.log())


def test_binary_and_unreadable_files_are_skipped_with_the_reason(room: Room) -> None:
    room.put("nul.bin", b"text\0more")
    room.put("late-nul.txt", b"x" * 600 + b"\0")
    room.put("latin.txt", "caf\xe9".encode("latin-1"))
    room.put("picture.png", b"\x89PNG\r\n\x1a\n" + b"data")
    room.put("empty.txt", "")
    os.mkfifo(room.folder / "pipe")
    session = room.session()
    report = run(session, "*", "missing.txt", "pipe")
    assert [one.path for one in report.done] == ["empty.txt", "late-nul.txt"]
    assert skipped(report) == {
        "latin.txt": "not UTF-8",
        "missing.txt": "no such file",
        "nul.bin": "binary",
        "picture.png": "binary",
        "pipe": "unreadable",
    }


def test_what_is_held_already_is_not_stored_again_and_what_changed_is(room: Room) -> None:
    """Pi-RLM kept the first version for ever."""
    room.put("a.txt", "one")
    room.put("b.txt", "one")
    session = room.session()
    first = {one.path: one for one in run(session, "*.txt").done}
    assert first["a.txt"].object_id != first["b.txt"].object_id
    again = run(session, "*.txt")
    assert [one.known for one in again.done] == [True, True]
    assert skipped(again) == {"a.txt": "already ingested", "b.txt": "already ingested"}
    room.put("a.txt", "two")
    [changed] = run(session, "a.txt").done
    assert (changed.known, changed.before) == (False, first["a.txt"].object_id)
    assert ask(session, "peek", id=changed.object_id).text == "two"
    assert ask(session, "peek", id=first["a.txt"].object_id).text == "one"
    room.put("a.txt", "one")
    [back] = run(session, "a.txt").done
    assert (back.known, back.object_id) == (False, first["a.txt"].object_id)
    assert session.recalls.holdings.count == 3
    assert session.recalls.holdings.tokens == 9
    assert session.recalls.holdings.files[str(room.folder / "a.txt")].object_id == back.object_id
    assert room.session().recalls.holdings.count == 3


def test_ids_are_the_same_in_every_process(room: Room) -> None:
    room.put("a.txt", "one")
    [one] = run(room.session(), "a.txt").done
    [other] = run(room.session(), "a.txt").done
    assert one.object_id == other.object_id
    assert other.known
    ObjectId.parse(one.object_id)


def test_too_many_files_are_refused_and_none_is_an_error(room: Room) -> None:
    for n in range(5):
        room.put(f"{n}.txt", str(n))
    session = room.session()
    report = run(session, "*.txt", limits=IngestLimits(files=4))
    assert report.refused == "Too many files: 5 matched, limit is 4. Use more specific patterns."
    assert report.done == ()
    none = ask(session, "ingest", paths=["*.rs"])
    assert (none.text, none.is_error) == ("No files matched the provided paths.", True)


def test_where_everything_is_ignored_that_is_said(room: Room) -> None:
    room.put(".gitignore", "out/\n")
    room.put("out/a.js", "x")
    answer = ask(room.session(), "ingest", paths=["out/**/*.js"])
    assert answer.text.startswith("No files matched the provided paths.\n\n1 files and folders are ignored here")


def test_bytes_beyond_the_limit_are_left_out(room: Room) -> None:
    for name in ("a", "b", "c"):
        room.put(f"{name}.txt", name * 40)
    report = run(room.session(), "*.txt", limits=IngestLimits(bytes=100))
    assert [one.path for one in report.done] == ["a.txt", "b.txt"]
    assert skipped(report) == {"c.txt": "maxIngestBytes exceeded"}


def test_many_files_are_asked_about_first(room: Room) -> None:
    for n in range(11):
        room.put(f"{n:02}.txt", str(n))
    session = room.session()
    asked: list[str] = []

    def no(question: ConsentQuestion) -> bool:
        asked.append(question.reason)
        return False

    answer = INGEST.answer(session, Call({"paths": ["*.txt"]}, confirm=no))
    assert (answer.text, answer.is_error, asked) == ("Cancelled by user", True, ["11 files match"])
    assert session.recalls.holdings.count == 0
    few = INGEST.answer(session, Call({"paths": ["0*.txt"]}, confirm=no))
    assert not few.is_error
    assert asked == ["11 files match"]


def test_progress_is_told_file_by_file(room: Room) -> None:
    for n in range(3):
        room.put(f"{n}.txt", str(n))
    room.put("x.bin", b"\0")
    told: list[str] = []
    INGEST.answer(room.session(), Call({"paths": ["*"]}, tell=told.append))
    assert len(told) == 4
    assert sorted(words.split(": ")[1] for words in told) == ["0.txt", "1.txt", "2.txt", "x.bin"]
    assert told[-1].startswith("Ingested 4/4: ")


def test_an_ingest_that_is_called_off_keeps_whole_files_and_names_the_rest(room: Room) -> None:
    for n in range(200):
        room.put(f"{n:03}.txt", f"text {n}")
    session = room.session()
    signal = threading.Event()

    def stop_at(words: str) -> None:
        if words.startswith("Ingested 64/"):
            signal.set()

    answer = INGEST.answer(session, Call({"paths": ["*.txt"]}, signal=signal, tell=stop_at))
    names = answer.details["objectIds"]
    assert isinstance(names, list)
    assert len(names) == 64
    assert "Skipped 136 files: 064.txt (aborted), " in answer.text
    assert "(+126 more)" in answer.text
    assert room.session().recalls.holdings.count == 64


def test_a_store_that_fails_ingests_nothing_and_says_so(room: Room) -> None:
    room.put("a.txt", "one")
    room.store.parent.mkdir()
    room.store.write_bytes(b"no database" * 100)
    session = room.session()
    answer = ask(session, "ingest", paths=["a.txt"])
    assert answer.failure is not None
    assert answer.text == "Ingested 0 files. Object IDs:\n\nSkipped 1 files: a.txt (the store failed)"
    assert session.recalls.holdings.count == 0
    assert ask(session, "peek", id="pg-00000000-00000000").text.startswith(
        "Object pg-00000000-00000000 cannot be had now:"
    )
    assert ask(session, "search", pattern="x").text == "No matches found."
    assert "Store size (bytes): unknown" in ask(session, "stats").text


def test_what_was_ingested_is_needed_by_its_session(room: Room) -> None:
    room.put("a.txt", "one")
    session = room.session()
    run(session, "a.txt")
    store = SqliteUpkeep(room.store)
    planned = plan(store, Retention(keep=0.0), now=2e9)
    store.close()
    assert (planned.objects, planned.blobs) != (frozenset(), frozenset())  # the session is long over: all of it may go
    store = SqliteUpkeep(room.store)
    alive = plan(store, Retention(), now=0.0)
    store.close()
    assert alive.is_empty


def test_an_export_leaves_out_what_came_to_be_excluded_later(room: Room) -> None:
    """Notes of ingested files name path and content as records of reads do."""
    room.put("a.txt", "one")
    session = room.session()
    run(session, "a.txt")
    [note] = [entry.body for entry in session.journal if isinstance(entry.body, NoteEntry)]
    secret = NoteEntry(note.kind, note.data.replace("a.txt", "id_rsa"))
    assert ExportRedaction().entry(Entry("x", None, secret)).body == NoteEntry("withheld", "{}")
    assert ExportRedaction().entry(Entry("x", None, note)).body == note


def test_without_a_workspace_nothing_is_ingested() -> None:
    from pagein.engine.engine import Engine
    from pagein.store.memory.memory_store import MemoryStore
    from pagein.wiring import default_counter

    with Engine(blobs=MemoryStore(), counter=default_counter()) as engine:
        answer = ask(engine.session("s"), "ingest", paths=["x"])
    assert (answer.text, answer.is_error) == ("This session has no workspace to ingest files from.", True)


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (None, "Missing required parameter: paths"),
        ([], "Missing required parameter: paths"),
        ([1], "paths: must be a list of texts"),
        ([""], "a path to ingest is empty"),
        (["a\0b"], "a path to ingest holds a NUL character"),
        (["{a,b}" * 9], "stand for more than 256 paths"),
    ],
)
def test_wrong_arguments_are_answered_in_words(room: Room, paths: object, said: str) -> None:
    answer = ask(room.session(), "ingest", paths=paths)
    assert answer.is_error
    assert said in answer.text


def test_one_path_may_be_given_as_a_text(room: Room) -> None:
    room.put("a.txt", "one")
    assert not ask(room.session(), "rlm_ingest", paths="a.txt").is_error


def test_half_a_surrogate_in_a_name_does_no_harm(room: Room) -> None:
    room.put("\udce9.txt", "odd name")
    answer = ask(room.session(), "ingest", paths=["*.txt"])
    assert not answer.is_error
    assert ask(room.session(), "search", pattern="odd name").text.startswith("Found 1")
