"""The commands that ask child models about stored objects, registered by `cli`.

Heavy imports are inside the commands, as in `cli`.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from pagein.cli.options import AsJson, Store, Workspace
from pagein.cli.standard_streams import print_json
from pagein.errors import BadInput

if TYPE_CHECKING:
    from pagein.model.delegation_notes import DelegationKind
    from pagein.policy.delegation.child_costs import CallCost

Words: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="ID... QUESTION",
        help="Ids of stored objects, and the question as the last word. -: ids from standard input.",
    ),
]
AskedBy: TypeAlias = Annotated[
    str,
    typer.Option(
        "--session", "-s", metavar="NAME", envvar="PAGEIN_SESSION", help="The session that keeps the answers."
    ),
]
ChildModelName: TypeAlias = Annotated[
    str | None,
    typer.Option("--model", metavar="PROVIDER/MODEL", help="The child model.", show_default="the setting child_model"),
]
Find: TypeAlias = Annotated[
    str | None,
    typer.Option("--find", metavar="TEXT", help="A text, or /regex/: only objects that contain it are asked about."),
]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for consent to many calls.")]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
_DEFAULT_SESSION = "questions"
# Name, help and example of each command.
_COMMANDS: Final[tuple[tuple["DelegationKind", str, str], ...]] = (
    (
        "query",
        (
            "Ask one child model about several stored objects together.\n\n"
            "The child reads them in a window of its own. The answer is stored, with its evidence."
        ),
        'Example: pagein query pg-01234567-89abcdef -- "Which test failed first, and why?"',
    ),
    (
        "batch",
        (
            "Ask child models the same question about each of several stored objects.\n\n"
            "Several run at the same time. The answers come in the order of the objects."
        ),
        (
            'Examples:\n\npagein batch pg-01234567-89abcdef pg-89abcdef-01234567 -- "Which errors are in it?"\n\n'
            'pagein objects --json | jq -r .objects[].id | pagein batch - -- "What does it do?" --find TODO'
        ),
    ),
    (
        "extract",
        "Ask a child model about stored objects, and keep the answer as an object that refers to them.",
        'Example: pagein extract pg-01234567-89abcdef -- "List every function that it changes."',
    ),
)


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for kind, told, epilog in _COMMANDS:
        app.command(kind, help=told, epilog=epilog)(_command(kind))


def _command(kind: "DelegationKind") -> Callable[..., None]:
    """Return the command of an operation. All have the same options."""

    def ask(  # noqa: PLR0913 -- a command has as many options as it has
        words: Words,
        *,
        model: ChildModelName = None,
        find: Find = None,
        session: AskedBy = _DEFAULT_SESSION,
        workspace: Workspace = Path(),
        store: Store = None,
        yes: Yes = False,
        as_json: AsJson = False,
        quiet: Quiet = False,
    ) -> None:
        _ask(kind, words, model, find, session, workspace, store, yes=yes, as_json=as_json, quiet=quiet)

    return ask


def _ask(  # noqa: PLR0913 -- the options of three commands
    kind: "DelegationKind",
    words: list[str],
    model: str | None,
    find: str | None,
    session: str,
    workspace: Path,
    store: str | None,
    *,
    yes: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    from pagein import wiring
    from pagein.tools import delegation_commands as commands
    from pagein.ui.call_progress import call_progress
    from pagein.ui.console import console
    from pagein.ui.figures import plain

    takes_ids = "-" in words[:-1]
    more = sys.stdin.read().split() if takes_ids else []
    has_person = sys.stdin.isatty() and sys.stderr.isatty() and not takes_ids
    confirm = (lambda _: True) if yes else _confirm if has_person else None
    asked = commands.question_of(kind, words, more, model, find, confirm)
    with wiring.open(store, workspace=workspace) as engine:
        with call_progress(console(error=True), wanted=not (quiet or as_json)) as show:
            answered = commands.ask(engine.session(session, workspace=workspace), asked, show)
        if as_json:
            print_json(answered.values)
        elif answered.failure is None or answered.values["results"]:
            # a child repeats what it read: at a terminal, no sequence of it may act
            shown = "\n".join(map(plain, answered.text.split("\n"))) if sys.stdout.isatty() else answered.text
            sys.stdout.write(f"{shown}\n")
    if answered.is_cancelled:
        raise KeyboardInterrupt
    if answered.failure is not None:
        raise BadInput(answered.failure)


async def _confirm(cost: "CallCost") -> bool:
    """Ask the person. In the main thread, so that Ctrl-C ends the question."""
    import signal

    words = f"This asks {cost.calls} children and may cost up to {cost.says}. Go on?"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return typer.confirm(words, err=True)
    except typer.Abort:
        return False
    finally:
        signal.signal(signal.SIGINT, before)
