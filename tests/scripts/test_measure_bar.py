"""The bar is measured by one command, on whatever sessions it is given."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _measured(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "measure_bar.py"), *arguments, "--jobs", "1"]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 our own script


@pytest.mark.slow
def test_each_row_is_measured_for_each_policy_and_rows_of_absent_sources_are_empty() -> None:
    done = _measured(str(ROOT / "examples" / "demo-session.jsonl.gz"), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    rows = {row["row"]: row for row in told["rows"]}
    assert told["sessions"] == 1
    assert rows["requests refused; bytes lost"]["pagein"] == "0; 0"
    assert 0 < float(rows["cost, macro, read price .05"]["pagein"]) < 1
    assert rows["control group (tau-airline)"]["pagein"] == ""
    presets = {
        f"pagein-{name}{suffix}" for name in ("balanced", "thrifty") for suffix in ("", "-quiet", "-without-arguments")
    }
    assert {"pagein", "pagein-quiet", *presets} <= set(told["rows"][0])
    assert [name for name in rows if name.startswith("share of the gap")]


def test_where_there_is_nothing_to_measure_that_is_told(tmp_path: Path) -> None:
    done = _measured(str(tmp_path))
    assert (done.returncode, done.stderr.strip()) == (2, "no session could be used")


@pytest.mark.slow
def test_it_is_measured_with_arguments_masked_too() -> None:
    done = _measured(str(ROOT / "examples" / "demo-session.jsonl.gz"), "--json", "--arguments")
    assert done.returncode == 0, done.stderr
    rows = {row["row"]: row for row in json.loads(done.stdout)["rows"]}
    assert 0 < float(rows["cost, macro, read price .05"]["pagein"]) < 1
