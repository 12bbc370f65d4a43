"""Make examples/demo-session.jsonl.gz: a scripted agent does real work on the source of click.

    python -m scripts.make_demo_session            write the recording
    python -m scripts.make_demo_session --check    play it again and compare with the one in the repository

Run it in the repository root. The screenplay stands in scripts/demo_session/screenplay/: what the agent says and which
tool it calls is written there, what the tools answer is not; it comes from running them in a temporary copy of the
source. Needs git, bash and, the first time, the network (pip).
"""

import argparse
import difflib
import gzip
import sys
import tempfile
from itertools import islice
from pathlib import Path

from scripts.demo_session.recording import record
from scripts.demo_session.screenplay import read_scenes
from scripts.demo_session.stage import fetch, set_up

_ROOT = Path(__file__).resolve().parents[1]
_SCREENPLAY = Path(__file__).resolve().parent / "demo_session" / "screenplay"
_OUT = _ROOT / "examples" / "demo-session.jsonl.gz"
_CACHE = _ROOT / "out" / "demo-session"
_SHOWN_DIFFERENCES = 40


def make(cache: Path) -> str:
    """Play the screenplay in a fresh folder and return the recording."""
    supplies = fetch(cache)
    with tempfile.TemporaryDirectory(prefix="pagein-demo-") as folder:
        return record(read_scenes(_SCREENPLAY), set_up(supplies, Path(folder)))


def check(made: str, out: Path) -> int:
    """0 if the recording at `out` is what was made, else 1 and the first differences."""
    kept = gzip.decompress(out.read_bytes()).decode("utf-8")
    if made == kept:
        print(f"{out.name}: the same, {len(made):,} characters")
        return 0
    lines = difflib.unified_diff(kept.splitlines(), made.splitlines(), out.name, "made now", n=0, lineterm="")
    for line in islice(lines, _SHOWN_DIFFERENCES):
        print(line[:300])
    return 1


def main() -> int:
    """Parse the command line and write or check."""
    parser = argparse.ArgumentParser(description="Make the demo session by letting a scripted agent work.")
    parser.add_argument("--check", action="store_true", help="compare with the file instead of writing it")
    parser.add_argument("--out", type=Path, default=_OUT, help="the recording (default: %(default)s)")
    parser.add_argument("--cache", type=Path, default=_CACHE, help="where downloads are kept (default: %(default)s)")
    asked = parser.parse_args()
    made = make(asked.cache)
    if asked.check:
        return check(made, asked.out)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_bytes(gzip.compress(made.encode("utf-8"), 9, mtime=0))
    print(
        f"{asked.out.name}: {made.count(chr(10))} lines, {len(made):,} characters, {asked.out.stat().st_size:,} bytes packed"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
