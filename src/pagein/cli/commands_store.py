"""The commands for the content of a store, registered by `cli`.

Heavy imports are inside the commands, as in `cli`.
"""

import contextlib
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import typer

from pagein.cli.agent_names import agent_name
from pagein.cli.archive_access import (
    GivenWorkspace,
    Limit,
    Name,
    Since,
    Until,
    file_paths,
    in_archive,
    moment,
    print_answer,
)
from pagein.cli.code_search import WorkspaceSearch, search_workspace
from pagein.cli.options import AsJson, Store
from pagein.cli.standard_streams import warn
from pagein.errors import BadInput, StoreError

if TYPE_CHECKING:
    from pagein.archive import Archive

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
    app.command(
        epilog="Examples:\n\npagein search 'connection refused'\n\npagein search -e 'def \\w+_test' --path 'src/**/*.py' -C 2\n\n"
        "pagein search 'rate limit' --type user --agent codex --since 1w\n\npagein search TODO --versions current --json\n\n"
        "pagein search --code 'def login' --path src"
    )(search)
    app.command(epilog="Examples:\n\npagein backlinks src/app.py\n\npagein backlinks auth-notes@2 --ever")(backlinks)


def objects(  # noqa: PLR0913 - a command has as many options as it has
    *,
    types: Types = None,
    path: InPath = None,
    session: SessionName = None,
    since: Since = None,
    until: Until = None,
    deleted: Annotated[bool, typer.Option("--deleted", help="Also deleted objects.")] = False,
    limit: Limit = 50,
    before: Annotated[
        int | None,
        typer.Option("--before", metavar="SEQUENCE", min=1, max=_MOST, help="The next page: objects older than this."),
    ] = None,
    workspace: GivenWorkspace = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """List the stored objects, newest first, without reading their content."""
    from pagein.model.writes import Query
    from pagein.tools import store_commands as commands
    from pagein.ui.store_views import show_objects

    query = Query(
        types=frozenset(types or ()),
        deleted=None if deleted else False,
        since=moment(since),
        until=moment(until),
        before=before,
        limit=limit,
    )

    def work(archive: "Archive") -> None:
        answer = commands.objects(archive.objects, query, path, session)
        if not as_json:
            _tell_missing_types(archive, types, answer["objects"])
        print_answer(answer, show_objects, as_json=as_json)

    in_archive(store, workspace, work)


def _refuse_with_code(given: Mapping[str, object]) -> None:
    """Raise BadInput for an option that a search of the workspace's files does not take."""
    wrong = next((name for name, value in given.items() if value is not None), None)
    if wrong is not None:
        raise BadInput(f"{wrong} is only valid for a search of the store; leave it out, or leave out --code")


def _tell_missing_types(archive: "Archive", types: list[str] | None, found: list[object]) -> None:
    """Tell on stderr if nothing was found because the store has no object of a type."""
    from pagein.tools.store_commands import missing_types

    if types and not found and (told := missing_types(archive.objects, types)):
        warn(told)


def search(  # noqa: PLR0913 - a command has as many options as it has
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="The text to look for.")],
    *,
    code: Annotated[
        bool,
        typer.Option("--code", help="Search the files of the workspace as they are now; --session counts the search."),
    ] = False,
    regex: Annotated[bool, typer.Option("--regex", "-e", help="PATTERN is a regular expression (RE2).")] = False,
    ignore_case: Annotated[
        bool, typer.Option("--ignore-case", "-i", help="Upper and lower case are the same.")
    ] = False,
    types: Types = None,
    path: InPath = None,
    session: SessionName = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent", metavar="NAME", help="Only sessions of this agent: claude-code, codex, ...", callback=agent_name
        ),
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
        list[str] | None, typer.Option("--in", metavar="NAME", help="Only in this object; may be given several times.")
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option("--field", metavar="NAME", help="Only in content, metadata, turns or a field by its name."),
    ] = None,
    versions: Annotated[
        Versions,
        typer.Option(
            "--versions",
            help="For each object: the newest version with a match, only the current version, or all versions.",
        ),
    ] = "newest",
    context: Annotated[
        int, typer.Option("--context", "-C", metavar="N", min=0, max=50, help="Lines around each hit.")
    ] = 0,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, max=10_000, help="Hits in one page.")] = 50,
    each: Annotated[
        int | None,
        typer.Option("--each", metavar="N", min=1, help="Maximum hits in one version.", show_default="all"),
    ] = None,
    following: Annotated[
        str | None, typer.Option("--next", metavar="TOKEN", help="The next page, by the token of the previous one.")
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.0, help="Time limit of the search.")
    ] = 60.0,
    workspace: GivenWorkspace = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Search everything stored, newest first: what was said, read, written and answered, in every version.

    With --code, search the files of the workspace instead, the likeliest file first.
    """
    from pagein.model.search_query import Search
    from pagein.tools import store_commands as commands
    from pagein.ui.store_views import show_hits

    if code:
        others: dict[str, object] = {
            "--type": types,
            "--agent": agent,
            "--chat": chat,
            "--since": since,
            "--until": until,
            "--in": within,
        }
        others |= {"--field": field, "--each": each, "--next": following, "--context": context or None}
        _refuse_with_code(others | {"--versions": None if versions == "newest" else versions})
        search_workspace(
            WorkspaceSearch(pattern, regex, ignore_case, path, limit, timeout),
            session=session,
            workspace=workspace or Path(),
            store=store,
            as_json=as_json,
        )
        return
    asked = Search(
        pattern=pattern,
        regex=regex,
        ignore_case=ignore_case,
        types=frozenset(types or ()),
        path=path,
        session=session,
        agent=agent,
        chat=chat,
        since=moment(since),
        until=moment(until),
        fields=frozenset(field or ()),
        versions=versions,
        limit=limit,
        per_version=each,
        context=context,
        after=following,
        within=timeout,
    )

    def work(archive: "Archive") -> None:
        meant = partial(commands.id_named, archive.objects, paths=file_paths)
        named = replace(
            asked,
            session=None if session is None else commands.session_named(archive.objects, session),
            chat=None if chat is None else meant(chat),
            ids=frozenset(map(meant, within or ())),
        )
        answer = commands.search(archive.search, named)
        if not as_json:
            _tell_missing_types(archive, types, answer["hits"])
        print_answer(answer, show_hits, as_json=as_json)
        sys.stdout.flush()
        with contextlib.suppress(StoreError):  # the next search looks at more, and misses nothing
            archive.index.catch_up(within=_LINGER)

    in_archive(store, workspace, work)


def backlinks(
    name: Name,
    *,
    pinned: Annotated[
        str | None,
        typer.Option("--pinned", metavar="HASH", help="Only references to the version with this object hash."),
    ] = None,
    ever: Annotated[bool, typer.Option("--ever", help="Also from versions that are not the newest.")] = False,
    limit: Limit = 50,
    workspace: GivenWorkspace = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """List the references to an object: turns and calls that touched it, and notes that link to it.

    The name need not belong to an object yet.
    """
    from pagein.tools import store_commands as commands
    from pagein.ui.store_views import show_backlinks

    answer = in_archive(
        store,
        workspace,
        lambda archive: commands.backlinks(
            archive.objects, name, pinned=pinned, ever=ever, limit=limit, paths=file_paths
        ),
    )
    print_answer(answer, show_backlinks, as_json=as_json)
