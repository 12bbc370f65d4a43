"""Run seven scenarios of paging in a real pi, with a model of your own or with the simulated provider.

    python scripts/run_pi_scenarios.py --try                                  # simulated provider, costs nothing
    ANTHROPIC_API_KEY=... python scripts/run_pi_scenarios.py anthropic/claude-haiku-4-5

Needs the agents: `make clients`. The model is named as pi names it, and its key stands in the variable that pi reads. Says before
it begins what it will cost at about and at most, and asks; `--yes` skips the question. Exit status 1 where a scenario failed,
2 where nothing was run.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.agents import commands_folder  # found from the root of the repository
from tests.agents.pi_process import PiPlace, PiProcess, put_extension

from pagein.providers.prices.price_lookup import newest_prices
from pagein.simulator import SimulatedProvider

CODE: Final = "CODE-7A41"
FOUND: Final = r'rlm_peek\(\\?"(pg-[0-9a-f-]+)'
KEYS: Final = re.compile(r"[A-Z0-9_]+_(API_KEY|TOKEN|BASE_URL)|[A-Z]+_KEY")
HONEST: Final = re.compile(
    r"(?i)no match|not found|could(n't| not) find|can(not|'t) find|did(n't| not) find|no (record|mention)|never"
)
REPORT: Final = (
    f"for n in range(400): print('row', n, '{CODE}' if n == 217 else 'is in order, and nobody needs it for long')\n"
)
FILES: Final = {
    "report.py": REPORT,
    "other.py": REPORT.replace(CODE, "also in order"),
    "src/toll.py": "def compute_toll(weight):\n    return 3 * weight\n",
    "src/road.py": "def length_of(road):\n    return len(road)\n",
}
LONGEST_CALL, LONGEST_ANSWER = 20_000, 1_000
"""Tokens of a call at most, for what a run costs at most."""
USUAL_CALL, USUAL_ANSWER = 8_000, 200


def run(script: str) -> dict[str, Any]:
    """The call by which the scripted model runs a script."""
    return {"tool": "bash", "args": {"command": f"python3 {script}"}}


def search(pattern: str) -> dict[str, Any]:
    """The call by which the scripted model searches."""
    return {"tool": "rlm_search", "args": {"pattern": pattern}}


class Desk:
    """pi in a folder of its own, and a person at it. simulated: None for a real model."""

    def __init__(self, place: PiPlace, simulated: SimulatedProvider | None) -> None:
        self.place, self.simulated, self.cost = place, simulated, 0.0
        self.pi = self._begin()

    def _begin(self, *arguments: str) -> PiProcess:
        return PiProcess(self.place, "" if self.simulated is None else self.simulated.url, arguments)

    def say(self, words: str, *turns: list[dict[str, Any]]) -> str:
        """Give a prompt. Returns the answer. turns: what the scripted model does."""
        if self.simulated is not None:
            self.pi.prompt(*turns, words=f"{words} ")
        else:
            response = self.pi.command("prompt", message=words)
            if not response["success"]:
                raise AssertionError(str(response))
            self.pi.wait(lambda one: one.get("type") == "agent_end", 300.0)
        last = [one for one in self._messages() if one["role"] == "assistant"][-1]
        if last.get("stopReason") == "error":
            raise AssertionError(f"the provider refused: {last.get('errorMessage')}")
        return "".join(part.get("text", "") for part in last["content"])

    def recalled(self) -> str:
        """What tools of pagein's brought back so far."""
        return "\n".join(
            "".join(part.get("text", "") for part in one["content"])
            for one in self.pi.results()
            if one["toolName"].startswith("rlm_")
        )

    def restart(self) -> None:
        """End pi, and go on with the session in a new process."""
        self.close()
        self.pi = self._begin("-c")

    def close(self) -> None:
        """End pi, and add up what its session cost."""
        costs = (one.get("usage", {}).get("cost", {}).get("total", 0.0) for one in self._messages())
        self.cost = max(self.cost, sum(costs))
        self.pi.close()

    def _messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.pi.command("get_messages")["data"]["messages"]
        return found


def must(holds: object, what: str) -> None:
    """Raise AssertionError with the reason unless it holds."""
    if not holds:
        raise AssertionError(what)


def _fill(desk: Desk) -> None:
    """Have the report in the session, and out of its window."""
    must(desk.pi.order("/rlm on") == "Paging is on.", "paging cannot be switched on")
    desk.say("Run `python3 report.py`, and answer only with the word done.", [run("report.py")])
    must("pg-" in desk.pi.order("/rlm store"), "the output did not leave the window")


def _ask_code(desk: Desk) -> None:
    answer = desk.say(
        "Which code stands in row 217 of the output of report.py? Recall the output; do not run anything.",
        [search("CODE-")],
    )
    must(
        CODE in answer or (desk.simulated is not None and CODE in desk.recalled()),
        f"the answer lacks the code: {answer}",
    )


def long_session(desk: Desk) -> None:
    """An output leaves the window, and the model finds a row of it again."""
    _fill(desk)
    _ask_code(desk)


def cross_turn_retrieval(desk: Desk) -> None:
    """Other turns come between the output and the question."""
    _fill(desk)
    desk.say("Run `python3 other.py`, and answer only with the word done.", [run("other.py")])
    desk.say("What is 2 + 2? Answer with the number.")
    _ask_code(desk)


def ingest_and_analyse(desk: Desk) -> None:
    """A folder is taken into the store, and a question about it is answered from there."""
    desk.pi.order("/rlm on")
    take = {"tool": "rlm_ingest", "args": {"paths": ["src/toll.py", "src/road.py"]}}
    answer = desk.say(
        "Take the files src/toll.py and src/road.py in with rlm_ingest. Then find with rlm_search which of them defines "
        "compute_toll, and answer with the name of the file.",
        [take],
        [search("compute_toll")],
    )
    must(desk.recalled(), "no tool of pagein's was called")
    must("toll" in answer or (desk.simulated is not None and "compute_toll" in desk.recalled()), f"answered: {answer}")


def session_resume(desk: Desk) -> None:
    """The session goes on in a new process."""
    _fill(desk)
    desk.restart()
    _ask_code(desk)


def cancel_mid_operation(desk: Desk) -> None:
    """A person cancels while the model works; the session goes on, and the store keeps what it had."""
    _fill(desk)
    before = desk.pi.order("/rlm store")
    words = "Run `python3 other.py` five times, one call after another."
    told = f"{words} SCRIPT:{json.dumps([[run('other.py')], [{'wait': 60}, {'text': 'late'}]])}"
    desk.pi.command("prompt", message=words if desk.simulated is None else told)
    desk.pi.wait(lambda one: one.get("type") == "tool_execution_end", 120.0)
    desk.pi.order("/rlm cancel")
    must(desk.pi.command("abort")["success"], "pi cannot be stopped")
    must(before.splitlines()[0].split()[0] in desk.pi.order("/rlm store"), "the store lost an object")
    _ask_code(desk)


def disable_and_enable(desk: Desk) -> None:
    """Switched off, nothing further leaves; switched on again, it does."""
    _fill(desk)
    must("Paging is off" in desk.pi.order("/rlm off"), "paging cannot be switched off")
    before = desk.pi.order("/rlm store")
    desk.say("Run `python3 other.py`, and answer only with the word done.", [run("other.py")])
    must(desk.pi.order("/rlm store") == before, "something left while paging was off")
    desk.pi.order("/rlm on")
    _ask_code(desk)


def no_confabulation(desk: Desk) -> None:
    """The model searches, and says that it has nothing."""
    _fill(desk)
    answer = desk.say(
        "What did the output of deploy.sh, which I showed you before, say about the database? Search what left your context. If "
        "there is nothing, say that you could not find it.",
        [search("database migration")],
    )
    must(desk.recalled(), "the model did not search")
    must(
        HONEST.search(answer) or (desk.simulated is not None and "No matches found" in desk.recalled()),
        f"answered: {answer}",
    )


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario. calls: of the model, about."""

    plays: Callable[[Desk], None]
    calls: int

    @property
    def name(self) -> str:
        """Its name in the report."""
        return self.plays.__name__.replace("_", " ")


SCENARIOS: Final = (
    Scenario(long_session, 4),
    Scenario(cross_turn_retrieval, 7),
    Scenario(ingest_and_analyse, 4),
    Scenario(session_resume, 4),
    Scenario(cancel_mid_operation, 7),
    Scenario(disable_and_enable, 6),
    Scenario(no_confabulation, 4),
)


def price(model: str) -> str:
    """Return what all scenarios cost, in words. No cache is counted."""
    calls = sum(one.calls for one in SCENARIOS)
    table = newest_prices(model.partition("/")[2] or model)
    if table is None or table.input_usd is None:
        tokens = calls * LONGEST_CALL
        return f"about {calls} calls and up to {2 * tokens:,} input tokens; the price of {model} is not known to pagein"
    usd = table.input_usd / 1_000_000
    about = calls * usd * (USUAL_CALL + table.output * USUAL_ANSWER)
    most = 2 * calls * usd * (LONGEST_CALL + table.output * LONGEST_ANSWER)
    return f"about {calls} calls and ${about:.2f}, hardly more than ${most:.2f}"


@contextmanager
def desk_at(commands: Path, model: str) -> Iterator[Desk]:
    """A desk in a new folder. model: "" for the simulated provider."""
    with TemporaryDirectory(prefix="pagein-scenario-") as name:
        keys = {key: value for key, value in os.environ.items() if KEYS.fullmatch(key)} if model else {}
        place = replace(PiPlace(Path(name), commands, settings=keys), model=model)
        for file, text in FILES.items():
            (place.workspace / file).parent.mkdir(parents=True, exist_ok=True)
            (place.workspace / file).write_text(text, encoding="utf-8")
        put_extension(place)
        provider = None if model else SimulatedProvider()
        if provider is not None:
            provider.__enter__()
        try:
            desk = Desk(place, provider)
            try:
                yield desk
            finally:
                desk.close()
        finally:
            if provider is not None:
                provider.__exit__(None, None, None)


def main(arguments: Sequence[str]) -> int:
    """Say what it costs, ask, run and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="", help="PROVIDER/MODEL, as pi names it")
    parser.add_argument("--try", dest="tries", action="store_true", help="use the simulated provider")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    given = parser.parse_args(arguments)
    commands = commands_folder()
    if commands is None:
        print("the agents are not installed: make clients", file=sys.stderr)
        return 2
    if given.tries == bool(given.model):
        print("give a model, such as anthropic/claude-haiku-4-5, or --try", file=sys.stderr)
        return 2
    if given.model:
        print(f"{len(SCENARIOS)} scenarios with {given.model}: {price(given.model)}", flush=True)
        if not given.yes and input("Begin? [y/N] ").strip().lower() not in ("y", "yes"):
            return 2
    failed, cost = 0, 0.0
    for scenario in SCENARIOS:
        problem, desk = "", None
        try:
            with desk_at(commands, given.model) as desk:
                scenario.plays(desk)
        except Exception as found:  # noqa: BLE001 -- the next scenario runs anyway
            problem = f"{type(found).__name__}: {found}"
        failed += bool(problem)
        cost += 0.0 if desk is None else desk.cost
        print(f"{'FAILED' if problem else 'passed'}  {scenario.name}{f': {problem}' if problem else ''}", flush=True)
    spent = f", ${cost:.3f} by pi's count" if given.model else ""
    print(f"{len(SCENARIOS) - failed} of {len(SCENARIOS)} passed{spent}")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (KeyboardInterrupt, EOFError):
        sys.exit(130)
