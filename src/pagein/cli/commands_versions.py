"""The commands for the versions of objects (`history`, `show`, `diff`) and for their names and views, registered by `cli`.

Heavy imports are inside the commands, as in `cli`.
"""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pagein.cli.archive_access import AsOf, GivenWorkspace, Limit, Name, file_paths, in_archive, moment, print_answer
from pagein.cli.options import AsJson, Store
from pagein.errors import BadInput, BadSetting

if TYPE_CHECKING:
    from pagein.archive import Archive

# Versions of an object are far below this.
_MOST: Final = 10**15


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(epilog="Examples:\n\npagein history src/app.py\n\npagein history auth-notes --json")(history)
    app.command(
        epilog="Examples:\n\npagein show src/app.py@3\n\npagein show src/app.py --as-of 2d\n\npagein show toolu_01A --lines 10-40\n\n"
        "pagein show auth-notes --metadata"
    )(show)
    app.command(
        epilog="Examples:\n\npagein diff src/app.py\n\npagein diff src/app.py@3..5\n\npagein diff src/app.py@3\n\n"
        "pagein diff src/app.py@3.. --json"
    )(diff)
    app.command(epilog="Examples:\n\npagein name src/app.py app\n\npagein name app --remove")(name)
    app.command(epilog="Examples:\n\npagein view app\n\npagein view app path summary\n\npagein view app --default")(
        view
    )


def history(
    name: Name,
    *,
    limit: Limit = 50,
    workspace: GivenWorkspace = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """List who wrote or saw which version of a file or of another object, the latest first: when, in which turn, on what request."""
    from pagein.tools import version_commands as commands
    from pagein.ui.version_views import show_history

    answer = in_archive(
        store,
        workspace,
        lambda archive: commands.history(archive.objects, name, limit=limit, paths=file_paths),
    )
    print_answer(answer, show_history, as_json=as_json)


def show(  # noqa: PLR0913 - a command has as many options as it has
    name: Name,
    *,
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", min=1, max=_MOST, help="This version, as @N does.")
    ] = None,
    at: AsOf = None,
    field: Annotated[
        str | None, typer.Option("--field", metavar="NAME", help="A field other than the content, such as a summary.")
    ] = None,
    lines: Annotated[str | None, typer.Option("--lines", metavar="A-B", help="Only these lines, from 1.")] = None,
    metadata: Annotated[bool, typer.Option("--metadata", help="The metadata instead of the content.")] = False,
    workspace: GivenWorkspace = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Print an object's content exactly as stored, or the metadata of the object."""
    from pagein.engine.recall.named_objects import VersionChoice
    from pagein.tools import version_commands as commands
    from pagein.ui.figures import plain
    from pagein.ui.version_views import show_metadata

    if version is not None and at is not None:
        raise BadSetting("--version and --as-of name a version in two ways; give one of them")
    choice = VersionChoice(version, moment(at))
    answer = in_archive(
        store,
        workspace,
        lambda archive: commands.show(archive.objects, name, choice=choice, field=field, lines=lines, paths=file_paths),
    )
    if as_json or metadata:
        print_answer(answer, show_metadata, as_json=as_json)
    else:
        for one in answer.get("evidence", ()):  # beside the content, which is printed exactly
            sys.stderr.write(f"pagein: evidence: {plain(one['quote'])} ({one['place']})\n")
        _print_content(answer)


def diff(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME[@A[..[B]]]",
            help="NAME: the last change; @A: against the newest; @A..B: from A to B; @A..: against the file on disk.",
        ),
    ],
    *,
    workspace: GivenWorkspace = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Print the difference of two versions of a file as a unified diff."""
    from pagein.tools import version_commands as commands
    from pagein.ui.version_views import diff_title, partial_sides, show_diff

    answer = in_archive(
        store,
        workspace,
        lambda archive: commands.diff(
            archive.objects, name, read_file=_text_on_disk, paths=file_paths, folder=str(Path.cwd())
        ),
    )
    for told in partial_sides(answer):
        sys.stderr.write(f"pagein: {told}\n")
    if as_json or sys.stdout.isatty():
        print_answer(answer, show_diff, as_json=as_json)
    else:
        _print_exactly(f"{diff_title(answer)}\n{answer['diff']}")


def name(
    target: Name,
    nickname: Annotated[
        str | None, typer.Argument(metavar="[NICK]", help="The nickname, unique among all objects.")
    ] = None,
    *,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the nickname.")] = False,
    workspace: GivenWorkspace = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Give an object a nickname, which can be used like an id."""
    from pagein.tools import naming_commands as commands
    from pagein.ui.version_views import show_naming

    if (nickname is None) != remove:
        raise BadSetting("give a nickname, or --remove to take it away")
    now = time.time()  # noqa: TID251 - the rim reads the clock
    answer = in_archive(
        store, workspace, lambda archive: commands.name(archive.objects, target, nickname, at=now, paths=file_paths)
    )
    print_answer(answer, show_naming, as_json=as_json)


def view(
    target: Name,
    fields: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIELDS]...", help="Names of fields, in the order in which they are shown."),
    ] = None,
    *,
    default: Annotated[bool, typer.Option("--default", help="Show the fields of the object's type again.")] = False,
    workspace: GivenWorkspace = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Choose the fields shown for an object while its content is not loaded; without fields, print them."""
    from pagein.tools import naming_commands as commands
    from pagein.ui.version_views import show_view

    if fields and default:
        raise BadSetting("give the names of fields, or --default")
    chosen = [one for field in fields or () for one in field.split(",") if one]
    now = time.time()  # noqa: TID251 - the rim reads the clock

    def work(archive: "Archive") -> dict[str, Any]:
        if not chosen and not default:
            return commands.shown_view(archive.objects, target, paths=file_paths)
        return commands.view(archive.objects, target, tuple(chosen) or None, at=now, paths=file_paths)

    print_answer(in_archive(store, workspace, work), show_view, as_json=as_json)


def _text_on_disk(path: str) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8")
    except OSError as problem:
        raise BadInput(f"{path}: {problem.strerror}; name two versions, as in NAME@1..2") from problem
    except ValueError as problem:
        raise BadInput(f"{path} is not text on disk; name two versions, as in NAME@1..2") from problem


def _print_content(answer: dict[str, Any]) -> None:
    from pagein.ui.version_views import missing_text, terminal_text

    told = missing_text(answer)
    if told:
        sys.stderr.write(f"pagein: {told}\n")
    content = answer["content"]
    if content is None:
        return
    if sys.stdout.isatty():
        sys.stdout.write(terminal_text(content) + ("" if content.endswith("\n") else "\n"))
        return
    _print_exactly(content)


def _print_exactly(text: str) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
