"""The command `status`, for gateway, store, sessions and savings. Registered by `cli`.

Exit status as in `cli`: a missing gateway or store is reported, and is no failure; a store that cannot be used is one.
Heavy imports are inside the command, as in `cli`.
"""

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import typer

from pagein.cli.archive_access import GivenWorkspace
from pagein.cli.options import AsJson, NearestGatewayUrl, Store
from pagein.cli.stored_costs import calls_since, costs_of
from pagein.errors import BadInput, PageinError, StoreError

if TYPE_CHECKING:
    from pagein.gateway.setup.inquiry import GatewayInquiry
    from pagein.replay.results.recall_counts import RecallCount
    from pagein.ui.status import AbsentCount, GatewayStatus, RecallStatus, StoreStatus

By: TypeAlias = Literal["session", "agent", "project", "model", "day"]

_SHOWN = 10
_UNUSABLE = 2
_NO_STORE: Final = "none yet, so there is nothing to count; pagein run AGENT makes it with the first call"


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command(
        epilog="Examples:\n\npagein status\n\npagein status --by session --since 1w\n\npagein status --by agent --json\n\npagein status --recalls"
    )(status)


def status(
    *,
    url: NearestGatewayUrl = None,
    workspace: GivenWorkspace = None,
    store: Store = None,
    by: Annotated[
        By | None,
        typer.Option("--by", help="Instead, a table of the costs: by session (the dearest first), agent, ..."),
    ] = None,
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="With --by: calls since 2026-11-21, yesterday, 3d ago, ...")
    ] = "1w",
    recalls: Annotated[
        bool,
        typer.Option(
            "--recalls",
            help="Also count the recalls of all stored sessions, beside those that a replay assumes.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the costs of today and of the last seven days, and the state of gateway and store.

    The costs cover all sessions in the store, also after the gateway has ended.
    """
    from pagein.ui.status import Status, status_lines

    asked, folder = _place(store, workspace)
    if by is not None:
        _show_totals(asked, folder, by, since, as_json=as_json)
        return
    found, is_usable = _store(asked, folder)
    now = Status(gateway=_gateway(url, workspace or Path()), store=found)
    if not found["problem"]:
        try:
            now["costs"] = costs_of(asked, folder)
            if recalls:
                now["recalls"] = _recalls(asked, folder)
        except StoreError as problem:  # damaged where nothing was read before
            found["problem"], is_usable = _told(problem, found["where"]), False
    sys.stdout.write(json.dumps(now) + "\n" if as_json else status_lines(now, _SHOWN) + "\n")
    if not is_usable:
        raise typer.Exit(_UNUSABLE)


def _place(store: str | None, workspace: Path | None) -> tuple[str | None, Path]:
    """Return the name and the folder of the store that is meant: without a name, that of the running gateway, as for `sessions`."""
    from pagein.archive import find_store

    try:
        found = find_store(store, workspace)
    except BadInput:
        return store, workspace or Path()  # what is missing is told with the state of the store
    return None if found.store is None else str(found.store), Path(found.workspace)


def nearest_gateway(url: str | None, workspace: Path) -> "GatewayInquiry":
    """Return the gateway to ask: the named one, else one that runs for the folder or above, else the settings' one."""
    from pagein.gateway.announced_store import default_folder, nearest_store, running_stores
    from pagein.gateway.http.access_token import default_file
    from pagein.gateway.setup.inquiry import GatewayInquiry
    from pagein.settings.sources import load_config

    settings = load_config(workspace).gateway
    announced = nearest_store(running_stores(default_folder()), str(workspace.resolve())) if url is None else None
    return GatewayInquiry(url or (announced.url if announced else settings.url), settings.host, default_file())


def _gateway(url: str | None, workspace: Path) -> "GatewayStatus":
    from pagein.gateway.setup.inquiry import NoAnswer
    from pagein.ui.status import GatewayStatus, SessionStatus

    gateway = nearest_gateway(url, workspace)
    try:
        seen = gateway.overview()
    except NoAnswer as problem:
        return GatewayStatus(
            url=gateway.address,
            problem=str(problem),
            version="",
            since=None,
            mode="",
            storing="",
            memory="",
            sessions=[],
        )
    return GatewayStatus(
        url=gateway.address,
        problem="",
        version=seen["version"],
        since=seen["began"],
        mode=f"off: {seen['off']}" if seen["off"] else "curating" if seen["curating"] else "measuring only",
        storing=seen.get("store", ""),  # an older gateway does not tell
        memory=seen.get("memory", ""),
        sessions=[
            SessionStatus(
                name=one["name"],
                model=one["model"],
                calls=one["calls"],
                epochs=one["epochs"],
                recalls=one["recalls"],
                cost=one["cost"],
                unbilled=one["unbilled"],
                saved=one["saved"],
                usd=one.get("usd"),  # as above
                saved_usd=one.get("saved_usd"),
                last=one["last"],
            )
            for one in seen["sessions"]
        ],
    )


def _store(store: str | None, workspace: Path) -> "tuple[StoreStatus, bool]":
    """Return the status of the store, and whether it can be used or made."""
    from pagein import wiring
    from pagein.archive import file_sizes
    from pagein.retention import announcement
    from pagein.ui.status import StoreStatus

    file = wiring.store_file(store, workspace=workspace)
    where = str(file) if file is not None else "database"
    found = StoreStatus(
        where=where, problem="", bytes=None, index_bytes=None, sessions=0, ended=0, newest=None, leaving=0, leaves=None
    )
    try:
        with closing(wiring.open_for_upkeep(store, workspace=workspace, looks=True)) as kept:
            sessions = [one for one in kept.sessions() if not one.is_own]
            leaving = announcement(kept).sessions
    except (BadInput, StoreError) as problem:
        is_missing = file is not None and not file.exists()
        told = f"{_NO_STORE} ({where})" if is_missing and store is None else _told(problem, where)
        return {**found, "problem": told}, is_missing
    size, index_size = (None, None) if file is None else file_sizes(file)
    status: StoreStatus = {
        **found,
        "bytes": size,
        "index_bytes": index_size,
        "sessions": len(sessions),
        "ended": sum(one.ended for one in sessions),
        "newest": max((one.touched for one in sessions if one.touched is not None), default=None),
        "leaving": len(leaving),
        "leaves": min(leaving.values(), default=None),
    }
    return status, True


def _told(problem: PageinError, where: str) -> str:
    """Return the problem of a store in words, with its whole path and the remedy."""
    from pagein import wiring

    told = str(problem) if where in str(problem) else str(problem).replace(Path(where).name, where, 1)
    remedy = wiring.remedy_of(problem) if isinstance(problem, StoreError) else ""
    return f"{told}; {remedy}" if remedy else told


def _show_totals(store: str | None, workspace: Path, by: By, since: str, *, as_json: bool) -> None:
    from pagein.cli.archive_access import moment
    from pagein.gateway.pages.call_totals import totals_since
    from pagein.ui.console import console
    from pagein.ui.status import show_totals

    start = moment(since) or 0.0
    sessions, unread = calls_since(store, workspace, start)
    rows = totals_since(start, by, sessions)
    if as_json:
        sys.stdout.write(json.dumps({"by": by, "since": start, "rows": rows, "unread": unread}) + "\n")
    else:
        show_totals(console(), by, rows, unread)


def _recalls(store: str | None, workspace: Path) -> "RecallStatus":
    """Count the recalls of every session. Raises StoreError for a journal that cannot be read."""
    from pagein import wiring
    from pagein.model.entries import Entry
    from pagein.replay.results.recall_counts import RecallCounts, recall_counts

    with closing(wiring.open_for_upkeep(store, workspace=workspace, looks=True)) as kept:
        counts = [
            recall_counts(one.name, (entry.body for entry in kept.entries(one.name) if isinstance(entry, Entry)))
            for one in kept.sessions()
        ]
    found = sum(counts, RecallCounts())
    return {
        "calls": found.calls,
        "evicted": _absent(found.evicted),
        "previewed": _absent(found.previewed),
        "usd": found.usd,
        "recalled_usd": found.recalled_usd,
        "drawn_usd": found.drawn_usd,
    }


def _absent(found: "RecallCount") -> "AbsentCount":
    return {"absent": found.absent, "recalled": found.recalled, "drawn": found.drawn}
