import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pagein.cli.cli import main
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.upkeep_contract import note_entry

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs `pagein` on a store with a session that has ended, one that has not, and garbage."""
    store = SqliteUpkeep(tmp_path / "one.pagein")
    store.append("old\x1b[31m", [note_entry("a")])
    store.append("live", [note_entry("a")])
    store.put_many([b"of no use", b"of no use either"])
    store.close()
    monkeypatch.setenv("PAGEIN_STORE", str(tmp_path / "one.pagein"))

    def running(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["pagein", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        return int(left.value.code or 0), *capfd.readouterr()

    return running


def test_gc_without_apply_shows_its_plan_and_deletes_nothing(run: Run) -> None:
    for _ in range(2):
        status, out, err = run("gc", "--end", "old\x1b[31m", "--older-than", "0d")
        assert (status, err) == (0, "pagein: session old?[31m has ended\n")
        assert "session  old?[31m  unused for 0 days, " in out
        assert "would delete 1 session, 0 objects and 2 blobs, which take " in out
        assert out.endswith("--apply does it\n")


def test_gc_with_apply_deletes_ended_sessions(run: Run) -> None:
    run("gc", "--end", "old\x1b[31m")
    status, out, _ = run("gc", "--older-than", "0d", "--apply", "--json")
    answer = json.loads(out)
    assert status == 0
    assert (answer["applied"], answer["sessions"], answer["blobs"]) == (True, ["old\x1b[31m"], 2)
    assert answer["bytes"] > 0
    (row,) = answer["rows"]
    assert (row["session"], row["why"]) == ("old\x1b[31m", "unused for 0 days")
    status, out, _ = run("gc", "--json")
    assert (json.loads(out)["sessions"], json.loads(out)["blobs"]) == ([], 0)
    assert run("check", "-q")[0] == 0


def test_gc_tells_how_much_smaller_the_store_became_where_nothing_is_deleted(run: Run, tmp_path: Path) -> None:
    run("gc", "--apply")
    store = SqliteUpkeep(tmp_path / "one.pagein")
    same = " ".join(f"{number * number:x}" for number in range(400))
    said = [json.dumps({"said": f"{number} {same}"}) for number in range(300)]
    store.append("long", [note_entry(f"e{at}", f"e{at - 1}" if at else None, one) for at, one in enumerate(said)])
    store.close()
    planned = json.loads(run("gc", "--json")[1])
    assert (planned["sessions"], planned["blobs"], planned["bytes"], planned["bytes_after"]) == ([], 0, 0, None)
    done = json.loads(run("gc", "--apply", "--json")[1])
    assert (done["sessions"], done["blobs"]) == ([], 0)
    assert done["bytes_before"] == planned["bytes_before"]
    assert done["bytes"] == done["bytes_before"] - done["bytes_after"] > 0
    out = run("gc", "--apply")[1]
    assert out.endswith(f"take {done['bytes_after']:,} bytes, {done['bytes_after']:,} before\n")


@pytest.mark.parametrize(("idle", "count"), [("0h", 2), ("30d", 0), ("1w", 0)])
def test_a_session_untouched_for_so_long_has_ended(run: Run, idle: str, count: int) -> None:
    _, out, _ = run("gc", "--idle", idle, "--older-than", "0h", "--json")
    assert len(json.loads(out)["sessions"]) == count


@pytest.mark.parametrize(("quota", "count"), [("0", 1), ("1k", 0), ("1.5G", 0), ("10MB", 0)])
def test_a_quota_is_a_size(run: Run, quota: str, count: int) -> None:
    run("gc", "--end", "live")
    _, out, _ = run("gc", "--quota", quota, "--json")
    assert len(json.loads(out)["sessions"]) == count


def test_the_name_of_an_ended_session_may_be_abbreviated(run: Run) -> None:
    assert run("gc", "--end", "liv")[0] == 2
    assert run("gc", "--end", "live")[2] == "pagein: session live has ended\n"
    status, _, err = run("gc", "--end", "old\x1b")
    assert (status, err) == (0, "pagein: session old?[31m has ended\n")
