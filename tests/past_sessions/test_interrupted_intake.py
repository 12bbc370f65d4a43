"""kill -9 in the middle, and several at once: the next intake completes it, and nothing is there twice."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.past_sessions.conftest import Pi, branch, entries, texts

from pagein import wiring
from pagein.past_sessions.seen_files import REMEMBERED
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing.store_soundness import faults_of

SESSIONS = 6
TURNS = 150


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sessions that are taken in several transactions each."""
    folder = tmp_path_factory.mktemp("recorded")
    for number in range(SESSIONS):
        pi = Pi(folder / f"s{number}.jsonl", name=f"pi-{number}")
        for turn in range(TURNS):
            pi.user(f"question {turn} of {number}")
            pi.call(f"c{turn}", "bash", {"command": f"make {turn}"}, f"made {turn}\n" * 40)
    return folder


def started(folder: Path, place: Path, jobs: int = 1) -> "subprocess.Popen[bytes]":
    command = [
        sys.executable,
        "-m",
        "pagein",
        "remember",
        str(folder),
        "--store",
        str(place),
        "--quiet",
        "--jobs",
        str(jobs),
    ]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # noqa: S603 - our own command


def assert_whole(folder: Path, place: Path) -> None:
    store = SqliteStore(place)
    try:
        for number in range(SESSIONS):
            found = entries(store, f"pi-{number}")
            assert len(found) == 2 + 3 * TURNS
            assert branch(store, f"pi-{number}") == found
            assert texts(found)[0] == f"question 0 of {number}"
        files = {getattr(one.body, "note").file for one in entries(store, REMEMBERED)}  # noqa: B009 - of a note
        assert files == {str(path) for path in folder.iterdir()}
    finally:
        store.close()
    assert faults_of(place) == []


def interrupted(folder: Path, place: Path, kills: int, seed: int, jobs: int) -> int:
    """Start and end the command so many times. Returns how often it was at work."""
    drawn, at_work = random.Random(seed), 0  # noqa: S311 - drawn moments
    for _ in range(kills):
        process = started(folder, place, jobs)
        began = time.monotonic()
        while not place.exists() and process.poll() is None and time.monotonic() - began < 60:
            time.sleep(0.005)
        time.sleep(drawn.uniform(0.0, 0.25))
        at_work += process.poll() is None
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        if place.exists() and drawn.random() < 0.2:  # else all would be done soon, and nothing left to interrupt
            for path in place.parent.glob(f"{place.name}*"):
                path.unlink()
    return at_work


@pytest.mark.slow
def test_after_many_kills_the_next_intake_completes_everything(recorded: Path, place: Path) -> None:
    assert interrupted(recorded, place, 40, 1, 1) > 20
    with wiring.open_intake(place) as intake:
        assert intake.remember([recorded]).failed == ()
        assert intake.remember([recorded]).files == 0
    assert_whole(recorded, place)


@pytest.mark.parametrize("jobs", [1, 2])
def test_after_a_few_kills_the_next_intake_completes_everything(jobs: int, recorded: Path, place: Path) -> None:
    interrupted(recorded, place, 4, 2, jobs)
    with wiring.open_intake(place) as intake:
        intake.remember([recorded])
    assert_whole(recorded, place)


def test_ctrl_c_ends_at_once_and_the_next_intake_goes_on(recorded: Path, place: Path) -> None:
    process = started(recorded, place)
    while not place.exists():
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode in (0, 130)  # 0: it was done already
    assert b"Traceback" not in told
    with wiring.open_intake(place) as intake:
        intake.remember([recorded])
    assert_whole(recorded, place)


def test_two_at_once_take_nothing_twice(recorded: Path, place: Path) -> None:
    both = [started(recorded, place) for _ in range(2)]
    for process in both:
        _, told = process.communicate(timeout=120)
        assert process.returncode == 0
        # one makes the objects, and the other may have waited for it in vain
        assert told == b"" or told.startswith(b"pagein: not all objects are made yet, the next question makes them")
    assert_whole(recorded, place)


def test_worker_processes_take_the_same(recorded: Path, place: Path) -> None:
    with wiring.open_intake(place, jobs=2) as intake:
        report = intake.remember([recorded])
        assert (report.new, report.files, report.messages) == (SESSIONS, SESSIONS, SESSIONS * 3 * TURNS)
        assert intake.remember([recorded]).files == 0
    assert_whole(recorded, place)


def test_a_part_of_a_session_is_completed(recorded: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same without chance: the process ends between two transactions of one session."""

    class Killed(BaseException):
        pass

    kept = SqliteStore.append
    left = [1]

    def append(self: SqliteStore, session: str, some: list[object]) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return kept(self, session, some)  # type: ignore[arg-type]

    monkeypatch.setattr(SqliteStore, "append", append)
    with wiring.open_intake(place) as intake, pytest.raises(Killed):
        intake.remember([recorded])
    monkeypatch.undo()
    with wiring.open_intake(place) as intake:
        report = intake.remember([recorded])
    assert (report.new, report.grown) == (SESSIONS - 1, 1)
    assert_whole(recorded, place)
