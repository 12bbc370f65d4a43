"""The command `run`, registered by `cli`: start a coding agent behind a gateway.

Exit status: the agent's; 2 as in `cli` where the agent was not started. Heavy imports are inside the commands, as in `cli`.
"""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand

from pagein.cli.agent_names import agent_name, list_agents
from pagein.cli.options import AsJson, Store, Upstreams, with_upstream_options
from pagein.errors import BadInput, BadSetting

if TYPE_CHECKING:
    from pagein.gateway.clients.client import ConfigPlaces
    from pagein.gateway.clients.launch import Endpoints, Launch, LaunchPlan
    from pagein.gateway.launch.gateway_search import FoundGateway, GatewayPlaces, GatewayWish

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_NO_PROXY = ("NO_PROXY", "no_proxy")
_NEAR = "127.0.0.1,localhost"
_PRINT_ENV: Final = "--print-env"
_WHOLE_WINDOW: Final = "--whole-window"


@dataclass(frozen=True, slots=True)
class _Start:
    """What is needed to start an agent, apart from the gateway's address."""

    launch: "Launch"
    arguments: tuple[str, ...]
    wish: "GatewayWish"
    endpoints: "Endpoints"
    whole_window: bool


class _RunCommand(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - of a private class of typer's
        """Take the arguments apart. Raises BadInput with the names of the agents where none is named."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as problem:
            if problem.param is None or problem.param.name != "agent":
                raise
            from pagein.gateway.client_setup import launches

            told = f"name the agent to run, as in pagein run claude; there are {list_agents(launches())}"
            raise BadInput(told) from None


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command(
        context_settings={"allow_interspersed_args": False},
        epilog="Examples:\n\npagein run claude\n\npagein run codex exec 'mend the tests'\n\npagein run --print-env opencode",
        cls=_RunCommand,
    )(with_upstream_options(run))


def run(
    *,
    agent: Annotated[
        str,
        typer.Argument(
            metavar="AGENT",
            help="The agent, by its name or by its command, such as claude-code or claude.",
            show_default=False,
            callback=agent_name,
        ),
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGS", help="The agent's own arguments.", show_default=False)
    ] = None,
    print_env: Annotated[
        bool, typer.Option(_PRINT_ENV, help="Print the environment and the command, and start nothing.")
    ] = False,
    whole_window: Annotated[
        bool,
        typer.Option(
            _WHOLE_WINDOW,
            help="Claude Code: keep windows of a million tokens, by an undocumented variable.",
        ),
    ] = False,
    upstreams: Upstreams,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Start a coding agent behind a gateway: claude, codex, opencode, pi or gemini.

    Uses a fitting gateway of yours that runs, or starts one that ends with the last agent that uses it. The agent is pointed to the gateway by environment and command line: no file is written, so nothing needs to be undone. Options of pagein come before AGENT; --print-env and --whole-window may also follow it directly, and -- ends them. With --json the output of --print-env is one JSON
    object.
    """
    own, arguments = _own_options(arguments or [])
    start = _start(agent, tuple(arguments), upstreams, store, whole_window=whole_window or _WHOLE_WINDOW in own)
    if print_env or as_json or _PRINT_ENV in own:
        _print_env(start, as_json=as_json)
        return
    program = _program(start.launch.command)
    places = _places()
    from pagein.gateway.launch.agent_process import end_as, run_agent
    from pagein.gateway.launch.gateway_search import find_or_start
    from pagein.gateway.launch.gateway_watch import GatewayWatch

    _plan(start, start.wish.url)  # what cannot be started is told before a gateway is
    gateway = find_or_start(start.wish, places)
    watch = GatewayWatch(gateway, start.wish, places, _tell)
    try:
        plan = _plan(start, gateway.url)
        _tell(_greeting(start, gateway, plan))
        watch.start()
        status = run_agent([program, *plan.arguments, *start.arguments], _environment(plan))
    finally:
        watch.end()
    raise typer.Exit(end_as(status))


def _own_options(arguments: list[str]) -> tuple[set[str], list[str]]:
    """Split what stands behind the agent's name into options of pagein's, which stand first, and the agent's own arguments.

    No agent has an option of these names.
    """
    own: set[str] = set()
    for place, argument in enumerate(arguments):
        if argument not in (_PRINT_ENV, _WHOLE_WINDOW):
            return own, arguments[place + (argument == "--") :]
        own.add(argument)
    return own, []


def _start(
    name: str, arguments: tuple[str, ...], upstreams: Mapping[str, str], store: str | None, *, whole_window: bool
) -> _Start:
    from pagein import wiring
    from pagein.gateway.announced_store import default_folder
    from pagein.gateway.clients.config_files import UnreadableConfig
    from pagein.gateway.clients.launch import choose_upstreams
    from pagein.gateway.launch.gateway_search import GatewayWish, known_gateways
    from pagein.providers.vendors import VENDORS
    from pagein.settings.layers import DEFAULT
    from pagein.settings.sources import load_config

    launch = _launch(name)
    workspace = Path()
    config = load_config(workspace, upstreams)
    told = {one.name: str(config.values[one.name]) for one in VENDORS if config.origins[one.name] != DEFAULT}
    try:
        found = launch.endpoints(_config_places(), arguments)
    except UnreadableConfig as problem:
        raise BadSetting(f"{problem}; {launch.client.name} reads it, too") from problem
    chosen, endpoints = choose_upstreams(found, told, known_gateways(config.gateway.url, default_folder()))
    address = wiring.public_address(store, workspace=workspace)
    if address is None:
        raise BadSetting("pagein run needs a store on a disk, not in memory; leave --store and PAGEIN_STORE out")
    options = [part for vendor, upstream in chosen.items() for part in (f"--{vendor}", upstream)]
    options += ["--store", store] if store else []
    wish = GatewayWish(
        f"http://127.0.0.1:{config.gateway.port}",
        chosen,
        address,
        str(workspace.resolve()),
        load_config(workspace, chosen).fingerprint,
        tuple(options),
    )
    return _Start(launch, arguments, wish, endpoints, whole_window)


def _launch(name: str) -> "Launch":
    from pagein.gateway.client_setup import launches

    found = launches().get(name)
    if found is None:
        raise BadInput(f"there is no agent {name!r} to run; there are {list_agents(launches())}")
    return found


def _program(command: str) -> str:
    found = shutil.which(command)
    if found is None:
        raise BadInput(f"{command} is not installed, or not in a folder of PATH; install it, and try again")
    return found


def _places() -> "GatewayPlaces":
    from platformdirs import user_log_path

    from pagein.gateway.announced_store import default_folder
    from pagein.gateway.http.access_token import default_file
    from pagein.gateway.launch.gateway_search import GatewayPlaces

    return GatewayPlaces(default_folder(), default_file(), user_log_path("pagein", appauthor=False) / "run.jsonl")


def _config_places() -> "ConfigPlaces":
    from pagein.gateway.clients.client import ConfigPlaces

    return ConfigPlaces(Path.home(), Path.cwd(), dict(os.environ))


def _plan(start: _Start, url: str) -> "LaunchPlan":
    from pagein.gateway.clients.launch import LaunchRequest, is_same_upstream
    from pagein.providers.vendors import VENDORS

    own = frozenset(one.name for one in VENDORS if is_same_upstream(start.wish.upstreams[one.name], one.address))
    return start.launch.plan(
        LaunchRequest(url, _config_places(), start.arguments, start.endpoints, own, start.whole_window)
    )


def _environment(plan: "LaunchPlan") -> dict[str, str]:
    """Return the agent's environment. A proxy of the user's is not for addresses of this machine."""
    told = {**os.environ, **plan.environment}
    return told | _past_proxies(told)


def _past_proxies(told: Mapping[str, str]) -> dict[str, str]:
    if not any(told.get(name) or told.get(name.lower()) for name in _PROXIES):
        return {}
    before = next((told[name] for name in _NO_PROXY if told.get(name)), "")
    return dict.fromkeys(_NO_PROXY, f"{before},{_NEAR}" if before else _NEAR)


def _greeting(start: _Start, gateway: "FoundGateway", plan: "LaunchPlan") -> str:
    how = "started, and ends with the agent" if gateway.is_started else "was running"
    page = f"; page: {gateway.page}" if gateway.page and sys.stderr.isatty() else ""
    return ". ".join([f"{start.launch.client.name} goes through {gateway.address} ({how}){page}", *plan.remarks])


def _tell(line: str) -> None:
    """Write one line to standard error: standard output is the agent's."""
    from pagein.ui.figures import plain

    sys.stderr.write(f"pagein: {plain(line)}\n")
    sys.stderr.flush()


def _print_env(start: _Start, *, as_json: bool) -> None:
    from pagein.gateway.launch.gateway_search import agents_url, running_gateway

    places = _places()
    found = running_gateway(start.wish, places)
    url = agents_url(found, places.token) if found is not None else start.wish.url
    plan = _plan(start, url)
    environment = {**plan.environment, **_past_proxies(os.environ)}
    command = [start.launch.command, *plan.arguments, *start.arguments]
    if as_json:
        told = {"gateway": url, "running": found is not None, "environment": environment, "command": command}
        sys.stdout.write(json.dumps({**told, "remarks": list(plan.remarks)}) + "\n")
        return
    lines = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    sys.stdout.write("\n".join([*lines, shlex.join(command)]) + "\n")
    remarks = list(plan.remarks)
    if found is None:
        starts = f"pagein run {start.launch.command} starts one, at a free port if {url} is taken"
        remarks.append(f"no gateway that fits runs yet; {starts}")
    for one in remarks:
        _tell(one)
