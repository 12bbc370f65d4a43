"""The intake: nothing is taken twice, nothing is lost, and a bad file stops no other."""

import contextlib
import json
import os
import shutil
import sqlite3
import tarfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.past_sessions.conftest import FIXTURES, KEY, Pi, branch, entries, texts

from pagein import erasure, upkeep, wiring
from pagein.errors import BadInput
from pagein.model.derived_versions import FILES
from pagein.model.entries import Entry, NoteEntry
from pagein.model.memory_notes import SessionPlaceNote
from pagein.past_sessions.intake import Intake
from pagein.past_sessions.report import IntakeProgress
from pagein.past_sessions.seen_files import REMEMBERED
from pagein.store.sql.short_names import OF_SESSION, entry_key
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.store_soundness import faults_of
from pagein.workspace.machine import machine

SAID = [
    {"role": "user", "content": "hello"},
    {"role": "assistant", "content": "hello to you"},
    {"role": "user", "content": "and now?"},
]


def through_gateway(place: Path, session: str) -> None:
    """One request of a client, as a gateway gives it to the engine."""
    body = {"model": "claude-opus-4-6", "max_tokens": 10, "messages": SAID}
    with wiring.open(place) as engine:
        assert engine.prepare(json.dumps(body).encode(), "anthropic", at=1.0, hint=session).failure is None


def again(place: Path, *paths: Path) -> tuple[int, int, int]:
    """What another process would find: sessions that are new, that grew, and files read."""
    with wiring.open_intake(place) as intake:
        report = intake.remember(paths)
    return report.new, report.grown, report.files


# --- once and again ---


def test_an_unchanged_file_is_not_read_again(
    place: Path, intake: Intake, store: SqliteStore, recording: Callable[..., Path]
) -> None:
    path = recording()
    first = intake.remember([path])
    assert (first.new, first.files, first.known) == (2, 1, 0)
    kept = entries(store, "cc-1"), entries(store, REMEMBERED)
    assert again(place, path) == (0, 0, 0)
    assert (entries(store, "cc-1"), entries(store, REMEMBERED)) == kept


def test_a_file_with_another_time_is_read_and_adds_nothing(
    place: Path, intake: Intake, store: SqliteStore, recording: Callable[..., Path]
) -> None:
    path = recording()
    intake.remember([path])
    kept = entries(store, "cc-1")
    os.utime(path, (5, 5))
    assert again(place, path) == (0, 0, 1)
    assert entries(store, "cc-1") == kept


def test_a_moved_file_adds_nothing(
    place: Path, intake: Intake, store: SqliteStore, recording: Callable[..., Path]
) -> None:
    path = recording("codex.jsonl")
    intake.remember([path])
    kept = entries(store, "cx-1")
    assert again(place, path.rename(path.with_name("archived.jsonl"))) == (0, 0, 1)
    assert entries(store, "cx-1") == kept


def test_only_the_news_of_a_session_is_appended(
    place: Path, intake: Intake, store: SqliteStore, tmp_path: Path
) -> None:
    pi = Pi(tmp_path / "s.jsonl")
    pi.user("first")
    intake.remember([pi.path])
    before = entries(store, "pi-1")
    pi.answer("second")
    pi.user("third")
    report = intake.remember([pi.path])
    assert (report.new, report.grown, report.messages) == (0, 1, 2)
    after = entries(store, "pi-1")
    assert after[: len(before)] == before
    assert texts(after) == ["first", "second", "third"]
    assert again(place, pi.path) == (0, 0, 0)


def test_a_rewound_recording_makes_a_branch_and_loses_nothing(
    intake: Intake, store: SqliteStore, tmp_path: Path
) -> None:
    pi = Pi(tmp_path / "s.jsonl")
    fork = pi.user("first")
    pi.answer("left behind")
    intake.remember([pi.path])
    pi.back_to(fork)
    pi.answer("instead")
    intake.remember([pi.path])
    assert texts(branch(store, "pi-1")) == ["first", "instead"]
    assert texts(entries(store, "pi-1")) == ["first", "left behind", "instead"]


def test_a_recording_that_became_shorter_moves_the_leaf_back(
    intake: Intake, store: SqliteStore, tmp_path: Path
) -> None:
    pi = Pi(tmp_path / "s.jsonl")
    pi.user("first")
    pi.answer("second")
    intake.remember([pi.path])
    pi.path.write_text("".join(pi.path.read_text().splitlines(keepends=True)[:-1]))
    intake.remember([pi.path])
    assert texts(branch(store, "pi-1")) == ["first"]
    assert texts(entries(store, "pi-1")) == ["first", "second"]


@settings(max_examples=25)
@given(
    name=st.sampled_from(["claude-code.jsonl", "codex.jsonl", "pi-v3.jsonl", "copilot-cli.jsonl", "normalised.jsonl"]),
    cuts=st.lists(st.floats(0.05, 1.0), max_size=4),
)
def test_a_recording_that_is_taken_while_it_grows_ends_as_one_that_is_taken_whole(name: str, cuts: list[float]) -> None:
    """Cut at any byte, as a file is that is being written."""
    whole = (FIXTURES / name).read_bytes()
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(whole)
        at_once, in_steps = Path(folder) / "once.pagein", Path(folder) / "steps.pagein"
        again(at_once, path)
        for cut in [*sorted(cuts), 1.0]:
            path.write_bytes(whole[: int(len(whole) * cut)])
            again(in_steps, path)
        one, other = SqliteStore(at_once), SqliteStore(in_steps)
        try:
            for session in one.latest(100):
                if session != REMEMBERED:
                    told = dict.fromkeys(texts(entries(other, session)))
                    assert [entry.body for entry in branch(other, session)] == [
                        entry.body for entry in branch(one, session)
                    ]
                    assert set(texts(entries(one, session))) <= set(told)
        finally:
            one.close()
            other.close()


# --- sessions that somebody else keeps ---


def test_a_session_that_a_gateway_journaled_is_left_out(place: Path, store: SqliteStore, tmp_path: Path) -> None:
    through_gateway(place, "pi-1")
    kept = entries(store, "pi-1")
    pi = Pi(tmp_path / "s.jsonl")
    pi.user("hello")
    with wiring.open_intake(place) as intake:
        report = intake.remember([pi.path])
    assert (report.new, report.messages, report.failed) == (0, 0, ())
    assert [(one.session, "gateway" in one.reason) for one in report.skipped] == [("pi-1", True)]
    assert entries(store, "pi-1") == kept


def test_a_session_goes_on_through_a_gateway_and_is_its_own_from_then_on(
    place: Path, store: SqliteStore, tmp_path: Path
) -> None:
    pi = Pi(tmp_path / "s.jsonl")
    pi.user("hello")
    pi.answer("hello to you")
    assert again(place, pi.path) == (1, 0, 1)
    through_gateway(place, "pi-1")
    kept = entries(store, "pi-1")
    assert texts(branch(store, "pi-1")) == ["hello", "hello to you", "and now?"]
    pi.user("and now?")
    assert again(place, pi.path) == (0, 0, 1)
    assert entries(store, "pi-1") == kept


def test_a_session_of_this_machine_has_its_machine_before_its_entries(
    intake: Intake, store: SqliteStore, recording: Callable[..., Path], tmp_path: Path
) -> None:
    file = recording()
    assert intake.remember([file]).new == 2
    assert store.leaf(FILES) is None, "a named file may come from another machine"
    with wiring.open_intake(tmp_path / "other.pagein") as other:
        assert other.remember([file], named=False).new == 2
        assert other.remember([file], named=False).new == 0
    with contextlib.closing(SqliteStore(tmp_path / "other.pagein")) as kept:
        told = list(kept.news(FILES))
        assert len(told) == 2
        for place, entry in told:
            assert isinstance(entry, Entry)
            assert isinstance(entry.body, NoteEntry)
            note = entry.body.note
            assert isinstance(note, SessionPlaceNote)
            assert (note.machine, note.follows) == (machine(), False)
            assert place < next(kept.news(note.session))[0]


def test_a_recording_cannot_take_the_name_of_a_journal_of_pagein(intake: Intake, tmp_path: Path) -> None:
    pi = Pi(tmp_path / "s.jsonl", name="pagein.cache-verdicts")
    pi.user("hello")
    report = intake.remember([pi.path])
    assert (report.new, len(report.failed)) == (0, 1)


# --- private texts ---


def test_a_forgotten_text_does_not_come_back_with_a_grown_recording(place: Path, tmp_path: Path) -> None:
    pi = Pi(tmp_path / "s.jsonl")
    pi.user("my password is correct horse battery, say no more")
    again(place, pi.path)
    with contextlib.closing(wiring.open_for_forgetting(place)) as kept:
        erasure.forget_texts(kept, ["correct horse battery"], place, wiring.log_of(place))
    pi.answer("I said nothing of correct horse battery")
    again(place, pi.path)
    store = SqliteStore(place)
    said = "\n".join(texts(entries(store, "pi-1")))
    store.close()
    assert "say no more" in said
    assert "correct horse battery" not in said


def test_a_forgotten_session_does_not_come_back_with_a_grown_recording(place: Path, tmp_path: Path) -> None:
    pi = Pi(tmp_path / "s.jsonl")
    pi.user("the plan for the takeover")
    pi.call("c1", "bash", {"command": "ls plans"}, "takeover.md and more")
    again(place, pi.path)
    with contextlib.closing(wiring.open_for_forgetting(place)) as kept:
        erasure.forget_session(kept, "pi-1", place, wiring.log_of(place))
    assert again(place, pi.path) == (0, 0, 0)
    pi.answer("what else?")
    again(place, pi.path)
    store = SqliteStore(place)
    said = "\n".join(texts(entries(store, "pi-1")))
    store.close()
    assert "takeover" not in said
    assert "what else?" in said


# --- bad input ---


def test_each_bad_file_is_named_and_the_others_are_taken(
    intake: Intake, tmp_path: Path, recording: Callable[..., Path]
) -> None:
    good = recording("codex.jsonl")
    for name in ("binary.jsonl", "not-a-session.jsonl", "empty.jsonl", "unknown-schema.jsonl"):
        recording(name)
    (good.parent / "torn.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00nothing")
    (good.parent / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    report = intake.remember([good.parent, tmp_path / "missing"])
    assert report.new == 1
    told = {one.file.rpartition("/")[2] for one in report.failed}
    assert told == {"binary.jsonl", "unknown-schema.jsonl", "torn.jsonl.gz", "gone.jsonl", "missing"}
    assert {one.file.rpartition("/")[2] for one in report.skipped} == {"not-a-session.jsonl", "empty.jsonl"}
    assert all(one.reason for one in (*report.failed, *report.skipped))


def test_a_file_without_a_session_is_a_failure_if_the_user_named_it(
    intake: Intake, recording: Callable[..., Path]
) -> None:
    (failed,) = intake.remember([recording("not-a-session.jsonl")]).failed
    assert failed.file == "not-a-session.jsonl"
    assert "Give a file in one of these formats" in failed.reason


def test_a_damaged_line_is_named_and_the_rest_is_taken(
    place: Path, intake: Intake, store: SqliteStore, tmp_path: Path
) -> None:
    pi = Pi(tmp_path / "s.jsonl")
    pi.user("first")
    with pi.path.open("a") as file:
        file.write('{"type": "message", "id": broken\n')
    pi.answer("second")
    report = intake.remember([pi.path])
    assert report.new == 1
    assert texts(branch(store, "pi-1")) == ["first", "second"]
    (failed,) = report.failed
    assert failed.reason.startswith("line 3: not JSON")
    assert "whole copy" in failed.reason
    with wiring.open_intake(place) as later:  # it is named until it is mended
        assert len(later.remember([pi.path]).failed) == 1


def test_a_last_line_that_is_being_written_is_no_damage(intake: Intake, store: SqliteStore, tmp_path: Path) -> None:
    pi = Pi(tmp_path / "s.jsonl")
    pi.user("first")
    pi.answer("second")
    pi.path.write_text(pi.path.read_text()[:-20])
    assert intake.remember([pi.path]).failed == ()
    assert texts(entries(store, "pi-1")) == ["first"]


@pytest.mark.damages_store
def test_a_session_of_a_damaged_journal_is_completed_by_its_recording(
    intake: Intake, store: SqliteStore, place: Path, recording: Callable[..., Path]
) -> None:
    path = recording("codex.jsonl")
    intake.remember([path])
    whole = entries(store, "cx-1")
    with contextlib.closing(sqlite3.connect(place)) as database, database:
        for session, bound in (("cx-1", whole[-2].id), (REMEMBERED, None)):
            database.execute(
                f"DELETE FROM journal WHERE {OF_SESSION} AND id = coalesce(?, id)",  # noqa: S608 -- a constant
                (session, None if bound is None else entry_key(bound)),
            )
    again(place, path)
    assert {one.id for one in entries(store, "cx-1")} == {one.id for one in whole}


# --- archives and databases ---


def test_the_members_of_an_archive_are_taken_and_not_unpacked_again(
    place: Path, intake: Intake, tmp_path: Path
) -> None:
    path = tmp_path / "sessions.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("codex.jsonl", "pi-v3.jsonl"):
            archive.add(FIXTURES / name, f"x/{name}")
    assert intake.remember([path]).new == 2
    assert again(place, path) == (0, 0, 0)


def opencode_database(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.executescript(
            "CREATE TABLE session (id TEXT, title TEXT, directory TEXT, parent_id TEXT, version TEXT, time_updated INT);"
            "CREATE TABLE message (id TEXT, session_id TEXT, time_created INT, data TEXT);"
            "CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT);"
        )
    for name in ("ses_a", "ses_b"):
        say_in_database(path, name, "msg_1", f"hello from {name}", 1)


def say_in_database(path: Path, session: str, name: str, words: str, at: int) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        if not database.execute("UPDATE session SET time_updated = ? WHERE id = ?", (at, session)).rowcount:
            database.execute("INSERT INTO session VALUES (?, 'title', '/srv', NULL, '1', ?)", (session, at))
        told = json.dumps({"role": "user", "time": {"created": at}})
        database.execute("INSERT INTO message VALUES (?, ?, ?, ?)", (f"{session}{name}", session, at, told))
        part = json.dumps({"type": "text", "text": words})
        database.execute("INSERT INTO part VALUES (?, ?, ?, ?)", (f"prt_{name}", f"{session}{name}", session, part))


def test_of_a_database_only_the_changed_sessions_are_read(
    place: Path, intake: Intake, store: SqliteStore, tmp_path: Path
) -> None:
    path = tmp_path / "opencode.db"
    opencode_database(path)
    report = intake.remember([path])
    assert (report.new, report.failed) == (2, ())
    assert again(place, path) == (0, 0, 0)
    say_in_database(path, "ses_b", "msg_2", "and more", 2)
    with wiring.open_intake(place) as later:
        changed = later.remember([path])
    assert (changed.grown, changed.messages) == (1, 1)
    assert texts(branch(store, "ses_b")) == ["hello from ses_b", "and more"]
    notes = [one.body for one in entries(store, REMEMBERED)]
    assert sum('"ses_a"' in getattr(note, "data", "") for note in notes) == 1


# --- the store ---


def test_progress_is_told_in_files_and_bytes(intake: Intake, recording: Callable[..., Path]) -> None:
    seen: list[IntakeProgress] = []
    paths = [recording("codex.jsonl"), recording("pi-v3.jsonl")]
    intake.remember(paths, seen.append)
    sizes = [path.stat().st_size for path in paths]
    assert [(one.done, one.total, one.bytes_done, one.bytes_total) for one in seen] == [
        (0, 2, 0, sum(sizes)),
        (1, 2, sizes[0], sum(sizes)),
        (2, 2, sum(sizes), sum(sizes)),
    ]


def test_looking_stores_nothing_and_makes_no_file(place: Path, recording: Callable[..., Path]) -> None:
    path = recording()
    with wiring.open_intake(place, looks=True) as looking:
        report = looking.remember([path])
    assert (report.new, report.messages) == (2, report.messages)
    assert not place.exists()
    assert again(place, path) == (2, 0, 1)
    before = place.read_bytes()
    os.utime(path, (7, 7))
    with wiring.open_intake(place, looks=True) as looking:
        report = looking.remember([path])
    assert (report.new, report.grown, report.files) == (0, 0, 1)
    assert place.read_bytes() == before


def test_a_store_in_memory_is_refused() -> None:
    with pytest.raises(BadInput, match="remembers nothing"), wiring.open_intake(":memory:"):
        pass


def test_a_remembered_store_is_sound_and_travels(place: Path, intake: Intake, tmp_path: Path) -> None:
    folder = tmp_path / "some"
    folder.mkdir()
    for name in ("claude-code.jsonl", "codex.jsonl", "pi-v3.jsonl"):
        shutil.copy(FIXTURES / name, folder)
    intake.remember([folder])
    assert faults_of(place) == []
    with contextlib.closing(wiring.open_for_upkeep(place)) as kept:
        upkeep.export_to(kept, str(tmp_path / "all.jsonl"))
    other = tmp_path / "other.pagein"
    with wiring.open_for_import(other) as kept:
        upkeep.import_from(kept, str(tmp_path / "all.jsonl"))
    one, two = SqliteStore(place), SqliteUpkeep(other)
    try:
        assert entries(one, "cc-1") == list(two.entries("cc-1"))
    finally:
        one.close()
        two.close()
    assert again(other, folder) == (0, 0, 0)
    assert KEY not in (tmp_path / "all.jsonl").read_text()
