"""What the sessions of a store cost in the last days, from their journals. For the commands `status` and `serve`."""

import time
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pagein.gateway.pages.call_totals import SessionCalls
    from pagein.ui.status import CostsStatus

_PATIENCE = 5.0  # seconds of reading journals


def tell_week(store: str | None, workspace: Path) -> Thread:
    """Print what pagein saved in the last seven days, in one line, from the returned thread: a gateway does not wait for it.

    Prints nothing if no call of these days has a price, or the store cannot be read.
    """

    def tell() -> None:
        from pagein.errors import BadInput, StoreError
        from pagein.ui.status import week_line

        with suppress(BadInput, StoreError):
            if line := week_line(costs_of(store, workspace)):
                typer.echo(line)

    thread = Thread(target=tell, name="pagein-week", daemon=True)
    thread.start()
    return thread


def costs_of(store: str | None, workspace: Path) -> "CostsStatus":
    """Sum the calls of the last days. Raises StoreError for a journal that cannot be read."""
    from pagein.gateway.pages.call_totals import cost_since, periods
    from pagein.ui.status import CostsStatus

    midnight, week = periods(datetime.now().astimezone())  # noqa: TID251 - the rim reads the clock
    sessions, unread = calls_since(store, workspace, week)
    return CostsStatus(today=cost_since(midnight, sessions), week=cost_since(week, sessions), unread=unread)


def calls_since(store: str | None, workspace: Path, since: float) -> "tuple[list[SessionCalls], int]":
    """Return the sessions that were written to since a moment, the latest first, and how many were left unread for lack of time."""
    from pagein import wiring
    from pagein.gateway.pages.call_totals import session_calls
    from pagein.gateway.pages.journal_calls import summary_of
    from pagein.tools.session_commands import sessions as known_sessions

    found: list[SessionCalls] = []
    with closing(wiring.open_for_upkeep(store, workspace=workspace, looks=True)) as kept:
        late = sorted(
            ((one.touched, one.name) for one in kept.sessions() if not one.is_own and one.touched is not None),
            reverse=True,
        )
        names = [name for touched, name in late if touched >= since]
        known = {
            one["session"]: one for one in known_sessions(kept, sub_agents=True, limit=max(len(names), 1))["sessions"]
        }
        until = time.monotonic() + _PATIENCE
        for name in names:
            if found and time.monotonic() > until:
                break
            found.append(session_calls(name, summary_of(kept.entries(name)), known.get(name, {})))
    return found, len(names) - len(found)
