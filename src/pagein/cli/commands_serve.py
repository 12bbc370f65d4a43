"""The commands of the gateway, registered by `cli`.

Exit status: 0; 1 if `doctor` found a reason for a failing gateway; 2 as in `cli`. Heavy imports are inside the
commands, as in `cli`.
"""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeAlias

import typer

from pagein.cli.options import AsJson, Store, Workspace
from pagein.errors import BadSetting

if TYPE_CHECKING:
    from pagein.gateway.pages.session_views import HitView, Search
    from pagein.gateway.server import Gateway, GatewayParts
    from pagein.gateway.settings import GatewaySettings
    from pagein.gateway.setup.checkup import CheckupNote

Anthropic: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--anthropic",
        metavar="URL",
        help="Where requests for Anthropic go.",
        show_default="PAGEIN_ANTHROPIC, or the vendor",
    ),
]
OpenAI: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--openai", metavar="URL", help="Where requests for OpenAI go.", show_default="PAGEIN_OPENAI, or the vendor"
    ),
]

_WRONG = 1
# The options of a gateway that decides, without effect under --measure.
_OF_CHANGES = ("store", "budget", "recall", "subscriptions", "keep_alive")
# While a worker decides on a long request, a stream must not wait longer than this for its turn, seconds.
_SWITCH_INTERVAL = 0.0005
# Share of a decision's time available for waiting for the store, once for threads and once for processes. The rest is for sending the
# request as last time (law 7), because without its branch it would be sent whole.
_PATIENCE = 0.4


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(
        epilog="Examples:\n\npagein serve\n\npagein serve --port 9000 --openai https://llm.example.com/v1 --log gateway.jsonl\n\n"
        "pagein serve --measure"
    )(serve)
    app.command(epilog="Examples:\n\npagein doctor\n\npagein doctor --url http://127.0.0.1:9000 --json")(doctor)
    app.command(epilog="Examples:\n\npagein off\n\npagein off --leaving")(off)
    app.command(epilog="Example: pagein on")(on)


def serve(  # noqa: PLR0913 - a command has as many options as it has
    *,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", help="0: any that is free.", show_default="PAGEIN_PORT, or 8790"),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="ADDRESS", help="Where to listen.", show_default="this machine only"),
    ] = None,
    anthropic: Anthropic = None,
    openai: OpenAI = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="Answer under this name, too; several times.",
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option("--budget", metavar="SECONDS", help="How long a decision may take.", show_default="2"),
    ] = None,
    subscriptions: Annotated[
        bool | None,
        typer.Option(
            "--subscriptions",
            help="Also change requests that are made with a subscription's login. The vendor may not allow that: at your own risk.",
        ),
    ] = None,
    recall: Annotated[
        bool | None,
        typer.Option(
            "--recall/--no-recall",
            help="Offer the model tools that bring back what left its window, and answer their calls here.",
            show_default="on",
        ),
    ] = None,
    keep_alive: Annotated[
        bool | None,
        typer.Option(
            "--keep-alive/--no-keep-alive",
            help="Choose the cache's lifetime, and send one request of our own, on your account, where a pause would void the cache. Capped.",
            show_default="off",
        ),
    ] = None,
    measure: Annotated[bool, typer.Option("--measure", help="Change nothing and keep nothing, only measure.")] = False,
    workspace: Workspace = Path(),
    store: Store = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="Where JSON lines are logged.", show_default="standard error"),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object with the address and what to set, and nothing else.")
    ] = False,
) -> None:
    """Serve as a gateway between coding agents and their model providers.

    Prints what to set for each agent. Ends with Ctrl-C, when calls under way have come to their end; a second one ends at once.
    """
    given = {
        "port": port,
        "host": host,
        "anthropic": anthropic,
        "openai": openai,
        "hosts": tuple(allow_host) if allow_host else None,
        "budget": budget,
        "subscriptions": subscriptions,
        "recall": recall,
        "keep_alive": keep_alive,
    }
    if measure:
        said_to_all = store == os.environ.get("PAGEIN_STORE")
        _refuse_idle(given | {"store": None if said_to_all else store})
    settings = _settings(given, workspace)
    sys.setswitchinterval(_SWITCH_INTERVAL)
    whole = _run(settings, _parts(store, workspace, log, settings, measure=measure), as_json=as_json)
    if not whole:
        sys.stderr.write("pagein: ended before all calls had come to their end\n")


def _refuse_idle(given: dict[str, Any]) -> None:
    """Raise BadSetting for options without effect on a measuring gateway."""
    idle = [f"--{name.replace('_', '-')}" for name in _OF_CHANGES if given[name] not in (None, False)]
    if idle:
        raise BadSetting(
            f"--measure changes nothing and keeps nothing, so {' and '.join(idle)} would be without effect; leave one of them out"
        )


def doctor(
    *,
    url: Annotated[
        str | None,
        typer.Option(
            "--url", metavar="URL", help="The gateway.", show_default="http://127.0.0.1:8790, or as PAGEIN_* say"
        ),
    ] = None,
    anthropic: Anthropic = None,
    openai: OpenAI = None,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Check a setup from end to end: store, switch, gateway, the providers that it sends to, what agents are told, and a round trip.

    Of the agents it reads environment and settings files, and changes nothing. No model is called: the round trip goes to a simulated provider in this process.
    """
    from pagein.gateway.http.access_token import default_file
    from pagein.gateway.setup.checkup import CheckupRequest, check_setup

    settings = _settings({"anthropic": anthropic, "openai": openai}, workspace)
    given = {"anthropic": anthropic, "openai": openai}
    asked = CheckupRequest(
        settings,
        url or f"http://{settings.host}:{settings.port}",
        switch=_switch_file(),
        token=default_file(),
        environment=dict(os.environ),
        given={vendor: address for vendor, address in given.items() if address is not None},
        home=Path.home(),
        workspace=workspace,
        store=lambda: _store_finding(store, workspace),
        round_trip=_round_trip,
    )
    findings = check_setup(asked)
    if as_json:
        sys.stdout.write(json.dumps({"findings": [one.as_json() for one in findings]}) + "\n")
    else:
        for one in findings:
            sys.stdout.write(_plain(f"{one.level:7} {one.what}: {one.told}") + "\n")
    if any(one.level == "wrong" for one in findings):
        raise typer.Exit(_WRONG)


def off(
    *,
    leaving: Annotated[
        bool,
        typer.Option(
            "--leaving",
            help="Because agents are to go on without the gateway: says what to do so that no call of theirs is refused.",
        ),
    ] = False,
) -> None:
    """Make every gateway of yours pass everything through byte for byte, until `pagein on`."""
    from pagein.gateway.farewell import WHAT_IS_DROPPED
    from pagein.gateway.kill_switch import turn_off

    turn_off(_switch_file(), leaving=leaving)
    sys.stdout.write(f"off: {WHAT_IS_DROPPED if leaving else 'requests pass through as they are'}\n")


def on() -> None:
    """Let gateways work again after `pagein off`."""
    from pagein.gateway.kill_switch import VARIABLE, turn_on
    from pagein.gateway.settings import is_set

    turn_on(_switch_file())
    sys.stdout.write("on\n")
    if is_set(os.environ.get(VARIABLE)):
        sys.stderr.write(f"pagein: {VARIABLE} is set here; a gateway that is started so stays off\n")


def _switch_file() -> Path:
    from pagein.gateway.kill_switch import default_switch

    return default_switch()


def _settings(given: dict[str, Any], workspace: Path) -> "GatewaySettings":
    from pagein.settings.sources import load_config

    return load_config(workspace, {name: value for name, value in given.items() if value is not None}).gateway


def _parts(
    store: str | None, workspace: Path, log: Path | None, settings: "GatewaySettings", *, measure: bool
) -> "GatewayParts":
    """Return the parts of the gateway."""
    try:
        from pagein.gateway.server import GatewayParts
    except ImportError as problem:
        raise BadSetting(f"the gateway needs more: pip install 'pagein[gateway]' ({problem})") from problem
    from pagein.gateway.kill_switch import Switch
    from pagein.gateway.pages.json_logs import logger_to

    switch, logger, token = Switch(_switch_file(), os.environ), logger_to(_log_stream(log)), _token()
    if measure:
        return GatewayParts(switch=switch, logger=logger, token=token)
    from pagein import wiring
    from pagein.gateway.curation.engine_curator import EngineCurator
    from pagein.gateway.pages.session_views import EngineLooker

    engine = wiring.open(store, workspace=workspace, patience=settings.budget * _PATIENCE)
    return GatewayParts(
        EngineCurator(engine, recall=settings.recall),
        EngineLooker(engine, _search_in(store, workspace)),
        switch,
        logger,
        look=wiring.file_watch(store, workspace=workspace),
        token=token,
    )


def _token() -> str:
    """Return the user's token, or a token for this gateway alone if none can be stored."""
    from pagein.gateway.http.access_token import default_file, ensure_token, fresh

    try:
        return ensure_token(default_file())
    except BadSetting as problem:
        typer.echo(f"warning: {problem}; the links of this gateway are good until it ends", err=True)
        return fresh()


def _search_in(store: str | None, workspace: Path) -> "Search":
    """Return a search over the whole store, opened for each question because questions are rare."""

    def search(text: str) -> "list[HitView]":
        from pagein import archive
        from pagein.gateway.pages.session_views import HITS
        from pagein.model.search_query import Search as Asked

        asked = Asked(pattern=text, limit=HITS, ignore_case=True)
        with archive.open_archive(store, workspace=workspace) as opened:
            hits = opened.search(asked).hits
        return [
            {
                "id": hit.where.id,
                "name": hit.where.nickname or hit.where.path or "",
                "line": hit.match.line,
                "text": hit.match.text,
            }
            for hit in hits
        ]

    return search


def _log_stream(log: Path | None) -> TextIO:
    if log is None:
        return sys.stderr
    try:
        return os.fdopen(os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), "a", encoding="utf-8")
    except OSError as problem:
        raise BadSetting(f"--log {log}: {problem.strerror}") from problem


def _run(settings: "GatewaySettings", parts: "GatewayParts", *, as_json: bool) -> bool:
    from pagein.gateway.farewell import at_the_end
    from pagein.gateway.process import serve_until_signal
    from pagein.gateway.server import Gateway

    def tell(gateway: "Gateway") -> None:
        told = _greet(gateway, as_json=as_json, curates=parts.curator is not None)
        if gateway.is_open:
            typer.echo(
                f"warning: other machines may reach this gateway at {settings.host}. It answers nobody who does not show its token, "
                "which stands in the addresses that are printed here; the header x-pagein-token does it, too. What is sent is not "
                "encrypted, keys and token included; --host 127.0.0.1 keeps it to this machine",
                err=True,
            )
        sys.stdout.write(told + "\n")
        sys.stdout.flush()  # a waiting reader gets the address at once, also in a pipe

    def waits(count: int) -> None:
        calls = "a call" if count == 1 else f"{count} calls"
        typer.echo(
            f"waiting up to {settings.grace:g} s for {calls} to come to the end; Ctrl-C again ends at once", err=True
        )

    gateway = Gateway(settings, parts)
    try:
        whole = serve_until_signal(gateway, tell, waits)
    except OSError as problem:
        raise BadSetting(
            f"cannot listen at {settings.host} port {settings.port}: {problem.strerror or problem}"
        ) from problem
    if told := at_the_end(gateway.board.bound()):
        typer.echo(told, err=True)
    return whole


def _greet(gateway: "Gateway", *, as_json: bool, curates: bool) -> str:
    from pagein.gateway.client_setup import CLIENTS

    url, base = gateway.url, gateway.base_url
    if as_json:
        clients = {one.name: {"where": one.where, "settings": list(one.settings(base))} for one in CLIENTS}
        told = {"url": url, "base_url": base, "dashboard": gateway.page, "token": gateway.token}
        return json.dumps({**told, "pid": os.getpid(), "curates": curates, "clients": clients})
    lines = [f"pagein gateway at {url}{'' if curates else ', measuring only'}"]
    for one in CLIENTS:
        lines += ["", f"{one.name}, {one.where}:", *(f"  {line}" for line in one.settings(base))]
        lines += [f"  ({note})" for note in one.notes]
    lines += ["", f"dashboard {gateway.page} (this link opens it for whoever has it)"]
    return "\n".join([*lines, f"health {url}/healthz, figures {url}/metrics with the token; all off: pagein off"])


def _store_finding(store: str | None, workspace: Path) -> "CheckupNote":
    from pagein import wiring
    from pagein.errors import PageinError
    from pagein.gateway.setup.checkup import CheckupNote, open_to_others

    try:
        watch = wiring.file_watch(store, workspace=workspace)
        file = watch.path if watch is not None else None
        if watch is not None and (unsound := watch(thorough=False)):
            return CheckupNote("wrong", "store", unsound)
        exposed = open_to_others(file) if file is not None else ""
        opened = wiring.open_for_upkeep(store, workspace=workspace, new=True)
        try:
            opened.put(b"pagein doctor")  # a blob without an object: `pagein gc` removes it
        finally:
            opened.close()
    except (PageinError, OSError) as problem:
        return CheckupNote("wrong", "store", f"cannot be written: {problem}")
    if file is None:
        return CheckupNote("fine", "store", "the database can be written")
    if exposed:
        again = open_to_others(file)
        return CheckupNote("wrong" if again else "note", "store", exposed if again else f"{exposed}; not any more")
    return CheckupNote("fine", "store", f"{file} can be written, and only its owner can read it")


def _round_trip() -> "CheckupNote":
    from pagein import wiring
    from pagein.gateway.setup.checkup import CheckupNote, round_trip

    try:
        from pagein.gateway.curation.engine_curator import EngineCurator
        from pagein.simulator import SimulatedProvider
    except ModuleNotFoundError as problem:
        return CheckupNote("wrong", "round trip", f"the gateway needs more: pip install 'pagein[gateway]' ({problem})")

    with SimulatedProvider([[{"text": "well"}]]) as provider:
        return round_trip(provider.url, EngineCurator(wiring.open(wiring.MEMORY)))


def _plain(text: str) -> str:
    from pagein.ui.figures import plain

    return plain(text)
