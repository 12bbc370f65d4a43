"""The token that opens the gateway: one for each user, kept in a file that nobody else can read.

Whoever can read the store can read the token, and nobody else can. It stays the same over restarts, so that links and settings of
agents stay good, and commands of the same user find it in the file.
"""

import os
import re
import secrets
import stat
import tempfile
from pathlib import Path
from typing import Final

from pagein.errors import BadSetting

_NAME: Final = "gateway.token"
_FORM: Final = re.compile(r"[A-Za-z0-9_-]{22,200}")
"""What can stand in a path and in a header as it is, and is too long to be guessed."""
_BYTES: Final = 32
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def default_file() -> Path:
    """Where the user's token is kept. Nothing is made."""
    # imported here: `pagein` itself starts without it
    from platformdirs import user_data_path

    return user_data_path("pagein", appauthor=False) / _NAME


def fresh() -> str:
    """A new token."""
    return secrets.token_urlsafe(_BYTES)


def ensure_token(file: Path) -> str:
    """The token in this file. A new one is made where there is none, or where others than the user may know it.

    Raises BadSetting where it cannot be kept.
    """
    try:
        if found := read_token(file):
            return found
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(file, fresh())
        if found := read_token(file):
            return found
    except OSError as problem:
        raise BadSetting(f"the token cannot be kept in {file}: {problem.strerror or problem}") from problem
    raise BadSetting(f"the token in {file} can be read by others; put pagein's data folder on a disk that has owners")


def read_token(file: Path) -> str:
    """The token in this file; "" where there is none, or where it is not the user's alone."""
    try:
        number = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return ""
    with os.fdopen(number, "rb") as opened:
        if not _is_ours_alone(os.fstat(number)):
            return ""
        text = opened.read(1 << 10).decode("ascii", "replace").strip()
    return text if _FORM.fullmatch(text) else ""


def _write(file: Path, token: str) -> None:
    """Put a token there, whole or not at all. Of several processes that find no file, one has its way."""
    number, name = tempfile.mkstemp(dir=file.parent, prefix=_NAME)  # for the user alone
    made = Path(name)
    try:
        with os.fdopen(number, "w", encoding="ascii") as opened:
            opened.write(token + "\n")
        if file.is_symlink() or file.exists():
            made.replace(file)  # what stood there is known to others, or is no token
            return
        try:
            os.link(made, file)
        except FileExistsError:
            return
        except OSError:  # a disk without hard links
            made.replace(file)
    finally:
        made.unlink(missing_ok=True)


def _is_ours_alone(found: os.stat_result) -> bool:
    if not stat.S_ISREG(found.st_mode):
        return False
    if os.name != "posix":
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & _OTHERS
