"""The command `doctor`, registered by `cli`: check a setup from end to end.

Exit status: 0; 1 if it found a reason for a failing gateway; 2 as in `cli`. Heavy imports are inside the commands, as
in `cli`.
"""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from pagein.cli.options import AsJson, GatewayUrl, Store, Upstreams, Workspace, with_upstream_options

if TYPE_CHECKING:
    from pagein.gateway.setup.checkup import CheckupNote

_WRONG = 1


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command(epilog="Examples:\n\npagein doctor\n\npagein doctor --url http://127.0.0.1:9000 --json")(
        with_upstream_options(doctor)
    )


def doctor(
    *,
    url: GatewayUrl = None,
    upstreams: Upstreams,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Check a setup from end to end: store, switch, gateway, providers, the configuration of agents, and a round trip.

    It reads the environment and the settings files of agents, and changes nothing. No model is called: the round trip goes to a simulated provider in this process.

    Exit status: 0 if nothing is wrong, notes included; 1 if something keeps the gateway from working (`wrong`); 2 for an option or a setting that cannot be used. A provider or a gateway that does not answer is a note if nothing uses it.
    """
    from pagein.gateway.http.access_token import default_file
    from pagein.gateway.kill_switch import default_switch
    from pagein.gateway.setup.checkup import CheckupRequest, check_setup
    from pagein.settings.sources import load_config

    settings = load_config(workspace, upstreams).gateway
    asked = CheckupRequest(
        settings,
        url or settings.url,
        switch=default_switch(),
        token=default_file(),
        environment=dict(os.environ),
        given=upstreams,
        home=Path.home(),
        workspace=workspace,
        store=lambda: _store_finding(store, workspace),
        caches=lambda: _cache_findings(store, workspace),
        round_trip=_round_trip,
        is_url_given=url is not None,
    )
    findings = check_setup(asked)
    if as_json:
        sys.stdout.write(json.dumps({"findings": [one.as_json() for one in findings]}) + "\n")
    else:
        for one in findings:
            sys.stdout.write(_plain(f"{one.level:7} {one.what}: {one.told}") + "\n")
    if any(one.level == "wrong" for one in findings):
        raise typer.Exit(_WRONG)


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


def _cache_findings(store: str | None, workspace: Path) -> "list[CheckupNote]":
    """Return the models whose provider did not keep cache entries through a pause."""
    from pagein import wiring
    from pagein.errors import PageinError
    from pagein.gateway.setup.checkup import CheckupNote

    try:
        with wiring.open(store, workspace=workspace) as engine:
            failed = engine.evidence.failed()
    except (PageinError, OSError):
        return []  # the finding on the store tells why
    what = {"hour": "cache lifetimes and keep-alive requests", "keep_alive": "keep-alive requests"}
    found = {model: what["hour" if trust.hour == "fails" else "keep_alive"] for model, trust in failed.items()}
    told = "{}: a pause showed that the provider does not keep what {} rest on; they are off for this model"
    return [CheckupNote("note", "cache", told.format(model, rest)) for model, rest in found.items()]


def _round_trip() -> "CheckupNote":
    from pagein import wiring
    from pagein.gateway.curation.engine_curator import EngineCurator
    from pagein.gateway.setup.checkup import round_trip
    from pagein.simulator import SimulatedProvider

    with SimulatedProvider([[{"text": "well"}]]) as provider:
        return round_trip(provider.url, EngineCurator(wiring.open(":memory:")))


def _plain(text: str) -> str:
    from pagein.ui.figures import plain

    return plain(text)
