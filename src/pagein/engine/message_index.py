"""The messages of a journal and their places, kept up to date with every entry."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pagein.model.entries import CompactionEntry, Entry, EntryId, MessageEntry, NoteEntry, RequestSent, is_bridge
from pagein.model.journal_notes import BrokenNote, ExchangeNote
from pagein.model.note_forms import kind_of

_ROOT: EntryId = ""
_PLACED: Final = (kind_of(ExchangeNote), kind_of(BrokenNote))
_ABSENT: Final = object()


class MessageIndex:
    """The messages of one journal and their places, kept up to date by `learn`.

    stands: the entry where the conversation continues after each message. Read it only, as the others.
    owners: the message that each entry belongs to; "" before the first message.
    lost_messages: the parents of lost messages.
    going_on: messages that another message follows.
    """

    def __init__(self) -> None:
        self.owners: dict[EntryId, EntryId] = {}
        self.stands: dict[EntryId, EntryId] = {}
        self._sent: dict[EntryId, EntryId] = {}
        self.going_on: set[EntryId] = set()
        self.lost_messages: dict[EntryId, EntryId | None] = {}
        self.exchanges: dict[EntryId, list[ExchangeNote]] = {}
        self.breaks: dict[EntryId, int] = {}
        self._before: dict[EntryId, tuple[bool, tuple[Any, ...]]] = {}

    @classmethod
    def restore_values(cls, kept: Mapping[str, Any]) -> "MessageIndex":
        """Rebuild an index from `snapshot_values`."""
        places = cls()
        places.owners, places.stands, places._sent = kept["owners"], kept["stands"], kept["sent"]
        places.going_on, places.lost_messages = set(kept["going_on"]), kept["lost"]
        places.exchanges, places.breaks = kept["exchanges"], kept["breaks"]
        return places

    def snapshot_values(self) -> dict[str, Any]:
        """Return the index as plain values, for `restore_values`."""
        return {
            "owners": dict(self.owners),
            "stands": dict(self.stands),
            "sent": dict(self._sent),
            "going_on": list(self.going_on),
            "lost": dict(self.lost_messages),
            "breaks": dict(self.breaks),
            "exchanges": {name: list(records) for name, records in self.exchanges.items()},
        }

    def begin_turn(self) -> None:
        """Remember from now on what changes, for `take_back`, in place of what changed before."""
        self._before = {}

    def take_back(self) -> None:
        """Undo the changes since `begin_turn`, in place, because others read the mappings."""
        for name, (is_followed, values) in self._before.items():
            (self.going_on.add if is_followed else self.going_on.discard)(name)
            for held, value in zip(self._mappings(), values, strict=True):
                held.pop(name, None)
                if value is not _ABSENT:
                    held[name] = value
        self._before = {}

    def _remember(self, name: EntryId) -> None:
        """Remember what is known of a name, before it changes."""
        if name not in self._before:
            values = tuple(held.get(name, _ABSENT) for held in self._mappings())
            kept = tuple([*value] if isinstance(value, list) else value for value in values)
            self._before[name] = name in self.going_on, kept

    def _mappings(self) -> tuple[dict[EntryId, Any], ...]:
        return self.owners, self.stands, self._sent, self.lost_messages, self.exchanges, self.breaks

    def learn(self, entries: Iterable[Entry]) -> None:
        """Add entries, parents first. Known entries change nothing."""
        for entry in entries:
            if entry.id in self.owners:
                continue
            parent = _ROOT if entry.parent is None else self.owners.get(entry.parent, _ROOT)
            is_message, is_compaction = isinstance(entry.body, MessageEntry), isinstance(entry.body, CompactionEntry)
            owner = entry.id if is_message or is_compaction else parent
            for name in {entry.id, parent}:
                self._remember(name)
            self.owners[entry.id] = owner
            if is_message:
                self.going_on.add(parent)
            self.stands[owner] = entry.id
            if is_compaction and is_bridge(entry):
                self.lost_messages[entry.id] = entry.parent
            match entry.body:
                case RequestSent():
                    self._sent[owner] = entry.id
                case NoteEntry(kind=kind) if kind not in _PLACED:
                    continue
                case NoteEntry(note=ExchangeNote() as exchange):
                    self.exchanges.setdefault(owner, []).append(exchange)
                case NoteEntry(note=BrokenNote()):
                    self.breaks[owner] = self.breaks.get(owner, 0) + 1

    def lost(self, names: Sequence[EntryId]) -> list[tuple[int, EntryId | None]]:
        """Return the lost ones among successive messages, as number and parent entry.

        Omits messages whose parent is unknown because the entries before were lost too.
        """
        found = []
        for place, name in enumerate(names):
            parent = self.lost_messages.get(name)
            owner = _ROOT if parent is None else self.owners[parent]
            if name in self.lost_messages and owner == (names[place - 1] if place else _ROOT):
                found.append((place, parent))
        return found

    def first_lost(self, names: Sequence[EntryId]) -> int | None:
        """Return the number of the first lost message, or None."""
        return next(
            (place for place, name in enumerate(names) if name in self.lost_messages or name not in self.stands), None
        )

    def mark_restored(self, name: EntryId) -> None:
        """Record that the lost message of this name is back."""
        parent = self.lost_messages[name]
        owner = _ROOT if parent is None else self.owners[parent]
        for one in (name, owner):
            self._remember(one)
        del self.lost_messages[name]
        self.going_on.add(owner)

    def __contains__(self, name: EntryId) -> bool:
        """Return whether the journal has a message of this name."""
        return name in self.stands

    @property
    def root(self) -> EntryId | None:
        """The entry where a conversation begins: after notes before any message."""
        return self.stands.get(_ROOT)

    def owner(self, entry: EntryId) -> EntryId:
        """Return the message that an entry belongs to; "" before the first message."""
        return self.owners[entry]

    def stand(self, name: EntryId) -> EntryId:
        """Return the entry where the conversation continues after this message."""
        return self.stands[name]

    def request_at(self, name: EntryId) -> EntryId | None:
        """Return the last request that ended with a message, or None."""
        return self._sent.get(name)
