"""Read requests incrementally, and detect clients that change their whole conversation from call to call.

Rules of this file
------------------
1. A client that changes its first messages from call to call gets nothing from a cache, and the journal would hold
   every call of it in full. After a few such calls in a row its requests are passed through, until a request continues
   the one before.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pagein.engine.intake.message_chain import Transcript, Unit, alike, transcript
from pagein.engine.intake.message_digests import KnownMessages, match_messages, messages_of
from pagein.engine.log.gc_pause import pause_collection
from pagein.model.entries import EntryId
from pagein.providers.wire.request_body import Envelope

_BRANCHES: Final = 8
_MOVED: Final = 3  # messages at the end of a request whose cache breakpoints the next request may change
_NEWS: Final = 24  # most new messages of an ordinary call
_MOST_RETOLD: Final = 4.0
_FORGOTTEN: Final = 0.9


class RequestReader:
    """Read the requests of a session. Not thread-safe.

    known: messages that an earlier process decoded.
    breaks: messages after which the journal was broken; may grow.
    """

    def __init__(self, known: KnownMessages | None = None, breaks: Mapping[EntryId, int] | None = None) -> None:
        self._breaks = {} if breaks is None else breaks
        self._broken = sum(self._breaks.values())
        self._scripts: list[Transcript] = []
        self._known = known
        self._goes_on = False
        self._retold = 0.0

    def read(self, envelope: Envelope) -> Transcript:
        """Return the messages of a request. Raises BadInput for an unreadable message."""
        broken = sum(self._breaks.values())
        if broken != self._broken:  # a break changes the names
            self._scripts, self._known, self._broken = [], None, broken
        before, shared = self._most_alike(envelope.items)
        if before is None and self._known is not None:
            with pause_collection():
                before = match_messages(self._known, envelope)
            shared = 0 if before is None else len(before.items)
            self._known = None
            self._scripts = [] if before is None else [before]
        script = transcript(envelope.items, envelope.api, before, shared, self._breaks)
        self._goes_on = before is not None and _goes_on(shared, before)
        if before is not None and self._goes_on:
            self._scripts.remove(before)
        self._scripts = [script, *self._scripts[: _BRANCHES - 1]]
        return script

    def snapshot_values(self, last: EntryId) -> KnownMessages | None:
        """Return the digests of a recently read request, for a later process.

        Returns None for an unknown request.

        last: name of its last message.
        """
        script = next((one for one in self._scripts if one.units and one.units[-1].name == last), None)
        return None if script is None else messages_of(script)

    def is_retold(self, units: Sequence[Unit], known: int) -> bool:
        """Return whether the newest request rephrases its conversation, like earlier requests."""
        if len(units) - known <= _NEWS:
            self._retold *= _FORGOTTEN
            return False
        self._retold += 1 - known / len(units)
        return self._retold > _MOST_RETOLD and not self._goes_on

    def _most_alike(self, items: Sequence[bytes]) -> tuple[Transcript | None, int]:
        """Return the earlier request with most shared messages, and their number."""
        best, most = None, 0
        for one in self._scripts:
            shared = alike(items, one.raws)
            if shared > most:
                best, most = one, shared
            if shared and _goes_on(shared, one):
                break
        return best, most


def _goes_on(shared: int, before: Transcript) -> bool:
    return shared >= len(before.items) - _MOVED
