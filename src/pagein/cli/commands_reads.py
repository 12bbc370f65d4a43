"""The commands for reads in a session named on the command line, registered by `cli`.

Heavy imports are inside the commands, as in `cli`.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pagein.cli.options import AsJson, SessionName, Store, Workspace
from pagein.cli.standard_streams import print_json
from pagein.errors import BadInput, BadSetting, StoreError

if TYPE_CHECKING:
    from pagein.engine.session import Session


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(
        epilog="Examples:\n\npagein read src/app.py --session fix-login\n\npagein read src/app.py:10-40 --session fix-login"
        "\n\npagein read --mode symbol Server.start --session fix-login"
        "\n\npagein read --mode snippet src --pattern '/def \\w+_token/' --json"
        "\n\npagein read --mode diff_preview src/app.py --against HEAD"
    )(read)
    app.command(epilog="Example: pagein refresh src/app.py 10-40 --session fix-login")(refresh)
    app.command(epilog="Example: pagein reads --session fix-login --json")(reads)


def read(  # noqa: PLR0913 - a command has as many options as it has
    target: Annotated[
        str, typer.Argument(metavar="PATH[:A-B]|TARGET", help="The file; :A-B selects lines. With --mode, its target.")
    ],
    *,
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            "-s",
            metavar="NAME",
            envvar="PAGEIN_SESSION",
            help="The session; begun if it is new. Needed without --mode.",
            show_default="with --mode, one that is forgotten",
        ),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode", metavar="MODE", help="file, symbol, snippet or diff_preview: read as the tool read does."
        ),
    ] = None,
    offset: Annotated[
        int | None, typer.Option("--offset", metavar="N", help="First line, match or hunk, from 1.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="How many lines, matches or hunks.")] = None,
    path: Annotated[str | None, typer.Option("--path", metavar="PATH", help="symbol: the file of the symbol.")] = None,
    include_context: Annotated[
        bool, typer.Option("--include-context", help="symbol: also imports and enclosing headers.")
    ] = False,
    start_line: Annotated[int | None, typer.Option("--start-line", metavar="N", help="snippet: first line.")] = None,
    end_line: Annotated[int | None, typer.Option("--end-line", metavar="N", help="snippet: last line.")] = None,
    context_lines: Annotated[
        int | None, typer.Option("--context-lines", metavar="N", help="snippet: lines before and after.")
    ] = None,
    pattern: Annotated[
        str | None, typer.Option("--pattern", metavar="TEXT", help="snippet: places of a text or of /expression/flags.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="BASE",
            help="diff_preview: HEAD, INDEX, WORKTREE, commit:SHA or snapshot:ID@VERSION.",
            show_default="HEAD",
        ),
    ] = None,
    content: Annotated[
        Path | None,
        typer.Option(
            "--content", metavar="FILE", help="diff_preview: a file with the proposed text; - for standard input."
        ),
    ] = None,
    preview_mode: Annotated[
        str | None, typer.Option("--preview-mode", metavar="none|snippet", help="none: only places and sizes.")
    ] = None,
    max_preview_chars: Annotated[
        int | None, typer.Option("--max-preview-chars", metavar="N", help="Maximum characters of the answer.")
    ] = None,
    bypass_cache: Annotated[bool, typer.Option("--bypass-cache", help="Always show the text.")] = False,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Read a file, a symbol, some lines or a diff as a session's model would: the text, or the shorter answer in its place.

    The printed text then counts as seen by that model. Without --mode, TARGET is a file, read as an agent's own tool
    reads it. With --mode, --json prints the contract of the tool, also for an error (status 1).
    """
    options: dict[str, object] = {
        "path": path,
        "include_context": include_context or None,
        "start_line": start_line,
        "end_line": end_line,
        "context_lines": context_lines,
        "pattern": pattern,
        "against": against,
        "content": None if content is None else _text_of(content),
        "preview_mode": preview_mode,
        "max_preview_chars": max_preview_chars,
    }
    both = {"offset": offset, "limit": limit, "bypass_cache": bypass_cache or None}
    if mode is not None:
        _read_by_mode({"mode": mode, "target": target, **options, **both}, session, workspace, store, as_json=as_json)
        return
    if alone := [name for name, value in options.items() if value is not None]:
        raise BadSetting(f"--{alone[0].replace('_', '-')} needs --mode")
    if session is None:
        raise BadSetting("--session is missing: reading without --mode needs a session, such as --session fix-login")
    from pagein.tools import read_commands as commands

    answer = _in_session(
        session,
        workspace,
        store,
        lambda opened: commands.read_file(opened, target, offset=offset, limit=limit, bypass=bypass_cache),
    )
    _print(answer, as_json=as_json)


def _read_by_mode(
    arguments: dict[str, object], session: str | None, workspace: Path, store: str | None, *, as_json: bool
) -> None:
    from pagein.tools import read_commands as commands
    from pagein.ui.figures import plain

    if session is None and str(arguments["against"]).startswith("snapshot:"):
        raise BadSetting("--session is missing: a stored version is looked for in the store of a session")
    place, name = (":memory:", "read") if session is None else (store, session)
    answer = _in_session(name, workspace, place, lambda opened: commands.read_by_mode(opened, arguments))
    if as_json:
        print_json(answer)
        if not answer["ok"]:
            raise typer.Exit(1)
        return
    if not answer["ok"]:
        message = "\n".join(map(plain, str(answer["error"]["message"]).split("\n")))
        sys.stderr.write(f"pagein: {answer['error']['code']}: {message}\n")
        raise typer.Exit(1)
    text = str(answer["text"])
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    for warning in answer["meta"]["stabilization"]["warnings"]:
        sys.stderr.write(f"pagein: {warning}\n")
    if answer["failure"] is not None:
        sys.stderr.write(f"pagein: answered as if there were no store: {answer['failure']}\n")


def _text_of(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, ValueError) as problem:
        raise BadInput(f"{path}: cannot be read as a proposed text: {problem}") from problem


def refresh(
    path: Annotated[str, typer.Argument(metavar="PATH[:A-B]", help="The file; :A-B selects lines.")],
    lines: Annotated[str | None, typer.Argument(metavar="[A-B]", help="Only these lines.", show_default="all")] = None,
    *,
    session: SessionName,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Make a session's next read of a file, or of some lines, show the full text."""
    from pagein.tools import read_commands as commands

    answer = _in_session(session, workspace, store, lambda opened: commands.refresh(opened, path, lines))
    _print(answer, as_json=as_json, needs_store=True)


def reads(
    *,
    session: Annotated[
        str, typer.Option("--session", "-s", metavar="NAME", envvar="PAGEIN_SESSION", help="The session's name.")
    ],
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Show which files a session's model has read, and how many tokens shorter answers saved."""
    from pagein import wiring
    from pagein.tools import read_commands as commands

    try:
        with wiring.open_kept_session(session, store, workspace=workspace) as kept:
            answer = commands.reads(kept)
    except StoreError:  # the figures report this error, too
        answer = _in_session(session, workspace, store, commands.reads)
    _print(answer, as_json=as_json)


def _in_session(
    name: str, workspace: Path, store: str | None, work: "Callable[[Session], dict[str, Any]]"
) -> dict[str, Any]:
    from pagein import wiring

    if not name.strip():
        raise BadInput("a session needs a name; give one with --session")
    with wiring.open(store, workspace=workspace) as engine:
        return work(engine.session(name, workspace=workspace))


def _print(answer: dict[str, Any], *, as_json: bool, needs_store: bool = False) -> None:
    if as_json:
        print_json(answer)
    if answer.get("is_error"):
        raise BadInput(str(answer["text"]))
    if (
        needs_store and answer.get("failure") is not None
    ):  # without a store the refresh is lost at the end of this process
        raise StoreError(f"nothing was refreshed: {answer['failure']}")
    if not as_json:
        text = str(answer["text"])
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    if answer.get("failure") is not None:
        sys.stderr.write(f"pagein: answered as if there were no store: {answer['failure']}\n")
