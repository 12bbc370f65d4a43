"""Jobs for coding agents: a workspace, and the reads, edits, commands and recalls of each prompt.

A job is the same for every agent: what differs is how its model says it (`speech`). All that commands print is a function of
their arguments, so that a job comes out the same wherever and however often it is done.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from tests.agents.speech import Item, Speech, call


@dataclass(frozen=True, slots=True)
class ReadStep:
    """Read a file: whole, or so many lines from one on (from 1)."""

    path: str
    first: int = 1
    lines: int = 0


@dataclass(frozen=True, slots=True)
class EditStep:
    """Replace one exact text, whole lines, in a file."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class WriteStep:
    """Write a new file."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class MoveStep:
    """Give a file another path: with the agent's tool for it, which changes `NAMES = 1` to `NAMES = 2`, else by a command."""

    path: str
    to: str


@dataclass(frozen=True, slots=True)
class DeleteStep:
    """Delete a file: with the agent's tool for it, else by a command."""

    path: str


@dataclass(frozen=True, slots=True)
class Run:
    """Run a shell command."""

    command: str


@dataclass(frozen=True, slots=True)
class SayStep:
    """Say something; the last thing said to a prompt is its answer."""

    text: str


@dataclass(frozen=True, slots=True)
class FillStep:
    """The provider reports so many tokens for the call: a window that is full, so that the agent compacts it."""

    tokens: int


@dataclass(frozen=True, slots=True)
class RecallStep:
    """Look at lines of what stands behind a preview or stub about something; where nothing was taken away, run a command instead.

    by_shell: with the command that users have, else with the tool that the gateway offers the model and answers itself.
    """

    about: str
    first: int
    lines: int
    otherwise: Run
    by_shell: bool = False


@dataclass(frozen=True, slots=True)
class CallStep:
    """Call a tool of the agent's by the agent's own name for it.

    quotes: patterns by name; what the first group of one finds in the window stands for `{{name}}` in the arguments.
    namespace: that of the tool, for agents that name tools in two parts.
    """

    tool: str
    args: Mapping[str, object]
    quotes: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""


FileStep: TypeAlias = ReadStep | EditStep | WriteStep | MoveStep | DeleteStep
Step: TypeAlias = FileStep | Run | SayStep | FillStep | RecallStep | CallStep


@dataclass(frozen=True, slots=True)
class JobPrompt:
    """What the user says, and what the model does about it: the steps of each model call, several in one call at once."""

    name: str
    text: str
    calls: tuple[tuple[Step, ...], ...]

    @property
    def words(self) -> str:
        """The prompt as it is given to an agent: it names the script that the simulated provider is to follow."""
        return f"{self.text} SCRIPT@{self.name}"


@dataclass(frozen=True, slots=True)
class Job:
    """A workspace, given by path and text, and what is asked, one prompt after the other in one conversation."""

    name: str
    files: Mapping[str, str]
    prompts: tuple[JobPrompt, ...]


Recalling: TypeAlias = Callable[[str, int, int], str]
"""The shell command that shows lines of an object: given its id, the first line (from 1), how many."""


_PEEK: Final = "peek"


def no_recall(object_id: str, first: int, lines: int) -> str:
    """Where nothing is taken out of a window there is nothing to recall."""
    del object_id, first, lines
    return "false"


@dataclass(frozen=True, slots=True)
class Screenplay:
    """How one agent's model says a job. thinks: each of its answers begins with a thought. by_tool: it is offered tools to recall with.

    peek: the name of that tool. Another one than the gateway's also recalls where a job says that the shell does.
    """

    speech: Speech
    workspace: Path
    recalling: Recalling = no_recall
    thinks: bool = False
    by_tool: bool = True
    peek: str = _PEEK

    def scripts(self, job: Job) -> dict[str, list[list[Item]]]:
        """The job as scripts of the simulated provider, by name."""
        return {prompt.name: list(self._turns(prompt)) for prompt in job.prompts}

    def _turns(self, prompt: JobPrompt) -> Iterator[list[Item]]:
        for place, steps in enumerate(prompt.calls):
            thought: list[Item] = [{"thinking": f"Step {place} of {prompt.name}."}] if self.thinks else []
            recall = next((step for step in steps if isinstance(step, RecallStep)), None)
            said = [*thought, *(self._item(step) for step in steps)]
            quotes = {name: one for step in steps if isinstance(step, CallStep) for name, one in step.quotes.items()}
            if recall is None:
                yield [{"capture": quotes}, *said] if quotes else said
            else:
                instead = [*thought, *(self._item(step.otherwise if step is recall else step) for step in steps)]
                yield [{"capture": {"id": _handle_about(recall.about)}}, *said, {"otherwise": instead}]

    def _item(self, step: Step) -> Item:
        match step:
            case SayStep(text):
                return {"text": text}
            case FillStep(tokens):
                return {"usage": tokens}
            case CallStep(tool, args, _, namespace):
                return {**call(tool, **args), **({"ns": namespace} if namespace else {})}
            case _:
                return self._spoken(step)

    def _spoken(self, step: FileStep | Run | RecallStep) -> Item:
        """A step in the agent's own words."""
        match step:
            case Run(command):
                return self._run(command)
            case RecallStep(first=first, lines=lines, by_shell=by_shell) if self.by_tool and not (
                by_shell and self.peek == _PEEK
            ):
                return call(self.peek, id="{{id}}", line=first, lines=lines)
            case RecallStep(first=first, lines=lines):
                return self._run(self.recalling("{{id}}", first, lines))
            case _:
                return self._on_file(step)

    def _on_file(self, step: FileStep) -> Item:
        speech = self.speech
        match step:
            case ReadStep(path, first, lines):
                item = speech.lines(self.workspace, path, first, lines) if lines else speech.read(self.workspace, path)
            case EditStep(path, old, new):
                item = speech.edit(self.workspace, path, old, new)
            case WriteStep(path, text):
                item = speech.write(self.workspace, path, text)
            case MoveStep(path, to):
                item = speech.move(self.workspace, path, to) if speech.move else self._run(f"mv {path} {to}")
            case DeleteStep(path):
                item = speech.delete(self.workspace, path) if speech.delete else self._run(f"rm {path}")
        return item

    def _run(self, command: str) -> Item:
        return self.speech.run(self.workspace, command)


def _handle_about(about: str) -> str:
    """The id in a preview or stub in whose text these words stand somewhere."""
    return rf"(?s)\A(?=.*{about}).*?\[pagein: (\S+) \|"


_LEDGER_LINES: Final = 160
_REPORT: Final = """\
#!/bin/sh
# report NAME LINES: so many lines of figures about something
awk -v name="$1" -v lines="$2" 'BEGIN {
  print "report " name " of " lines " lines"
  seed = length(name) * 7919 + lines * 31
  for (i = 1; i <= length(name); i++) seed += index("0123456789abcdefghijklmnopqrstuvwxyz", substr(name, i, 1)) * 131 * i
  for (line = 1; line <= lines; line++) {
    text = line ": entry"
    for (column = 1; column <= 8; column++) { seed = (seed * 1103 + 12345) % 65521; text = text " " seed }
    print text
  }
}'
"""


def _ledger(name: str) -> str:
    lines = [f'"""The {name}: what came in and what went out."""', "", f"{name.upper()}_OPENED = False", ""]
    for place in range(_LEDGER_LINES // 4):
        lines += [
            f"def entry_{place}(amount: int) -> int:",
            f'    """Entry {place}."""',
            f"    return amount + {place}",
            "",
        ]
    return "\n".join([*lines, ""])


_FILES: Final = {
    "README.md": "# A small ledger\n\nReports are printed by `sh tools/report.sh NAME LINES`.\n",
    "src/ledger.py": _ledger("ledger"),
    "src/journal.py": _ledger("journal"),
    "tools/report.sh": _REPORT,
}


def report(name: str, lines: int) -> Run:
    """A report of so many lines, some fifty characters each."""
    return Run(f"sh tools/report.sh {name} {lines}")


def _reports(names: Sequence[str], lines: int) -> Iterator[tuple[Step, ...]]:
    yield from ((report(name, lines),) for name in names)


_BIG: Final = 260
"""Lines of a report that is too big to enter whole: some 15,000 characters."""
_MEDIUM: Final = 110
"""Lines of one that enters whole: some 6,000."""
_OPENED: Final = EditStep("src/ledger.py", "LEDGER_OPENED = False", "LEDGER_OPENED = True")


def _recalled(name: str, *, by_shell: bool = False) -> tuple[Step, ...]:
    """Lines of a big report that are far enough from both its ends that no preview shows them."""
    instead = Run(f"sh tools/report.sh {name} {_BIG} | sed -n '120,139p'")
    return (RecallStep(f"report {name} of", 120, 20, instead, by_shell),)


ONE_PROMPT: Final = Job(
    "one",
    _FILES,
    (
        JobPrompt(
            "one-1",
            "Open the ledger and look at what it reports.",
            (
                (ReadStep("src/ledger.py"),),
                (ReadStep("README.md"), report("b1", _BIG)),
                (_OPENED,),
                (report("b2", _BIG),),
                _recalled("b1"),
                (ReadStep("src/ledger.py"),),
                (SayStep("The ledger is open; its reports are in order."),),
            ),
        ),
    ),
)
"""A single prompt, for an agent that cannot go on with a conversation."""

LONG_JOB: Final = Job(
    "long",
    _FILES,
    (
        JobPrompt(
            "long-1",
            "Open the ledger and look at what it reports.",
            (
                (SayStep("I look at the ledger."), ReadStep("src/ledger.py")),
                *_reports(["b1", "b2", "b3"], _BIG),
                (_OPENED,),
                (ReadStep("src/ledger.py"),),
                *_reports(["m1", "m2", "m3", "m4"], _MEDIUM),
                _recalled("b2"),
                *_reports(["b4", "b5"], _BIG),
                (SayStep("The ledger is open; its reports are in order."),),
            ),
        ),
        JobPrompt(
            "long-2",
            "Now the journal.",
            (
                (ReadStep("src/journal.py"), ReadStep("README.md")),
                *_reports(["m5", "m6", "m7", "m8", "m9", "m10"], _MEDIUM),
                (report("b6", _BIG), report("b7", _BIG)),
                (EditStep("src/journal.py", "JOURNAL_OPENED = False", "JOURNAL_OPENED = True"),),
                (ReadStep("src/journal.py", 1, 12),),
                _recalled("b6", by_shell=True),
                *_reports(["m11", "m12", "m13", "m14", "m15", "m16"], _MEDIUM),
                (SayStep("The journal is open as well."),),
            ),
        ),
        JobPrompt(
            "long-3",
            "Close the ledger again and look at everything once more.",
            (
                (ReadStep("src/ledger.py"),),
                (EditStep("src/ledger.py", "LEDGER_OPENED = True", "LEDGER_OPENED = False"),),
                *_reports(["b8", "b9"], _BIG),
                *_reports(["m17", "m18", "m19", "m20", "m21", "m22"], _MEDIUM),
                (ReadStep("src/ledger.py", 1, 12),),
                *_reports(["m23", "m24"], _MEDIUM),
                (SayStep("The ledger is closed, the journal is open."),),
            ),
        ),
    ),
)
"""Three prompts in one conversation, about fifty model calls: long enough that taking old results out of the window pays."""

PLANNING: Final = Job(
    "planning",
    _FILES,
    (
        JobPrompt(
            "planning-1",
            "Plan what is to be done with the ledger.",
            (
                (report("m1", _MEDIUM),),
                (
                    SayStep("I plan."),
                    CallStep(
                        "TaskCreate", {"subject": "Open it", "description": "Open it", "activeForm": "Opening it"}
                    ),
                ),
                (_OPENED,),
                (CallStep("TaskUpdate", {"taskId": "1", "status": "completed"}),),
                (report("m2", _MEDIUM),),
                (SayStep("The ledger is open, as planned."),),
            ),
        ),
        JobPrompt(
            "planning-2",
            "What is left?",
            ((CallStep("TaskList", {}),), (report("m3", _MEDIUM),), (SayStep("Nothing is left."),)),
        ),
    ),
)
"""For Claude Code: it plans, with tools that `LONG_JOB` does not use."""
