"""The command `symbols`, registered by `cli`.

Heavy imports are inside the command, as in `cli`.
"""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from pagein.cli.archive_access import print_answer
from pagein.cli.options import AsJson, Store, Workspace
from pagein.errors import BadInput, BadSetting


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command(
        epilog="Examples:\n\npagein symbols src/app.py\n\npagein symbols Server.start --context\n\n"
        'pagein symbols --tree --question "where are sessions stored" --characters 4000'
    )(symbols)


def symbols(  # noqa: PLR0913 - an option each
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATH|NAME]",
            help="A file or folder; or a definition by name, qualified name or id.",
            show_default="the workspace",
        ),
    ] = None,
    *,
    tree: Annotated[bool, typer.Option("--tree", help="Print the map: a compact block for each file.")] = False,
    question: Annotated[
        str,
        typer.Option(
            "--question", metavar="WORDS", help="Files whose names have these words come first.", show_default="none"
        ),
    ] = "",
    characters: Annotated[
        int | None,
        typer.Option(
            "--characters", metavar="N", min=1, help="Maximum characters of the map.", show_default="no limit"
        ),
    ] = None,
    path: Annotated[
        str | None, typer.Option("--path", metavar="PATH", help="With a name: only in this file, folder or glob.")
    ] = None,
    context: Annotated[
        bool, typer.Option("--context", help="With a name: also the imports and the enclosing headers.")
    ] = False,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Show what the files of the workspace define: functions, classes, methods, types, with their lines and signatures.

    Needs the extra `symbols`. Symbols are kept in the workspace's store, if there is one, and only changed files are parsed.
    """
    from pagein.ui.symbol_views import show_symbol, show_symbol_table, show_symbol_tree

    file = _path_in(workspace, target)  # "" for the workspace itself
    is_name = target is not None and file is None
    if is_name and (tree or question or characters is not None):
        raise BadSetting("--tree, --question and --characters are about files; leave them out to read a definition")
    if not is_name and (path is not None or context):
        raise BadSetting("--path and --context go with the name of a definition; leave them out to list files")
    if tree and as_json:
        raise BadSetting("--tree and --json are two forms of one answer; give one of them")
    if is_name and target is not None:
        print_answer(_definition(workspace, store, target, path, context=context), show_symbol, as_json=as_json)
    else:
        answer = _list(workspace, store, file or None, question, characters)
        print_answer(answer, show_symbol_tree if tree else show_symbol_table, as_json=as_json)


def _definition(workspace: Path, store: str | None, name: str, path: str | None, *, context: bool) -> dict[str, Any]:
    from pagein.archive import open_symbols
    from pagein.tools.symbol_commands import read_symbol

    with open_symbols(store, workspace=workspace) as index:
        _refresh(index)
        return read_symbol(index, name, path=path, include_context=context, skipped=_skipped())


def _list(
    workspace: Path, store: str | None, path: str | None, question: str, characters: int | None
) -> dict[str, Any]:
    from pagein.archive import open_symbols
    from pagein.tools.symbol_commands import list_symbols

    with open_symbols(store, workspace=workspace) as index:
        _refresh(index)
        return list_symbols(index, path, question=question, characters=characters, skipped=_skipped())


def _skipped() -> frozenset[str]:
    """Return the names of the folders that the guards of reads exclude, by the setting `guard_folders`."""
    from pagein import wiring
    from pagein.policy.guards.relevance import EXCLUDED_FOLDERS

    return EXCLUDED_FOLDERS if wiring.usual().guards.folders == "refuse" else frozenset()


def _refresh(index: Any) -> None:  # noqa: ANN401 - a SymbolIndex, which is not imported for `--help`
    from rich.console import Console

    from pagein.ui.progress import step_bar

    with step_bar(Console(stderr=True), "looking at the files") as tell:
        index.refresh(tell=tell)


def _path_in(workspace: Path, target: str | None) -> str | None:
    """Return the path of a file or folder, relative to the workspace; "" for the workspace itself; None for a name."""
    if target is None:
        return None
    root, place = os.path.realpath(workspace), os.path.realpath(target)
    if not Path(place).exists():
        if "/" in target and "#" not in target:
            raise BadInput(f"no such file or folder: {target}; a definition is named without slashes, or by its id")
        return None
    if place == root:
        return ""
    if not Path(place).is_relative_to(root):
        raise BadInput(f"{target} is outside of the workspace {root}; name its folder with --workspace")
    return Path(place).relative_to(root).as_posix()
