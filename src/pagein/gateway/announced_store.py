"""The store of each running gateway, announced in the user's data folder, so that commands find it from any folder.

A gateway holds a lock on its file while it runs. A file without a lock is of a gateway that was killed, and is removed.
"""

import contextlib
import fcntl
import json
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

_SUFFIX: Final = ".gateway"
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_LONGEST: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class AnnouncedStore:
    """The store of a running gateway.

    store: path of its file, or address of its database without a password.
    workspace: the folder that the gateway was started for.
    url: address of the gateway.
    since: start of the gateway, seconds since 1970.
    settings: fingerprint of the settings that it was started with; "" for a gateway of an older version.
    lease: path of the file whose holders keep it running (`gateway.launch.lease`); "" for a gateway that a user ends.
    is_open: whether other machines reach it, so that every call needs its token.
    """

    store: str
    workspace: str
    url: str
    since: float
    settings: str = ""
    lease: str = ""
    is_open: bool = False


def default_folder() -> Path:
    """Return the default folder of announcements. Creates nothing."""
    # imported here so that `import pagein` stays cheap
    from platformdirs import user_data_path

    return user_data_path("pagein", appauthor=False) / "gateways"


@contextlib.contextmanager
def announce(folder: Path, told: AnnouncedStore) -> Iterator[None]:
    """Announce a store until the context ends. Raises OSError if the file cannot be written."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=folder, prefix="begun-")  # readable by the user alone
    path = Path(name)
    with os.fdopen(number, "w", encoding="utf-8") as opened:
        try:
            fcntl.flock(number, fcntl.LOCK_EX)
            json.dump(asdict(told), opened)
            opened.flush()
            path = path.rename(path.with_suffix(_SUFFIX))  # with the lock, so that nobody takes it for an old one
            yield
        finally:
            path.unlink(missing_ok=True)


def running_stores(folder: Path) -> Sequence[AnnouncedStore]:
    """Return the stores of the running gateways of this user, the gateway that was started last first."""
    try:
        files = sorted(folder.glob(f"*{_SUFFIX}"))
    except OSError:
        return ()
    found = [told for file in files if (told := _read(file)) is not None]
    return sorted(found, key=lambda one: one.since, reverse=True)


def nearest_store(found: Sequence[AnnouncedStore], folder: str) -> AnnouncedStore | None:
    """Return the store of the gateway for this folder or for the nearest folder above it, else that of the newest gateway."""
    above = [one for one in found if Path(folder).is_relative_to(one.workspace)]
    return max(above, key=lambda one: len(one.workspace), default=found[0] if found else None)


def _read(file: Path) -> AnnouncedStore | None:
    try:
        number = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(number, "rb") as opened:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & _OTHERS:
            return None  # somebody else may have written it
        try:
            fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return _decode(opened.read(_LONGEST))
        with contextlib.suppress(OSError):
            file.unlink()
    return None


def _decode(data: bytes) -> AnnouncedStore | None:
    try:
        told = json.loads(data)
    except ValueError:
        return None
    match told:
        case {"store": str(store), "workspace": str(workspace), "url": str(url), "since": float(since)}:
            settings, lease = str(told.get("settings", "")), str(told.get("lease", ""))
            return AnnouncedStore(store, workspace, url, since, settings, lease, told.get("is_open") is True)
    return None
