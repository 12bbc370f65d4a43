"""What real coding agents pay for one long job without pagein and through its gateway, as a table in docs/clients-measured.md.

    python scripts/measure_clients.py [AGENT...] [--json] [FILE.md]

Needs the agents: `make clients`. All traffic is on this machine: the provider is simulated, its prices are the models' own.
Exit status 1, and nothing is written, where a request was refused, something of ours failed, or what was taken out did not come
back exactly.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.agents import (  # found from the root of the repository
    AGENTS,
    LONG_JOB,
    Agent,
    GatewayProcess,
    JobFigures,
    Place,
    agent_named,
    commands_folder,
    compare_outcomes,
    version_of,
    work,
)

OUT = Path(__file__).resolve().parents[1] / "docs" / "clients-measured.md"
APIS = {
    "anthropic": "Anthropic Messages",
    "openai_chat": "Chat Completions",
    "openai_responses": "Responses",
}
NAMES = {"claude": "Claude Code", "codex": "codex", "opencode": "opencode", "pi": "pi"}
HEAD = """\
# Real coding agents, without pagein and through it

Four coding agents, as their makers publish them, do one long job twice: straight at their provider, and through `pagein serve`
with its default settings. The job is three prompts in one conversation: read files, edit them, read them again, run commands with
big and with medium outputs, look again at the middle of one of them. What the model says is scripted; the provider is simulated
(`docs/provider.md`): it refuses what the real one would refuse and bills by the model's own prices. The agents are told nothing of
pagein but its address.

Written by `scripts/measure_clients.py` on {day}; held by `tests/journeys/test_real_agents.py` (`make test`).

| agent | version | format, model | calls | refused | bill without | bill through | of it | previews | stubs | epochs | re-reads by marker | recalled | lost | s without | s through |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
"""
FOOT = """
Bills are in thousands of uncached input tokens. *epochs*: requests that did not go on from the one before. *recalled*: the agent's
model asked for lines in the middle of a preview and was shown them: once by the tool `peek`, which the gateway answers itself, once by
`pagein peek` in the agent's shell (codex with GPT-5.6: both times). *lost*: results that were
replaced and whose recall is not byte for byte what the agent sent, plus markers that stand for lines that their request does not
show. Final answers and files are the same both ways. *s*: wall time of the whole job, start-up of the agent (three times) and of
the gateway included.

In every run nothing was refused and the gateway reported no failure of its own. `codex` with GPT-5.6 and later lets its model write
programs that call the tools, and hands the tools over as an item of the input: its results are previewed and paged out like others,
but what a program reads is not recognised, so its re-reads are sent again, and no tool of ours is offered to it: its stubs name
`pagein peek`.

The job is a job for this purpose: many outputs that nobody looks at again. What pagein saves on work that people really did is in
`docs/residency.md`.
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """One agent's row."""

    agent: Agent
    version: str
    figures: JobFigures
    same: bool
    failures: dict[str, int]

    @property
    def is_sound(self) -> bool:
        """Whether nothing went wrong."""
        figures = self.figures
        return self.same and not (
            self.failures or figures.refused or figures.failed or figures.lost or figures.unproven
        )

    def row(self) -> str:
        """As a line of the table."""
        agent, figures = self.agent, self.figures
        cells = (
            NAMES[agent.program],
            self.version,
            f"{APIS[agent.api]}, {agent.model}",
            figures.requests,
            figures.refused,
            f"{figures.direct / 1000:.0f}",
            f"{figures.through / 1000:.0f}",
            f"{figures.ratio:.2f}",
            figures.previews,
            figures.stubs,
            figures.epochs,
            figures.rereads,
            figures.recalls,
            figures.lost + figures.unproven,
            f"{figures.seconds_direct:.0f}",
            f"{figures.seconds_through:.0f}",
        )
        return f"| {' | '.join(map(str, cells))} |"


def measure(agent: Agent, commands: Path) -> Measured:
    """Let an agent do the job twice."""
    with TemporaryDirectory(prefix="pagein-agents-") as name:
        place = Place(Path(name) / "agent", commands)
        gateway = GatewayProcess(Path(name) / "gateway")
        direct = work(agent, LONG_JOB, place)
        through = work(agent, LONG_JOB, place, gateway)
        with gateway.engine() as engine:
            figures = compare_outcomes(direct, through, engine.recall)
    same = direct.answers == through.answers and direct.files == through.files
    return Measured(agent, version_of(agent, commands), figures, same, gateway.failures)


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and write where all agents were measured or a file is named."""
    names = [one for one in arguments if not one.startswith("--") and not one.endswith(".md")]
    out = next((Path(one) for one in arguments if one.endswith(".md")), OUT if not names else None)
    commands = commands_folder()
    if commands is None:
        print("the agents are not installed: make clients", file=sys.stderr)
        return 2
    found = []
    for agent in [agent_named(name) for name in names] or AGENTS:
        found.append(measure(agent, commands))
        print(f"{agent.name}: {found[-1].figures.ratio:.3f}", file=sys.stderr)
    if "--json" in arguments:
        told = {
            one.agent.name: {**one.figures.as_json(), "version": one.version, "sound": one.is_sound} for one in found
        }
        print(json.dumps(told))
    else:
        print("\n".join(one.row() for one in found))
    if out is not None and all(one.is_sound for one in found):
        day = datetime.now(UTC).date().isoformat()
        out.write_text(HEAD.format(day=day) + "\n".join([*(one.row() for one in found), FOOT]), encoding="utf-8")
    return 0 if all(one.is_sound for one in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
