"""The training of the odds of a quote: the same sessions give the same file, and the file is what the engine reads."""

import math
import random
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import train_reads
from scripts.train_reads import Row, fitted

from pagein.policy.eviction.quote_odds import TERMS, chance, odds_from, packaged_odds
from pagein.policy.eviction.quote_odds_figures import FIGURES

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "demo-session.jsonl.gz"


def judgements(seed: int, count: int) -> list[Row]:
    """Judgements whose quotes follow a known rule: a document is quoted more rarely, a large read more often."""
    chances, rows = random.Random(seed), []  # noqa: S311 -- chance, no secret
    size, document = list(TERMS).index("size"), list(TERMS).index("document")
    for at in range(count):
        values = [0] * len(TERMS)
        values[size], values[document] = chances.randrange(20, 60), chances.randrange(2)
        logit = -4.0 + 0.08 * values[size] - 1.5 * values[document]
        rows.append(Row(f"s{at % 3}", tuple(values), chances.random() < 1 / (1 + math.exp(-logit))))
    return rows


def test_the_fit_finds_the_rule_behind_the_quotes() -> None:
    odds = fitted(judgements(1, 6_000))
    found = dict(odds.coefficients)
    assert found["size"] == pytest.approx(80, abs=10)
    assert found["document"] == pytest.approx(-1_500, abs=200)
    assert odds.intercept == pytest.approx(-4_000, abs=450)
    assert {found[name] for name in TERMS if name not in ("size", "document")} == {0}


def test_the_order_of_the_sessions_changes_nothing() -> None:
    rows = judgements(2, 600)
    mixed = random.Random(3).sample(rows, len(rows))  # noqa: S311
    assert fitted(rows) == fitted(mixed)


def test_the_figures_that_are_written_are_those_that_are_read(tmp_path: Path) -> None:
    odds = fitted(judgements(4, 300))
    target = tmp_path / "figures.py"
    target.write_text(train_reads._text(odds, ["s0"]), encoding="utf-8")
    assert odds_from(runpy.run_path(str(target))["FIGURES"]) == odds
    packaged = packaged_odds()
    assert packaged is not None
    assert train_reads._text(packaged, FIGURES["sources"]) == train_reads.TARGET.read_text(encoding="utf-8")


def test_the_area_under_the_curve_is_that_of_the_order() -> None:
    rows = [
        Row("s", (value, *[0] * (len(TERMS) - 1)), quoted) for value, quoted in ((10, False), (20, True), (30, True))
    ]
    odds = fitted([*rows, *rows])
    assert train_reads._area(rows, lambda _: odds) == 1
    assert train_reads._area([rows[0], Row("s", rows[0].values, quoted=True)], lambda _: odds) == 0.5


def test_the_reads_of_a_session_are_judged_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "figures.py"
    monkeypatch.setattr(train_reads, "TARGET", target)
    assert train_reads.main([str(DEMO), "--jobs", "1"]) == 0
    assert not target.exists()
    assert train_reads.main([str(DEMO), "--jobs", "1", "--write"]) == 0
    odds = odds_from(runpy.run_path(str(target))["FIGURES"])
    assert [name for name, _ in odds.coefficients] == list(TERMS)
    assert 0 < chance(odds.intercept) < 500_000


def test_where_no_read_is_quoted_nothing_is_fitted(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "train_reads.py"), str(tmp_path), "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 our own script
    assert (done.returncode, done.stderr.strip()) == (2, "no read of these sessions is quoted")
