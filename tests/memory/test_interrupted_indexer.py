"""kill -9 while objects are made from journals: the next run completes them, and nothing is there twice."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.memory.journal_stories import tell
from tests.memory.test_indexer import links, stories_of, versions

from pagein.memory.indexer import Indexer
from pagein.memory.projection_check import projection_faults
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.store_soundness import faults_of

STEPS = 400
INDEX = "import sys; from pagein import wiring; from pagein.memory.indexer import Indexer; Indexer(wiring.open_for_upkeep(sys.argv[1])).catch_up()"


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the journals of two sessions, and no objects."""
    path = tmp_path_factory.mktemp("journals") / "one.pagein"
    store, (stories, random_) = SqliteStore(path), stories_of(11)
    for _ in tell(store, stories, random_, STEPS):
        pass
    store.close()
    return path


def interrupt(place: Path, journals: Path, kills: int, seed: int) -> int:
    """Start the indexer so many times, and end it at a random moment. Returns how often it had begun and not ended."""
    drawn, in_between = random.Random(seed), 0  # noqa: S311 - drawn moments
    for _ in range(kills):
        if not place.exists() or drawn.random() < 0.2:  # else all would be done soon, and nothing left to interrupt
            for old in place.parent.glob(f"{place.name}*"):
                old.unlink()
            shutil.copy(journals, place)
        process = subprocess.Popen([sys.executable, "-c", INDEX, str(place)])  # noqa: S603 - our own command
        while process.poll() is None and not place.with_name(f"{place.name}-wal").exists():
            time.sleep(0.002)
        time.sleep(drawn.uniform(0.0, 0.4))
        in_between += process.poll() is None
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
    return in_between


def assert_complete(place: Path, journals: Path) -> None:
    whole = journals.with_name("whole.pagein")
    if not whole.exists():
        shutil.copy(journals, whole)
        made = SqliteStore(whole)
        Indexer(made).catch_up()
        made.close()
    store, other = SqliteUpkeep(place), SqliteUpkeep(whole)
    Indexer(store).catch_up()
    assert list(projection_faults(store)) == []
    assert (versions(store), links(store)) == (versions(other), links(other))
    store.close()
    other.close()
    assert faults_of(place) == []


@pytest.mark.slow
def test_after_many_kills_the_objects_are_complete(journals: Path, tmp_path: Path) -> None:
    assert interrupt(tmp_path / "one.pagein", journals, 60, 1) > 20
    assert_complete(tmp_path / "one.pagein", journals)


@pytest.mark.parametrize("seed", [2, 3])
def test_after_a_few_kills_the_objects_are_complete(seed: int, journals: Path, tmp_path: Path) -> None:
    interrupt(tmp_path / "one.pagein", journals, 4, seed)
    assert_complete(tmp_path / "one.pagein", journals)
