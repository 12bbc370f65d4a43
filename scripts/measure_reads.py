"""Measure the cost of rereads in recorded sessions with the read cache, by source, and check the proof of each answer.

    python scripts/measure_reads.py DIR|ARCHIVE... [--json]

Needs sessions whose host numbers the lines of its reads (Claude Code), best with file snapshots beside them. Main
sessions of 40 blocks and more count, as in the published ceilings. Exit status 1 if the witness objects to anything.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from pagein.model.messages import Message
from pagein.replay.readers import Source, find, read_source, snapshots_beside

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.read_replay import ReadFigures, replay_reads  # found from the root of the repository

_LEAST_BLOCKS = 40


def measure(paths: list[Path]) -> dict[str, tuple[ReadFigures, ReadFigures]]:
    """Per source: what reads alone prove, and what they prove with the text that the model wrote itself."""
    found: dict[str, tuple[ReadFigures, ReadFigures]] = {}
    for path in paths:
        snapshots: Mapping[str, str] = snapshots_beside(path) if path.is_file() else {}
        for source in find([path]):
            if isinstance(source, Source):
                _measure_file(source, snapshots, found)
    return found


def _measure_file(
    source: Source, snapshots: Mapping[str, str], found: dict[str, tuple[ReadFigures, ReadFigures]]
) -> None:
    for session in read_source(source):
        entries = list(session.entries)
        blocks = sum(len(entry.blocks) for entry in entries if isinstance(entry, Message))
        if session.head.parent is not None or blocks < _LEAST_BLOCKS:
            continue
        alone, beside = found.setdefault(session.head.source, (ReadFigures(), ReadFigures()))
        alone.add(replay_reads(entries, snapshots.get, authored=False))
        beside.add(replay_reads(entries, snapshots.get, authored=True))


def row(alone: ReadFigures, beside: ReadFigures) -> dict[str, object]:
    """The figures of a source. Shares are of the characters in read results; `reached` is of the ceiling."""
    chars = alone.chars or 1
    return {
        "reads": alone.reads,
        "of a path read before": alone.again,
        "characters": alone.chars,
        "ceiling": round(alone.repeated / chars, 4),
        "saved": round(alone.saved / chars, 4),
        "reached": round(alone.saved / alone.repeated, 3) if alone.repeated else None,
        "saved with own writing": round(beside.saved / chars, 4),
        "markers and diffs": sum(alone.modes.values()) - alone.modes["full"] - alone.modes["baseline_fallback"],
        "by mode": dict(alone.modes),
        "files rebuilt": round(alone.sources["rebuilt"] / (alone.reads or 1), 3),
        "objections": len(alone.objections) + len(beside.objections),
    }


def _summed(found: Iterable[tuple[ReadFigures, ReadFigures]]) -> tuple[ReadFigures, ReadFigures]:
    alone, beside = ReadFigures(), ReadFigures()
    for one, other in found:
        alone.add(one)
        beside.add(other)
    return alone, beside


def main(arguments: list[str]) -> int:
    paths = [Path(word) for word in arguments if not word.startswith("--")]
    if not paths:
        print(__doc__)
        return 2
    found = {source: figures for source, figures in sorted(measure(paths).items()) if figures[0].reads}
    if len(found) > 1:
        found["all"] = _summed(found.values())
    rows = {source: row(*figures) for source, figures in found.items()}
    if "--json" in arguments:
        print(json.dumps(rows, indent=1))
    else:
        for source, figures in rows.items():
            print(source)
            for name, value in figures.items():
                print(f"  {name:24} {value}")
    return 1 if any(figures["objections"] for figures in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
