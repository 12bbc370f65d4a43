"""The question that the first `pagein serve` in a terminal asks: whether to send keep-alive requests.

The answer is written into the user's settings file, so it is asked once. With figures from the user's own recorded
sessions, newest first, as many as a few seconds are enough for; without any, with those of the documentation.
"""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from pagein.cli.corpus_figures import NO, SESSIONS, YES
from pagein.errors import BadSetting, PageinError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagein.settings.layers import Config

KEY: Final = "keep_alive"
SECONDS: Final = 5.0
"""How long the user's own sessions are measured; the session under way at that time is finished."""
_LARGEST: Final = 2 << 20
_MOST: Final = 20
_PRICES: Final = "generic:r=.1,w=1.25"
_BASE, _NO, _YES = "append", "pagein-quiet", "pagein"

CORPUS: Final = f"In {SESSIONS} sessions of others the bill is {NO.cost:.1%} of what it is without pagein; with such requests, {YES.cost:.1%}."
OFF: Final = (
    "keep-alive requests: off (nobody to ask here; --keep-alive, or keep_alive in your settings, turns them on)"
)


@dataclass(frozen=True, slots=True)
class OwnFigures:
    """The bill of some sessions as a share of the bill without pagein, after each answer.

    requests: keep-alive requests after yes.
    """

    sessions: int
    no: float
    yes: float
    requests: int


def answer_for(config: "Config", *, may_ask: bool) -> bool | None:
    """Ask whether to send keep-alive requests, and keep the answer.

    Returns None without a question: it was answered before, the settings rule such requests out, or no person is at the terminal.
    may_ask: whether the command prints for a person.
    """
    from pagein.settings.layers import DEFAULT

    if config.origins.get(KEY, DEFAULT) != DEFAULT or config.engine.marks == "respected":
        return None
    if not (may_ask and _is_terminal()):
        typer.echo(OFF, err=True)
        return None
    typer.echo(
        "pagein chooses how long the provider's cache keeps a prompt. It can also keep caches warm through your pauses: one\n"
        "extra request of one token per pause, with your key, where it pays by the prices; capped per session and per hour.",
        err=True,
    )
    typer.echo(_told(measure_own()), err=True)
    answer = typer.confirm("Keep caches warm through pauses?", default=False, err=True)
    _keep(answer=answer)
    return answer


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _keep(*, answer: bool) -> None:
    from pagein.settings.user_file import write_value

    try:
        path = write_value(KEY, value=answer)
    except BadSetting as problem:
        typer.echo(f"warning: {problem}; the answer holds until this gateway ends", err=True)
    else:
        typer.echo(f"{KEY} = {'true' if answer else 'false'} is written to {path}", err=True)


def measure_own() -> OwnFigures | None:
    """Return the figures of the user's newest sessions; None without any. Ctrl-C ends the measuring, not the command."""
    from pagein.replay.readers import discover

    until, paths = time.monotonic() + SECONDS, dict[Path, None]()
    sums, count, requests = dict.fromkeys((_BASE, _NO, _YES), 0.0), 0, 0
    try:
        for one in discover(Path.home(), os.environ):
            if 0 < one.size <= _LARGEST:
                paths.setdefault(one.path)
        for path in list(paths)[:_MOST]:
            if time.monotonic() > until:
                break
            typer.echo(f"\rmeasuring your newest sessions: {count} so far, Ctrl-C to skip ", err=True, nl=False)
            for costs, sent in _bills(path):
                count, requests = count + 1, requests + sent
                sums = {name: sums[name] + cost for name, cost in zip(sums, costs, strict=True)}
    except KeyboardInterrupt:
        typer.echo("", err=True)
    except PageinError:
        return None
    if paths:
        typer.echo("\r" + " " * 70 + "\r", err=True, nl=False)
    base = sums[_BASE]
    return OwnFigures(count, sums[_NO] / base, sums[_YES] / base, requests) if base else None


def _bills(path: Path) -> "Sequence[tuple[tuple[float, ...], int]]":
    """Return the costs of each session of a file, and the number of its keep-alive requests."""
    from pagein import wiring
    from pagein.replay.run import ReplayRequest, replay

    asked = ReplayRequest((path,), prices=_PRICES, policies=(_BASE, _NO, _YES), jobs=1)
    rows = [one["policies"] for one in replay(asked, wiring.open_for_replay).bill["per_session"]]
    return [(tuple(row[name]["cost"] for name in (_BASE, _NO, _YES)), row[_YES]["keep_alives"] or 0) for row in rows]


def _told(found: OwnFigures | None) -> str:
    if found is None:
        return f"You have no recorded sessions here. {CORPUS}"
    sessions = "session" if found.sessions == 1 else f"{found.sessions} sessions"
    told = f"In your newest {sessions} the bill would be {found.no:.1%} of what it is without pagein"
    if not found.requests:
        return f"{told}; no pause in them was worth such a request."
    requests = "1 such request" if found.requests == 1 else f"{found.requests} such requests"
    return f"{told}; with {requests}, {found.yes:.1%}."
