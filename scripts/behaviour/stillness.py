"""A fixed environment: one folder, one clock, no randomness, and only the given settings.

What pagein does depends on the time, on random bytes, on the folder it works in and on the environment. Here each of them is the same in
every run, so that two runs of the same code do the same.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final
from unittest import mock

_NAME: Final = "pagein-behaviour"
_MACHINE: Final = 0x0242AC110002
_START: Final = 1_750_000_000.0


@dataclass
class Clock:
    """A clock that stands still until it is set. It never runs backwards within a scene."""

    at: float = _START

    def now(self) -> float:
        """Seconds since 1970."""
        return self.at

    def begin(self) -> None:
        """A new scene begins, at the time at which each of them begins."""
        self.at = _START

    def set(self, at: float) -> None:
        """It is that late now, or as late as it was."""
        self.at = max(self.at, at)


@dataclass(frozen=True)
class World:
    """Where everything happens. folder: the same path in every run."""

    folder: Path
    clock: Clock = field(default_factory=Clock)

    def scene(self, name: str) -> Path:
        """An empty folder, always the same for a name; the clock is at its beginning."""
        place = self.folder / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        self.clock.begin()
        return place

    @contextlib.contextmanager
    def configured(self, settings: str) -> Iterator[None]:
        """A time in which the user's settings are these, as TOML."""
        file = self.folder / "pagein.toml"
        file.write_text(settings, encoding="utf-8")
        with mock.patch.dict(os.environ, {"PAGEIN_CONFIG": str(file)}):
            yield


def _same_bytes(size: int | None = None) -> bytes:
    return b"\x07" * (size or 32)


def _counted_hex() -> "contextlib.AbstractContextManager[object]":
    numbers = count(1)
    return mock.patch.object(secrets, "token_hex", lambda size=None: f"{next(numbers):0{2 * (size or 32)}x}")


@contextlib.contextmanager
def still_world(top: Path | None = None) -> Iterator[World]:
    """The world, for as long as the context lasts. One at a time: a second run waits for the first. top: None: the one that all share."""
    top = Path(tempfile.gettempdir()).resolve() if top is None else top
    world = World(top / _NAME)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PAGEIN_")}
    home = world.folder / "home"
    told = {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_STATE_HOME": str(home / "state"),
        "COLUMNS": "120",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "TZ": "UTC",
    }
    before = Path.cwd()
    with (top / f"{_NAME}.lock").open("w") as lock, contextlib.ExitStack() as stack:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(world.folder, ignore_errors=True)
        home.mkdir(parents=True)
        stack.enter_context(mock.patch.dict(os.environ, {**kept, **told}, clear=True))
        stack.enter_context(mock.patch.object(time, "time", world.clock.now))
        stack.enter_context(mock.patch.object(secrets, "token_bytes", _same_bytes))
        stack.enter_context(mock.patch.object(uuid, "getnode", return_value=_MACHINE))
        stack.enter_context(_counted_hex())
        time.tzset()
        try:
            yield world
        finally:
            os.chdir(before)
            shutil.rmtree(world.folder, ignore_errors=True)
    time.tzset()
