"""The command `serve`, registered by `cli`.

Heavy imports are inside the commands, as in `cli`.
"""

import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from errno import EADDRINUSE, errorcode
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pagein.cli.gateway_addresses import greeting_of
from pagein.cli.gateway_parts import deciding_parts, measuring_parts
from pagein.cli.options import Store, Upstreams, Workspace, with_upstream_options
from pagein.cli.stored_costs import tell_week
from pagein.errors import BadSetting

if TYPE_CHECKING:
    from pagein.gateway.announced_store import AnnouncedStore
    from pagein.gateway.server import Gateway, GatewayParts
    from pagein.gateway.settings import GatewaySettings

# The options of a gateway that decides, without effect under --measure.
_OF_CHANGES = ("store", "budget", "recall", "subscriptions", "keep_alive")
# While a worker decides on a long request, a stream must not wait longer than this for its turn, seconds.
_SWITCH_INTERVAL = 0.0005


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command(
        epilog="Examples:\n\npagein serve\n\npagein serve --port 9000 --openai https://llm.example.com/v1 --log gateway.jsonl\n\n"
        "PAGEIN_RESIDENCY=balanced pagein serve\n\npagein serve --measure"
    )(with_upstream_options(serve))


def serve(  # noqa: PLR0913 - a command has as many options as it has
    *,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", help="0: any free port.", show_default="PAGEIN_PORT, or 8790"),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="ADDRESS", help="Where to listen.", show_default="this machine only"),
    ] = None,
    upstreams: Upstreams,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="Also accept requests under this host name. Repeatable.",
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option("--budget", metavar="SECONDS", help="Time limit of a decision.", show_default="2"),
    ] = None,
    subscriptions: Annotated[
        bool | None,
        typer.Option(
            "--subscriptions",
            help="Also change requests with a subscription login, at your own risk: the vendor may not allow it.",
        ),
    ] = None,
    recall: Annotated[
        bool | None,
        typer.Option(
            "--recall/--no-recall",
            help="Offer the model tools that bring evicted results back, and answer their calls.",
            show_default="on",
        ),
    ] = None,
    keep_alive: Annotated[
        bool | None,
        typer.Option(
            "--keep-alive/--no-keep-alive",
            help="Send a keep-alive request, on your account, when a pause would void the cache. Capped.",
            show_default="asked once in a terminal, else off",
        ),
    ] = None,
    measure: Annotated[bool, typer.Option("--measure", help="Only measure: change and store nothing.")] = False,
    workspace: Workspace = Path(),
    store: Store = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="File for the log, in JSON lines.", show_default="standard error"),
    ] = None,
    lease: Annotated[
        Path | None,
        typer.Option("--lease", metavar="FILE", hidden=True, help="End when no process holds a lock on this file."),
    ] = None,
    listener: Annotated[
        int | None,
        typer.Option("--listener", metavar="FD", hidden=True, help="Listen at this socket of the parent process."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object with the address and the settings, and nothing else.")
    ] = False,
) -> None:
    """Serve as a gateway between coding agents and their model providers.

    Prints the settings for each agent. Ctrl-C ends it after the running calls; a second Ctrl-C ends it at once.
    """
    given = {
        "port": port,
        "host": host,
        **upstreams,
        "hosts": tuple(allow_host) if allow_host else None,
        "budget": budget,
        "subscriptions": subscriptions,
        "recall": recall,
        "keep_alive": keep_alive,
    }
    if measure:
        _refuse_idle(given | {"store": None if store == os.environ.get("PAGEIN_STORE") else store})
    settings = _settings(given, workspace, may_ask=None if measure else not as_json)
    from pagein.gateway.http.addresses import is_this_machine

    sys.setswitchinterval(_SWITCH_INTERVAL)
    parts = measuring_parts(log) if measure else deciding_parts(store, workspace, log, settings)
    if listener is not None:
        parts = replace(parts, listener=socket.socket(fileno=listener))
    with ExitStack() as open_until_the_end:

        def announce(url: str) -> None:
            if not measure:
                is_open = not is_this_machine(settings.host)
                told = _announcement(store, workspace, url, upstreams, lease, is_open=is_open)
                open_until_the_end.enter_context(_announced(told))

        tells_week = not (measure or as_json) and sys.stdout.isatty()
        afterwards = partial(tell_week, store, workspace) if tells_week else None
        whole = _run(settings, parts, announce, lease, as_json=as_json, afterwards=afterwards)
    if not whole:
        sys.stderr.write("pagein: ended before all calls had come to their end\n")


def _announcement(
    store: str | None, workspace: Path, url: str, upstreams: Mapping[str, str], lease: Path | None, *, is_open: bool
) -> "AnnouncedStore | None":
    """Return what this user's commands are told of the gateway; None for a store in memory."""
    from pagein import wiring
    from pagein.gateway.announced_store import AnnouncedStore
    from pagein.settings.sources import load_config

    address = wiring.public_address(store, workspace=workspace)
    if address is None:
        return None
    now = time.time()  # noqa: TID251 - the rim reads the clock
    settings = load_config(workspace, upstreams).fingerprint
    return AnnouncedStore(address, str(workspace.resolve()), url, now, settings, str(lease or ""), is_open)


@contextmanager
def _announced(told: "AnnouncedStore | None") -> Iterator[None]:
    """Tell the commands of this user which store the gateway uses, until the gateway ends."""
    from pagein.gateway.announced_store import announce, default_folder

    with ExitStack() as until:
        try:
            if told is not None:
                until.enter_context(announce(default_folder(), told))
        except OSError as problem:
            typer.echo(
                f"warning: {problem}; commands in other folders need --store {told.store if told else ''} to find this gateway's store",
                err=True,
            )
        yield


def _refuse_idle(given: dict[str, Any]) -> None:
    """Raise BadSetting for options without effect on a measuring gateway."""
    idle = [f"--{name.replace('_', '-')}" for name in _OF_CHANGES if given[name] not in (None, False)]
    if idle:
        raise BadSetting(
            f"--measure changes nothing and keeps nothing, so {' and '.join(idle)} would be without effect; leave one of them out"
        )


def _settings(given: dict[str, Any], workspace: Path, *, may_ask: bool | None) -> "GatewaySettings":
    """Return the settings, after the question about keep-alive requests if there is one; may_ask: None for no question."""
    from pagein.cli.keepalive_question import KEY, answer_for
    from pagein.settings.sources import load_config

    config = load_config(workspace, told := {name: value for name, value in given.items() if value is not None})
    answer = None if may_ask is None else answer_for(config, may_ask=may_ask)
    return config.gateway if answer is None else load_config(workspace, {**told, KEY: answer}).gateway


def _run(
    settings: "GatewaySettings",
    parts: "GatewayParts",
    announce: Callable[[str], None],
    lease: Path | None,
    *,
    as_json: bool,
    afterwards: Callable[[], object] | None,
) -> bool:
    from pagein.gateway.farewell import at_the_end
    from pagein.gateway.launch.lease import LeaseWatch
    from pagein.gateway.process import serve_until_signal
    from pagein.gateway.server import Gateway

    def tell(gateway: "Gateway") -> None:
        announce(gateway.url)
        told = greeting_of(gateway, as_json=as_json, curates=parts.curator is not None)
        if gateway.is_open:
            typer.echo(
                f"warning: other machines may reach this gateway at {settings.host}. It answers only requests with its token, in "
                "the printed addresses or in the header x-pagein-token. Traffic is not encrypted, keys and token included; "
                "--host 127.0.0.1 keeps it to this machine",
                err=True,
            )
        typer.echo(told)  # a waiting reader gets the address at once, also in a pipe
        if afterwards is not None:
            afterwards()

    def waits(count: int) -> None:
        calls = "a call" if count == 1 else f"{count} calls"
        typer.echo(
            f"waiting up to {settings.grace:g} s for {calls} to come to the end; Ctrl-C again ends at once", err=True
        )

    gateway = Gateway(settings, parts)
    try:
        whole = serve_until_signal(gateway, tell, waits, None if lease is None else LeaseWatch(lease).is_over)
    except OSError as problem:
        why = os.strerror(problem.errno) if problem.errno and problem.errno in errorcode else str(problem)
        remedy = "; --port 0 takes any that is free" if problem.errno == EADDRINUSE else ""
        raise BadSetting(f"cannot listen at {settings.host} port {settings.port}: {why}{remedy}") from problem
    if told := at_the_end(gateway.board.bound()):
        typer.echo(told, err=True)
    return whole
