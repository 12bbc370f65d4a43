"""The commands `service`, registered by `cli`: the gateway as a user service.

Exit status: 0; of `status` 1 where the service does not run; 2 as in `cli`. Heavy imports are inside the commands, as in `cli`.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from pagein.cli.commands_install import Yes
from pagein.cli.options import AsJson
from pagein.errors import BadInput, BadSetting

if TYPE_CHECKING:
    from pagein.installation.user_service import UserService

_RESTING = 1
_FOLDER = 0o700


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    service = typer.Typer(
        no_args_is_help=True,
        help="Run the gateway from login on, as a service of systemd or launchd.",
        epilog="Examples:\n\npagein service install\n\npagein service install --yes\n\npagein service uninstall --yes",
    )
    service.command(epilog="Example: pagein service install --yes")(install)
    service.command(epilog="Example: pagein service uninstall --yes")(uninstall)
    service.command(epilog="Example: pagein service status")(status)
    app.add_typer(service, name="service", rich_help_panel="Serve")


def install(*, yes: Yes = False, as_json: AsJson = False) -> None:
    """Write the service's definition into your own folder, and start it. Only shows it without --yes.

    It reads your settings (`pagein config`), but no variables of this shell.
    """
    service = _service()
    before = _text(service)
    if before is not None and not service.is_ours(before):
        raise BadInput(f"{service.file} is there already, and pagein did not write it; move it away, and try again")
    wrote = yes and before != service.text
    if wrote:
        service.file.parent.mkdir(mode=_FOLDER, parents=True, exist_ok=True)
        service.file.write_text(service.text, encoding="utf-8")
    if yes:
        _call_all(service.starts)
    _tell(service, service.text, service.starts, yes=yes, changed=wrote, as_json=as_json)


def uninstall(*, yes: Yes = False, as_json: AsJson = False) -> None:
    """End the service, and remove its definition. Only shows what would be done without --yes."""
    service = _service()
    before = _text(service)
    if before is None:
        _tell(service, "", (), yes=True, changed=False, as_json=as_json)
        return
    if not service.is_ours(before):
        raise BadInput(f"{service.file} was not written by pagein, and stays as it is")
    if yes:
        _call_all(service.ends)
        service.file.unlink()
    _tell(service, before, service.ends, yes=yes, changed=yes, as_json=as_json)


def status(*, as_json: AsJson = False) -> None:
    """Show whether the service is installed, and whether it runs."""
    service = _service()
    is_there = _text(service) is not None
    runs = is_there and _call(service.asks) == ""
    if as_json:
        sys.stdout.write(json.dumps({"file": str(service.file), "installed": is_there, "running": runs}) + "\n")
    elif not is_there:
        sys.stdout.write("not installed; pagein service install shows what it would write\n")
    else:
        sys.stdout.write(f"{'running' if runs else 'installed, but not running'}: {service.file}\n")
    if not runs:
        raise typer.Exit(_RESTING)


def _service() -> "UserService":
    from pagein.installation.user_service import user_service

    command = [sys.executable, "-P", "-m", "pagein", "serve"]
    return user_service(sys.platform, Path.home(), os.environ, command, os.getuid())


def _text(service: "UserService") -> str | None:
    try:
        return service.file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def _call_all(commands: Sequence[Sequence[str]]) -> None:
    for command in commands:
        if problem := _call(command):
            raise BadSetting(f"{shlex.join(command)} failed: {problem}; call it yourself when that is mended")


def _call(command: Sequence[str]) -> str:
    """Return why a command failed, "" if it did not."""
    program = shutil.which(command[0])
    if program is None:
        return f"there is no {command[0]} here"
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)  # noqa: S603 -- of the system's own
    return "" if done.returncode == 0 else done.stderr.strip() or f"it ended with {done.returncode}"


def _tell(
    service: "UserService", text: str, commands: Sequence[Sequence[str]], *, yes: bool, changed: bool, as_json: bool
) -> None:
    from pagein.ui.figures import plain

    lines = [shlex.join(command) for command in commands]
    if as_json:
        told = {"file": str(service.file), "changed": changed, "text": text, "commands": lines}
        sys.stdout.write(json.dumps(told) + "\n")
        return
    if not text:
        sys.stdout.write("nothing to do: the service is not installed\n")
        return
    called = "called" if yes else "would call"
    sys.stdout.write(f"{plain(str(service.file))}\n\n{text}\n")
    sys.stdout.write("".join(f"{called} {line}\n" for line in lines))
    if not yes:
        sys.stdout.write("nothing was done; --yes does it\n")
