"""The user's access token for the gateway, stored in a file readable by the user alone.

The token has the same protection as the store. It stays the same over restarts, so that links and settings of agents stay valid, and
commands of the same user read it from the file.
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
"""Form of a token: safe in paths and headers, and too long to guess."""
_BYTES: Final = 32
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def default_file() -> Path:
    """Return the default path of the user's token file. Creates nothing."""
    # imported here so that `import pagein` stays cheap
    from platformdirs import user_data_path

    return user_data_path("pagein", appauthor=False) / _NAME


def fresh() -> str:
    """Return a new token."""
    return secrets.token_urlsafe(_BYTES)


def ensure_token(file: Path) -> str:
    """Return the token in this file. Create a new token if there is none, or if other users may know it.

    Raises BadSetting if the token cannot be stored.
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
    """Return the token in this file; "" if missing, or if other users can read the file."""
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
    """Write a token file atomically. If several processes find no file, the first wins."""
    number, name = tempfile.mkstemp(dir=file.parent, prefix=_NAME)  # readable by the user alone
    made = Path(name)
    try:
        with os.fdopen(number, "w", encoding="ascii") as opened:
            opened.write(token + "\n")
        if file.is_symlink() or file.exists():
            made.replace(file)  # the old content is known to others, or is not a token
            return
        try:
            os.link(made, file)
        except FileExistsError:
            return
        except OSError:  # a file system without hard links
            made.replace(file)
    finally:
        made.unlink(missing_ok=True)


def _is_ours_alone(found: os.stat_result) -> bool:
    if not stat.S_ISREG(found.st_mode):
        return False
    if os.name != "posix":
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & _OTHERS
