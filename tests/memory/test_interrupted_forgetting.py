"""kill -9 while a text is forgotten: it is wholly there or wholly gone, and whoever comes next makes the dropped objects again."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.memory.journal_stories import SessionStory, tell
from tests.memory.test_forgotten_objects import LINES, SAID, IndiscreetStory, shown
from tests.memory.test_indexer import versions

from pagein import erasure
from pagein.memory.indexer import Indexer
from pagein.memory.remade_objects import RemadeObjects
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.store_soundness import faults_of
from pagein.upkeep import check_store, reindex
from pagein.wiring import layers_of

STEPS = 160
FORGET = """import sys; from pathlib import Path; from pagein import erasure, wiring
store = wiring.open_for_forgetting(Path(sys.argv[1]), workspace=Path(sys.argv[1]).parent)
erasure.forget_texts(store, sys.argv[2:], Path(sys.argv[1]), Path(sys.argv[1] + ".log"), lambda told: print(told, flush=True))"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with sessions that tell secrets, and one that has nothing to do with them."""
    path = tmp_path_factory.mktemp("told") / "one.pagein"
    dice = random.Random(5)  # noqa: S311 - not for secrets
    with closing(SqliteUpkeep(path)) as store:
        for _ in tell(store, [IndiscreetStory(name, dice) for name in "ab"], dice, STEPS):
            pass
        for _ in tell(store, [SessionStory("c", dice)], dice, 20):
            pass
        Indexer(store).save_open_chats(9_000.0)
        assert shown(store, SAID)
    return path


def kill_after(path: Path, phase: str, seconds: float) -> None:
    """Forget the texts, and end the process so many seconds after it began a phase."""
    command = [sys.executable, "-c", FORGET, str(path), SAID, LINES]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own command
        assert process.stdout is not None
        while (line := process.stdout.readline().strip()) != phase:
            assert line, "it ended before"
        time.sleep(seconds)
        os.kill(process.pid, signal.SIGKILL)


def look(path: Path, whole: int) -> tuple[bool, bool]:
    """What a check finds in a store whose forgetting was ended: whether the text is gone, and whether objects are still made again."""
    with closing(SqliteUpkeep(path)) as store:
        places = shown(store, SAID, LINES)
        assert len(places) in (0, whole)
        assert check_store(store).findings == []
        is_unfinished = RemadeObjects.load(store) is not None
        assert not (is_unfinished and places)
        assert bool(Indexer(store).behind()) == is_unfinished
    return not places, is_unfinished


def finish(path: Path, *, by_indexer: bool) -> None:
    """Go on, as a gateway does that follows the journals, or as the person does who gives the order again."""
    with closing(SqliteUpkeep(path)) as store:
        if by_indexer:
            assert Indexer(store).save_open_chats(9_100.0).behind == 0
            assert check_store(store).findings == []
        assert erasure.forget_texts(store, (SAID, LINES), path, path.with_name("log")).left == []
        assert shown(store, SAID, LINES) == []
        assert check_store(store).findings == []
        made = versions(store)
        reindex(store, layers_of(store))
        assert versions(store) == made
    assert faults_of(path) == []


@pytest.mark.parametrize("seed", range(3))
def test_a_forgetting_that_was_killed_leaves_all_or_nothing_and_is_finished_by_others(
    seed: int, told: Path, tmp_path: Path
) -> None:
    drawn = random.Random(seed)  # noqa: S311 - drawn moments
    with closing(SqliteUpkeep(told)) as store:
        whole = len(shown(store, SAID, LINES))
    seen = set[tuple[bool, bool]]()
    for number in range(4):
        path = tmp_path / f"{number}.pagein"
        shutil.copy(told, path)
        phase = ("looking for it in the store", "making objects again")[number % 2]
        kill_after(path, phase, drawn.uniform(0.0, 0.5 if number % 2 == 0 else 0.05))
        seen.add(look(path, whole))
        finish(path, by_indexer=number > 1)
    assert (True, True) in seen, "none was ended while objects were made again"


def test_a_store_whose_objects_are_made_again_forgets_another_text(told: Path, tmp_path: Path) -> None:
    path = tmp_path / "one.pagein"
    shutil.copy(told, path)
    kill_after(path, "making objects again", 0.05)
    assert look(path, 0)[1]
    with closing(SqliteUpkeep(path)) as store:
        other = "please do b"
        erasure.forget_texts(store, (other,), path, tmp_path / "log")
        assert shown(store, other) == []
    finish(path, by_indexer=False)


def test_the_objects_are_made_again_in_many_transactions(told: Path, tmp_path: Path) -> None:
    """Work counted: what is left is told with each transaction, and each follows at most a page of places."""
    path = tmp_path / "one.pagein"
    shutil.copy(told, path)
    reached: list[int] = []

    class WatchedStore(SqliteUpkeep):
        def set_layer(self, name: str, place: int, version: str) -> None:
            if name == "memory.again":
                reached.append(place)
            super().set_layer(name, place, version)

    with closing(WatchedStore(path)) as store:
        erasure.forget_texts(store, (SAID,), path, tmp_path / "log")
        places = [one for one in reached if one > 0]
        assert len(places) > 3
        assert places == sorted(set(places))
        assert check_store(store).findings == []
