"""Measure the bill of real coding agents for two long jobs: alone, with pagein's MCP server, with its gateway, and with both.

    python scripts/measure_mcp.py [AGENT...] [--again|--long] [--json] [FILE.md]

Needs the agents: `make clients`. All traffic is on this machine: the provider is simulated, its prices are the models' own. With the server,
the model reads by its `read`, but a file that it is about to edit for the first time by the agent's own tool, as agents demand.
It fails, and writes nothing, where a request was refused, a result differs, or what the window lost was not found again.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.agents import (  # found from the root of the repository
    LONG_JOB,
    GatewayProcess,
    Job,
    Outcome,
    Place,
    commands_folder,
    version_of,
    work,
)
from tests.agents.jobs import EditStep, ReadStep, Step
from tests.agents.mcp_servers import SERVED, ServedAgent
from tests.agents.reread_job import reread_job

from pagein.simulator import Record

OUT = Path(__file__).resolve().parents[1] / "docs" / "reference" / "mcp-measured.md"
NAMES = {"claude-code": "Claude Code", "codex": "codex", "opencode-anthropic": "opencode"}
WAYS = (("alone", False, False), ("server", True, False), ("gateway", False, True), ("both", True, True))
TABLE = """
| agent | version | model | way | calls | bill | of alone | prompt tokens | output tokens | markers | s |
|---|---|---|---|---|---|---|---|---|---|---|
"""
HEAD = """\
# Real coding agents with the MCP server

Two jobs, each four times for each agent: alone, with the [MCP server](../mcp.md), through the [gateway](../gateway.md), and with both on one store. The model's
answers are scripted, and the provider is [simulated](provider.md). With the server, the model reads by its tool `read`; a file that it is
about to edit it reads first by the agent's own tool, as Claude Code and opencode demand. No receipt is quoted: the gateway or the transcript proves.

Written by `scripts/measure_mcp.py` on {day}.
"""
HEADS = {
    "again": """
## Files that are read again

Two modules and a text with rules, read 16 times before the agent compacts its own window, and 5 times behind that. Behind it the model also looks for a
rule that its window lost, and finds it: with the server by `search` and `peek`, else by two commands.
""",
    "long": """
## Outputs of commands

The job of [clients-measured.md](clients-measured.md): three prompts in one conversation, with reads, edits, repeated reads, and commands with large
outputs. It reads little twice: nearly all of its window are outputs of commands, which the server does not see.
""",
}
FOOT = """
- *bill*: in thousands of uncached input tokens, at the model's prices. *prompt tokens*: of all calls together, in thousands.
- *markers*: results of `read` that were answered by a marker or a diff, in all requests together, each once.
- *s*: wall time of the whole job, with the starts of the agent, of the server and of the gateway.

No request was refused, and files, first and last answers were the same in all ways. The server adds its list of tools to each prompt, and the agent's own
tool reads what is edited.
"""
_RULE = "Rule 77: an entry"
_MARKER = re.compile(r"\[readcache: [^]]*\]")


@dataclass(frozen=True, slots=True)
class Measured:
    """One row. bill: in BIT."""

    job: str
    agent: str
    version: str
    model: str
    way: str
    calls: int
    bill: float
    share: float
    prompt: int
    output: int
    markers: int
    seconds: float

    def row(self) -> str:
        """As a line of the table."""
        cells = (
            *(NAMES[self.agent], self.version, self.model, self.way, self.calls),
            *(f"{self.bill / 1000:.0f}", f"{self.share:.2f}", f"{self.prompt / 1000:.0f}", self.output, self.markers),
            f"{self.seconds:.0f}",
        )
        return f"| {' | '.join(map(str, cells))} |"


def with_server(job: Job, served: ServedAgent) -> Job:
    """Return the job with reads by the server's tool, but the first of each file that is edited."""
    edited = {
        step.path for prompt in job.prompts for turn in prompt.calls for step in turn if isinstance(step, EditStep)
    }
    own = set(edited)

    def steps(turn: Sequence[Step]) -> Iterator[Step]:
        for step in turn:
            if not isinstance(step, ReadStep):
                yield step
            elif step.path in own:
                own.discard(step.path)
                yield step
            else:
                lines = {"offset": step.first, "limit": step.lines} if step.lines else {}
                yield replace(served.call("read"), args={"mode": "file", "target": step.path, **lines})

    prompts = [replace(one, calls=tuple(tuple(steps(turn)) for turn in one.calls)) for one in job.prompts]
    return replace(job, prompts=tuple(prompts))


def job_of(name: str, served: ServedAgent, *, has_server: bool) -> Job:
    """Return the job of this name, with reads by the server if there is one."""
    program = served.agent(None).program
    job = LONG_JOB if name == "long" else reread_job(program, served if has_server else None)
    return with_server(job, served) if has_server else job


def measure(served: ServedAgent, commands: Path, job: str) -> Iterator[Measured]:
    """Let an agent do a job in each way. Raises RuntimeError where something went wrong."""
    alone: Outcome | None = None
    for way, has_server, has_gateway in WAYS:
        with TemporaryDirectory(prefix="pagein-agents-") as name:
            place, store = Place(Path(name) / "agent", commands), Path(name) / "store.db"
            agent = served.agent(store if has_server else None)
            gateway = GatewayProcess(Path(name) / "gateway", store=str(store)) if has_gateway else None
            done = work(agent, job_of(job, served, has_server=has_server), place, gateway)
            alone = done if alone is None else alone
            if done.bill.refused or _outcome(done) != _outcome(alone):
                raise RuntimeError(f"{served.name}, {way}: {done.bill.refused} refused, or another result")
            if job == "again" and rules_found(done.records) < 2:  # noqa: PLR2004 - the match, and the text around it
                raise RuntimeError(f"{served.name}, {way}: the rule that the window lost was not found")
            usage = done.bill.usage
            who = (job, served.name, version_of(agent, commands), agent.model, way)
            share = done.bill.bit / alone.bill.bit
            yield Measured(
                *(*who, done.bill.requests, done.bill.bit, share, usage.prompt, usage.output),
                markers_in(done.records),
                done.seconds,
            )


def _outcome(done: Outcome) -> tuple[str, str, Mapping[str, str]]:
    """Return what must be the same in all ways. What is said behind a compaction, before the next prompt, is the agent's own affair."""
    return done.answers[0], done.answers[-1], done.files


def rules_found(records: Sequence[Record]) -> int:
    """Return how often the lost rule stands behind the last prompt, up to the next read of the whole file."""
    last = [json.dumps(one.body) for one in records if one.usage is not None and one.body.get("tools")][-1]
    return last.rpartition("SCRIPT@again-3")[2].partition("# Rules")[0].count(_RULE)


def markers_in(records: Sequence[Record]) -> int:
    """Return how many results were answered by a marker or a diff: what each request has more of them than the one before."""
    counts = [
        len(_MARKER.findall(json.dumps(one.body))) for one in records if one.usage is not None and one.body.get("tools")
    ]
    return sum(max(0, later - earlier) for earlier, later in pairwise([0, *counts]))


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and write where all agents were measured or a file is named."""
    names = [one for one in arguments if not one.startswith("--") and not one.endswith(".md")]
    out = next((Path(one) for one in arguments if one.endswith(".md")), OUT if not names else None)
    commands = commands_folder()
    if commands is None:
        print("the agents are not installed: make clients", file=sys.stderr)
        return 2
    rows = []
    for name in names or SERVED:
        for job in [one for one in HEADS if f"--{one}" in arguments] or HEADS:
            for one in measure(SERVED[name], commands, job):
                rows.append(one)
                print(json.dumps(asdict(one)) if "--json" in arguments else f"{job} {one.row()}", flush=True)
    if out is not None:
        parts = [HEAD.format(day=datetime.now(UTC).date().isoformat())]
        for job, words in HEADS.items():
            parts += [words, TABLE, *(f"{one.row()}\n" for one in rows if one.job == job)]
        out.write_text("".join([*parts, FOOT]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
