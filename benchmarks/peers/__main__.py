"""Peers and pagein on the same sessions: `python -m benchmarks.peers [--sessions PATH...] [--prices SPEC...] [--only NAME...]`.

Writes docs/reference/benchmarks.md and out/peers.json. With `--only`, which leaves peers out, only the latter.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from benchmarks.peers.arms import ARMS, ROOT
from benchmarks.peers.comparing import compare
from benchmarks.peers.page import figures, page
from benchmarks.peers.sessions import load

from pagein.providers.prices.price_lookup import prices

DEMO = ROOT / "examples" / "demo-session.jsonl.gz"
PRICES = ("generic:r=.1,w=1.25", "generic:r=.05,w=1.25")
OUT, PAGE = ROOT / "out", ROOT / "docs" / "reference" / "benchmarks.md"


def main(arguments: list[str]) -> int:
    """Compare and write. Returns the exit status: 2 where no session could be used."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument(
        "--sessions", nargs="+", type=Path, default=[DEMO], help="files or folders of recorded sessions"
    )
    parser.add_argument("--prices", nargs="+", default=list(PRICES), help="price tables, as for pagein replay")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help=f"peers: {', '.join({arm.peer.name: 0 for arm in ARMS})}"
    )
    asked = parser.parse_args(arguments)
    arms = [arm for arm in ARMS if not asked.only or arm.peer.name in asked.only]
    sessions, skipped = load(asked.sessions)
    for one in skipped:
        print(f"skipped {one.file}: {one.reason}", file=sys.stderr)
    if not sessions:
        print("no session could be used", file=sys.stderr)
        return 2
    tables = [prices(spec) for spec in asked.prices]
    compared = compare(sessions, tables, arms, OUT / "peers", lambda what: print(what, file=sys.stderr, flush=True))
    date = time.strftime("%Y-%m-%d")
    (OUT / "peers.json").write_text(json.dumps(figures(compared, date), indent=1) + "\n", encoding="utf-8")
    written = page(compared, arms, date)
    if asked.only:
        print(written)
    else:
        PAGE.write_text(written, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
