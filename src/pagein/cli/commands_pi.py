"""The command that pi's extension starts, registered by `cli`.

Heavy imports are inside the command, as in `cli`.
"""

import os
from typing import TYPE_CHECKING

import typer

from pagein.cli.options import Store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pagein.engine.engine import Engine
    from pagein.model.objects import ObjectId


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command(epilog="Example: pagein install pi --yes  # puts the extension in place, which starts this command")(pi)


def pi(store: Store = None) -> None:
    """Decide for pi's extension: reads, refreshes and what a request shows, on standard input and output.

    pi's extension starts this command in the folder that pi works in; `docs/hosts/pi.md` shows how to install it. The settings that begin with `pi_` control it.
    """
    import time

    from pagein.cli.standard_streams import take_standard_streams
    from pagein.gateway.announced_store import default_folder, running_stores
    from pagein.gateway.kill_switch import Switch, default_switch
    from pagein.pi_host.bridge import Bridge
    from pagein.pi_host.host import PiDependencies, PiHost, PiSettings
    from pagein.settings.sources import load_config

    values = load_config().values
    clients = values["pooled_clients"]
    settings = PiSettings(
        values["pi_read_cache"],  # type: ignore[arg-type]
        values["pi_read_modes"] is True,
        values["pi_paging"] is True,
        values["pi_compaction"] == "cancel",
        values["layout"] == "pooled" and (not clients or "pi" in clients),  # type: ignore[operator]
        values,
    )
    around = PiDependencies(
        lambda folder, given: _open(store, folder, given),
        time.time,  # noqa: TID251 - the rim reads the clock
        Switch(default_switch(), os.environ).is_off,
        lambda name: _made_here(store, name),
        _check,
        lambda: [one.url for one in running_stores(default_folder())],
        _is_first,
    )
    host = PiHost(settings, around)
    source, sink = take_standard_streams()
    try:
        Bridge(source, sink, host.answer).run()
    finally:
        host.close()


def _is_first() -> bool:
    """Return whether this user starts this command for the first time."""
    from platformdirs import user_data_path

    file = user_data_path("pagein", appauthor=False) / "pi.greeted"
    if file.exists():
        return False
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(mode=0o600, exist_ok=False)
    except OSError:  # another process was first, or nothing can be written: then a notice would come each time
        return False
    return True


def _check(folder: str, given: "Mapping[str, object]") -> None:
    from pagein.settings.sources import load_config

    load_config(folder, given)


def _open(store: str | None, folder: str, given: "Mapping[str, object]") -> "Engine":
    from pagein import wiring

    # the folder's own store, also while a gateway runs with another: a session that goes on without the gateway must find its texts
    return wiring.open(store, workspace=folder, given=given)


def _made_here(store: str | None, name: "ObjectId") -> bool:
    from contextlib import closing

    from pagein import wiring

    with closing(wiring.open_for_upkeep(store)) as opened:
        return name.is_made_with(opened.secret())
