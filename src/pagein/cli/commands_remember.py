"""The command `remember`, registered by `cli`: recorded sessions in, journals in the store out.

Exit status: 0; 1 if a file could not be read or is damaged; 2 as in `cli`. Heavy imports are inside the commands, as in
`cli`.
"""

import os
import sys
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pagein.cli.options import AsJson, Store, Workspace
from pagein.cli.standard_streams import catch_full_disk, console
from pagein.errors import BadInput, BadSetting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pagein.past_sessions.intake import Intake
    from pagein.past_sessions.report import RememberReport
    from pagein.replay.readers import FoundSession

_WRONG = 1
_NAMED = 3


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command(
        epilog="Examples:\n\npagein remember\n\npagein remember --yes --watch\n\npagein remember ~/.claude/projects\n\n"
        "pagein remember old-laptop/sessions --store ~/memory.pagein --json"
    )(remember)


def remember(  # noqa: PLR0913 - a command has as many options as it has
    *,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Recorded sessions: .jsonl, .json, each also .gz, .tar.xz, opencode.db, or folders of them. "
            "Without any, the sessions of the agents on this machine.",
            show_default=False,
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Continue, and import further recordings as agents write them.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Import the sessions of this machine without asking.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what is new, and store nothing.")] = False,
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", min=0, max=256, help="Number of processes; 0: one per core.")
    ] = 0,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, and only failures.")] = False,
) -> None:
    """Import the recorded sessions of Claude Code, codex, pi, opencode, Gemini CLI and Copilot CLI into the store.

    Only new entries are added, so the command can be repeated at any time. Keys and excluded files are left out.
    """
    from pagein import wiring

    if watch and dry_run:
        raise BadSetting("--watch stores what it finds, and --dry-run stores nothing; give one of them")
    if paths and not watch and all(map(_is_missing, paths)):  # a watched path may come later
        named = ", ".join(map(str, paths[:_NAMED]))
        raise BadInput(f"no such file or folder: {named}; name recorded sessions, or a folder of them")
    place = str(wiring.store_file(store, workspace=workspace) or "the database")
    if dry_run or not paths:
        with wiring.open_intake(store, workspace=workspace, looks=True) as looking:
            if not paths:
                _ask(looking, yes=yes or dry_run, quiet=quiet or as_json)
            if dry_run:
                _tell(_take(looking, paths, quiet=quiet), place, as_json=as_json, quiet=quiet, dry_run=True)
                return
    with wiring.open_intake(store, workspace=workspace, jobs=jobs) as intake:
        made = partial(_make_objects, store, workspace, quiet=quiet)
        _tell(_take(intake, paths, quiet=quiet), place, made, as_json=as_json, quiet=quiet, is_last=not watch)
        if watch:
            _watch(intake, paths, lambda one: _tell(one, place, made, as_json=as_json, quiet=quiet, is_last=False))


def _is_missing(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False  # it is named with its own reason
    return False


def _take(intake: "Intake", paths: "Sequence[Path] | None", *, quiet: bool) -> "RememberReport":
    from pagein.ui.progress import progress_bar

    with progress_bar(console(error=True), wanted=not quiet, doing="remembering") as progress:
        return intake.remember(paths or _own_files(), progress, named=bool(paths))


def _make_objects(store: str | None, workspace: Path, *, quiet: bool) -> float:
    """Make the objects of the remembered sessions, so that the first question finds them. Return the seconds that it took."""
    from pagein.archive import catch_up, open_archive
    from pagein.ui.progress import step_bar

    began = time.monotonic()
    try:
        with (
            open_archive(store, workspace=workspace) as archive,
            step_bar(console(error=True), "making objects") as tell,
        ):
            behind = catch_up(archive, None if quiet else tell, rest=True)
    except KeyboardInterrupt:
        sys.stderr.write("stopped; what was remembered stays, and the next question makes the other objects\n")
        raise
    if behind:
        sys.stderr.write(f"pagein: not all objects are made yet, the next question makes them: {behind}\n")
    return time.monotonic() - began


def _watch(intake: "Intake", paths: "Sequence[Path] | None", tell: "Callable[[RememberReport], None]") -> None:
    """Look again and again until Ctrl-C."""
    from pagein.errors import StoreError
    from pagein.past_sessions.watch import rounds

    sys.stderr.write("watching; Ctrl-C ends it\n")
    looking = rounds(intake, lambda: intake.remember(paths or _own_files(), named=bool(paths), holds=True))
    try:
        for one in looking:
            if isinstance(one, StoreError):
                sys.stderr.write(f"pagein: {one}; it is tried again\n")
            else:
                tell(one)
    except KeyboardInterrupt:
        sys.stderr.write("no longer watching\n")
    finally:
        looking.close()


def _own_files() -> list[Path]:
    return list(dict.fromkeys(found.path for found in _own_sessions()))


def _own_sessions() -> "list[FoundSession]":
    from pagein.replay.readers import discover

    return discover(Path.home(), os.environ, titles=False)


def _ask(intake: "Intake", *, yes: bool, quiet: bool) -> None:
    """Show what was found on this machine, and ask whether to take it. Raises BadInput for a no."""
    from pagein.ui.past_sessions import show_found

    sessions = _own_sessions()
    if not sessions:
        raise BadInput(
            "no recorded session of an agent was found on this machine; name a file or a folder: pagein remember FILE"
        )
    new = {file.path for file in intake.news(dict.fromkeys(found.path for found in sessions))}
    counts: dict[str, tuple[int, int]] = {}
    for found in sessions:
        if found.path in new:
            count, size = counts.get(found.agent, (0, 0))
            counts[found.agent] = count + 1, size + found.size
    if not counts:
        return
    if not (yes and quiet):
        show_found(console(error=True), [(agent, *told) for agent, told in sorted(counts.items())])
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput("to take them without a question: pagein remember --yes; or name files: pagein remember FILE")
    try:
        if not typer.confirm("Take them into the store?", default=True, err=True):
            raise BadInput("nothing was taken")
    except typer.Abort:
        raise KeyboardInterrupt from None


def _tell(
    report: "RememberReport",
    place: str,
    make: "Callable[[], float] | None" = None,
    *,
    as_json: bool,
    quiet: bool,
    dry_run: bool = False,
    is_last: bool = True,
) -> None:
    """Make the objects, and print the report, also where the user interrupts the making."""
    made: float | None = None
    try:
        if make is not None and (report.new or report.grown or report.known):  # otherwise the store may be missing
            made = make()
    finally:
        _print(_answer(report, place, made, dry_run=dry_run), as_json=as_json, quiet=quiet)
    if report.failed and is_last:
        raise typer.Exit(_WRONG)


def _print(answer: dict[str, Any], *, as_json: bool, quiet: bool) -> None:
    with catch_full_disk():
        if as_json:
            import json

            # ASCII, so that a file name in an unknown encoding is escaped, not refused
            sys.stdout.write(json.dumps(answer, separators=(",", ":")) + "\n")
        else:
            from pagein.ui.past_sessions import show_remarks, show_remembered

            if not quiet:
                show_remembered(console(), answer)
            show_remarks(console(error=True), answer)


def _answer(report: "RememberReport", place: str, made: float | None, *, dry_run: bool) -> dict[str, Any]:
    return {
        "new": report.new,
        "grown": report.grown,
        "messages": report.messages,
        "agents": dict(report.agents),
        "files": report.files,
        "known_files": report.known,
        "bytes": report.size,
        "seconds": round(report.seconds, 3),
        "object_seconds": None if made is None else round(made, 3),
        "unknown_lines": report.unknown,
        "skipped": [asdict(one) for one in report.skipped],
        "failed": [asdict(one) for one in report.failed],
        "store": place,
        "dry_run": dry_run,
    }
