"""The command line: parse, call one function, print a view. Decisions about context are made elsewhere.

Exit status: 0; 2 for unusable input, with the reason on stderr; 128 plus the number of the terminating signal; 130 on
Ctrl-C. Heavy imports are inside the commands, so that `--help` and `--version` answer at once.
"""

import errno
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TextIO

import typer

from pagein.cli import (
    commands_forget,
    commands_pins,
    commands_provider,
    commands_reads,
    commands_recall,
    commands_serve,
    commands_status,
    commands_store,
    commands_upkeep,
)
from pagein.errors import BadInput, BadSetting, PageinError, StoreError

if TYPE_CHECKING:
    from rich.console import Console

    from pagein.model.bill import Bill
    from pagein.replay.run import ReplayRequest, ReplayResult
    from pagein.ui.choice import Candidate

_UNREAD = 1
_UNUSABLE = 2
_INTERRUPTED = 130
_SIGNALLED = 128
# The width of tables without a terminal and without COLUMNS.
_PIPE_WIDTH = 120
# Maximum length of a file's name in an error message, characters.
_LONGEST_NAME = 200
_WIDEST = 1000
# Sessions offered by `pagein replay` without arguments.
_OFFERED = 20

app = typer.Typer(
    name="pagein",
    help="Virtual memory for the context window of coding agents.",
    epilog="Examples:\n\npagein replay\n\npagein replay ~/.claude/projects --html report.html\n\npagein serve",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> NoReturn:
    """Run a command and convert an error to an exit status. The entry point."""
    _open_streams()
    _heed_signals()
    try:
        _run()
    except PageinError as error:
        _complain(f"{error}{_remedy(error)}")
        sys.exit(_UNUSABLE)
    except BrokenPipeError:  # the reader closed the pipe
        _drop_output()
        sys.exit(_UNREAD)
    except OSError as error:  # about a named file: a name too long, a closed folder, a full disk
        if error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            _drop_output()
            _complain(f"cannot write to standard output: {error.strerror}")
            sys.exit(_UNUSABLE)
        if error.filename is None or error.strerror is None:
            raise
        _complain(f"{str(error.filename)[:_LONGEST_NAME]}: {error.strerror}")
        sys.exit(_UNUSABLE)
    except KeyboardInterrupt:
        _complain("interrupted")
        sys.exit(_INTERRUPTED)
    sys.exit(0)


def _run() -> None:
    """Run a command and flush the output."""
    try:
        app(prog_name="pagein")
    finally:
        sys.stdout.flush()


def _drop_output() -> None:
    """Discard buffered output without a reader, to avoid an error at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _remedy(error: PageinError) -> str:
    """Return the remedy for a damaged store; "" for other errors, which name their own."""
    if not isinstance(error, StoreError):
        return ""
    from pagein import wiring

    told = wiring.remedy_of(error)
    return f"; {told}" if told else ""


def _open_streams() -> None:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - open until the end of the process
        # an unprintable file name must not prevent the table around it
        getattr(sys, name).reconfigure(errors="backslashreplace")


def _heed_signals() -> None:
    """Clean up after a terminating signal as at a normal end."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, _frame: object) -> NoReturn:
    raise SystemExit(_SIGNALLED + number)


def _complain(message: str) -> None:
    from pagein.ui.figures import plain

    sys.stderr.write(f"pagein: {plain(message)}\n")


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        from pagein import __version__

        typer.echo(f"pagein {__version__}")
        raise typer.Exit


@app.callback()
def pagein(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Virtual memory for the context window of coding agents.

    It decides what enters the window, what stays, where it sits and how it comes back. Nothing is ever lost.
    """


@dataclass(frozen=True, slots=True)
class _Output:
    """The destinations and parts of the printed bill."""

    json: bool
    html: Path | None
    sessions: bool | None
    quiet: bool
    why: bool


@app.command(
    rich_help_panel="Measure",
    epilog="Examples:\n\n"
    "pagein replay session.jsonl\n\n"
    "pagein replay sessions/ --html report.html\n\n"
    "pagein replay sessions/ --json > bill.json\n\n"
    "pagein replay session.jsonl --prices generic:r=.05,w=1 --policy pagein --policy clear\n\n"
    "pagein replay sessions/ --without birth --without cold,user-turn",
)
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
    prices: Annotated[
        str,
        typer.Option(
            "--prices",
            metavar="MODEL[@DATE]",
            help="A model's price table, as of a date, or multipliers of the input price: generic:r=.1,w=1.25.",
        ),
    ] = "generic:r=.1,w=1.25",
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", metavar="NAME", help="Replay this policy only; may be given several times.", show_default="all"
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
    baseline: Annotated[
        str, typer.Option("--baseline", metavar="NAME", help="The policy that ratios are taken against.")
    ] = "append",
    stress: Annotated[
        bool,
        typer.Option(
            "--stress/--no-stress", help="Charge drawn recalls beyond those that the recording shows to be needed."
        ),
    ] = True,
    why: Annotated[
        bool,
        typer.Option(
            "--why",
            help="Tell of each epoch and each batch of previews why it was, what it was to save and what it saved.",
        ),
    ] = False,
    doctor: Annotated[
        bool,
        typer.Option(
            "--doctor",
            help="Explain each recorded call that read less from its provider's cache than was there to be read.",
        ),
    ] = False,
    sessions: Annotated[
        bool | None,
        typer.Option("--sessions/--no-sessions", help="A row per session.", show_default="when there are few"),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", min=0, max=256, help="Processes at work; 0 is one per core.")
    ] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only, and no progress.")] = False,
) -> None:
    """Put recorded sessions through pagein and print the bill with and without it.

    Needs no key, no server and no network, and changes nothing. Costs are in BIT: one uncached input token costs 1.
    """
    from pagein.replay.policies.ablation import ablation
    from pagein.replay.run import ReplayRequest
    from pagein.replay.session_bill import EVERY_POLICY

    for name in (*(policy or ()), baseline):
        _check_known(name, EVERY_POLICY)
    for names in without or ():
        ablation(names.split(","))
    output = _Output(json=as_json, html=html, sessions=sessions, quiet=quiet, why=why)
    if html is not None:
        _check_writable(html)
    asked = ReplayRequest(
        paths=tuple(paths or _own_sessions()),
        prices=prices,
        policies=tuple(policy or ()),
        without=tuple(without or ()),
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


def _check_writable(html: Path) -> None:
    """Refuse an unwritable destination before the work."""
    if html.is_dir():
        raise BadSetting(f"--html {html}: is a folder; name a file in it, such as {html / 'report.html'}")
    existing = next((parent for parent in html.absolute().parents if parent.exists()), None)
    if existing is not None and not existing.is_dir():
        raise BadSetting(f"--html {html}: {existing} is not a folder")
    if existing is not None and not os.access(existing, os.W_OK | os.X_OK):
        raise BadSetting(f"--html {html}: {existing} is closed to you; name a file in another folder")


def _run_replay(asked: "ReplayRequest", output: _Output) -> "ReplayResult":
    from pagein import wiring
    from pagein.replay.run import replay as run
    from pagein.ui.progress import progress_bar

    with progress_bar(_console(error=True), wanted=not output.quiet) as progress:
        return run(replace(asked, usual=wiring.usual()), wiring.open_for_replay, progress)


def _print(replayed: "ReplayResult", output: _Output) -> None:
    bill = replayed.bill
    if output.html is not None and bill["sessions"]:  # before the tables, because a reader may close the pipe
        from pagein.ui.report import write_report

        write_report(output.html, bill, replayed.details)
    if output.json:
        with _catch_full_disk():
            _print_json(bill)
    if not bill["sessions"]:
        _fail_empty(bill)
    if not output.json:
        from pagein.ui.doctor import show_doctor
        from pagein.ui.tables import TableOptions, show
        from pagein.ui.why import show_why

        with _catch_full_disk():
            show(_console(), bill, TableOptions(sessions=output.sessions, quiet=output.quiet))
            if output.why and not output.quiet:
                show_why(_console(), bill["why"])
            if bill["doctor"] is not None and not output.quiet:
                show_doctor(_console(), bill["doctor"])
    if output.html is not None and not output.quiet:
        sys.stderr.write(f"report written to {output.html}\n")


@contextmanager
def _catch_full_disk() -> Iterator[None]:
    """Convert a full disk behind stdout into a message. A closed pipe is left to typer."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop_output()
        raise BadSetting(f"cannot write to standard output: {error.strerror}") from error


def _print_json(bill: "Bill") -> None:
    import json

    # ASCII, so that a file name in an unknown encoding is escaped, not refused
    json.dump(bill, sys.stdout, allow_nan=False, separators=(",", ":"))
    sys.stdout.write("\n")


def _fail_empty(bill: "Bill") -> NoReturn:
    from pagein.ui.tables import show_skipped

    show_skipped(_console(error=True), bill)
    raise BadInput("nothing to replay: no recorded session was found in what was given")


def _console(*, error: bool = False) -> "Console":
    """Return a console on stdout or stderr. Rich itself respects NO_COLOR and TERM."""
    from rich.console import Console

    stream = sys.stderr if error else sys.stdout
    return Console(file=stream, width=_width(stream), highlight=False, markup=False, emoji=False)


def _width(stream: TextIO) -> int | None:
    """Return the width given by COLUMNS, or None for the terminal's own."""
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told[:6]):
        return min(int(told[:6]), _WIDEST)
    return None if stream.isatty() and not told else _PIPE_WIDTH


def _today() -> date:
    from datetime import UTC, datetime

    return datetime.now(UTC).date()  # noqa: TID251 - the rim reads the clock


def _own_sessions() -> list[Path]:
    """Return the sessions of this machine picked by a person, or raise an error with an example."""
    from pagein.ui.choice import chosen, show_candidates

    found = _candidates()
    if not found:
        raise BadInput(
            "no recorded session of Claude Code, codex, pi, opencode, Gemini CLI or Copilot CLI was found on this machine; "
            "name a file or a folder: pagein replay FILE"
        )
    show_candidates(_console(error=True), found, _OFFERED)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput(f"name the sessions to replay, for example: pagein replay {shlex.quote(str(found[0].path))}")
    offered = found[:_OFFERED]
    try:
        answer = typer.prompt(f"Which? 1-{len(offered)}, several as 1,3-5, or all", default="1", err=True)
    except typer.Abort:
        raise KeyboardInterrupt from None
    return [offered[index].path for index in chosen(answer, len(offered))]


def _candidates() -> "list[Candidate]":
    """Return the files with sessions on this machine, newest first; a database with several sessions comes once."""
    import time

    from pagein.replay.readers import FoundSession, discover
    from pagein.ui.choice import Candidate
    from pagein.ui.figures import plural

    now = time.time()  # noqa: TID251 - the rim reads the clock
    files: dict[Path, list[FoundSession]] = {}
    for found in discover(Path.home(), os.environ):
        files.setdefault(found.path, []).append(found)
    return [
        Candidate(
            agent=some[0].agent,
            path=path,
            age=now - some[0].mtime,
            size=some[0].size,
            title=(some[0].title or some[0].cwd or "") if len(some) == 1 else plural(len(some), "session"),
        )
        for path, some in files.items()
    ]


def _add_to(panel: str, *groups: Callable[[typer.Typer], None]) -> None:
    """Add groups of commands under one heading of the help."""
    before = len(app.registered_commands)
    for add in groups:
        add(app)
    for command in app.registered_commands[before:]:
        command.rich_help_panel = panel


_add_to("Serve", commands_serve.add_to, commands_status.add_to)
_add_to("Read and recall", commands_reads.add_to, commands_recall.add_to)
_add_to("The user's hand on a session", commands_pins.add_to)
_add_to("Store", commands_store.add_to)
_add_to("Upkeep", commands_upkeep.add_to, commands_forget.add_to)
_add_to("Test", commands_provider.add_to)
