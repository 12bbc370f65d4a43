"""kill -9, a full disk, a store that cannot be written: what was acknowledged is there, and nothing is there by half."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

TORTURE = Path(__file__).with_name("crash_runs.py")


def tortured(kind: str, folder: Path, seed: int, rounds: int) -> dict[str, int]:
    command = [sys.executable, str(TORTURE), kind, str(folder), str(seed), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, int] = json.loads(done.stdout)
    return answer


def test_acknowledged_writes_survive_kill_9_of_concurrent_writers(tmp_path: Path) -> None:
    """Two hundred times and more; the long one is below."""
    done = tortured("writers", tmp_path, 1, 70)
    assert done["kills"] == 210
    assert done["acknowledged"] > 100


@pytest.mark.slow
def test_acknowledged_writes_survive_many_kills(tmp_path: Path) -> None:
    """Longer still by hand: `python tests/store/crash_runs.py writers FOLDER SEED ROUNDS`."""
    assert tortured("writers", tmp_path, 2, 250)["kills"] == 750


def test_several_processes_can_create_one_store_at_the_same_time(tmp_path: Path) -> None:
    """One that found the tables of another before it knew whose they were took them for somebody else's."""
    assert tortured("makers", tmp_path, 1, 30)["made"] == 30


def test_an_import_and_a_collection_happen_whole_or_not_at_all(tmp_path: Path) -> None:
    done = tortured("upkeep", tmp_path, 1, 6)
    assert done["kills"] == 12


@pytest.mark.slow
def test_an_import_and_a_collection_happen_whole_or_not_at_all_for_long(tmp_path: Path) -> None:
    done = tortured("upkeep", tmp_path, 2, 36)
    assert done["kills"] == 72
    assert 0 < done["imports"] < 36
    assert 0 < done["collections"] < 36


def test_a_full_disk_loses_no_content_and_is_used_again_when_space_is_free(tmp_path: Path) -> None:
    assert tortured("full", tmp_path, 1, 15)["refused"] == 45


def test_a_store_that_cannot_be_written_costs_the_agent_nothing_but_savings() -> None:
    """Puts, collections, three reads and a request: each says so in words, and reads and requests go on."""
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to others
        assert tortured("readonly", Path(folder), 3, 1)["refused"] == 6
