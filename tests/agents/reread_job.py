"""A job with many repeated reads, in a conversation that the agent itself compacts: the use case of pagein's MCP server."""

from collections.abc import Iterator
from typing import Final

from tests.agents.jobs import EditStep, FillStep, Job, JobPrompt, ReadStep, Run, SayStep, Step
from tests.agents.mcp_servers import ServedAgent

FULL: Final = 990_000
"""More tokens than any window has. The provider reports them for one call, so that the agent compacts."""
_RULES, _LEDGER, _JOURNAL = "docs/rules.md", "src/ledger.py", "src/journal.py"
_OPENED: Final = EditStep(_JOURNAL, "JOURNAL_OPENED = False", "JOURNAL_OPENED = True")
_ID: Final = r"\*\*([0-9A-Za-z_.:-]+@\d+)\*\*"


def _module(name: str) -> str:
    head = f'"""The {name}."""\n\n{name.upper()}_OPENED = False\n'
    return head + "".join(
        f"\n\ndef {name}_{number}(amount: int) -> int:\n    return amount + {number}\n" for number in range(120)
    )


_FILES: Final = {
    _RULES: "# Rules\n\n" + "".join(f"- Rule {number}: an entry of kind {number} is booked on side {number % 2}.\n" for number in range(130)),
    _LEDGER: _module("ledger"),
    _JOURNAL: _module("journal"),
}  # fmt: skip


def _reads(*paths: str) -> Iterator[tuple[Step, ...]]:
    yield from ((ReadStep(path),) for path in paths)


def _recall(served: ServedAgent | None) -> tuple[tuple[Step, ...], ...]:
    """Look for a rule that the window lost: in the store, or without one in the file."""
    if served is None:
        return ((Run(f"grep -n 'Rule 77:' {_RULES}"),), (Run(f"sed -n '70,89p' {_RULES}"),))
    seek = served.call("search", pattern="Rule 77:")
    return ((seek,), (served.call("peek", {"id": _ID}, id="{{id}}", line=70, lines=20),))


def reread_job(program: str, served: ServedAgent | None) -> Job:
    """The job of an agent. program: its command. served: how it calls the server; None without one."""
    is_told = program == "claude"  # it compacts by a command; others when their window is full
    prompts = [
        JobPrompt(
            "again-1",
            "Open the journal by the rules.",
            (
                *_reads(_RULES, _LEDGER, _JOURNAL, _RULES),
                (_OPENED,),
                *_reads(_JOURNAL, _LEDGER, _RULES, _LEDGER, _JOURNAL),
                (SayStep("The journal is open."),),
            ),
        ),
        JobPrompt(
            "again-2",
            "Does the ledger keep the rules?",
            (
                *_reads(_RULES, _LEDGER, _RULES),
                (ReadStep(_LEDGER, 40, 60),),
                *_reads(_JOURNAL, _RULES, _LEDGER),
                (SayStep("It does."), *(() if is_told else (FillStep(FULL),))),
            ),
        ),
        JobPrompt(
            "again-3",
            "What does rule 77 say, and what does the ledger make of it?",
            (*_recall(served), *_reads(_RULES, _LEDGER, _RULES, _LEDGER, _RULES), (SayStep("Side 1."),)),
        ),
    ]
    if is_told:
        prompts.insert(2, JobPrompt("again-compact", "/compact", ((SayStep("The journal was opened."),),)))
    return Job("again", _FILES, tuple(prompts))
