"""Print the share of lines and branches that the tests reach, by package: `scripts/show_coverage.py FILE`, of `coverage json`."""

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FLOORS: Mapping[str, tuple[int, int]] = {
    "store": (90, 85),
    "policy": (85, 80),
    "engine": (85, 80),
    "tools": (85, 80),
    "ui": (50, 0),
    "all": (80, 75),
}
"""The least per cent of lines and of branches that the tests must reach."""
_FIGURES = ("covered_lines", "num_statements", "covered_branches", "num_branches")


def counts_by_package(report: Mapping[str, Any]) -> dict[str, Counter[str]]:
    """Lines and branches of each package of pagein, and of all, from a report of `coverage json`."""
    found: dict[str, Counter[str]] = {}
    for name, file in report["files"].items():
        below = Path(name).parts[Path(name).parts.index("pagein") + 1 :]
        package = below[0] if len(below) > 1 else "(top level)"
        for row in (package, "all"):
            found.setdefault(row, Counter()).update({key: file["summary"][key] for key in _FIGURES})
    return {row: found[row] for row in sorted(found, key=lambda row: (row == "all", row))}


def shares(counts: Mapping[str, int]) -> tuple[float, float]:
    """Per cent of lines and of branches that were reached; what has none is reached whole."""
    lines, branches = counts["num_statements"], counts["num_branches"]
    return (
        100 * counts["covered_lines"] / lines if lines else 100.0,
        100 * counts["covered_branches"] / branches if branches else 100.0,
    )


def below_floor(package: str, lines: float, branches: float) -> bool:
    """Whether a package is below the least that is asked of it."""
    least_lines, least_branches = FLOORS.get(package, (0, 0))
    return lines < least_lines or branches < least_branches


def main() -> int:
    """Print the table; the status is 1 where a package is below its floor."""
    report = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    status = 0
    print(f"{'package':14}{'lines':>8}{'branches':>10}{'at least':>12}")
    for package, counts in counts_by_package(report).items():
        lines, branches = shares(counts)
        least = "{} / {}".format(*FLOORS[package]) if package in FLOORS else ""
        low = below_floor(package, lines, branches)
        status |= low
        print(f"{package:14}{lines:7.1f}%{branches:9.1f}%{least:>12}{'  too low' if low else ''}")
    return status


if __name__ == "__main__":
    sys.exit(main())
