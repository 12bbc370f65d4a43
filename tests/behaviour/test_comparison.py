"""The comparison of behaviour reports every change, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scripts.behaviour.records import Comparison, Recording, items_of

ROOT = Path(__file__).resolve().parents[2]
SEEN = [
    ("requests/a/1", b'{"messages": [1]}'),
    ("requests/a/2", b'{"messages": [1, 2, 3]}'),
    ("stores/a", b""),
    ("stores/b", b"x"),
]


@pytest.fixture
def record(tmp_path: Path) -> Path:
    made = Recording(tmp_path / "record", {"python": "3"})
    for name, data in SEEN:
        made.see(name, data)
    made.close()
    return tmp_path / "record"


def compared(record: Path, seen: list[tuple[str, bytes]], *sections: str) -> Comparison:
    comparison = Comparison(record, frozenset(sections or ("requests", "stores")))
    for name, data in seen:
        comparison.see(name, data)
    return comparison


def test_a_record_gives_back_the_bytes_that_were_seen(record: Path) -> None:
    assert list(items_of(record)) == SEEN


def test_the_same_again_is_the_same(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compared(record, SEEN).close()
    assert capsys.readouterr().out == ""


def test_a_section_that_is_not_looked_at_is_not_missed(record: Path) -> None:
    assert compared(record, SEEN[2:], "stores").close()


def test_a_byte_that_changed_is_shown_with_what_stands_around_it(
    record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = [*SEEN[:1], ("requests/a/2", b'{"messages": [1, 2, 4]}'), *SEEN[2:]]
    assert not compared(record, changed).close()
    told = capsys.readouterr().out
    assert "FIRST DIFFERENCE: requests/a/2" in told
    assert "at byte 20 of 23 before, 23 now" in told
    assert "[1, 2, >>>3]}" in told
    assert "[1, 2, >>>4]}" in told


def test_what_is_gone_and_what_is_new_are_differences(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not compared(record, SEEN[:3]).close()
    assert "stores/b\n  was recorded, and is not there any more" in capsys.readouterr().out
    assert not compared(record, [*SEEN, ("stores/c", b"y")]).close()
    assert "stores/c\n  was not recorded" in capsys.readouterr().out


def test_two_runs_of_this_code_are_equal_and_one_against_another_record_is_not(tmp_path: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 -- our own
            [sys.executable, str(ROOT / "scripts" / "compare_behaviour.py"), *words, "--only", "commands"],
            env={**os.environ, "TMPDIR": str(tmp_path)},  # a lock of its own
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    record = tmp_path / "record"
    assert run("record", str(record)).returncode == 0
    assert run("compare", str(record)).returncode == 0
    text = record.read_text()
    record.write_text(text.replace(" commands/replay\n", " commands/replayed\n"))
    done = run("compare", str(record))
    assert done.returncode == 1
    assert "FIRST DIFFERENCE: commands/replay\n  was not recorded" in done.stdout
