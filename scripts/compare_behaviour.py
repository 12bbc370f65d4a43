"""Record the behaviour of pagein, and compare it with a later version: a refactoring must not change it.

    python scripts/compare_behaviour.py record FILE [--corpus DIR [--sample N]] [--only SECTION]... [--skip SECTION]...
    python scripts/compare_behaviour.py compare FILE [the same]

`record` writes FILE (a digest and a name a line), FILE.bytes (what was seen, to show differences) and FILE.store (a store as this version
writes it, to be opened by later ones). `compare` does all of it again, prints the first difference with what stands around it, counts the
differences of each section, and exits with 1 where there is one. Both work on the checkout that they lie in, whatever is installed. Clock,
random bytes, folder, settings and environment are the same in every run.
`--corpus` also replays recorded sessions, which takes long: all in DIR, or N of each archive.
The section `words` holds texts for people (help, reference pages, tables): skip it where only the wording changed.
All imports of pagein stand in scripts/behaviour/surfaces.py, and the methods of its Session that are called beside in library.py: where a
name changes, adjust it there.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from scripts.behaviour import scenes, surfaces  # noqa: E402 -- this checkout's own
from scripts.behaviour.records import Comparison, Recording, say  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Record or compare. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--corpus", type=Path, metavar="DIR")
    parser.add_argument("--sample", type=int, metavar="N", help="of each archive of the corpus")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes that replay the corpus")
    parser.add_argument("--only", action="append", choices=sorted(scenes.SECTIONS), metavar="SECTION")
    parser.add_argument("--skip", action="append", choices=sorted(scenes.SECTIONS), metavar="SECTION", default=[])
    parser.add_argument("--few", type=int, metavar="N", help="only the first N files with sessions, for a quick look")
    asked = parser.parse_args(arguments)
    if surfaces.place_of_pagein() != ROOT / "src" / "pagein":
        parser.error(f"pagein comes from {surfaces.place_of_pagein()}, not from this checkout")
    if asked.sample is not None and asked.corpus is None:
        parser.error("--sample is of a --corpus")
    wanted = frozenset(asked.only or scenes.SECTIONS) - frozenset(asked.skip)
    if asked.corpus is None:
        wanted -= {"corpus"}
    began = time.monotonic()
    plan = scenes.Plan(
        ROOT,
        asked.file.absolute(),
        wanted,
        asked.few,
        asked.corpus and asked.corpus.resolve(),
        asked.sample,
        asked.jobs,
    )
    done = _record(plan) if asked.mode == "record" else _compare(plan)
    say(f"{time.monotonic() - began:.0f} s")
    return done


def _record(plan: scenes.Plan) -> int:
    plan.file.parent.mkdir(parents=True, exist_ok=True)
    witness = Recording(plan.file, scenes.conditions(plan))
    scenes.play(plan, witness, keeps=True)
    witness.close()
    for section, count in sorted(witness.counts.items()):
        say(f"{section:10} {count:6} items  {scenes.SECTIONS[section]}")
    say(f"recorded in {plan.file.name}")
    return 0


def _compare(plan: scenes.Plan) -> int:
    witness = Comparison(plan.file, plan.sections)
    changed = {
        name: (was, scenes.conditions(plan)[name])
        for name, was in witness.head.items()
        if scenes.conditions(plan)[name] != was
    }
    if changed:
        say(f"recorded under other conditions, so differences may say nothing: {changed}")
    scenes.play(plan, witness)
    is_same = witness.close()
    for section in sorted({*witness.same, *witness.other}):
        say(
            f"{section:10} {witness.same[section]:6} equal {witness.other[section]:6} other  {scenes.SECTIONS[section]}"
        )
    say("all is as it was" if is_same else f"{witness.other.total()} items differ")
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
