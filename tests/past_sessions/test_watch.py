"""The watch: what is recorded meanwhile is remembered, notes are stored when a file is quiet, and failures end nothing."""

from collections.abc import Generator
from pathlib import Path

import pytest
from tests.past_sessions.conftest import Pi, branch, entries, texts

from pagein.errors import StoreError
from pagein.past_sessions.intake import Intake
from pagein.past_sessions.report import RememberReport
from pagein.past_sessions.seen_files import REMEMBERED
from pagein.past_sessions.watch import rounds
from pagein.store.sqlite.sqlite_store import SqliteStore

Looking = Generator[RememberReport | StoreError, None, None]


def watched(intake: Intake, folder: Path, slept: list[float]) -> Looking:
    return rounds(intake, lambda: intake.remember([folder], named=False, holds=True), sleep=slept.append)


def test_what_is_recorded_meanwhile_is_remembered(intake: Intake, store: SqliteStore, tmp_path: Path) -> None:
    pi = Pi(tmp_path / "s" / "s.jsonl")
    pi.user("first")
    slept: list[float] = []
    looking = watched(intake, pi.path.parent, slept)
    first = next(looking)
    pi.answer("second")
    other = Pi(tmp_path / "s" / "t.jsonl", name="pi-2")
    other.user("another session")
    second = next(looking)
    assert isinstance(first, RememberReport)
    assert isinstance(second, RememberReport)
    assert (first.new, second.new, second.grown) == (1, 1, 1)
    assert texts(branch(store, "pi-1")) == ["first", "second"]
    assert texts(branch(store, "pi-2")) == ["another session"]
    assert slept
    assert all(2.0 <= pause <= 60.0 for pause in slept)
    looking.close()


def test_a_file_is_noted_once_it_is_quiet_or_the_watch_ends(intake: Intake, store: SqliteStore, tmp_path: Path) -> None:
    """So the journal of files does not grow with each line that an agent writes."""
    pi = Pi(tmp_path / "s" / "s.jsonl")
    words = iter(["one", "two", "three", "four"])
    noted: list[int] = []

    def agent_writes(_: float) -> None:
        noted.append(len(entries(store, REMEMBERED)))
        if (word := next(words, None)) is not None:
            pi.answer(word)

    pi.user("go")
    looking = rounds(intake, lambda: intake.remember([pi.path.parent], named=False, holds=True), sleep=agent_writes)
    for _ in range(5):
        next(looking)
    assert noted == [0, 0, 0, 0]
    looking.close()
    assert len(entries(store, REMEMBERED)) == 1
    assert texts(branch(store, "pi-1")) == ["go", "one", "two", "three", "four"]


def test_a_failure_of_the_store_is_told_once_and_ends_nothing(tmp_path: Path, intake: Intake) -> None:
    pi = Pi(tmp_path / "s.jsonl")
    pi.user("first")
    failing = [True, True, False]

    def look() -> RememberReport:
        if failing.pop(0):
            raise StoreError("the disk is full")
        return intake.remember([pi.path], holds=True)

    looking = rounds(intake, look, sleep=lambda _: None)
    told = [next(looking), next(looking)]
    assert isinstance(told[0], StoreError)
    assert isinstance(told[1], RememberReport)
    assert told[1].new == 1
    looking.close()


def test_a_bad_file_is_told_once(intake: Intake, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "bad.jsonl").write_bytes(b"\0\1\2")
    pi = Pi(tmp_path / "s" / "s.jsonl")
    pi.user("first")
    looking = watched(intake, tmp_path / "s", [])
    first = next(looking)
    pi.answer("second")
    second = next(looking)
    assert isinstance(first, RememberReport)
    assert isinstance(second, RememberReport)
    assert (len(first.failed), len(second.failed)) == (1, 0)
    looking.close()


@pytest.mark.parametrize(("duration", "pause"), [(0.0, 2.0), (1.0, 10.0), (30.0, 60.0)])
def test_the_pause_is_a_multiple_of_the_work(
    duration: float, pause: float, monkeypatch: pytest.MonkeyPatch, intake: Intake
) -> None:
    clock = iter([0.0, duration, 100.0, 100.0, 200.0])
    monkeypatch.setattr("pagein.past_sessions.watch.time.monotonic", lambda: next(clock))
    slept: list[float] = []
    reports = iter([RememberReport(), RememberReport(new=1)])
    next(rounds(intake, lambda: next(reports), sleep=slept.append))
    assert slept == [pause]
