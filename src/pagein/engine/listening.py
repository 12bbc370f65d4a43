"""Requests as they come: read by what they have in common with those before, and watched for clients that say everything anew.

Rules of this file
------------------
1. A client that changes its first messages from call to call leaves nothing to a cache, and every call of it would be journaled
   whole. After a few such calls in a row its requests are passed as they are, until one goes on from the one before.
"""

from collections.abc import Sequence
from typing import Final

from pagein.engine.chain import Transcript, Unit, shared_items, transcript
from pagein.providers.wire.request import Envelope

_BRANCHES: Final = 8
_MOVED: Final = 3  # messages at the end of a request that its successor may hold with other marks
_NEWS: Final = 24  # messages that may be new in a call without being the whole conversation
_MOST_RETOLD: Final = 4.0
_FORGOTTEN: Final = 0.9


class Listening:
    """The requests of one session. Called by one thread at a time."""

    def __init__(self) -> None:
        self._scripts: list[Transcript] = []
        self._goes_on = False
        self._retold = 0.0

    def read(self, envelope: Envelope) -> Transcript:
        """The messages of a request. Raises BadInput where one cannot be read."""
        before = self._most_alike(envelope.items)
        script = transcript(envelope.items, envelope.api, before)
        self._goes_on = before is not None and _goes_on(envelope.items, before)
        if before is not None and self._goes_on:
            self._scripts.remove(before)
        self._scripts = [script, *self._scripts[: _BRANCHES - 1]]
        return script

    def is_retold(self, units: Sequence[Unit], known: int) -> bool:
        """Whether the request that was read last says its conversation anew, as the ones before it did."""
        if len(units) - known <= _NEWS:
            self._retold *= _FORGOTTEN
            return False
        self._retold += 1 - known / len(units)
        return self._retold > _MOST_RETOLD and not self._goes_on

    def _most_alike(self, items: Sequence[bytes]) -> Transcript | None:
        best, most = None, 0
        for one in self._scripts:
            shared = shared_items(items, one)
            if shared > most:
                best, most = one, shared
            if shared and _goes_on(items, one):
                break
        return best


def _goes_on(items: Sequence[bytes], before: Transcript) -> bool:
    return shared_items(items, before) >= len(before.items) - _MOVED
