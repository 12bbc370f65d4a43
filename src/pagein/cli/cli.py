"""The command line: parse, call one function, print a view. Decisions about context are made elsewhere.

Exit status: 0; 2 for unusable input, with the reason on stderr; 128 plus the number of the terminating signal; 130 on
Ctrl-C. Heavy imports are inside the commands, so that `--help` and `--version` answer at once.
"""

import errno
import re
import signal
import sys
from _thread import interrupt_main
from collections.abc import Callable
from inspect import getdoc
from threading import Timer
from typing import Annotated, Final, NoReturn

import typer

from pagein.cli import (
    commands_blame,
    commands_config,
    commands_delegation,
    commands_doctor,
    commands_forget,
    commands_hook,
    commands_install,
    commands_mcp,
    commands_pi,
    commands_pins,
    commands_pools,
    commands_provider,
    commands_reads,
    commands_recall,
    commands_remember,
    commands_replay,
    commands_run,
    commands_serve,
    commands_service,
    commands_sessions,
    commands_status,
    commands_store,
    commands_switch,
    commands_symbols,
    commands_top,
    commands_tune,
    commands_upkeep,
    commands_versions,
)
from pagein.cli.standard_streams import drop_output, open_streams, warn
from pagein.errors import PageinError, StoreError

_UNREAD = 1
_UNUSABLE = 2
_INTERRUPTED = 130
_SIGNALLED = 128
_PAUSE: Final = 0.1
# Maximum length of a file's name in an error message, characters.
_LONGEST_NAME = 200

# What people come to ask, each with the command that answers it. The words stand behind #, so that a line can be copied
# whole. A line fits into 80 columns.
_QUESTIONS: Final = (
    ("pagein run claude", "or another agent: pagein run --help"),
    ("pagein replay", "what would pagein have saved me?"),
    ("pagein tune", "which settings are cheaper?"),
    ("pagein status", "what did today cost? who lost money?"),
    ("pagein top", "what happens now? (or the page of run)"),
    ("pagein sessions", "which SESSION was it?"),
    ("pagein window SESSION", "what has left the window?"),
    ("pagein restore SESSION ID --now", "bring it back"),
    ("pagein window SESSION --why", "why did this leave?"),
    ("pagein off --session SESSION", "nothing more leaves in this session"),
    ("pagein history FILE", "what did agents do to a file?"),
    ("pagein blame FILE", "who wrote each line?"),
    ("pagein search TEXT --type user", "what did I say? (--since yesterday)"),
    ("pagein forget -", "erase a secret, from standard input"),
)
_WIDEST: Final = max(len(command) for command, _ in _QUESTIONS)
_EXAMPLES: Final = "Examples:\n\n" + "\n".join(f"{command:{_WIDEST}}  # {words}" for command, words in _QUESTIONS)

app = typer.Typer(
    name="pagein",
    help="Virtual memory for the context window of coding agents.",
    epilog=_EXAMPLES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> NoReturn:
    """Run a command and convert an error to an exit status. The entry point."""
    open_streams()
    _heed_signals()
    try:
        _run_to_its_end()
    except KeyboardInterrupt:  # once more, while the first was told
        sys.exit(_INTERRUPTED)
    except Exception as error:
        if _is_of_interrupt(error):
            sys.exit(_INTERRUPTED)
        raise
    finally:
        if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own end would print where it was interrupted


def _run_to_its_end() -> NoReturn:
    try:
        _run()
    except PageinError as error:
        warn(f"{error}{_remedy(error)}")
        sys.exit(_UNUSABLE)
    except BrokenPipeError:  # the reader closed the pipe
        drop_output()
        sys.exit(_UNREAD)
    except OSError as error:  # about a named file: a name too long, a closed folder, a full disk
        if error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            drop_output()
            warn(f"cannot write to standard output: {error.strerror}")
            sys.exit(_UNUSABLE)
        if error.filename is None and error.errno == errno.ENOENT:  # what `os.getcwd` raises
            warn("the current folder does not exist any more; change to another one")
            sys.exit(_UNUSABLE)
        if error.filename is None or error.strerror is None:
            raise
        warn(f"{str(error.filename)[:_LONGEST_NAME]}: {error.strerror}")
        sys.exit(_UNUSABLE)
    except KeyboardInterrupt:
        warn("interrupted")
        sys.exit(_INTERRUPTED)
    sys.exit(0)


def _run() -> None:
    """Run a command and flush the output."""
    try:
        app(prog_name="pagein")
    finally:
        sys.stdout.flush()


def _remedy(error: PageinError) -> str:
    """Return the remedy for a damaged store; "" for other errors, whose messages include the remedy."""
    if not isinstance(error, StoreError):
        return ""
    from pagein import wiring

    told = wiring.remedy_of(error)
    return f"; {told}" if told else ""


def _heed_signals() -> None:
    """Clean up after a terminating signal or Ctrl-C as at a normal end."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.unraisablehook = _interrupt_again
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)


def _is_of_interrupt(error: BaseException | None) -> bool:
    """Return whether an error is a Ctrl-C in another form: Python wraps what it meets while it makes a class."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _interrupt_again(lost: "sys.UnraisableHookArgs") -> None:
    """Repeat a Ctrl-C that came where Python can raise nothing, such as in a finalizer. It would be printed, and not heeded."""
    if lost.exc_type is KeyboardInterrupt:
        again = Timer(_PAUSE, interrupt_main)  # after this function, in which it would be lost once more
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(lost)


def _end(number: int, _frame: object) -> NoReturn:
    raise SystemExit(_SIGNALLED + number)


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


def _add_to(panel: str, *groups: Callable[[typer.Typer], None]) -> None:
    """Add groups of commands under one heading of the help."""
    before = len(app.registered_commands)
    for add in groups:
        add(app)
    for command in app.registered_commands[before:]:
        command.rich_help_panel = panel
        command.help = _flowing(command.help or getdoc(command.callback) or "")


def _flowing(text: str) -> str:
    """Return a help text with each paragraph on one line, so that it is wrapped at the width of the terminal alone. Lists stay."""
    parts = text.split("\n\n")
    return "\n\n".join(
        part if re.search(r"^(\s|[-*] |\|)", part, re.MULTILINE) else part.replace("\n", " ") for part in parts
    )


_add_to(
    "Serve",
    commands_run.add_to,
    commands_serve.add_to,
    commands_service.add_to,
    commands_config.add_to,
    commands_mcp.add_to,
    commands_pi.add_to,
    commands_install.add_to,
    commands_hook.add_to,
    commands_doctor.add_to,
    commands_switch.add_to,
    commands_status.add_to,
    commands_top.add_to,
)
_add_to("Measure", commands_replay.add_to, commands_tune.add_to)
_add_to(
    "Read and recall",
    commands_reads.add_to,
    commands_symbols.add_to,
    commands_recall.add_to,
    commands_delegation.add_to,
)
_add_to("The user's hand on a session", commands_pins.add_to, commands_pools.add_to)
_add_to(
    "Memory",
    commands_remember.add_to,
    commands_sessions.add_to,
    commands_versions.add_to,
    commands_store.add_to,
    commands_blame.add_to,
)
_add_to("Upkeep", commands_upkeep.add_to, commands_forget.add_to)
_add_to("Test", commands_provider.add_to)
