"""Keep an index of symbols up to the files of its folder during work: a background thread reacts to file system events.

The events are those of `folder_watch.py`. They only name paths to look at; what changed is found by reading the files. As events may be
lost, all files are looked at again from time to time.
"""

import threading
import time
from typing import Final

from pagein.errors import AbortedOperation
from pagein.workspace.folder_watch import folder_events
from pagein.workspace.symbols.symbol_index import SymbolIndex

_ANEW: Final = 600.0
_UNWATCHED: Final = 15.0


class SymbolWatch:
    """Keeps an index up to date until `stop`. `start` and `stop` are called once each."""

    def __init__(self, index: SymbolIndex) -> None:
        self._index = index
        self._stopped = threading.Event()
        self._armed = threading.Event()
        self._thread: threading.Thread | None = None
        self.trouble: Exception | None = None
        """The last failure of the watch itself; then all files are looked at periodically."""

    def start(self, timeout: float | None = 30.0) -> bool:
        """Start the watch. Return once all files were looked at, or False after `timeout` seconds."""
        self._thread = threading.Thread(target=self._run, name="pagein symbol watch", daemon=True)
        self._thread.start()
        return self._armed.wait(timeout)

    def stop(self, timeout: float | None = 10.0) -> bool:
        """Stop the watch, and a look that is under way. Return whether the thread ended within `timeout` seconds."""
        self._stopped.set()
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._watch()
            except AbortedOperation:
                return
            except (OSError, RuntimeError) as problem:
                self.trouble = problem
                self._stopped.wait(min(_ANEW, _UNWATCHED))

    def _watch(self) -> None:
        looked: float | None = None
        for paths in folder_events(self._index.tree.root, self._stopped):
            now = time.monotonic()
            if looked is None or now - looked >= _ANEW:
                self._index.refresh(self._stopped)
                looked = now
                self._armed.set()
            elif paths:
                self._index.update(paths, self._stopped)
