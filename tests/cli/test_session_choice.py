"""`pagein replay` without arguments, before a terminal."""

import os
import pty
import select
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from pagein.ui.figures import plain

CTRL_C = b"\x03"


@dataclass(frozen=True, slots=True)
class Talk:
    """What a terminal showed, and how the command ended."""

    status: int
    shown: str


def talk(home: Path, answer: bytes) -> Talk:
    """Run the command on a pseudo-terminal and answer its question."""
    child, terminal = pty.fork()
    if child == 0:
        env = {"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "dumb", "COLUMNS": "100"}
        os.execve(sys.executable, [sys.executable, "-m", "pagein", "replay", "--quiet"], env)  # noqa: S606 - our own command
    shown, answered, until = b"", False, time.monotonic() + 300
    while time.monotonic() < until:
        if not select.select([terminal], [], [], 1)[0]:
            if answered and answer == CTRL_C:  # one that comes right before it waits for a key is seen with the next
                os.write(terminal, answer)
            continue
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the far end is closed
            break
        if not part:
            break
        shown += part
        if not answered and b"Which?" in shown:
            os.write(terminal, answer)
            answered = True
    os.close(terminal)
    return Talk(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shown.decode())


@pytest.fixture
def home(tmp_path: Path, session: Path) -> Path:
    """A home folder in which pi keeps three sessions of one size and different ages."""
    folder = tmp_path / "home" / ".pi" / "agent" / "sessions" / "--repo--"
    folder.mkdir(parents=True)
    for number in range(3):
        path = folder / f"session-{number}.jsonl"
        path.write_bytes(session.read_bytes())
        os.utime(path, (time.time() - 3600 * number, time.time() - 3600 * number))
    return tmp_path / "home"


def test_own_sessions_are_listed_newest_first_and_the_chosen_one_is_replayed(home: Path) -> None:
    said = talk(home, b"2\n")
    listed = said.shown.partition("Which?")[0]
    rows = [line.split() for line in listed.splitlines() if line[:1].isdigit()]
    assert [row[0] for row in rows] == ["1", "2", "3"]
    assert [" ".join(row[1:3]) for row in rows][1:] == ["1 h", "2 h"]
    assert said.status == 0
    assert "This session cost " in said.shown


def test_several_may_be_chosen(home: Path) -> None:
    assert "These 2 sessions cost " in talk(home, b"1,3\n").shown


def test_a_choice_off_the_list_is_status_two(home: Path) -> None:
    said = talk(home, b"7\n")
    assert said.status == 2
    assert "the numbers 1 to 3" in said.shown


def test_ctrl_c_at_the_question_ends_quietly_with_130(home: Path) -> None:
    said = talk(home, CTRL_C)
    assert said.status == 130
    assert "Traceback" not in plain(said.shown)
