"""The command `replay`, registered by `cli`: recorded sessions in, the bill out.

Heavy imports are inside the commands, as in `cli`.
"""

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from pagein.cli.own_recordings import leave_out_journaled
from pagein.cli.standard_streams import catch_full_disk, console
from pagein.errors import BadInput, BadSetting
from pagein.policy.eviction.preset_figures import PRESET_FIGURES
from pagein.policy.eviction.residency_rules import Preset

if TYPE_CHECKING:
    from pagein.model.bill import Bill
    from pagein.replay.run import ReplayRequest, ReplayResult
    from pagein.ui.choice import ReplayableSession

# Sessions offered by `pagein replay` without arguments.
_OFFERED = 20


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command(
        epilog="Examples:\n\n"
        "pagein replay session.jsonl\n\n"
        "pagein replay sessions/ --html report.html\n\n"
        "pagein replay sessions/ --picture bill.svg\n\n"
        "pagein replay sessions/ --json > bill.json\n\n"
        "pagein replay session.jsonl --prices generic:r=.05,w=1 --policy pagein --policy clear\n\n"
        "pagein replay sessions/ --layout inline,pooled,tiered\n\n"
        "pagein replay sessions/ --without birth --without cold,user-turn"
    )(replay)


@dataclass(frozen=True, slots=True)
class _Output:
    """The destinations and parts of the printed bill."""

    json: bool
    html: Path | None
    picture: Path | None
    sessions: bool | None
    quiet: bool
    why: bool


def replay(  # noqa: PLR0913 - a command has as many options as it has
    *,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE|DIR]...",
            help="Recorded sessions: .jsonl, .json, each also .gz, .tar.xz, or folders of them. "
            "Without any, your own sessions on this machine are offered.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the bill as one JSON object and nothing else.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="REPORT.html", help="Write a page with pictures, complete in one file."),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture", metavar="BILL.svg", help="Write a picture of the bill to share, without any text of a session."
        ),
    ] = None,
    prices: Annotated[
        str,
        typer.Option(
            "--prices",
            metavar="MODEL[@DATE]",
            help="A model's price table, as of a date; own: the table of each session's own model; or multipliers of the input "
            "price: generic:r=.1,w=1.25.",
        ),
    ] = "own",
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", metavar="NAME", help="Replay only this policy. Repeatable.", show_default="all"),
    ] = None,
    layout: Annotated[
        list[str] | None,
        typer.Option(
            "--layout",
            metavar="NAME[,NAME]",
            help="Compare layouts of the prompt: inline (the conversation as it stands, with pagein's batches), pooled, "
            "tiered; may be given several times.",
            show_default="inline",
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            metavar="LAYER[,LAYER]",
            help="Replay pagein also without this layer of its policy, or without several at once; may be given several "
            "times. An unknown name is answered with the list.",
            show_default="all layers",
        ),
    ] = None,
    preset: Annotated[
        Preset,
        typer.Option(
            "--preset",
            help="The preset of pagein's settings from which --without leaves layers out. "
            + " ".join(f"{name}: {figures}." for name, figures in PRESET_FIGURES.items()),
        ),
    ] = "careful",
    baseline: Annotated[
        str, typer.Option("--baseline", metavar="NAME", help="The policy that the others are compared with.")
    ] = "append",
    stress: Annotated[
        bool,
        typer.Option(
            "--stress/--no-stress",
            help="Also charge assumed recalls, beyond those that the recording shows to be needed.",
        ),
    ] = True,
    why: Annotated[
        bool,
        typer.Option(
            "--why",
            help="Show for each epoch and each batch of previews the reason, the expected saving and the realised saving.",
        ),
    ] = False,
    doctor: Annotated[
        bool,
        typer.Option(
            "--doctor",
            help="Explain each recorded call that read less from the provider's cache than it held.",
        ),
    ] = False,
    sessions: Annotated[
        bool | None,
        typer.Option("--sessions/--no-sessions", help="A row per session.", show_default="when there are few"),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", min=0, max=256, help="Number of processes; 0: one per core.")
    ] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only, and no progress.")] = False,
) -> None:
    """Replay recorded sessions, and print the bill with and without pagein.

    Needs no key, no server and no network, and changes nothing. Costs are in dollars at list prices; with prices as multipliers, in BIT, the price of one uncached input token.
    """
    from pagein.replay.policies.ablation import ablation
    from pagein.replay.run import ReplayRequest
    from pagein.replay.session_bill import EVERY_POLICY, policies_of_layouts

    policy = [*(policy or ()), *policies_of_layouts(layout or ())]
    for name in (*policy, baseline):
        _check_known(name, EVERY_POLICY)
    if preset != "careful" and not without:
        raise BadSetting(f"--preset goes with --without; the preset as a whole is --policy pagein-{preset}")
    for names in without or ():
        ablation(names.split(","), preset)
    output = _Output(json=as_json, html=html, picture=picture, sessions=sessions, quiet=quiet, why=why)
    for option, path in (("--html", html), ("--picture", picture)):
        if path is not None:
            _check_writable(option, path)
    asked = ReplayRequest(
        paths=tuple(paths or _own_sessions()),
        prices=prices,
        policies=tuple(policy),
        without=tuple(without or ()),
        preset=preset,
        baseline=baseline,
        stress=stress,
        jobs=jobs,
        detail=html is not None,
        doctor=doctor,
        why=why or (html is not None and (not policy or "pagein" in policy)),
        today=_today(),
    )
    _print(_run_replay(asked, output), output)


def _check_known(name: str, accepted: Sequence[str]) -> None:
    if name not in accepted:
        raise BadSetting(f"there is no policy {name!r}; the policies are {', '.join(accepted)}")


def _check_writable(option: str, path: Path) -> None:
    """Refuse an unwritable destination before the work."""
    if path.is_dir():
        name = "bill.svg" if option == "--picture" else "report.html"
        raise BadSetting(f"{option} {path}: is a folder; name a file in it, such as {path / name}")
    existing = next((parent for parent in path.absolute().parents if parent.exists()), None)
    if existing is not None and not existing.is_dir():
        raise BadSetting(f"{option} {path}: {existing} is not a folder")
    if existing is not None and not os.access(existing, os.W_OK | os.X_OK):
        raise BadSetting(f"{option} {path}: {existing} is closed to you; name a file in another folder")


def _run_replay(asked: "ReplayRequest", output: _Output) -> "ReplayResult":
    from pagein import wiring
    from pagein.replay.run import replay as run
    from pagein.ui.progress import progress_bar

    with progress_bar(console(error=True), wanted=not output.quiet) as progress:
        return run(replace(asked, usual=wiring.usual()), wiring.open_for_replay, progress)


def _print(replayed: "ReplayResult", output: _Output) -> None:
    bill = replayed.bill
    if output.html is not None and bill["sessions"]:  # before the tables, because a reader may close the pipe
        from pagein.ui.report import write_report

        write_report(output.html, bill, replayed.details)
    if output.picture is not None and bill["sessions"]:
        _write_picture(output.picture, bill)
    if output.json:
        with catch_full_disk():
            _print_json(bill)
    if not bill["sessions"]:
        _fail_empty(bill)
    if not output.json:
        from pagein.ui.doctor import show_doctor
        from pagein.ui.tables import TableOptions, show
        from pagein.ui.why import show_why

        with catch_full_disk():
            show(console(), bill, TableOptions(sessions=output.sessions, quiet=output.quiet))
            if output.why and not output.quiet:
                show_why(console(), bill["why"])
            if bill["doctor"] is not None and not output.quiet:
                show_doctor(console(), bill["doctor"])
    for what, path in (("report", output.html), ("picture", output.picture)):
        if path is not None and not output.quiet:
            sys.stderr.write(f"{what} written to {path}\n")


def _write_picture(path: Path, bill: "Bill") -> None:
    from pagein.ui.report import write_whole
    from pagein.ui.share_picture import share_picture

    drawn = share_picture(bill)
    if not drawn:
        raise BadSetting("--picture compares pagein with the recording; replay both, without --policy or --baseline")
    write_whole(path, drawn, "--picture")


def _print_json(bill: "Bill") -> None:
    import json

    # ASCII, so that a file name in an unknown encoding is escaped, not refused
    json.dump(bill, sys.stdout, allow_nan=False, separators=(",", ":"))
    sys.stdout.write("\n")


def _fail_empty(bill: "Bill") -> NoReturn:
    from pagein.ui.tables import show_skipped

    show_skipped(console(error=True), bill)
    raise BadInput("nothing to replay: the given paths hold no recorded session")


def _today() -> date:
    from datetime import UTC, datetime

    return datetime.now(UTC).date()  # noqa: TID251 - the rim reads the clock


def _own_sessions() -> list[Path]:
    """Return the sessions of this machine picked by a person, or raise an error with an example."""
    from pagein.replay.readers import AGENTS
    from pagein.ui.choice import parse_choice, show_candidates

    found = _candidates()
    if not found:
        raise BadInput(
            f"no recorded session of {AGENTS} was found on this machine; name a file or a folder: pagein replay FILE"
        )
    kept = frozenset(leave_out_journaled([one.path for one in found], _OFFERED, "replay"))
    found = [one for one in found if one.path in kept]
    show_candidates(console(error=True), found, _OFFERED)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput(f"name the sessions to replay, for example: pagein replay {shlex.quote(str(found[0].path))}")
    offered = found[:_OFFERED]
    try:
        answer = typer.prompt(f"Which? 1-{len(offered)}, several as 1,3-5, or all", default="1", err=True)
    except typer.Abort:
        raise KeyboardInterrupt from None
    return [offered[index].path for index in parse_choice(answer, len(offered))]


def _candidates() -> "list[ReplayableSession]":
    """Return the files with sessions on this machine, newest first; a database with several sessions comes once."""
    import time

    from pagein.replay.readers import FoundSession, discover
    from pagein.ui.choice import ReplayableSession
    from pagein.ui.figures import plural

    now = time.time()  # noqa: TID251 - the rim reads the clock
    files: dict[Path, list[FoundSession]] = {}
    for found in discover(Path.home(), os.environ):
        files.setdefault(found.path, []).append(found)
    return [
        ReplayableSession(
            agent=some[0].agent,
            path=path,
            age=now - some[0].mtime,
            size=some[0].size,
            title=(some[0].title or "") if len(some) == 1 else plural(len(some), "session"),
            project=(some[0].cwd or "") if len(some) == 1 else "",
        )
        for path, some in files.items()
    ]
