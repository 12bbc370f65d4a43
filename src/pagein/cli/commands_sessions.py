"""The commands for sessions and their chats, registered by `cli`.

Heavy imports are inside the commands, as in `cli`.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from pagein.cli.agent_names import agent_name
from pagein.cli.archive_access import AsOf, GivenWorkspace, Limit, file_paths, in_archive, moment, print_answer
from pagein.cli.options import AsJson, Store

if TYPE_CHECKING:
    from pagein.archive import Archive


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(epilog="Examples:\n\npagein sessions\n\npagein sessions --since 3d --agent codex --json")(sessions)
    app.command(
        epilog="Examples:\n\npagein chat\n\npagein chat 3f2a9c1e --turn 4\n\npagein chat toolu_01A\n\npagein chat 3f2a9c1e --as-of 2h --json"
    )(chat)


def sessions(  # noqa: PLR0913 - a command has as many options as it has
    *,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Active at this time or later: 2026-11-21T10:00, yesterday, 2h, 3d ago."
        ),
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Begun at this time or before.")] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent", "-a", metavar="NAME", help="Only of this agent: claude-code, codex, ...", callback=agent_name
        ),
    ] = None,
    sub_agents: Annotated[bool, typer.Option("--sub-agents", help="Also the sessions of sub-agents.")] = False,
    limit: Limit = 20,
    workspace: GivenWorkspace = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """List the sessions of all agents, the latest first."""
    from pagein.tools import session_commands as commands
    from pagein.ui.session_views import show_sessions

    answer = in_archive(
        store,
        workspace,
        lambda archive: commands.sessions(
            archive.objects,
            since=moment(since),
            until=moment(until),
            agent=agent,
            sub_agents=sub_agents,
            limit=limit,
        ),
    )
    print_answer(answer, show_sessions, as_json=as_json)


def chat(  # noqa: PLR0913 - a command has as many options as it has
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="[SESSION]",
            help="A session, a chat, or an object of a turn, such as a tool call. May be abbreviated.",
            show_default="the session that was active last",
        ),
    ] = None,
    *,
    turn: Annotated[
        str | None, typer.Option("--turn", "-t", metavar="N|A-B", help="Only this turn, or these, from 1.")
    ] = None,
    at: AsOf = None,
    thread: Annotated[
        int | None,
        typer.Option(
            "--thread",
            metavar="N",
            min=1,
            help="This conversation of the session, from 1.",
            show_default="the main one",
        ),
    ] = None,
    thinking: Annotated[bool, typer.Option("--thinking", help="Also the model's thinking.")] = False,
    workspace: GivenWorkspace = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Print a chat: what the user said, what the model answered and called, turn by turn."""
    from pagein.tools import session_commands as commands
    from pagein.ui.session_views import show_chat_head, show_thread, show_turn

    when = moment(at)

    def work(archive: "Archive") -> None:
        head, turns = commands.chat(archive.objects, session, turns=turn, at=when, thread=thread, paths=file_paths)
        if as_json:
            print_answer({**head, "turns": list(turns)}, show_chat_head, as_json=True)
            return
        print_answer(head, show_chat_head, as_json=False)
        shown = head["thread"]
        for one in turns:  # each is printed as soon as it is read
            if one["thread"] != shown:
                shown = one["thread"]
                print_answer(one, show_thread, as_json=False)
            print_answer({**one, "thinking": thinking}, show_turn, as_json=False)

    in_archive(store, workspace, work)
