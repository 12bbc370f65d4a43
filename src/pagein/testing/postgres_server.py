"""A real PostgreSQL server for tests: in a private folder, reachable by a socket there, removed afterwards.

The server refuses to run as root. Started by root, it runs as the user `postgres`, or else as `nobody`.
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
# A test needs no data after a crash of its server, so no write waits for the disk.
_SETTINGS: Final = "-c listen_addresses= -c fsync=off -c full_page_writes=off -c max_connections=60"


def programs() -> Path | None:
    """Return the folder with the programs of the newest PostgreSQL server here, or None."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: one.parent.name.zfill(3), reverse=True)
    named = [Path(found).parent for found in [shutil.which("pg_ctl")] if found]
    for folder in (*debian, *named):
        if all(os.access(folder / program, os.X_OK) for program in _PROGRAMS):
            return folder
    return None


@contextlib.contextmanager
def running_server() -> Iterator[str]:
    """Run a private server inside the context, and yield its address. Raises BadInput if none can be started."""
    folder = programs()
    if folder is None:
        raise BadInput("there is no PostgreSQL server here; install Debian's `postgresql` or its like")
    # Not in pytest's folder: another user must have access. And short, because names of sockets are short.
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
            # pg_ctl ends the process whose id is in the folder of this server
            _run(control, "stop", "-m", "immediate", "-D", str(home / "data"), user=user)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _in_memory() -> str | None:
    """Return a folder in memory with enough room, or None for the usual one: a database is thousands of short-lived
    files.
    """
    try:
        free = shutil.disk_usage(_MEMORY).free
    except OSError:
        return None
    return _MEMORY if free > _ROOM and os.access(_MEMORY, os.W_OK) else None


def _user() -> pwd.struct_passwd | None:
    """Return the user for the server process; None for the current one."""
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
