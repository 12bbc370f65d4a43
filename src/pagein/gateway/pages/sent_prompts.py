"""The last sent request of each session, in memory, so that the page can show the bytes."""

from collections import OrderedDict
from threading import Lock
from typing import Final

from pagein.gateway.pages.prompt_picture import SentPrompt

SESSIONS: Final = 64
MOST_KEPT: Final = 64 << 20
"""Limits on the sessions, and on the bytes of their requests in all; the latest request always stays."""


class SentPrompts:
    """Keeps the last request of each session. Callable from any number of threads.

    A request without tools, such as a client's own question for a title, does not replace a request with tools.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._prompts: OrderedDict[str, tuple[SentPrompt, bool]] = OrderedDict()
        self._size = 0
        self._forgettings = 0

    def add(self, session: str, sent: SentPrompt, *, has_tools: bool) -> None:
        """Keep an answered request."""
        with self._lock:
            before = self._prompts.get(session)
            if before is not None and before[1] and not has_tools:
                return
            self._size -= len(before[0].body) if before is not None else 0
            self._prompts[session] = (sent, has_tools)
            self._prompts.move_to_end(session)
            self._size += len(sent.body)
            while len(self._prompts) > SESSIONS or (self._size > MOST_KEPT and len(self._prompts) > 1):
                self._size -= len(self._prompts.popitem(last=False)[1][0].body)

    def of(self, session: str) -> SentPrompt | None:
        """Return the last request of a session; None if unknown, or dropped since."""
        with self._lock:
            found = self._prompts.get(session)
        return None if found is None else found[0]

    def drop_erased(self, forgettings: int) -> None:
        """Drop every request if texts were erased from the store since the last look.

        forgettings: how often texts were erased so far
        """
        with self._lock:
            if forgettings != self._forgettings:
                self._prompts.clear()
                self._size, self._forgettings = 0, forgettings
