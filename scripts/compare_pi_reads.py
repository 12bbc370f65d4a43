"""Compare the answers of pagein's extension in a real pi with the measured answers of the published read cache 0.2.0 for pi.

    python scripts/compare_pi_reads.py

Needs the agents: `make clients`. Prints each case with the published answer, that of pagein, and whether they are the same; a
case that differs is explained in docs/reference/pi.md. Exit status 1 where the differing cases are others than those explained there.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.agents import commands_folder  # found from the root of the repository
from tests.agents.pi_process import PiPlace, PiProcess, running_pi

from pagein.simulator import SimulatedProvider

Step: TypeAlias = tuple[str | bytes | dict[str, object], str]
"""A text that the file gets, or a read, and the published answer: its mode, `-` for no record, or the text behind `=`."""
GIVEN: Final = "="
TEN: Final = "".join(f"line {number}\n" for number in range(1, 10)) + "line 10"
LONG: Final = "".join(f"line {number} :: original text payload\n" for number in range(1, 301))[:-1]
MANY: Final = "\n".join(f"line {number}" for number in range(1, 401))


def lines(count: int) -> str:
    """So many lines, without a last end of line."""
    return "\n".join(f"line {number}" for number in range(1, count + 1))


def at(offset: float | None = None, limit: float | None = None, suffix: str = "") -> dict[str, object]:
    """A read of the case's file."""
    given = {"offset": offset, "limit": limit}
    return {"suffix": suffix, **{name: value for name, value in given.items() if value is not None}}


CASES: Final[dict[str, Sequence[Step]]] = {
    "1": ((lines(2500), ""), (at(), "full"), (at(2001), "=[readcache: unchanged in lines 2001-2500 of 2500]")),
    "2": (("", ""), (at(), "full"), (at(), "=[readcache: unchanged, 1 lines]"), ("hello\nworld\n", ""), (at(), "baseline_fallback")),
    "3": ((b"\xef\xbb\xbf" + LONG.encode(), ""), (at(), "full"), (LONG, ""), (at(), "baseline_fallback")),
    "4": (("x", ""), (at(), "full"), (at(), "=[readcache: unchanged, 1 lines]")),
    "5": ((TEN, ""), (at(suffix=":1-8"), "full"), (at(suffix=":2-4"), "full"), (at(9), "full"), (at(), "full")),
    "7": (("1\n2\n3", ""), (at(0), "=1\n2\n3"), (at(limit=0), "=\n\n[3 more lines in file. Use offset=1 to continue.]")),
    "7d": (("1\n2\n3", ""), (at(9), "=Offset 9 is beyond end of file (3 lines total)")),
    "7f": (
        ("1\n2\n3", ""),
        (at(suffix=":0"), '=Invalid start line number "0". Line numbers must be positive integers.'),
        (at(suffix=":3-"), '=Invalid range suffix "3-". Use :<start> or :<start>-<end>.'),
        (at(suffix=":8-2"), '=Invalid range "8-2": end line must be greater than or equal to start line.'),
    ),
    "7h": (("1\n2\n3", ""), (at(suffix=":2"), "full"), (at(suffix=":2-99"), "=[readcache: unchanged in lines 2-3 of 3]")),
    "8": ((TEN + "\n", ""), (at(), "full"), (at(suffix=":1-10"), "=[readcache: unchanged in lines 1-10 of 11]")),
    "8d": (("1\r\n2\r\n3\r\n", ""), (at(), "full"), ("1\n2\n3\n", ""), (at(), "baseline_fallback")),
    "13": ((lines(300), ""), (at(suffix=":10-20"), "full"), (lines(15), ""), (at(suffix=":10-20"), "full")),
    "14": (("y" * 60_000 + "\nz", ""), (at(), "full"), (at(), "=[readcache: unchanged, 2 lines]")),
    "15": ((LONG, ""), (at(), "full"), (LONG.replace("line 200 ::", "line two ::"), ""), (at(), "diff")),
    "17": (("1\n2\n3", ""), (at(), "full"), ("1\ntwo\n3", ""), (at(), "baseline_fallback")),
    "18": (
        (MANY, ""),
        (at(), "full"),
        (at(160, 90), "unchanged_range"),
        (MANY.replace("line 300", "line three hundred"), ""),
        (at(160, 90), "=[readcache: unchanged in lines 160-249; changes exist outside this range]"),
        (at(100, 250), "baseline_fallback"),
    ),
    "19": ((lines(200), ""), (at(), "full"), ("new\n" + lines(200), ""), (at(100, 21), "baseline_fallback")),
    "20": (
        (lines(5), ""),
        (at(suffix=":2-4"), "full"),
        (lines(5).replace("line 1", "first line"), ""),
        (at(), "full"),
        (at(suffix=":2-4"), "unchanged_range"),
    ),
}  # fmt: skip
DIFFERING: Final = frozenset({"1", "2", "3", "4", "5", "7h", "13", "14", "18", "19"})
"""The cases that docs/reference/pi.md explains."""


def run(pi: PiProcess, folder: Path, name: str, steps: Sequence[Step]) -> list[tuple[str, str]]:
    """Run a case. Returns pairs of the published answer and that of pagein."""
    file = folder / f"case{name}.txt"
    found = []
    for told, expected in steps:
        if not isinstance(told, dict):
            file.write_bytes(told if isinstance(told, bytes) else told.encode())
            continue
        given: dict[str, Any] = {key: value for key, value in told.items() if key != "suffix"}
        pi.prompt([{"tool": "read", "args": {"path": f"{file.name}{told['suffix']}", **given}}])
        result, text = pi.results()[-1], pi.answers()[-1]
        mode = (result.get("details") or {}).get("readcache", {}).get("mode", "-")
        found.append((expected, GIVEN + text if expected.startswith(GIVEN) else mode))
    return found


def main() -> int:
    """Run every case in one session of pi, and print."""
    commands = commands_folder()
    if commands is None:
        print("the agents are not installed: make clients", file=sys.stderr)
        return 2
    differing = set()
    with TemporaryDirectory(prefix="pagein-pi-reads-") as folder, SimulatedProvider() as provider:
        place = PiPlace(Path(folder), commands)
        place.workspace.mkdir()
        with running_pi(place, provider) as pi:
            for name, steps in CASES.items():
                for number, (expected, found) in enumerate(run(pi, place.workspace, name, steps)):
                    is_same = expected == found
                    differing |= set() if is_same else {name}
                    shown = [repr(one[:90]) for one in (expected, found)]
                    print(f"{name}.{number}  {'same' if is_same else 'OTHER'}  {' | '.join(shown)}", flush=True)
    return 0 if differing == DIFFERING else 1


if __name__ == "__main__":
    sys.exit(main())
