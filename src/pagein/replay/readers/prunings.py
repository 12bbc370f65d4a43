"""Tool results that a host later dropped from its window, told on the result and due at another time."""

import heapq
from collections.abc import Iterator

from pagein.model.messages import HostEvent
from pagein.replay.readers.row_fields import json_text


class Prunings:
    """Holds back what was pruned until the recording reaches the time at which the host did it."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, str]] = []

    def note(self, at: float, call_id: str) -> None:
        """The result of this call was dropped at this time."""
        heapq.heappush(self._waiting, (at, call_id))

    def due(self, now: float | None) -> Iterator[HostEvent]:
        """A `pruned` event for all that was dropped up to now (None: the end), each time once."""
        while self._waiting and (now is None or self._waiting[0][0] <= now):
            at, first = heapq.heappop(self._waiting)
            calls = [first]
            while self._waiting and self._waiting[0][0] == at:
                calls.append(heapq.heappop(self._waiting)[1])
            yield HostEvent("pruned", at, json_text({"call_ids": calls}))
