"""The command `provider`, which runs the simulated provider. Registered by `cli`.

Heavy imports are inside the command, as in `cli`.
"""

import json
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pagein.errors import BadInput, BadSetting
from pagein.providers.vendors import FORMATS, VENDORS, Vendor

if TYPE_CHECKING:
    from pagein.providers.validity import Api
    from pagein.simulator.http_server import Server
    from pagein.simulator.provider_settings import ProviderSettings

CACHES: Final = ("documented", "unrefreshed", "short-hour")  # `ProviderSettings.cache`


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    *others, last = FORMATS.values()
    app.command(
        help=(provider.__doc__ or "").format(formats=f"{', '.join(others)} and {last}"),
        epilog="Examples:\n\npagein provider --port 8765 --script job.json\n\n"
        "pagein provider --api anthropic --speed 60 --record requests.jsonl\n\n"
        'ANTHROPIC_BASE_URL=http://127.0.0.1:8765 claude -p \'SCRIPT:[[{"text": "hello"}]]\'\n\n'
        "curl http://127.0.0.1:8765/__provider/bill",
    )(provider)


def provider(  # noqa: PLR0913 - a command has as many options as it has
    *,
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65_535, help="0: any free port.")] = 0,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    script: Annotated[
        Path | None,
        typer.Option(
            "--script",
            metavar="FILE.json",
            help="The answers: a list of turns, or named lists that prompts choose by SCRIPT@name.",
            show_default="scripts in prompts only",
        ),
    ] = None,
    api: Annotated[
        list[str] | None,
        typer.Option(
            "--api",
            metavar="NAME",
            help=f"Speak only this format: {', '.join(FORMATS)}. Repeatable.",
            show_default="all",
        ),
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(
            "--prices",
            metavar="MODEL[@DATE]",
            help="One price table for all models, or multipliers: generic:r=.1,w=1.25.",
            show_default="each model's own",
        ),
    ] = None,
    speed: Annotated[float, typer.Option("--speed", metavar="X", help="Simulated seconds per real second.")] = 1.0,
    account: Annotated[
        str | None,
        typer.Option("--account", metavar="DATE", help="Creation date of the account.", show_default="lately"),
    ] = None,
    needs_key: Annotated[bool, typer.Option("--needs-key", help="Refuse calls without credentials.")] = False,
    foreign_thinking: Annotated[
        bool, typer.Option("--foreign-thinking", help="Accept thinking that was signed elsewhere.")
    ] = False,
    cache: Annotated[
        str,
        typer.Option(
            "--cache",
            metavar="KIND",
            help=f"How long entries of an Anthropic cache live: {', '.join(CACHES)}.",
        ),
    ] = CACHES[0],
    record: Annotated[
        Path | None, typer.Option("--record", metavar="FILE.jsonl", help="Also write every request to this file.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: a line with the address, and at the end a line with the bill.")
    ] = False,
) -> None:
    """Run a model provider that answers by script: no model, no key, no cost.

    It speaks {formats}, refuses what the providers refuse, in their words, and reports the usage that their prompt caches would report. Ends with Ctrl-C.
    """
    settings = _settings(
        {
            "port": port,
            "host": host,
            "apis": _check_formats(api),
            "prices": prices,
            "speed": speed,
            "account": _date(account),
            "needs_key": needs_key,
            "takes_foreign_thinking": foreign_thinking,
            "record": record,
            "cache": cache,
        }
    )
    if record is not None:
        _check_writable(record)
    _run(None if script is None else _load_script(script), settings, as_json=as_json)


def _check_formats(names: list[str] | None) -> list[str]:
    if strange := [name for name in names or () if name not in FORMATS]:
        raise BadSetting(f"--api {strange[0]}: one of {', '.join(FORMATS)}")
    return names or []


def _apis(options: list[str]) -> "tuple[Api, ...]":
    from pagein.simulator.formats import FORMATS

    return tuple(one.name for one in FORMATS if not options or one.option in options)


def _date(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise BadSetting(f"--account {text}: no date; write YYYY-MM-DD") from None


def _settings(given: dict[str, Any]) -> "ProviderSettings":
    from pagein.simulator.provider_settings import ProviderSettings

    given = {**given, "apis": _apis(given["apis"])}
    if given["cache"] not in CACHES:
        raise BadSetting(f"--cache {given['cache']}: one of {', '.join(CACHES)}")
    if not given["speed"] > 0:
        raise BadSetting(f"--speed {given['speed']:g}: more than 0")
    return ProviderSettings(**given)


def _check_writable(path: Path) -> None:
    """Refuse an unwritable log before the first request."""
    from pagein.simulator.records import open_log

    try:
        open_log(path).close()
    except OSError as problem:
        raise BadSetting(f"--record {path}: {problem.strerror}") from problem


def _load_script(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except OSError as problem:
        raise BadInput(f"{path}: {problem.strerror}") from problem
    except ValueError as problem:
        raise BadInput(f"{path} is not JSON: {problem}") from problem


def _run(script: object, settings: "ProviderSettings", *, as_json: bool) -> None:
    import asyncio

    from pagein.simulator.http_server import Server
    from pagein.simulator.service import Service

    server = Server(Service(script, settings), settings)
    try:
        asyncio.run(_serve_until_signal(server, as_json=as_json))
    except OSError as problem:
        raise BadSetting(f"cannot listen at {settings.host} port {settings.port}: {problem.strerror}") from problem
    bill = server.bill()
    if as_json:
        _say(json.dumps({"bill": bill.as_json()}))
        return
    from pagein.ui.figures import plural

    usage = bill.usage
    sys.stderr.write(
        f"{plural(bill.requests, 'model call')}, {bill.refused} refused; {bill.bit:.0f} BIT: {usage.read} read, "
        f"{usage.written} written, {usage.fresh} fresh, {usage.output} output tokens\n"
    )


async def _serve_until_signal(server: "Server", *, as_json: bool) -> None:
    """Serve until Ctrl-C or a terminating signal."""
    import asyncio
    import signal

    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    url = await server.start()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    try:
        _say(json.dumps({"url": url}) if as_json else _greet(url))
        await ended.wait()
    finally:
        await server.stop()


def _client_line(vendor: Vendor, url: str) -> str:
    return f"  {vendor.title:10} {vendor.client.format(url=url)}\n"


def _greet(url: str) -> str:
    return (
        f"simulated provider at {url}\n"
        f"{''.join(_client_line(one, url) for one in VENDORS)}"
        f"  bill       {url}/__provider/bill\n"
        f"  requests   {url}/__provider/requests"
    )


def _say(line: str) -> None:
    """Print a line and flush, so that a reader waiting for the address gets it at once, also in a pipe."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
