"""The commands for the content of a store, registered by `cli`.

Heavy imports are inside the commands, as in `cli`.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import typer

from pagein.cli.options import AsJson, Store, Workspace
from pagein.errors import BadSetting

if TYPE_CHECKING:
    from pagein.archive import Archive

Name: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="The object's id or nickname.")]
Types: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--type", "-t", metavar="TYPE", help="Only objects of this type: file, note, toolcall, chat, ..."),
]
InPath: TypeAlias = Annotated[
    str | None,
    typer.Option("--path", "-p", metavar="PATH", help="Only files at this path, in this folder, or by a glob."),
]
SessionName: TypeAlias = Annotated[
    str | None, typer.Option("--session", "-s", metavar="NAME", help="Only what this session stored.")
]
Since: TypeAlias = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Stored at this time or later: 2026-11-21T10:00, or 2h, 3d ago."),
]
Until: TypeAlias = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Stored at this time or before.")]
Versions: TypeAlias = Literal["newest", "current", "all"]

# Versions and places in a store are far below this.
_MOST: Final = 10**15
# Time for updating the index after a search, seconds; the next search is then faster.
_LINGER: Final = 2.0


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(epilog="Examples:\n\npagein objects --type file --path src\n\npagein objects --since 2h --json")(
        objects
    )
    app.command(epilog="Example: pagein history 0193a5e8-7c1d-7000-8000-000000000001")(history)
    app.command(
        epilog="Examples:\n\npagein show auth-notes\n\npagein show toolu_01A --lines 10-40\n\npagein show auth-notes --version 3 --json"
    )(show)
    app.command(
        epilog="Examples:\n\npagein search 'connection refused'\n\npagein search -e 'def \\w+_test' --path 'src/**/*.py' -C 2\n\n"
        "pagein search 'rate limit' --type user --agent codex --since 1w\n\npagein search TODO --versions current --json"
    )(search)
    app.command(epilog="Example: pagein backlinks auth-notes --ever")(backlinks)


def objects(  # noqa: PLR0913 - a command has as many options as it has
    *,
    types: Types = None,
    path: InPath = None,
    session: SessionName = None,
    since: Since = None,
    until: Until = None,
    deleted: Annotated[bool, typer.Option("--deleted", help="Also those that are gone by now.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, max=100_000, help="At most so many.")] = 50,
    before: Annotated[
        int | None,
        typer.Option("--before", metavar="SEQUENCE", min=0, max=_MOST, help="The next page: objects older than this."),
    ] = None,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """List the stored objects, newest first, without reading their content."""
    from pagein.model.writes import Query
    from pagein.tools import store_commands as commands
    from pagein.ui.store_views import show_objects

    query = Query(
        types=frozenset(types or ()),
        where={} if session is None else {"session": session},
        deleted=None if deleted else False,
        since=_time(since),
        until=_time(until),
        before=before,
        limit=limit,
    )
    answer = _in_archive(store, workspace, lambda archive: commands.objects(archive.objects, query, path))
    _print(answer, show_objects, as_json=as_json)


def history(name: Name, *, workspace: Workspace = Path(), store: Store = None, as_json: AsJson = False) -> None:
    """List all versions of an object, newest first."""
    from pagein.tools import store_commands as commands
    from pagein.ui.store_views import show_history

    answer = _in_archive(store, workspace, lambda archive: commands.history(archive.objects, name))
    _print(answer, show_history, as_json=as_json)


def show(  # noqa: PLR0913 - a command has as many options as it has
    name: Name,
    *,
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", min=1, max=_MOST, help="This version, not the newest.")
    ] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help="The version of that time.")] = None,
    field: Annotated[
        str | None, typer.Option("--field", metavar="NAME", help="Another field than the content, such as a summary.")
    ] = None,
    lines: Annotated[str | None, typer.Option("--lines", metavar="A-B", help="Only these lines, from 1.")] = None,
    metadata: Annotated[bool, typer.Option("--metadata", help="What is known of it, instead of its content.")] = False,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Print an object's content exactly as stored, or the metadata of the object."""
    from pagein.tools import store_commands as commands
    from pagein.ui.store_views import show_metadata

    if version is not None and at is not None:
        raise BadSetting("--version and --at name a version in two ways; give one of them")
    moment = _time(at)
    answer = _in_archive(
        store,
        workspace,
        lambda archive: commands.show(archive.objects, name, number=version, at=moment, field=field, lines=lines),
    )
    if as_json or metadata:
        _print(answer, show_metadata, as_json=as_json)
    else:
        _print_content(answer)


def search(  # noqa: PLR0913 - a command has as many options as it has
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="The text to look for.")],
    *,
    regex: Annotated[bool, typer.Option("--regex", "-e", help="PATTERN is a regular expression (RE2).")] = False,
    ignore_case: Annotated[
        bool, typer.Option("--ignore-case", "-i", help="Upper and lower case are the same.")
    ] = False,
    types: Types = None,
    path: InPath = None,
    session: SessionName = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="NAME", help="Only sessions of this agent: claude-code, codex, ...")
    ] = None,
    chat: Annotated[
        str | None,
        typer.Option(
            "--chat", metavar="ID", help="Only this chat (a branch of a session), and what its calls touched."
        ),
    ] = None,
    since: Since = None,
    until: Until = None,
    within: Annotated[
        list[str] | None, typer.Option("--in", metavar="ID", help="Only in this object; may be given several times.")
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option("--field", metavar="NAME", help="Only in content, metadata, turns or a field by its name."),
    ] = None,
    versions: Annotated[
        Versions,
        typer.Option(
            "--versions", help="Of each object the newest version with a match, only its current one, or all."
        ),
    ] = "newest",
    context: Annotated[
        int, typer.Option("--context", "-C", metavar="N", min=0, max=50, help="Lines around each hit.")
    ] = 0,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, max=10_000, help="Hits in one page.")] = 50,
    each: Annotated[
        int | None,
        typer.Option("--each", metavar="N", min=1, help="At most so many hits in one version.", show_default="all"),
    ] = None,
    following: Annotated[
        str | None, typer.Option("--next", metavar="TOKEN", help="The page behind the one before.")
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.0, help="Stop looking after this.")
    ] = 60.0,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Search everything stored, newest first: what was said, read, written and answered, in every version."""
    from pagein.model.search_query import Search
    from pagein.tools import store_commands as commands
    from pagein.ui.store_views import show_hits

    asked = Search(
        pattern=pattern,
        regex=regex,
        ignore_case=ignore_case,
        types=frozenset(types or ()),
        path=path,
        session=session,
        agent=agent,
        chat=chat,
        since=_time(since),
        until=_time(until),
        ids=frozenset(within or ()),
        fields=frozenset(field or ()),
        versions=versions,
        limit=limit,
        per_version=each,
        context=context,
        after=following,
        within=timeout,
    )

    def work(archive: "Archive") -> None:
        _print(commands.search(archive.search, asked), show_hits, as_json=as_json)
        if archive.builder is not None:
            sys.stdout.flush()
            archive.builder.start()
            archive.builder.wait(_LINGER)

    _in_archive(store, workspace, work)


def backlinks(
    name: Name,
    *,
    pinned: Annotated[
        str | None,
        typer.Option("--pinned", metavar="HASH", help="Only references to the version with this object hash."),
    ] = None,
    ever: Annotated[bool, typer.Option("--ever", help="Also from versions that are not the newest.")] = False,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """List the references to an object, or to a name without an object so far."""
    from pagein.tools import store_commands as commands
    from pagein.ui.store_views import show_backlinks

    answer = _in_archive(
        store, workspace, lambda archive: commands.backlinks(archive.objects, name, pinned=pinned, ever=ever)
    )
    _print(answer, show_backlinks, as_json=as_json)


def _in_archive(store: str | None, workspace: Path, work: "Callable[[Archive], Any]") -> Any:  # noqa: ANN401 - what work gives
    from pagein.archive import open_archive

    with open_archive(store, workspace=workspace) as archive:
        return work(archive)


def _print(answer: dict[str, Any], view: Callable[..., None], *, as_json: bool) -> None:
    from pagein.ui.console import console

    if as_json:
        # ASCII, so that text in an unknown encoding is escaped, not refused
        sys.stdout.write(json.dumps(answer, allow_nan=False, separators=(",", ":")) + "\n")
    else:
        view(console(), answer)


def _print_content(answer: dict[str, Any]) -> None:
    content = answer["content"]
    if content is None:
        sys.stderr.write(f"pagein: {answer['id']} has no content\n")
        return
    if sys.stdout.isatty():
        from pagein.ui.store_views import terminal_text

        sys.stdout.write(terminal_text(content) + ("" if content.endswith("\n") else "\n"))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(content.encode("utf-8", "surrogatepass"))


def _time(text: str | None) -> float | None:
    """Parse a moment, as seconds since 1970."""
    import time

    from pagein.tools.moments import moment

    return None if text is None else moment(text, time.time())  # noqa: TID251 - the rim reads the clock
