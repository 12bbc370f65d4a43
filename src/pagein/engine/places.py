"""Where messages stand in a journal: the entry to go on from behind each, and the request that ended with it.

What follows a message in a journal until the next message (decisions, requests, recalls) belongs to it; the last of these is
where a conversation that goes on behind the message goes on. A compaction belongs to what is said behind it, not to what was
said before: that may go on as if nothing had been. Told by the entries alone, so every process sees the same.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pagein.model.entries import Compacted, Entry, EntryId, Noted, RequestSent, Said

EXCHANGE: Final = "request.exchange"
"""The kind of a note on turns that the client did not see (see `exchanges`)."""

_ROOT: EntryId = ""


class Places:
    """The places of one journal, kept up to date by `learn`."""

    def __init__(self) -> None:
        self._owners: dict[EntryId, EntryId] = {}
        self._stands: dict[EntryId, EntryId] = {}
        self._sent: dict[EntryId, EntryId] = {}
        self._going_on: set[EntryId] = set()
        self.exchanges: dict[EntryId, list[str]] = {}

    @classmethod
    def restored(cls, kept: Mapping[str, Any]) -> "Places":
        """The places that `kept` gave."""
        places = cls()
        places._owners, places._stands, places._sent = kept["owners"], kept["stands"], kept["sent"]
        places._going_on = set(kept["going_on"])
        places.exchanges = kept["exchanges"]
        return places

    def kept(self) -> dict[str, Any]:
        """All of it as plain values, for `restored`."""
        return {
            "owners": dict(self._owners),
            "stands": dict(self._stands),
            "sent": dict(self._sent),
            "going_on": list(self._going_on),
            "exchanges": {name: list(records) for name, records in self.exchanges.items()},
        }

    def learn(self, entries: Iterable[Entry]) -> None:
        """Take in entries, parents first. Those that are known change nothing."""
        for entry in entries:
            if entry.id in self._owners:
                continue
            parent = _ROOT if entry.parent is None else self._owners.get(entry.parent, _ROOT)
            begins = isinstance(entry.body, Said | Compacted)
            owner = self._owners[entry.id] = entry.id if begins else parent
            if isinstance(entry.body, Said):
                self._going_on.add(parent)
            self._stands[owner] = entry.id
            if isinstance(entry.body, RequestSent):
                self._sent[owner] = entry.id
            elif isinstance(entry.body, Noted) and entry.body.kind == EXCHANGE:
                self.exchanges.setdefault(owner, []).append(entry.body.data)

    def __contains__(self, name: EntryId) -> bool:
        """Whether a message of this name was said."""
        return name in self._stands

    def __len__(self) -> int:
        return len(self._owners)

    @property
    def root(self) -> EntryId | None:
        """Where a conversation begins: behind what was noted before any."""
        return self._stands.get(_ROOT)

    def owner(self, entry: EntryId) -> EntryId:
        """The message that an entry belongs to; "" where it stands before all."""
        return self._owners[entry]

    def goes_on(self, name: EntryId) -> bool:
        """Whether something was said behind this message."""
        return name in self._going_on

    def stand(self, name: EntryId) -> EntryId:
        """Where to go on behind this message."""
        return self._stands[name]

    def sent(self, name: EntryId) -> EntryId | None:
        """The request that ended with this message, the last of them where there were several; None where none did."""
        return self._sent.get(name)
