"""Tool results dropped by a host from its window: recorded with the result, effective at a later time."""

import heapq
from collections.abc import Iterator

from pagein.model.messages import HostEvent
from pagein.replay.readers.row_fields import json_text


class Prunings:
    """Holds prunings back until the recording reaches their time."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, str]] = []

    def note(self, at: float, call_id: str) -> None:
        """Record the time at which the result of this call was dropped."""
        heapq.heappush(self._waiting, (at, call_id))

    def due(self, now: float | None) -> Iterator[HostEvent]:
        """Yield a `pruned` event for each time of a drop up to now (None: the end)."""
        while self._waiting and (now is None or self._waiting[0][0] <= now):
            at, first = heapq.heappop(self._waiting)
            calls = [first]
            while self._waiting and self._waiting[0][0] == at:
                calls.append(heapq.heappop(self._waiting)[1])
            yield HostEvent("pruned", at, json_text({"call_ids": calls}))
