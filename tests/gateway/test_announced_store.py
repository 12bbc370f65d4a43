"""Gateways announce their stores; what a killed gateway left behind counts for nothing."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pagein.gateway.announced_store import AnnouncedStore, announce, nearest_store, running_stores

HERE = AnnouncedStore("/data/here.pagein", "/work/project", "http://127.0.0.1:8790", 10.0)
THERE = AnnouncedStore("/data/there.pagein", "/work", "http://127.0.0.1:9000", 20.0)
ANNOUNCE = """
import sys, time
from pathlib import Path
from pagein.gateway.announced_store import AnnouncedStore, announce
with announce(Path(sys.argv[1]), AnnouncedStore("/data/x.pagein", "/w", "http://127.0.0.1:1", 5.0)):
    print("ready", flush=True)
    time.sleep(60)
"""


def test_a_store_is_announced_as_long_as_its_gateway_runs(tmp_path: Path) -> None:
    folder = tmp_path / "gateways"
    assert running_stores(folder) == []
    with announce(folder, HERE):
        assert running_stores(folder) == [HERE]
        with announce(folder, THERE):
            assert running_stores(folder) == [THERE, HERE]
        [file] = folder.iterdir()
        assert (file.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
    assert list(folder.iterdir()) == []


def test_a_killed_gateway_is_gone(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ANNOUNCE, tmp_path], stdout=subprocess.PIPE)  # noqa: S603 - our own
    try:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        assert [one.store for one in running_stores(tmp_path)] == ["/data/x.pagein"]
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert len(list(tmp_path.iterdir())) == 1
    assert running_stores(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_what_others_may_have_written_is_no_announcement(tmp_path: Path) -> None:
    with announce(tmp_path, HERE):
        [file] = tmp_path.iterdir()
        file.chmod(0o640)
        assert running_stores(tmp_path) == []
        file.chmod(0o600)
        (tmp_path / "link.gateway").symlink_to(file)
        assert running_stores(tmp_path) == [HERE]


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", json.dumps({"store": 1}).encode()])
def test_a_damaged_announcement_is_left_out(tmp_path: Path, data: bytes) -> None:
    with announce(tmp_path, HERE):
        [file] = tmp_path.iterdir()
        with file.open("wb") as opened:
            opened.write(data)
        assert running_stores(tmp_path) == []


@pytest.mark.parametrize(
    ("folder", "nearest"),
    [
        ("/work/project", HERE),
        ("/work/project/src", HERE),
        ("/work/other", THERE),
        ("/work/projects", THERE),
        ("/home", THERE),
    ],
)
def test_the_gateway_of_the_nearest_folder_wins_then_the_newest(folder: str, nearest: AnnouncedStore) -> None:
    assert nearest_store([THERE, HERE], folder) == nearest
    assert nearest_store([], folder) is None


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"File exists|Not a directory"), announce(tmp_path / "file", HERE):
        os.abort()
