"""Measure the bill of one long job in a real pi: plain, with the extension, with the gateway, and with both, for docs/reference/pi.md.

    python scripts/measure_pi.py [AGENT...]

Needs the agents: `make clients`. All traffic is on this machine: the provider is simulated, its prices are the model's own.
Prints a table. Exit status 1 where a request was refused, something of ours failed, or answers or files were not the same.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.agents import (  # found from the root of the repository
    LONG_JOB,
    Agent,
    GatewayProcess,
    Outcome,
    Place,
    agent_named,
    commands_folder,
    work,
)
from tests.agents.agent_drivers import Setup

ROOT: Final = Path(__file__).resolve().parents[1]
USUAL: Final = ("pi-anthropic", "pi-responses")
HEAD: Final = """\
| pi | format, model | calls | bill | of plain | read | written | fresh | s |
|---|---|---|---|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True)
class Way:
    """A way of using pagein in pi. extension: settings of the extension; None without it. gateway: whether one is between."""

    name: str
    extension: Mapping[str, str] | None = None
    gateway: bool = False


PAGES: Final = {"PAGEIN_PI_PAGING": "true"}
WAYS: Final = (
    Way("plain"),
    Way("extension, as installed", {}),
    Way("extension, paging", PAGES),
    Way("gateway", None, gateway=True),
    Way("gateway and extension, as installed", {}, gateway=True),
    Way("gateway and extension, paging", PAGES, gateway=True),
)


def with_extension(agent: Agent, settings: Mapping[str, str], store: Path) -> Agent:
    """The agent with the extension of this checkout in pi's folder."""
    folder = "pi/extensions/pagein"
    files = {
        f"{folder}/{path.name}": path.read_text(encoding="utf-8") for path in (ROOT / "extensions/pi").glob("*.ts")
    }
    launch = {f"{folder}/launch.json": json.dumps({"command": [sys.executable, "-m", "pagein", "pi"]})}
    own = {"PYTHONPATH": str(ROOT / "src"), "PAGEIN_STORE": str(store), **settings}

    def setup(address: str, model: str) -> Setup:
        usual = agent.setup(address, model)
        return Setup({**usual.files, **files, **launch}, {**usual.environment, **own})

    return replace(agent, setup=setup)


def measure(agent: Agent, way: Way, commands: Path) -> tuple[Outcome, Mapping[str, int]]:
    """Let pi do the job one way. Returns what came of it, and what failed in the gateway."""
    with TemporaryDirectory(prefix="pagein-pi-bill-") as name:
        folder = Path(name)
        place = Place(folder / "agent", commands)
        gateway = GatewayProcess(folder / "gateway") if way.gateway else None
        if way.extension is None:
            return work(agent, LONG_JOB, place, gateway), {} if gateway is None else gateway.failures
        # the extension must find the gateway as one that the same user runs
        told = {**way.extension, "XDG_DATA_HOME": str(folder / "gateway" / "data")}
        made = with_extension(agent, told, folder / "extension.db")
        peek = "rlm_peek" if way.extension else "peek"
        return work(made, LONG_JOB, place, gateway, peek), {} if gateway is None else gateway.failures


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    commands = commands_folder()
    if commands is None:
        print("the agents are not installed: make clients", file=sys.stderr)
        return 2
    print(HEAD)
    sound = True
    for name in arguments or USUAL:
        agent = agent_named(name)
        plain: Outcome | None = None
        for way in WAYS:
            done, failures = measure(agent, way, commands)
            plain = plain or done
            bill, usage = done.bill, done.bill.usage
            sound &= not (bill.refused or bill.failed or failures)
            sound &= (done.answers, done.files) == (plain.answers, plain.files)
            share = f"{bill.bit / plain.bill.bit:.2f}"
            counts = [f"{one / 1000:.0f}" for one in (usage.read, usage.written, usage.fresh)]
            cells = [
                way.name,
                f"{agent.api}, {agent.model}",
                str(bill.requests),
                f"{bill.bit / 1000:.0f}",
                share,
                *counts,
            ]
            print(f"| {' | '.join([*cells, f'{done.seconds:.0f}'])} |", flush=True)
            if failures or bill.refused or bill.failed:
                print(f"  refused {bill.refused}, failed {bill.failed}, {failures}", file=sys.stderr)
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
