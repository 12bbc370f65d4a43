"""Remember the contents of recent questions, so that the next question about a content reads the provider's cache.

Rules of this file
------------------
1. The first question about a content writes nothing: most contents are asked about once, and a write costs a quarter more.
   The second question writes, later questions read. Where the provider caches by itself, already the first question writes.
2. Questions that arrive during a write wait for it: a cache entry is readable only once the answer that wrote it has begun.
3. Only hashes are held, and for as long as the provider keeps an entry. Thread-safe: operations have event loops of their own.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

Role: TypeAlias = Literal["plain", "write", "wait", "read"]
"""What a question does: neither write nor read, write, wait for a writer, or read."""
LIFETIME: Final = 300.0
"""Seconds for which an entry is kept after its last use."""
_MOST: Final = 4_096


@dataclass(frozen=True, slots=True)
class _Content:
    used: float
    is_written: bool = False
    writers: int = 0


class AskedContents:
    """The contents of recent questions, by a key of content and model. clock: monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[bytes, _Content] = {}
        self._lock = threading.Lock()

    def begin(self, key: bytes, *, writes_always: bool = False) -> Role:
        """Return the role of a question that begins now. A writer must call `end`.

        writes_always: whether the provider caches by itself.
        """
        now = self._clock()
        with self._lock:
            known = self._known.pop(key, None)
            if known is not None and not known.writers and now - known.used > LIFETIME:
                known = None
            role = _role(known, writes_always=writes_always)
            before = known or _Content(now)
            self._known[key] = replace(before, used=now, writers=before.writers + (role == "write"))
            if len(self._known) > _MOST:
                del self._known[next(iter(self._known))]
        return role

    def end(self, key: bytes, *, is_written: bool) -> None:
        """End a writing question. is_written: whether an answer came, and the cache has the content."""
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known[key] = _Content(self._clock(), known.is_written or is_written, max(0, known.writers - 1))

    def is_being_written(self, key: bytes) -> bool:
        """Return whether a writing question still waits for an answer."""
        with self._lock:
            known = self._known.get(key)
            return known is not None and known.writers > 0


def _role(known: _Content | None, *, writes_always: bool) -> Role:
    if known is None:
        return "write" if writes_always else "plain"
    if known.is_written:
        return "read"
    return "wait" if known.writers else "write"


PROCESS_CONTENTS: Final = AskedContents()
"""The contents of this process."""
