"""Measure the bill of real coding agents for one long job, without pagein and through its gateway, for docs/reference/clients-measured.md.

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

OUT = Path(__file__).resolve().parents[1] / "docs" / "reference" / "clients-measured.md"
APIS = {
    "anthropic": "Anthropic Messages",
    "openai_chat": "Chat Completions",
    "openai_responses": "Responses",
}
NAMES = {"claude": "Claude Code", "codex": "codex", "opencode": "opencode", "pi": "pi"}
HEAD = """\
# Real coding agents, without and with pagein

This page compares the bill of the same job with and without pagein, for four published coding agents. Each agent does the job
twice: directly at its provider, and through `pagein serve` with default settings. The job is three prompts in one conversation:
read files, edit them, read them again, run commands with large and medium outputs, and look at the middle of one output again.
The model's answers are scripted. The provider is [simulated](provider.md): it refuses the requests that the real provider would
refuse, and bills at the model's own prices. The agents are configured only with pagein's address.

Written by `scripts/measure_clients.py` on {day}; `tests/journeys/test_real_agents.py` repeats the job (`make test`).

| agent | version | format, model | calls | refused | bill without | bill through | of it | previews | stubs | epochs | re-reads by marker | recalled | lost | s without | s through |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
"""
FOOT = """
- *bill*: in thousands of uncached input tokens.
- *of it*: the bill through pagein as a share of the bill without.
- *previews, stubs*: results that entered as a preview; results that were evicted.
- *epochs*: requests that do not extend the previous request.
- *re-reads by marker*: rereads that pagein answered by a marker.
- *recalled*: the model asked for lines in the middle of a preview and got them: once by the tool `peek`, answered by the gateway,
  and once by `pagein peek` in the agent's shell (codex with GPT-5.6: both times in the shell).
- *lost*: replaced results whose recall is not byte for byte the agent's text, and markers for lines that their request does not
  show.
- *s*: wall time of the whole job, with three starts of the agent and one of the gateway.

In every run, no request was refused, the gateway reported no failure, and final answers and files were the same both ways.

`codex` with GPT-5.6 and later lets its model write programs that call the tools, and sends the tools as an item of the input. Its
results become previews and stubs like others. But pagein does not recognise the files that a program reads, so rereads are sent
again, and it offers no recall tools; the stubs name `pagein peek`.

This job was made for the comparison: it has many outputs that are never needed again. [Residency: results](residency-results.md)
has the savings on recorded work of real users.
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
