"""The commands for recalling evicted results and ingesting files, registered by `cli`.

Heavy imports are inside the commands, as in `cli`.
"""

import sys
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from pagein.cli.options import AsJson, SessionName, Store, Workspace
from pagein.cli.standard_streams import print_json
from pagein.errors import BadInput, BadName, StoreError

ShownTo: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--session",
        "-s",
        metavar="NAME",
        envvar="PAGEIN_SESSION",
        help="The session whose model sees the text.",
        show_default="nobody's",
    ),
]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(
        epilog="Examples:\n\npagein peek pg-01234567-89abcdef --line 40 --lines 20\n\npagein peek pg-01234567-89abcdef --around 'def parse('\n\npagein peek pg-01234567-89abcdef --all > result.txt"
    )(peek)
    app.command(epilog="Example: pagein ingest 'src/**/*.py' docs --session fix-login")(ingest)
    app.command(epilog="Example: pagein stats --session fix-login --json")(stats)


def peek(  # noqa: PLR0913 - a command has as many options as it has
    object_id: Annotated[str, typer.Argument(metavar="ID", help="The object's id, as its stub shows it.")],
    *,
    session: ShownTo = None,
    offset: Annotated[int | None, typer.Option("--offset", metavar="N", help="First character, from 0.")] = None,
    length: Annotated[int | None, typer.Option("--length", metavar="N", help="How many characters.")] = None,
    line: Annotated[int | None, typer.Option("--line", metavar="N", help="First line, from 1.")] = None,
    lines: Annotated[int | None, typer.Option("--lines", metavar="N", help="How many lines.")] = None,
    around: Annotated[
        str | None, typer.Option("--around", metavar="TEXT", help="Text to find; shows the lines around it.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="The whole text, byte for byte, and nothing else.")] = False,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Show a part of an evicted or ingested text.

    With --session, the text is shown as the session's model would see it, and counts as a recall.
    """
    from pagein import wiring
    from pagein.tools import recalled_texts

    place = {"offset": offset, "length": length, "line": line, "lines": lines, "around": around}
    if everything and (as_json or any(one is not None for one in place.values())):
        raise BadInput("--all prints the whole text only; leave out options that select or shape a part")
    if everything or session is None:  # as an agent's shell calls it: without the time that the engine takes to start
        with wiring.open_texts(store, workspace) as texts:
            if everything:
                sys.stdout.buffer.write(recalled_texts.whole(texts, object_id).encode("utf-8", "surrogatepass"))
            else:
                _print(recalled_texts.look(texts, _evicted(object_id), place), as_json=as_json)
        return
    from pagein.tools import recall_commands as commands

    with wiring.open(store, workspace=workspace) as engine:
        opened = engine.session(session, workspace=workspace)
        _print(commands.peek(opened, object_id, place), as_json=as_json)


def _evicted(text: str) -> str:
    """Return the id of an evicted text. Raises BadName, with the command for other objects."""
    from pagein.model.objects import ObjectId

    try:
        return ObjectId.parse(text.strip()).text
    except BadName as problem:
        shown = "pagein show prints every other object, such as a result that is still in the window"
        raise BadName(f"{problem}; {shown}") from problem


def ingest(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, folders or globs in the workspace.")],
    *,
    session: SessionName,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Put files into the store for a session, without showing them to its model.

    Files that git ignores, binary files and files with secrets are left out.
    """
    from pagein import wiring
    from pagein.tools import recall_commands as commands

    def tell(words: str) -> None:
        sys.stderr.write(f"{words}\n")

    with wiring.open(store, workspace=workspace) as engine:
        opened = engine.session(session, workspace=workspace)
        told = None if quiet or not sys.stderr.isatty() else tell
        done = commands.ingest(opened, paths, told)
        if done["failure"] is not None and not done["details"]["objectIds"]:
            raise StoreError(f"nothing was ingested: {done['failure']}")
        _print(done, as_json=as_json)


def stats(
    *,
    session: Annotated[
        str, typer.Option("--session", "-s", metavar="NAME", envvar="PAGEIN_SESSION", help="The session's name.")
    ],
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Show the figures of a session as its model sees them: evicted results, recalls, and stored content."""
    from pagein import wiring
    from pagein.tools import recall_commands as commands

    with wiring.open_kept_session(session, store, workspace=workspace) as kept:
        _print(commands.stats(kept), as_json=as_json)


def _print(answer: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
    if answer["is_error"]:
        raise BadInput(str(answer["text"]))
    if not as_json:
        text = str(answer["text"])
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    if answer["failure"] is not None:
        sys.stderr.write(f"pagein: done, but not all of it was kept: {answer['failure']}\n")
