"""The commands that add pagein's MCP server to an agent's configuration, and remove it. Registered by `cli`.

Heavy imports are inside the commands, as in `cli`.
"""

import json
import os
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias
from urllib.parse import urlsplit

import typer

from pagein.cli.agent_names import agent_name, list_agents
from pagein.cli.options import AsJson
from pagein.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pagein.installation.agents import HttpServer
    from pagein.installation.installer import Change, Installer
    from pagein.installation.pi_extension import ExtensionChange, ExtensionInstaller

    Planner: TypeAlias = Callable[[Installer, Mapping[Path, Change]], Change]

AgentName: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="AGENT",
        help="claude-code (or claude), codex, cursor, opencode, pi or vscode.",
        callback=agent_name,
    ),
]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Make the change. Otherwise it is only shown.")]
ForProject: TypeAlias = Annotated[
    bool, typer.Option("--project", help="In the current folder's own file, for everyone who works in it.")
]
OverHttp: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--http",
        help="Use the server of the running gateway, with its address and token, instead of a server that the agent starts.",
    ),
]
_PI = "pi"


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(
        epilog="Examples:\n\npagein install claude-code\n\npagein install codex --yes\n\npagein install pi --yes\n\npagein install vscode --project --yes\n\npagein install opencode --http --yes"
    )(install)
    app.command(epilog="Example: pagein uninstall claude-code --yes")(uninstall)


def install(
    agent: AgentName,
    *,
    project: ForProject = False,
    http: OverHttp = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Add pagein's MCP server (`pagein mcp`) to an agent's configuration file.

    Also says how to send the agent's requests through the gateway, if that is possible. For pi, installs pagein's extension in pi's folder instead.

    For Claude Code, also adds the hooks that keep pagein's stubs and markers out of files, and import its sessions (`pagein hook`). Only shows the change without --yes. Everything else in the file stays as it is, comments and order included.
    """
    command = _command(project=project)
    if http and (project or agent == _PI):
        raise BadInput(
            "pi speaks no MCP; leave --http out"
            if agent == _PI
            else "the file of a project is read by others, and the entry would hold the gateway's token; leave --project or --http out"
        )
    if agent == _PI:
        pi = _pi_installer(project=project)
        _change_pi(pi, pi.plan_install([command[0], _PI]), yes=yes, as_json=as_json)
        return
    installers, server = _installers(agent, project=project), _running_server() if http else None
    planned = _plan(installers, lambda one, earlier: one.plan_install(command, server, earlier))
    _carry_out(planned, agent, yes=yes, as_json=as_json)
    if not as_json:
        _warn_without_sdk(is_needed=not http)
        _offer_gateway(agent)


def uninstall(agent: AgentName, *, project: ForProject = False, yes: Yes = False, as_json: AsJson = False) -> None:
    """Remove exactly what `pagein install` added to an agent's configuration file.

    Only shows the change without --yes.
    """
    if agent == _PI:
        pi = _pi_installer(project=project)
        _change_pi(pi, pi.plan_removal(), yes=yes, as_json=as_json)
        return
    installers = tuple(reversed(_installers(agent, project=project)))
    planned = _plan(installers, lambda one, earlier: one.plan_removal(earlier))
    _carry_out(planned, agent, yes=yes, as_json=as_json)


def _plan(installers: "Sequence[Installer]", plan: "Planner") -> "list[tuple[Installer, Change]]":
    """Plan the changes of all entries, each on top of the earlier ones. Raises BadInput before anything is written."""
    last: dict[Path, Change] = {}
    planned = []
    for one in installers:
        change = plan(one, last)
        last[change.file] = change
        planned.append((one, change))
    return planned


def _installers(name: str, *, project: bool) -> "tuple[Installer, ...]":
    from platformdirs import user_data_path

    from pagein.installation.agents import AGENTS, Folders
    from pagein.installation.installer import Installer

    agent = AGENTS.get(name)
    if agent is None:
        raise BadInput(f"there is no agent {name!r}; there are {list_agents([*AGENTS, _PI])}")
    folders = Folders(Path.home(), Path.cwd(), os.environ)
    notes = user_data_path("pagein", appauthor=False) / "installed.json"
    return Installer.of(agent, folders, notes, project=project or agent.user is None)


def _running_server() -> "HttpServer":
    """Return the MCP server of the gateway for this folder. Raises BadInput for none that stays and knows the user's token."""
    from pagein.gateway.announced_store import default_folder, nearest_store, running_stores
    from pagein.gateway.http.access_token import default_file, read_token
    from pagein.gateway.setup.inquiry import GatewayInquiry, NoAnswer
    from pagein.installation.agents import HttpServer

    lasting = [one for one in running_stores(default_folder()) if not one.lease]
    found = nearest_store(lasting, str(Path.cwd()))
    if found is None:
        raise BadInput(
            "no gateway runs that outlives its agent; start one by `pagein serve`, or for good by `pagein service install`"
        )
    try:
        GatewayInquiry(found.url, urlsplit(found.url).hostname or "", default_file()).overview()
    except NoAnswer as problem:
        raise BadInput(f"the gateway at {found.url} cannot be used: {problem}") from problem
    return HttpServer(f"{found.url.rstrip('/')}/mcp", read_token(default_file()))


def _pi_installer(*, project: bool) -> "ExtensionInstaller":
    from platformdirs import user_data_path

    from pagein.installation.agents import Folders
    from pagein.installation.pi_extension import ExtensionInstaller, pi_folder

    folder = pi_folder(Folders(Path.home(), Path.cwd(), os.environ), project=project)
    return ExtensionInstaller(folder, user_data_path("pagein", appauthor=False) / "pi-extensions.json")


def _change_pi(installer: "ExtensionInstaller", change: "ExtensionChange", *, yes: bool, as_json: bool) -> None:
    """Show a change of pi's extension, and make it if the person agrees."""
    from pagein.ui.figures import plain

    made = yes and not change.done
    if made:
        installer.apply(change)
    folder = plain(str(change.folder))
    if as_json:
        told = {"agent": _PI, "file": str(change.folder), "changed": made, "done": change.done or made}
        sys.stdout.write(
            json.dumps({**told, "written": sorted(change.written), "removed": list(change.removed)}) + "\n"
        )
    elif change.done:
        sys.stdout.write(f"nothing to do: {folder} is as it should be\n")
    else:
        sys.stdout.write(
            "".join(f"+ {folder}/{name}, {len(text)} characters\n" for name, text in change.written.items())
        )
        sys.stdout.write("".join(f"- {folder}/{name}\n" for name in change.removed))
        then = "done; restart pi, then `/readcache-status` answers" if change.written else "done"
        sys.stdout.write(f"\n{then if made else 'nothing was written; --yes makes this change'}\n")


def _command(*, project: bool) -> list[str]:
    """Return the command that starts the server: by its path, unless the file is for everyone's machine."""
    import shutil

    here = Path(sys.argv[0])
    found = str(here.resolve()) if here.name == "pagein" and here.is_file() else shutil.which("pagein")
    return ["pagein" if project or found is None else found, "mcp"]


def _carry_out(planned: "Sequence[tuple[Installer, Change]]", name: str, *, yes: bool, as_json: bool) -> None:
    """Show the planned changes, one difference for each file, and make them if the person agrees."""
    for installer, change in planned:
        made = yes and not change.done
        if made:
            installer.apply(change)
        if as_json:
            told = {"agent": name, "file": str(change.file), "changed": made, "done": change.done or made}
            sys.stdout.write(json.dumps({**told, "text": _without_token(change.note)}) + "\n")
    for file in () if as_json else dict.fromkeys(change.file for _, change in planned):
        changes = [change for _, change in planned if change.file == file]
        _show_change(replace(changes[-1], before=changes[0].before), name, made=yes)


def _show_change(change: "Change", name: str, *, made: bool) -> None:
    """Show what becomes of a file."""
    from pagein.installation.agents import AGENTS
    from pagein.ui.figures import plain

    file = plain(str(change.file))
    if change.done:
        sys.stdout.write(f"nothing to do: {file} is as it should be\n")
        return
    sys.stdout.write(_without_token("".join(_difference(change))))
    if made:
        after = AGENTS[name].after if change.note in (change.after or "") else f"Start {AGENTS[name].title} anew."
        sys.stdout.write(f"\n{'removed' if change.after is None else 'wrote'} {file}. {after}\n")
    else:
        sys.stdout.write("\nnothing was written; --yes makes this change\n")


def _warn_without_sdk(*, is_needed: bool) -> None:
    """Say what the server still needs before an agent can start it. is_needed: False for the gateway's server, which needs nothing."""
    if is_needed and find_spec("mcp") is None:
        sys.stdout.write("The MCP server needs more than is installed: pip install 'pagein[mcp]'\n")


def _offer_gateway(name: str) -> None:
    """Say how the agent's requests pass the gateway as well, where they can."""
    from pagein.installation.agents import AGENTS

    if AGENTS[name].gateway:
        sys.stdout.write(
            f"To have the gateway keep the window small as well, start it by `{AGENTS[name].gateway}`; no file changes for that.\n"
        )


def _without_token(text: str) -> str:
    """Return a text for the terminal, where others may look on."""
    from pagein.gateway.http.access_token import default_file, read_token

    token = read_token(default_file())
    return text.replace(token, "TOKEN") if token else text


def _difference(change: "Change") -> list[str]:
    import difflib

    file = str(change.file)
    before, after = ((one or "").splitlines(keepends=True) for one in (change.before, change.after))
    lines = difflib.unified_diff(list(before), list(after), file, file)
    return [line if line.endswith("\n") else f"{line}\n" for line in lines]
