"""A real PostgreSQL server for tests: made in a private folder, reached through a socket in it, gone afterwards.

The server refuses to run as root. Started by root it runs as the user `postgres`, or as `nobody` where there is none.
"""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pagein.errors import BadInput

_PROGRAMS: Final = ("initdb", "pg_ctl")
_USERS: Final = ("postgres", "nobody")
_MEMORY: Final = "/dev/shm"  # noqa: S108 -- a private folder is made in it
_ROOM: Final = 1 << 30
# What a test loses with its server it does not need, so nothing is waited for on its way to the disk.
_SETTINGS: Final = "-c listen_addresses= -c fsync=off -c full_page_writes=off -c max_connections=60"


def programs() -> Path | None:
    """The folder with the programs of a PostgreSQL server, the newest where there are several; None where there is none."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: one.parent.name.zfill(3), reverse=True)
    named = [Path(found).parent for found in [shutil.which("pg_ctl")] if found]
    for folder in (*debian, *named):
        if all(os.access(folder / program, os.X_OK) for program in _PROGRAMS):
            return folder
    return None


@contextlib.contextmanager
def running_server() -> Iterator[str]:
    """A server of one's own, for as long as the context lasts. Gives its address. Raises BadInput where it cannot be had."""
    folder = programs()
    if folder is None:
        raise BadInput("there is no PostgreSQL server here; install Debian's `postgresql` or its like")
    # Not in pytest's folder: another user must be able to get there. And short, for sockets have short names.
    home = Path(tempfile.mkdtemp(prefix="pagein-pg-", dir=_in_memory()))
    user = _user()
    try:
        if user is not None:
            os.chown(home, user.pw_uid, user.pw_gid)
        _run(
            folder / "initdb",
            "-D",
            str(home / "data"),
            "-A",
            "trust",
            "-U",
            "pagein",
            "-E",
            "UTF8",
            "--no-sync",
            user=user,
        )
        options = f"-k {home} {_SETTINGS}"
        control = folder / "pg_ctl"
        _run(control, "start", "-w", "-D", str(home / "data"), "-l", str(home / "log"), "-o", options, user=user)
        try:
            yield f"host={home} user=pagein dbname=postgres"
        finally:
            # pg_ctl ends the process whose id stands in the folder of this very server
            _run(control, "stop", "-m", "immediate", "-D", str(home / "data"), user=user)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _in_memory() -> str | None:
    """A folder that is kept in memory and has room: a database is thousands of files, to be gone in a minute. None for the usual one."""
    try:
        free = shutil.disk_usage(_MEMORY).free
    except OSError:
        return None
    return _MEMORY if free > _ROOM and os.access(_MEMORY, os.W_OK) else None


def _user() -> pwd.struct_passwd | None:
    """Whom to run the server as: None for oneself."""
    if os.geteuid() != 0:
        return None
    for name in _USERS:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise BadInput(f"a PostgreSQL server does not run as root, and there is no user of these: {', '.join(_USERS)}")


def _run(program: Path, *arguments: str, user: pwd.struct_passwd | None) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C"}
    done = subprocess.run(  # noqa: S603 -- the server's own programs
        [str(program), *arguments],
        env=environment,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        user=None if user is None else user.pw_uid,
        group=None if user is None else user.pw_gid,
        extra_groups=None if user is None else (),
    )
    if done.returncode != 0:
        raise BadInput(f"{program.name} failed: {done.stdout.strip()[-500:]}")
