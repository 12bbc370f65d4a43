"""Worker processes: their results and their ends."""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pagein.replay.readers import Source
from pagein.replay.workers import workers

HANDSHAKE = 120.0


def _name(source: Source) -> str:
    if source.label == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    return source.label


def _folder(_: Source) -> str:
    return tempfile.mkdtemp()


def _sleep(source: Source) -> str:
    assert source.path is not None
    (source.path / str(os.getpid())).touch()
    time.sleep(600)
    return source.label


def _died(source: Source) -> str:
    return f"{source.label} died"


def _sources(*labels: str) -> Iterator[Source]:
    return (Source(label) for label in labels)


@pytest.mark.parametrize("jobs", [1, 2])
def test_outcomes_come_in_order(jobs: int) -> None:
    labels = [str(number) for number in range(20)]
    with workers(jobs, _died) as spread:
        assert list(spread(_name, _sources(*labels))) == labels


def _process(_: Source) -> str:
    return str(os.getpid())


def test_one_small_source_alone_starts_no_process() -> None:
    small, big = Source("small", content=b"x"), Source("big", content=b"x" * 5_000_000)
    here = str(os.getpid())
    with workers(0, _died) as spread:
        assert list(spread(_process, iter([small]))) == [here]
        assert list(spread(_process, iter([big]))) != [here]
        assert here not in list(spread(_process, iter([small, small])))
    with workers(2, _died) as spread:
        assert list(spread(_process, iter([small]))) != [here]


def test_a_source_that_takes_its_process_down_is_named_and_no_other_is_lost() -> None:
    labels = [*"abcd", "deadly", *"efghijklm"]
    with workers(2, _died) as spread:
        found = list(spread(_name, _sources(*labels)))
        assert found == [*"abcd", "deadly died", *"efghijklm"]
        assert list(spread(_name, _sources("x", "y"))) == ["x", "y"]


def test_temporary_files_of_workers_are_gone_afterwards() -> None:
    with workers(2, _died) as spread:
        folders = list(spread(_folder, _sources(*"abc")))
        assert all(Path(folder).is_dir() for folder in folders)
    assert not any(Path(folder).exists() for folder in folders)


def test_an_interruption_does_not_wait_for_what_is_running(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt), workers(2, _died) as spread:
        next(spread(_sleep, _interrupted(tmp_path)))
    assert time.monotonic() - started < HANDSHAKE
    assert not any(_alive(int(path.name)) for path in tmp_path.iterdir())


def _interrupted(folder: Path) -> Iterator[Source]:
    yield Source("slow", folder)
    _until_someone_works(folder)
    raise KeyboardInterrupt


def test_workers_do_not_outlive_a_parent_that_was_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, __file__, str(tmp_path)])  # noqa: S603 - this very file
    _until_someone_works(tmp_path)
    parent.kill()
    parent.wait()
    workers_of_it = [int(path.name) for path in tmp_path.iterdir()]
    deadline = time.monotonic() + HANDSHAKE
    while any(map(_alive, workers_of_it)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _until_someone_works(folder: Path) -> None:
    deadline = time.monotonic() + HANDSHAKE
    while not any(folder.iterdir()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _alive(pid: int) -> bool:
    """Whether a process runs. One that has ended and waits to be noticed does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)  # noqa: S603, S607 - whichever ps there is
    return status.stdout.strip()[:1] not in ("Z", "")


if __name__ == "__main__":
    with workers(2, _died) as pool:
        list(pool(_sleep, iter([Source("slow", Path(sys.argv[1]))])))
    assert multiprocessing.parent_process() is None
