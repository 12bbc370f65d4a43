"""The trajectory: a log of pagein's own operations, one JSON object a line.

Rules of this file
------------------
1. A line is appended in one write, under a lock between processes, so lines of several writers never mix.
2. A line that a dying process left half-written is ended before the next line.
3. A file about to exceed its limit is moved aside, and the oldest file is deleted.
4. Only the user can read the files. They hold ids, counts and arguments, but no content of objects and no key.
5. A failure of the log never fails an operation. The reason of the last failure is remembered (law 7).
"""

import contextlib
import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pagein.policy.privacy.exclusions import keys_in, without_in_json

Operation: TypeAlias = Literal[
    "externalize", "force_externalize", "search", "ingest", "peek", "stats", "toggle_on", "toggle_off"
]

SUFFIX: Final = ".trajectory.jsonl"
"""Suffix of the log's name; the rest is the name of the store beside it."""
LARGEST: Final = 10_000_000
"""Default limit of one file, in bytes."""
KEPT: Final = 3
"""Default number of older files."""
_ATTEMPTS: Final = 1000


class Trajectory:
    """The log in one file. Any thread and several processes may write at once.

    path: the file.
    now: returns seconds since 1970.
    largest: limit of the file in bytes.
    kept: number of older files beside it, named `FILE.1` (the newest) and so on.
    """

    def __init__(self, path: Path, now: Callable[[], float], *, largest: int = LARGEST, kept: int = KEPT) -> None:
        self._path = path
        self._now = now
        self._largest = largest
        self._kept = kept
        self._lock = threading.Lock()
        self._failure: str | None = None

    @property
    def failure(self) -> str | None:
        """The reason why the last line is not in the log; None after a success."""
        return self._failure

    def operation(
        self,
        operation: Operation,
        *,
        session: str,
        objects: Sequence[str] = (),
        details: Mapping[str, object] | None = None,
        took: float = 0.0,
    ) -> None:
        """Log one operation. Never raises.

        took: duration in seconds.
        """
        record: dict[str, object] = {"kind": "operation", "operation": operation, "session": session}
        if objects:
            record["objectIds"] = list(objects)
        if details:
            record["details"] = dict(details)
        self.append({**record, "wallClockMs": round(took * 1000, 3)})

    def append(self, record: Mapping[str, object]) -> None:
        """Log any record with a `timestamp` in milliseconds since 1970. Never raises."""
        try:
            timed = {**record, "timestamp": round(self._now() * 1000)}
            # ASCII: half a surrogate pair in a pattern must not cost the line
            text = json.dumps(timed, separators=(",", ":"), default=str)
            line = (without_in_json(text, keys_in) if keys_in(text) else text).encode() + b"\n"
            with self._lock, self._open_locked(len(line)) as file:
                _write(file, line)
        except (OSError, ValueError, RecursionError) as problem:
            self._failure = f"{type(problem).__name__}: {problem}"
        else:
            self._failure = None

    @contextlib.contextmanager
    def _open_locked(self, room: int) -> Iterator[int]:
        """Yield the locked file with room for this many bytes."""
        for _ in range(_ATTEMPTS):
            file = self._open()
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                if not self._is_current(file):
                    continue  # another process moved it aside while we waited
                size = os.fstat(file).st_size
                if size and size + room > self._largest:
                    self._move_aside()
                    continue
                yield file
                return
            finally:
                os.close(file)
        raise OSError(f"{self._path} was moved aside {_ATTEMPTS} times in a row")

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return os.open(self._path, flags, 0o600)
        except FileNotFoundError:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self._path, flags, 0o600)

    def _is_current(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), self._path.stat())
        except FileNotFoundError:
            return False

    def _move_aside(self) -> None:
        names = [self._path, *(self._path.with_name(f"{self._path.name}.{n}") for n in range(1, self._kept + 1))]
        for older, newer in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
            with contextlib.suppress(FileNotFoundError):
                newer.replace(older)
        if not self._kept:
            self._path.unlink()


def _write(file: int, line: bytes) -> None:
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        line = b"\n" + line
    while line:
        line = line[os.write(file, line) :]
