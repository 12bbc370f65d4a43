"""The gateway as a user service: a systemd unit on Linux, a launchd agent on macOS."""

import plistlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_NAME: Final = "pagein.service"
_LABEL: Final = "pagein.gateway"
_MARK: Final = "written by pagein service install"


@dataclass(frozen=True, slots=True)
class UserService:
    """A service that starts with the user's session, and again after a failure.

    file: its definition. text: the content of that file.
    starts, ends: commands that start and end it; both succeed if that is already done
    asks: the command whose exit status 0 says that it runs
    """

    file: Path
    text: str
    starts: tuple[tuple[str, ...], ...]
    ends: tuple[tuple[str, ...], ...]
    asks: tuple[str, ...]

    def is_ours(self, text: str) -> bool:
        """Return whether a definition was written by pagein."""
        return _MARK in text


def user_service(
    platform: str, home: Path, environment: Mapping[str, str], command: Sequence[str], user: int
) -> UserService:
    """Return the service of this platform (`sys.platform`).

    command: starts the gateway
    user: number of the user
    """
    return _launchd(home, command, user) if platform == "darwin" else _systemd(home, environment, command)


def _systemd(home: Path, environment: Mapping[str, str], command: Sequence[str]) -> UserService:
    folder = Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "systemd" / "user"
    text = f"""# {_MARK}; pagein service uninstall removes it
[Unit]
Description=pagein gateway

[Service]
WorkingDirectory=%h
ExecStart={" ".join(map(_quoted, command))}
Restart=on-failure
RestartSec=1

[Install]
WantedBy=default.target
"""
    of_user = ("systemctl", "--user")
    return UserService(
        folder / _NAME,
        text,
        ((*of_user, "daemon-reload"), (*of_user, "enable", "--now", _NAME)),
        ((*of_user, "disable", "--now", _NAME),),
        (*of_user, "--quiet", "is-active", _NAME),
    )


def _launchd(home: Path, command: Sequence[str], user: int) -> UserService:
    file = home / "Library" / "LaunchAgents" / f"{_LABEL}.plist"
    told = {
        "Label": _LABEL,
        "ProgramArguments": list(command),
        "WorkingDirectory": str(home),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
    }
    text = plistlib.dumps(told, sort_keys=False).decode()
    head, _, rest = text.partition("\n")
    return UserService(
        file,
        f"{head}\n<!-- {_MARK}; pagein service uninstall removes it -->\n{rest}",
        (("launchctl", "bootstrap", f"gui/{user}", str(file)),),
        (("launchctl", "bootout", f"gui/{user}/{_LABEL}"),),
        ("launchctl", "print", f"gui/{user}/{_LABEL}"),
    )


def _quoted(word: str) -> str:
    """Return a word of a command as systemd reads it."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'
