"""Snapshots of the folded state of a session, to spare another process the fold of the whole journal.

Rules of this file
------------------
1. A snapshot is a cache of the journal: without it, or with a damaged or outdated one, the journal is folded anew, and
   the state is the same.
2. It holds the same content as the entries of its session (law 9) and is bound to them: a store that changes or drops
   an entry drops the snapshot.
3. It is taken at a sent request. Entries up to there are loaded on demand, and messages of the window on first access.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cache
from importlib import import_module, resources
from importlib.resources.abc import Traversable
from typing import Any, Final

import msgspec

from pagein.engine.log.gc_pause import pause_collection
from pagein.engine.log.journal import Journal, JournalRestart
from pagein.engine.log.lazy_messages import Unread
from pagein.engine.log.state import Rules, State
from pagein.errors import BadInput, StoreError
from pagein.model.codec import decode_entry, encode_entry
from pagein.model.entries import Entry, EntryId, MessageEntry
from pagein.model.graphs import Graphs
from pagein.model.messages import Message
from pagein.policy.clients.profiles import OTHER, PROFILES
from pagein.ports import SnapshotStore

EVERY: Final = 2_000
"""Number of entries between two snapshots. Folding this many takes a fraction of a second."""
_MOST_NOTES: Final = 64  # entries after the request of a snapshot

_MODULES: Final = (
    "engine.log.state",
    "engine.log.request_draft",
    "engine.log.pin_state",
    "engine.reads.evidence",
    "engine.reads.reread_notes",
    "engine.cache.cache_inputs",
    "engine.cache.cache_breakpoints",
    "engine.cache.branch_leases",
    "engine.cache.cache_ttl",
    "engine.cache.entry_ages",
    "engine.window.shown_once",
    "engine.cache.cached_prefix",
    "engine.log.holdings",
    "engine.send.message_changes",
    "engine.send.sent_changes",
    "engine.send.splice",
    "engine.intake.message_chain",
    "model.guard_notes",
    "model.messages",
    "model.entries",
    "model.journal_notes",
    "model.names",
    "model.read_events",
    "model.spans",
    "model.shared_collections",
    "policy.eviction.residency",
    "policy.eviction.resident_set",
    "policy.eviction.session_work",
    "policy.eviction.residents",
    "policy.eviction.waiting_residents",
    "policy.eviction.recall_warmth",
    "policy.economics.rewrite_cost",
    "policy.economics.written_parts",
    "policy.guards.aggregation",
    "policy.guards.budgets",
    "policy.guards.guard_state",
    "policy.guards.metrics",
    "policy.reads.knowledge",
    "policy.reads.file_view",
    "policy.economics.cache_keepalive",
    "policy.reads.echo_guard",
    "policy.clients.client_reads",
    "policy.clients.window_files",
    "providers.wire.message_texts",
    "providers.wire.tool_offers",
)
"""Modules whose classes may be part of a state. A value of any other class prevents the snapshot."""
_CODE: Final = ("engine", "model", "policy")


@dataclass(frozen=True, slots=True)
class FoundSnapshot:
    """A snapshot from the store.

    restored: the journal's part.
    place: position of the last store entry that the snapshot knows.
    leaf: entry at which the session was.
    size: number of entries that it knows.
    said: messages that are not loaded, by name.
    """

    restored: JournalRestart
    place: int
    leaf: EntryId
    size: int
    said: Mapping[EntryId, Message]


@dataclass(frozen=True, slots=True)
class SnapshotSource:
    """The input of a snapshot.

    sent: the request.
    leaf: entry at which the session is, shortly after the request.
    place: position of the last stored entry.
    states: states of all folds at the request, and further values for a later process.
    entries: loaded entries.
    said: messages of entries that are not loaded, by name.
    """

    sent: EntryId
    leaf: EntryId
    place: int
    states: Mapping[str, Any]
    entries: tuple[Entry, ...]
    said: Mapping[EntryId, Message]


class Snapshots:
    """Take and find snapshots of sessions. Thread-safe."""

    def __init__(self, store: SnapshotStore, rules: Rules) -> None:
        self._store = store
        settings = hashlib.sha256(repr(rules).encode()).hexdigest()[:16]
        self._version = f"{_graphs().version}-{_code()}-{settings}"

    def find(self, session: str) -> FoundSnapshot | None:
        """Return the snapshot of a session, or None. Raises StoreError."""
        kept = self._store.load_snapshot(session, self._version)
        if kept is None:
            return None
        place, data = kept
        said: dict[EntryId, Message] = {}
        read = self._reader(session)

        def lazy_message(name: str) -> Message:
            said[name] = one = Unread.of(read, name)
            return one

        try:
            with pause_collection():
                root = _graphs().decode(data, lazy_message)
            lines = [decode_entry(line.encode(), 0) for line in root["newest"]]
            newest = [entry for entry in lines if isinstance(entry, Entry)]
            names = set(root["states"]["places"]["owners"])
            size = len(names)
            names.difference_update(entry.id for entry in newest)
            restored = JournalRestart(root["sent"], root["states"], names, lambda: self._entries(session), newest)
        except (BadInput, KeyError, TypeError, AttributeError):  # unreadable: then the journal is folded
            return None
        return FoundSnapshot(restored, place, root["leaf"], size, said)

    def keep(self, session: str, moment: SnapshotSource, check: Callable[[], None]) -> None:
        """Take a snapshot. Raises StoreError, and BadInput for a state that cannot be encoded.

        check: called under the store's lock; raises StoreError when the session may store nothing any more.
        """
        names = {id(one): name for name, one in moment.said.items()}
        names |= {id(one.body.message): one.id for one in moment.entries if isinstance(one.body, MessageEntry)}
        lines = [encode_entry(one).decode() for one in _newest(moment)]
        root = {"sent": moment.sent, "leaf": moment.leaf, "newest": lines, "states": dict(moment.states)}
        with pause_collection():
            data = _graphs().encode(root, names)
        with self._store.exclusive():
            check()
            self._store.keep_snapshot(session, moment.place, self._version, data)

    def _entries(self, session: str) -> Iterator[Entry]:
        return (entry for entry in self._store.entries(session) if isinstance(entry, Entry))

    def _reader(self, session: str) -> Callable[[EntryId], Message]:
        def read(name: EntryId) -> Message:
            entry = self._store.entry(session, name)
            if not isinstance(entry, Entry) or not isinstance(entry.body, MessageEntry):
                raise StoreError(f"entry {name} of the journal cannot be read any more")
            return entry.body.message

        return read


class OfSession:
    """The snapshots of a session. Called only while no thread adds to the session.

    store: None for a session without snapshots.
    """

    def __init__(self, name: str, store: SnapshotStore | None, rules: Rules) -> None:
        self._name = name
        self._store = store
        self._rules = rules
        self._said: Mapping[EntryId, Message] = {}  # messages of entries not loaded yet
        self._known = 0  # number of entries in the last snapshot

    def find(self) -> FoundSnapshot | None:
        """Return the last snapshot, if usable. Raises StoreError."""
        return None if self._store is None else Snapshots(self._store, self._rules).find(self._name)

    def note_restored(self, found: FoundSnapshot) -> None:
        """Record that the session continued from this snapshot."""
        self._said, self._known = found.said, found.size

    def prepare_snapshot(
        self,
        journal: Journal[State],
        leaf: EntryId,
        place: int,
        sent: EntryId,
        more: Callable[[], Mapping[str, Any] | None],
        check: Callable[[], None],
    ) -> Callable[[], None] | None:
        """Return a function to take a snapshot of the session as of now.

        Returns None if no snapshot is due or possible. The function may run in another thread while the session
        continues, takes a while, and raises StoreError and BadInput.

        leaf: the session's current entry; everything up to there is stored.
        place: position of the last stored entry.
        sent: the request.
        more: returns values to store besides the states of folds; None if unavailable.
        check: as in `Snapshots.keep`.
        """
        if self._store is None or len(journal) < self._known + EVERY or not _is_near(journal, sent, leaf):
            return None
        found = more()
        if found is None:
            return None
        states = {name: at(sent) for name, at in journal.folds.items()}
        taken = SnapshotSource(sent, leaf, place, {**states, **found}, journal.loaded_entries(), self._said)
        snapshots, self._known = Snapshots(self._store, self._rules), len(journal)
        return lambda: snapshots.keep(self._name, taken, check)


def _is_near(journal: Journal[State], sent: EntryId, leaf: EntryId) -> bool:
    """Return whether the session is shortly after the request."""
    here: EntryId | None = leaf
    for _ in range(_MOST_NOTES):
        if here is None or here == sent:
            break
        here = journal.entry(here).parent
    return here == sent


def _newest(one: SnapshotSource) -> list[Entry]:
    """Return the entries from the session's current entry back to the request."""
    known = {entry.id: entry for entry in one.entries}
    found = [known[one.leaf]]
    while found[-1].id != one.sent:
        found.append(known[found[-1].parent or ""])
    return found


@cache
def _graphs() -> Graphs:
    modules = [import_module(f"pagein.{one}") for one in _MODULES]
    classes = [
        one
        for module in modules
        for one in vars(module).values()
        if isinstance(one, type) and one.__module__ == module.__name__ and _is_value(one)
    ]
    return Graphs(classes, {**{f"profile {name}": one for name, one in PROFILES.items()}, "profile": OTHER})


def _is_value(kind: type) -> bool:
    return is_dataclass(kind) or issubclass(kind, msgspec.Struct) or kind.__name__ == "SharedMap"


@cache
def _code() -> str:
    """Return a hash of the folding code, because different code may fold a different state."""
    digest = hashlib.sha256()
    for part in _CODE:
        for path, file in sorted(_files(resources.files("pagein") / part, part), key=lambda one: one[0]):
            digest.update(path.encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _files(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    """Yield each module below a folder with its path, for a fixed order of a listing."""
    for one in folder.iterdir():
        if one.is_dir():
            yield from _files(one, f"{path}/{one.name}")
        elif one.name.endswith(".py"):
            yield f"{path}/{one.name}", one
