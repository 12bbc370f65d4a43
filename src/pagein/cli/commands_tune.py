"""The command `tune`, registered by `cli`: recommend settings by the user's recorded sessions.

Heavy imports are inside the commands, as in `cli`.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pagein.cli.archive_access import moment
from pagein.cli.options import AsJson
from pagein.cli.own_recordings import leave_out_journaled
from pagein.cli.standard_streams import catch_full_disk, console
from pagein.errors import BadInput, BadSetting

if TYPE_CHECKING:
    from pagein.model.bill import Bill
    from pagein.replay.results.recommendation import Candidate, Recommendation
    from pagein.settings.layers import Config
    from pagein.ui.tuning_view import TuningPage


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command(
        epilog="Examples:\n\n"
        "pagein tune\n\n"
        "pagein tune --limit 200 --prices claude-sonnet-5-5\n\n"
        "pagein tune ~/.claude/projects --json\n\n"
        "pagein tune --yes"
    )(tune)


def tune(  # noqa: PLR0913 - a command has as many options as it has
    *,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE|DIR]...",
            help="Recorded sessions, as for `pagein replay`. Without any: your own newest ones on this machine.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="At most this many files of your own.")
    ] = 60,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Only your own files changed at this time or later: 2026-11-21, yesterday, 3d ago.",
            show_default="all",
        ),
    ] = None,
    prices: Annotated[
        str,
        typer.Option("--prices", metavar="MODEL[@DATE]", help="As for `pagein replay`."),
    ] = "own",
    masking: Annotated[
        bool,
        typer.Option(
            "--masking/--no-masking",
            help="Include the masking of old arguments, which a gateway does only if the agent has pagein's hook.",
        ),
    ] = False,
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", min=0, max=256, help="Number of processes; 0: one per core.")
    ] = 0,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Write the advice into your settings without asking.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing, and do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Replay your own sessions under each choice of settings, and recommend one.

    The earlier two thirds of the sessions choose, the rest judges. If the difference is within noise, the advice is no change. A second table sums up the cost of the recorded calls by the provider's own usage. Needs no key and no network.
    """
    from pagein.replay.results.recommendation import candidates
    from pagein.replay.results.recommendation import tune as recommend
    from pagein.settings.sources import load_config
    from pagein.ui.doubts import reserve_words
    from pagein.ui.recorded_usage_view import show_usage
    from pagein.ui.tables import show_skipped
    from pagein.ui.tuning_view import show_tuning

    config = load_config()
    tried = candidates(masking=masking)
    now = _in_force(tried, config.values)
    bill = _replay(tuple(paths or _own_files(limit, since)), prices, tried, jobs)
    if not as_json:
        show_skipped(console(error=True), bill)
    if not bill["sessions"]:
        raise BadInput("nothing to tune by: the given paths hold no recorded session")
    tuning = recommend(bill["per_session"], tried, now)
    outvoted = _outvoted(tuning.advice, config)
    with catch_full_disk():
        if as_json:
            _print_json(tuning, bill, outvoted)
        else:
            notes = [*_lines(tuning), *_notes(config, outvoted), *reserve_words(bill)]
            show_tuning(console(), _page(tuning, notes))
            if bill["doctor"] is not None:
                show_usage(console(), bill["doctor"]["usage"])
    if tuning.advice != now and not dry_run:
        _offer(tuning.advice, yes=yes, quiet=as_json)


def _in_force(tried: "tuple[Candidate, ...]", values: Mapping[str, object]) -> "Candidate":
    residency, keep_alive = values.get("residency"), bool(values.get("keep_alive"))
    return next((one for one in tried if (one.residency, one.keep_alive) == (residency, keep_alive)), tried[0])


def _outvoted(advice: "Candidate", config: "Config") -> dict[str, str]:
    """Return the settings that keep their value whatever the user's file says, with what sets them."""
    from pagein.settings.keys import KEYS
    from pagein.settings.layers import DEFAULT, ENVIRONMENT
    from pagein.settings.sources import user_file

    weak = (DEFAULT, str(user_file(os.environ)))
    wanted = {"residency": advice.residency, "keep_alive": advice.keep_alive}
    strong = {
        key: config.origins[key]
        for key, value in wanted.items()
        if config.values[key] != value and config.origins[key] not in weak
    }
    return {key: KEYS[key].variable if where == ENVIRONMENT else where for key, where in strong.items()}


def _notes(config: "Config", outvoted: Mapping[str, str]) -> list[str]:
    from pagein.settings.layers import DEFAULT, OF_PRESET

    lines = [
        f"Note: {key} is set by {where}, which outvotes your settings file; take it out there."
        for key, where in outvoted.items()
    ]
    own = [key for key in OF_PRESET if config.origins[key] != DEFAULT]
    if own:
        lines.append(f"Note: your own {', '.join(own)} are not in these figures; each row has its preset's values.")
    return lines


def _own_files(limit: int, since: str | None) -> list[Path]:
    """Return the newest files with sessions on this machine that ran without pagein. Raises BadInput if there are none."""
    from pagein.replay.readers import AGENTS, discover

    oldest = moment(since) or 0.0
    found = dict.fromkeys(
        one.path for one in discover(Path.home(), os.environ, titles=False) if one.mtime >= oldest and one.size
    )
    if not found:
        raise BadInput(
            f"no recorded session of {AGENTS} was found on this machine"
            f"{'' if since is None else f' since {since}'}; name a file or a folder: pagein tune FILE"
        )
    return leave_out_journaled(list(found), limit, "tune")[:limit]


def _replay(paths: tuple[Path, ...], prices: str, tried: "tuple[Candidate, ...]", jobs: int) -> "Bill":
    from datetime import UTC, datetime

    from pagein import wiring
    from pagein.replay.run import ReplayRequest, replay
    from pagein.ui.progress import progress_bar

    policies = tuple(dict.fromkeys(one.policy for one in tried))
    today = datetime.now(UTC).date()  # noqa: TID251 - the rim reads the clock
    asked = ReplayRequest(paths, prices, ("append", *policies), jobs=jobs, doctor=True, today=today)
    with progress_bar(console(error=True), wanted=sys.stderr.isatty()) as progress:
        return replay(asked, wiring.open_for_replay, progress).bill


def _page(tuning: "Recommendation", lines: Sequence[str]) -> "TuningPage":
    from pagein.ui.tuning_view import TriedSettings, TuningPage

    notes = (
        {tuning.now: "in force", tuning.advice: "advised"} if tuning.advice != tuning.now else {tuning.now: "in force"}
    )
    rows = [
        TriedSettings(
            one.words,
            got.cost,
            got.median,
            got.worst,
            got.usd,
            got.recalls,
            got.quotes_lost,
            got.quotes,
            notes.get(one, ""),
        )
        for one, got in tuning.whole.items()
    ]
    return TuningPage(tuning.earlier + tuning.later, rows, lines)


def _lines(tuning: "Recommendation") -> list[str]:
    lines = []
    if tuning.chosen is not None:
        lines.append(
            f"Cheapest of those that keep the quotes, by the earlier {tuning.earlier} sessions: {tuning.chosen.words}."
        )
        if tuning.chosen != tuning.now:
            does = "saves" if tuning.saving >= 0 else "adds"
            lines.append(
                f"In the later {tuning.later} sessions it {does} {100 * abs(tuning.saving):.1f} % of the bill; "
                f"up to {100 * tuning.noise:.1f} % could be chance."
            )
    lines.append(f"Advice: {tuning.why}.")
    if tuning.advice != tuning.now:
        lines += [
            f'  residency = "{tuning.advice.residency}"',
            f"  keep_alive = {str(tuning.advice.keep_alive).lower()}",
        ]
    return lines


def _print_json(tuning: "Recommendation", bill: "Bill", outvoted: Mapping[str, str]) -> None:
    import json
    from dataclasses import asdict

    def told(one: "Candidate | None") -> object:
        return None if one is None else {"residency": one.residency, "keep_alive": one.keep_alive}

    found = {
        "sessions": tuning.earlier + tuning.later,
        "earlier": tuning.earlier,
        "later": tuning.later,
        "in_force": told(tuning.now),
        "chosen": told(tuning.chosen),
        "saving": tuning.saving,
        "noise": tuning.noise,
        "advice": told(tuning.advice),
        "why": tuning.why,
        "outvoted": outvoted,
        "usage": None if bill["doctor"] is None else bill["doctor"]["usage"],
        "assume_reserve": sum("reserve" in one["flags"] for one in bill["per_session"]),
        "skipped": bill["skipped"],
        "tried": [
            {"residency": one.residency, "keep_alive": one.keep_alive, **asdict(got)}
            for one, got in tuning.whole.items()
        ],
    }
    json.dump(found, sys.stdout, allow_nan=False, separators=(",", ":"))
    sys.stdout.write("\n")


def _offer(advice: "Candidate", *, yes: bool, quiet: bool) -> None:
    """Write the advised settings into the user's file, after asking."""
    from pagein.settings.user_file import write_values

    if not yes:
        if quiet or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return
        if not typer.confirm("Write these settings into your settings file?", default=False, err=True):
            return
    try:
        path = write_values({"residency": advice.residency, "keep_alive": advice.keep_alive})
    except BadSetting as problem:
        raise BadSetting(f"{problem}; set residency and keep_alive there by hand") from problem
    typer.echo(f"written to {path}; a running gateway takes them when it is started again", err=True)
