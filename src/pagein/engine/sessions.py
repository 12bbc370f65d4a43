"""The sessions of an engine that are open in this process.

Rules of this file
------------------
1. One name is one object, as long as anybody holds it.
2. Opening a long session takes a while; nobody waits for that who asks for another one.
3. A session that is kept in a store may be let go when it was idle for longest, and is taken up again from there: it says the same.
   One that holds what could not be kept yet stays.
"""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Final
from weakref import WeakValueDictionary

from pagein.engine.session import Session

MOST_OPEN: Final = 64
"""Sessions that are held; more only while somebody works with them."""
MOST_BYTES: Final = 256 << 20
"""The size of their last requests, together."""


class Sessions:
    """Open sessions by name. Any number of threads may use it.

    keeps: whether sessions can be taken up again. Where not, none is let go.
    """

    def __init__(self, *, keeps: bool, most: int = MOST_OPEN, most_bytes: int = MOST_BYTES) -> None:
        self._keeps = keeps
        self._most = most
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._opening: dict[str, Lock] = {}
        self._open: WeakValueDictionary[str, Session] = WeakValueDictionary()
        self._held: OrderedDict[str, Session] = OrderedDict()

    def get(self, name: str, make: Callable[[], Session]) -> Session:
        """The session of this name, made where none is open. Raises what `make` raises."""
        found, gate = self._found(name)
        if found is not None:
            return found
        with gate:
            found, _ = self._found(name)
            if found is not None:
                return found
            try:
                made = make()
                with self._lock:
                    found = self._open.setdefault(name, made)
                    self._hold(name, found)
            finally:
                self._opening.pop(name, None)
        return found

    def clear(self) -> None:
        """Let go of all."""
        with self._lock:
            self._open.clear()
            self._held.clear()

    def __contains__(self, name: object) -> bool:
        with self._lock:
            return name in self._open

    def __len__(self) -> int:
        """How many are held."""
        with self._lock:
            return len(self._held)

    def _found(self, name: str) -> tuple[Session | None, Lock]:
        with self._lock:
            found = self._open.get(name)
            if found is not None:
                self._hold(name, found)
                return found, self._lock
            return None, self._opening.setdefault(name, Lock())

    def _hold(self, name: str, session: Session) -> None:
        self._held[name] = session
        self._held.move_to_end(name)
        if not self._keeps:
            return
        size = sum(one.size for one in self._held.values())
        for idle in list(self._held)[:-1]:
            if len(self._held) <= self._most and size <= self._most_bytes:
                break
            if self._held[idle].is_kept:
                size -= self._held.pop(idle).size
