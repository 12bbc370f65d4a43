"""Where messages stand in a journal: the entry to go on from behind each, and the request that ended with it.

What follows a message in a journal until the next message (decisions, requests, recalls) belongs to it; the last of these is
where a conversation that goes on behind the message goes on. An entry that only stands in the place of a lost one (`bridge`) counts as said, for
what was said behind it is there. A compaction belongs to what is said behind it, not to what was
said before: that may go on as if nothing had been. Where a conversation was broken (`BROKEN`) it goes on too: what was said behind
that place is said anew. Told by the entries alone, so every process sees the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pagein.model.entries import CompactionEntry, Entry, EntryId, MessageEntry, NoteEntry, RequestSent, is_bridge

EXCHANGE: Final = "request.exchange"
"""The kind of a note on turns that the client did not see (see `exchanges`)."""
BROKEN: Final = "request.broken"
"""The kind of a note that messages said behind here were lost, and cannot be put back: from here on all is said anew."""

_ROOT: EntryId = ""


class MessageIndex:
    """The places of one journal, kept up to date by `learn`."""

    def __init__(self) -> None:
        self._owners: dict[EntryId, EntryId] = {}
        self._stands: dict[EntryId, EntryId] = {}
        self._sent: dict[EntryId, EntryId] = {}
        self._going_on: set[EntryId] = set()
        self._lost: dict[EntryId, EntryId | None] = {}
        self.exchanges: dict[EntryId, list[str]] = {}
        self.breaks: dict[EntryId, int] = {}

    @classmethod
    def restore_values(cls, kept: Mapping[str, Any]) -> "MessageIndex":
        """The places that `kept` gave."""
        places = cls()
        places._owners, places._stands, places._sent = kept["owners"], kept["stands"], kept["sent"]
        places._going_on, places._lost = set(kept["going_on"]), kept["lost"]
        places.exchanges, places.breaks = kept["exchanges"], kept["breaks"]
        return places

    def snapshot_values(self) -> dict[str, Any]:
        """All of it as plain values, for `restored`."""
        return {
            "owners": dict(self._owners),
            "stands": dict(self._stands),
            "sent": dict(self._sent),
            "going_on": list(self._going_on),
            "lost": dict(self._lost),
            "breaks": dict(self.breaks),
            "exchanges": {name: list(records) for name, records in self.exchanges.items()},
        }

    def learn(self, entries: Iterable[Entry]) -> None:
        """Take in entries, parents first. Those that are known change nothing."""
        for entry in entries:
            if entry.id in self._owners:
                continue
            parent = _ROOT if entry.parent is None else self._owners.get(entry.parent, _ROOT)
            begins = isinstance(entry.body, MessageEntry | CompactionEntry)
            owner = self._owners[entry.id] = entry.id if begins else parent
            if isinstance(entry.body, MessageEntry):
                self._going_on.add(parent)
            self._stands[owner] = entry.id
            if is_bridge(entry):
                self._lost[entry.id] = entry.parent
            if isinstance(entry.body, RequestSent):
                self._sent[owner] = entry.id
            elif isinstance(entry.body, NoteEntry) and entry.body.kind == EXCHANGE:
                self.exchanges.setdefault(owner, []).append(entry.body.data)
            elif isinstance(entry.body, NoteEntry) and entry.body.kind == BROKEN:
                self.breaks[owner] = self.breaks.get(owner, 0) + 1

    @property
    def has_lost(self) -> bool:
        """Whether anything was lost, as far as that is known."""
        return bool(self._lost)

    def lost(self, names: Sequence[EntryId]) -> list[tuple[int, EntryId | None]]:
        """Which of these messages, each said behind the one before it, were lost, and the entry that each stood behind.

        Not those of which that is not known: what they stood behind was lost with them.
        """
        found = []
        for place, name in enumerate(names):
            parent = self._lost.get(name)
            owner = _ROOT if parent is None else self._owners[parent]
            if name in self._lost and owner == (names[place - 1] if place else _ROOT):
                found.append((place, parent))
        return found

    def first_lost(self, names: Sequence[EntryId]) -> int | None:
        """The first of these messages that was lost, None where all are there."""
        return next((place for place, name in enumerate(names) if name in self._lost or name not in self._stands), None)

    def mended(self, name: EntryId) -> None:
        """What was lost under this name is there again."""
        parent = self._lost.pop(name)
        self._going_on.add(_ROOT if parent is None else self._owners[parent])

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

    def request_at(self, name: EntryId) -> EntryId | None:
        """The request that ended with this message, the last of them where there were several; None where none did."""
        return self._sent.get(name)
