"""Record the floor of real coding agents: the parts of a conversation's first request before anything is said.

    python scripts/measure_floor.py [AGENT...] [--json] [FILE.md]

Needs the agents: `make clients`. Each does a short job at a simulated provider on this machine; those whose format has a tool search
also do a long job several times with floor paging. Written are names and sizes, never the vendors' texts. Exit status 1, and nothing
is written, where a request was refused or the work was not the same.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.agents import (  # found from the root of the repository
    AGENTS,
    GEMINI_CLI,
    LONG_JOB,
    ONE_PROMPT,
    Agent,
    GatewayProcess,
    Outcome,
    Place,
    commands_folder,
    version_of,
    work,
)

from pagein.model.json_text import encode_json
from pagein.providers.tokens.counters import Counter, counter_for
from pagein.simulator import Record

OUT: Final = Path(__file__).resolve().parents[1] / "docs" / "reference" / "floor.md"
_LEAST: Final = 0.03
"""Parts of a smaller share of the floor are not named."""
_PROMPT: Final = "SCRIPT@"
_TAG: Final = re.compile(r"\s*<([a-zA-Z][\w-]*)")
_HEADING: Final = re.compile(r"^#{1,2} +(.+?)\s*$", re.MULTILINE)

HEAD: Final = """\
# The floor of real coding agents

The floor of a request is what stands in it before anything is said: tools, instructions, and what the agent attaches to the first
message. A session pays for it at every call. This page has names and sizes only, because the texts are the vendors'.

Written by `scripts/measure_floor.py` on {day}, from the first request of each agent at a [simulated provider](provider.md), with
default settings, no MCP servers, and a workspace of four files. Tokens for Claude are estimated from characters.

{paged}## Sizes

*Schema* is the JSON schema of the tools' parameters. *Unused* are tools that a [plain job](clients-measured.md) never calls. Anthropic's tool
search takes the whole definition of a deferred tool out of the prompt, OpenAI's only its schema (for a function outside a namespace). Chat
Completions and Gemini cannot defer tools.

| agent | version | format, model | floor | tools | of it schema | unused | instructions | attachments |
|---|---|---|---|---|---|---|---|---|
"""

PARTS: Final = """\
## Parts

Parts of 3 % of a floor and more, in tokens; *tools* that the job did not call are in italics. `scripts/measure_floor.py --json` lists every
part.

| agent | tools | instructions and attachments | other parts |
|---|---|---|---|
"""

PAGED: Final = """\
## With floor paging

With [`floor_paging`](../residency.md#the-floor), tools that earlier sessions did not use stay out of the prompt. Each agent does the
[same job](clients-measured.md) {sessions} times in one workspace, through one gateway. The floor includes what the user says; no request was
refused.

| agent | floor without | session 1 | session 2 | session 3 | of it | bill of session 2, of the bill of session 1 | session 3 | deferred in session 3 |
|---|---|---|---|---|---|---|---|---|
"""
SESSIONS: Final = 3


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a floor. kind: `tool`, `instructions` or `attachment`. schema: tokens of a tool's parameters."""

    kind: str
    name: str
    tokens: int
    schema: int = 0


@dataclass(frozen=True, slots=True)
class Floor:
    """An agent's floor. used: names of the tools that the job called."""

    agent: Agent
    version: str
    parts: tuple[Part, ...]
    used: frozenset[str]

    def tokens(self, kind: str = "") -> int:
        """Tokens of all parts of a kind; of all without one."""
        return sum(one.tokens for one in self.parts if kind in ("", one.kind))

    @property
    def unused(self) -> int:
        """Tokens of the tools that the job did not call."""
        return sum(one.tokens for one in self.parts if one.kind == "tool" and one.name not in self.used)

    def row(self) -> str:
        """As a line of the table."""
        agent = self.agent
        schema = sum(one.schema for one in self.parts)
        sizes = self.tokens(), self.tokens("tool"), schema, self.unused, self.tokens("instructions")
        cells = [agent.name, self.version, f"{agent.api}, {agent.model}"]
        cells += [f"{size:,}" for size in (*sizes, self.tokens("attachment"))]
        return f"| {' | '.join(cells)} |"

    def parts_row(self) -> str:
        """Its largest parts as a line of the table of parts."""
        least = _LEAST * self.tokens()
        large = sorted((one for one in self.parts if one.tokens >= least), key=lambda one: -one.tokens)
        others = self.tokens() - sum(one.tokens for one in large)
        uncalled = {one.name for one in large if one.kind == "tool" and one.name not in self.used}
        told = [
            ", ".join(
                f"{f'*{one.name}*' if tools and one.name in uncalled else one.name} {one.tokens:,}"
                for one in large
                if (one.kind == "tool") == tools
            )
            for tools in (True, False)
        ]
        return f"| {' | '.join((self.agent.name, *told, f'{others:,}'))} |"


def tools_in(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The definitions of tools in a request, of every format; members of a namespace as tools of their own."""
    listed = [*(body.get("tools") or [])]
    for item in body.get("input") or []:
        if isinstance(item, dict) and item.get("type") == "additional_tools":
            listed += item.get("tools") or []
    for one in listed:
        inner = one.get("functionDeclarations") or (one.get("tools") if one.get("type") == "namespace" else None)
        yield from inner or [one]


def tool_part(tool: Mapping[str, Any], counter: Counter) -> Part:
    """A tool with its sizes."""
    bare = {name: value for name, value in tool.items() if name != "cache_control"}
    function = tool.get("function")
    inner = function if isinstance(function, dict) else tool
    schema = next((inner[one] for one in ("input_schema", "parameters", "parametersJsonSchema") if one in inner), None)
    name = str(inner.get("name") or tool.get("type"))
    return Part("tool", name, _count(counter, bare), _count(counter, schema) if schema else 0)


def instructions_in(body: Mapping[str, Any]) -> Iterator[str]:
    """The texts of a request's instructions."""
    for name in ("system", "instructions", "systemInstruction"):
        yield from _texts(body.get(name))
    for one in [*(body.get("messages") or []), *(body.get("input") or [])]:
        if isinstance(one, dict) and one.get("role") in ("system", "developer"):
            yield from _texts(one.get("content"))


def attachments_in(body: Mapping[str, Any]) -> Iterator[str]:
    """The texts of the user's side in a conversation's first request, but for what the user said."""
    for one in [*(body.get("messages") or []), *(body.get("input") or []), *(body.get("contents") or [])]:
        if isinstance(one, dict) and one.get("role") == "user":
            yield from (text for text in _texts(one.get("content", one.get("parts"))) if _PROMPT not in text)


def sections_of(text: str) -> Iterator[tuple[str, str]]:
    """A text by its headings, or by the tag that it begins with, each with its name."""
    starts = [(match.start(), match[1]) for match in _HEADING.finditer(text)]
    if tag := _TAG.match(text):
        yield f"<{tag[1]}>", text
        return
    bounds = [*(start for start, _ in starts), len(text)]
    if bounds[0]:
        yield "(without a heading)", text[: bounds[0]]
    yield from ((name, text[start:end]) for (start, name), end in zip(starts, bounds[1:], strict=True))


def floor_of(agent: Agent, commands: Path) -> Floor | None:
    """An agent's floor; None where a request was refused."""
    with TemporaryDirectory(prefix="pagein-agents-") as name:
        outcome = work(agent, ONE_PROMPT, Place(Path(name) / "agent", commands))
    calls = [one for one in outcome.records if one.api is not None and one.turn >= 0]
    if outcome.bill.refused or not calls:
        return None
    counter, body, last = counter_for(agent.model), calls[0].body or {}, calls[-1].body
    parts = [tool_part(tool, counter) for tool in tools_in(body)]
    parts += [
        Part(kind, section, round(counter.count(text, "system")))
        for kind, texts in (("instructions", instructions_in(body)), ("attachment", attachments_in(body)))
        for whole in texts
        for section, text in sections_of(whole)
    ]
    told = encode_json(last).decode()
    used = {one.name for one in parts if one.kind == "tool" and _is_called(one.name, told)}
    return Floor(agent, version_of(agent, commands), tuple(parts), frozenset(used))


@dataclass(frozen=True, slots=True)
class Paged:
    """Sessions of one job in one workspace with floor paging. plain: without it. outcomes: one for each session."""

    agent: Agent
    plain: Outcome
    outcomes: tuple[Outcome, ...]
    failures: dict[str, int]

    @property
    def is_sound(self) -> bool:
        """Whether the work was the same and nothing went wrong."""
        same = all((one.answers, one.files) == (self.plain.answers, self.plain.files) for one in self.outcomes)
        return same and not self.failures and not sum(one.bill.refused + one.bill.failed for one in self.outcomes)

    def row(self) -> str:
        """As a line of the table."""
        floors = [first_request(one).usage for one in (self.plain, *self.outcomes)]
        sizes = [0 if one is None else one.prompt for one in floors]
        bills = [one.bill.bit / self.outcomes[0].bill.bit for one in self.outcomes[1:]]
        tools = (first_request(self.outcomes[-1]).body or {}).get("tools") or []
        names = ", ".join(one["name"] for one in tools if one.get("defer_loading"))
        cells = [self.agent.name, *(f"{size:,}" for size in sizes), f"{sizes[-1] / sizes[0]:.2f}"]
        return f"| {' | '.join([*cells, *(f'{one:.2f}' for one in bills), names or 'none'])} |"


def paged_sessions(agent: Agent, commands: Path) -> Paged:
    """Let an agent do a long job several times in one workspace, with floor paging."""
    with TemporaryDirectory(prefix="pagein-agents-") as name:
        place = Place(Path(name) / "agent", commands)
        plain = work(agent, LONG_JOB, place, GatewayProcess(Path(name) / "plain"))
        gateway = GatewayProcess(Path(name) / "gateway", {"PAGEIN_FLOOR_PAGING": "always"})
        outcomes = tuple(work(agent, LONG_JOB, place, gateway) for _ in range(SESSIONS))
        return Paged(agent, plain, outcomes, gateway.failures)


def first_request(outcome: Outcome) -> Record:
    """The first model call that the script answered."""
    return next(one for one in outcome.records if one.api is not None and one.turn >= 0)


def _is_called(name: str, told: str) -> bool:
    """Whether a request's messages hold a call of this tool: only calls have a name beside input or arguments."""
    quoted = re.escape(json.dumps(name))
    call = rf'"name":{quoted},"(?:input|arguments|args)":'
    other = rf'"(?:input|arguments)":"?[^{{}}]*","name":{quoted}'
    return re.search(call, told) is not None or re.search(other, told) is not None


def _count(counter: Counter, value: object) -> int:
    return round(counter.count(encode_json(value).decode(), "system"))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        yield from _texts(value.get("text", value.get("parts")))


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and write where all agents were measured or a file is named."""
    names = [one for one in arguments if not one.startswith("--") and not one.endswith(".md")]
    out = next((Path(one) for one in arguments if one.endswith(".md")), OUT if not names else None)
    commands = commands_folder()
    if commands is None:
        print("the agents are not installed: make clients", file=sys.stderr)
        return 2
    agents = [one for one in (*AGENTS, GEMINI_CLI) if not names or one.name in names]
    found = [floor_of(agent, commands) for agent in agents]
    floors = [one for one in found if one is not None]
    paged = [paged_sessions(agent, commands) for agent in agents if agent.api == "anthropic"]
    is_sound = len(floors) == len(agents) and all(one.is_sound for one in paged)
    if "--json" in arguments:
        told = {
            one.agent.name: {"used": sorted(one.used), "parts": [asdict(part) for part in one.parts]} for one in floors
        }
        print(json.dumps(told))
    else:
        print("\n".join([*(one.row() for one in floors), *(one.row() for one in paged)]))
    if out is not None and is_sound:
        day = datetime.now(UTC).date().isoformat()
        rows = "\n".join(one.row() for one in floors)
        table = PAGED.format(sessions=SESSIONS) + "\n".join(one.row() for one in paged) + "\n\n" if paged else ""
        parts = "\n".join(one.parts_row() for one in floors)
        page = f"{HEAD.format(day=day, paged=table)}{rows}\n\n{PARTS}{parts}\n"
        out.write_text(page, encoding="utf-8")
    return 0 if is_sound else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
