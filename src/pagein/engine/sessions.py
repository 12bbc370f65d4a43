"""The open sessions of an engine in this process.

Rules of this file
------------------
1. A name means one object, as long as the object is in use.
2. Opening a long session takes a while; callers of other sessions do not wait for it.
3. A stored session may be closed when it was idle for longest, and is reopened from the store with the same content. A
   session with unsaved entries stays open.
"""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Final
from weakref import WeakValueDictionary

from pagein.engine.session import Session

MOST_OPEN: Final = 64
"""Most sessions that are held open; more only while they are in use."""
MOST_BYTES: Final = 256 << 20
"""Most bytes of their largest requests together."""


class Sessions:
    """Open sessions by name. Thread-safe.

    keeps: True if sessions are stored; otherwise none is closed.
    most: most open sessions.
    end_life: called with the name of a session whose journal was removed, before the session is opened anew.
    """

    def __init__(self, *, keeps: bool, most: int = MOST_OPEN, end_life: Callable[[str], None] = lambda _: None) -> None:
        self._keeps = keeps
        self._end_life = end_life
        self._most = most
        self._lock = Lock()
        self._opening: dict[str, Lock] = {}
        self._open: WeakValueDictionary[str, Session] = WeakValueDictionary()
        self._held: OrderedDict[str, Session] = OrderedDict()

    def get(self, name: str, make: Callable[[], Session]) -> Session:
        """Return the open session of this name, or open it with `make`. Raises the errors of `make`."""
        found, gate = self._find(name)
        if found is not None:
            return found
        with gate:
            found, _ = self._find(name)
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
        """Close the sessions."""
        with self._lock:
            self._open.clear()
            self._held.clear()

    def __contains__(self, name: object) -> bool:
        with self._lock:
            return name in self._open

    def __len__(self) -> int:
        """Return the number of held sessions."""
        with self._lock:
            return len(self._held)

    def _find(self, name: str) -> tuple[Session | None, Lock]:
        with self._lock:
            found = self._open.get(name)
            if found is not None and found.is_removed:
                self._held.pop(name, None)
                del self._open[name]
                self._end_life(name)
                found = None
            if found is not None:
                self._hold(name, found)
                return found, self._lock
            return None, self._opening.setdefault(name, Lock())

    def _hold(self, name: str, session: Session) -> None:
        self._held[name] = session
        self._held.move_to_end(name)
        if not self._keeps:
            return
        size = sum(one.traffic.largest for one in self._held.values())
        for idle in list(self._held)[:-1]:
            if len(self._held) <= self._most and size <= MOST_BYTES:
                break
            if self._held[idle].is_kept:
                size -= self._held.pop(idle).traffic.largest
