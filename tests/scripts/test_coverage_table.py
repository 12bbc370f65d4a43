"""The table of what tests reach, by package."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def file(*, lines: tuple[int, int], branches: tuple[int, int]) -> dict[str, dict[str, int]]:
    figures = ("covered_lines", "num_statements", "covered_branches", "num_branches")
    return {"summary": dict(zip(figures, (*lines, *branches), strict=True))}


def shown(folder: Path, files: dict[str, object]) -> tuple[int, list[list[str]]]:
    report = folder / "report.json"
    report.write_text(json.dumps({"files": files}))
    command = [sys.executable, str(ROOT / "scripts" / "show_coverage.py"), str(report)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own script
    return done.returncode, [line.split() for line in done.stdout.splitlines()[1:]]


def test_files_are_summed_up_by_package(tmp_path: Path) -> None:
    status, rows = shown(
        tmp_path,
        {
            "src/pagein/store/sql/rows.py": file(lines=(90, 100), branches=(9, 10)),
            "src/pagein/store/memory.py": file(lines=(100, 100), branches=(10, 10)),
            "src/pagein/ports.py": file(lines=(50, 50), branches=(0, 0)),
        },
    )
    assert status == 0
    assert [row[:3] for row in rows] == [
        ["(top", "level)", "100.0%"],
        ["store", "95.0%", "95.0%"],
        ["all", "96.0%", "95.0%"],
    ]


def test_a_package_below_its_floor_is_an_error(tmp_path: Path) -> None:
    status, rows = shown(tmp_path, {"src/pagein/store/sql/rows.py": file(lines=(100, 100), branches=(8, 10))})
    assert status == 1
    assert rows[0] == ["store", "100.0%", "80.0%", "90", "/", "85", "too", "low"]
