"""Collect garbage: unreferenced content, and ended sessions past their retention time.

Rules of this file
------------------
1. A session needs every hash and object id found anywhere in its journal, whatever its meaning there, and every object evicted
   from the session. This keeps too much rather than too little, and stays correct for new kinds of entries.
2. Only ended sessions are deleted: sessions marked as ended, or unused for a long time.
3. Content needed by any version of any object is never deleted: history stays.
4. A plan is made without blocking writers. It is carried out without other writers, and content needed by then is kept.
5. Every writer of a blob stores a reference in the same transaction; an unreferenced blob is garbage at once.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.errors import StoreError
from pagein.model.names import ContentHash
from pagein.model.objects import EXPIRED, ObjectId
from pagein.model.store_inventory import JournalLine, KeptSession
from pagein.ports import WholeStore

DAY: Final = 86_400.0
NO_BYTES: Final = ContentHash.of(b"")
"""The empty blob, never garbage: it keeps the last blob number in SQLite (see `sqlite_upkeep`)."""
_DIGITS: Final = 64
_HASHES: Final = re.compile(rb"[0-9a-f]{64,}")
_OBJECT: Final = re.compile(rb"pg-[0-9a-f]{8}-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Retention:
    """How long to keep ended sessions, in seconds.

    idle: a session unused for this time has ended
    keep: delete ended sessions this long after their last use; None for never
    quota: delete the oldest ended sessions, whatever their age, until the store takes at most this many bytes; None for
    no limit
    """

    idle: float = 30 * DAY
    keep: float | None = None
    quota: int | None = None


@dataclass(frozen=True, slots=True)
class CollectionPlan:
    """Removable content.

    freed: approximate number of bytes to be freed, of `size` stored bytes
    place: end of the journals read for the plan
    reasons: why each session is removed, in words
    """

    sessions: tuple[KeptSession, ...]
    objects: frozenset[ObjectId]
    blobs: frozenset[ContentHash]
    freed: int
    size: int
    place: int
    reasons: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to do."""
        return not (self.sessions or self.objects or self.blobs)


class _UnknownNeeds(StoreError):
    """An entry cannot be read."""


@dataclass(slots=True)
class _Needs:
    """Names found in journals, by session.

    place: end of the journals read
    """

    blobs: dict[str, set[ContentHash]] = field(default_factory=dict)
    objects: dict[ObjectId, set[str]] = field(default_factory=dict)
    place: int = 0


def plan(store: WholeStore, retention: Retention, now: float, only: Container[str] | None = None) -> CollectionPlan:
    """Plan a collection.

    Raises StoreError, also for an undecodable journal line, because the needs of its session are unknown.

    now: seconds since 1970
    only: names of the sessions that may be removed; None for all
    """
    with store.snapshot():
        sessions = tuple(store.sessions())
        sizes = store.blob_sizes()
        objects = [one for one in store.paged_objects() if one.kind != EXPIRED]
        needs = _needs(store.journal_lines(), sizes)
        history = frozenset(store.contents())
    known = {one.name for one in sessions}
    for stored in objects:
        for name in known.intersection({stored.origin.session, *needs.objects.get(stored.id, ())}):
            needs.blobs.setdefault(name, set()).add(stored.content)
    counts = _counts(needs, history)
    garbage = {name for name in sizes if name not in counts} - {NO_BYTES}
    size = sum(sizes.values()) + sum(one.size for one in sessions)
    freed = sum(sizes[name] for name in garbage)
    dropped: list[KeptSession] = []
    reasons: list[str] = []
    for session in _ended_sessions(sessions, retention, now):
        if only is not None and session.name not in only:
            continue
        if (why := _reason(session, retention, now, size - freed)) is not None:
            dropped.append(session)
            reasons.append(why)
            alone = _release_needs(needs.blobs.get(session.name, set()), counts) - {NO_BYTES}
            garbage |= alone
            freed += session.size + sum(sizes.get(name, 0) for name in alone)
    stay = known - {one.name for one in dropped}
    orphans = frozenset(
        one.id for one in objects if stay.isdisjoint({one.origin.session, *needs.objects.get(one.id, ())})
    )
    return CollectionPlan(tuple(dropped), orphans, frozenset(garbage), freed, size, needs.place, tuple(reasons))


def collect(store: WholeStore, planned: CollectionPlan) -> CollectionPlan:
    """Carry out a plan as far as still valid, in a single transaction.

    Return the deleted content. Raises StoreError.
    """
    with store.exclusive():
        # without the sizes: a line takes less room after its segment was made
        listed = {one.name: replace(one, size=0) for one in store.sessions()}
        if any(listed.get(one.name) != replace(one, size=0) for one in planned.sessions):
            raise StoreError("a session that was to be given up was just taken up again; nothing was done, plan anew")
        sizes = store.blob_sizes()
        needs = _needs(store.journal_lines(planned.place), sizes)
        orphans = planned.objects.difference(needs.objects)
        blobs = planned.blobs - _needed(store, needs, orphans)
        store.drop_sessions([one.name for one in planned.sessions])
        store.drop_objects(sorted(orphans))
        store.drop_blobs(sorted(blobs))
        blobs = frozenset(name for name in blobs if not store.has(name))
    freed = sum(sizes.get(name, 0) for name in blobs) + sum(one.size for one in planned.sessions)
    return replace(planned, objects=orphans, blobs=blobs, freed=freed)


def drop_unneeded(store: WholeStore) -> int:
    """Remove the content that nothing needs, and return the number of blobs. If a line cannot be read, all content stays.

    The journals are read before the transaction, and in it only what was added to them meanwhile.
    """
    sizes, rewritings, needs = store.blob_sizes(), store.forgettings(), _Needs()
    try:
        _add_needs(needs, store.journal_lines(), sizes)
        with store.exclusive():
            after = needs.place if store.forgettings() == rewritings else 0
            _add_needs(needs, store.journal_lines(after), sizes)
            return store.drop_blobs(sorted(sizes.keys() - _needed(store, needs, ()) - {NO_BYTES}))
    except _UnknownNeeds:
        return 0


def _needed(store: WholeStore, needs: _Needs, orphans: Container[ObjectId]) -> set[ContentHash]:
    """Return the content that journals, the history of objects, or evicted objects other than orphans need."""
    needed = set(store.contents()).union(*needs.blobs.values())
    return needed | {one.content for one in store.paged_objects() if one.id not in orphans and one.kind != EXPIRED}


def _needs(lines: Iterable[JournalLine], known: Iterable[ContentHash]) -> _Needs:
    needs = _Needs()
    _add_needs(needs, lines, known)
    return needs


def _add_needs(needs: _Needs, lines: Iterable[JournalLine], known: Iterable[ContentHash]) -> None:
    names = {name.hex: name for name in known}
    for line in lines:
        needs.place = line.place
        if line.damaged:
            raise _UnknownNeeds(
                f"an entry of session {line.session!r} cannot be read, so what it needs is unknown; run `pagein check` first"
            )
        needs.blobs.setdefault(line.session, set()).update(hashes_in(line.line, names), line.texts)
        for one in _OBJECT.findall(line.line):
            needs.objects.setdefault(ObjectId(one.decode()), set()).add(line.session)


def hashes_in(line: bytes, names: Mapping[str, ContentHash]) -> Iterator[ContentHash]:
    """Yield the known hashes that occur in a line of a journal, whatever their meaning there.

    names: the known hashes, by their digits
    """
    # Digits may directly precede a hash (the escape of a backspace ends in a digit), so every window of a longer run is tried.
    for run in _HASHES.findall(line):
        digits = run.decode()
        for start in range(len(digits) - _DIGITS + 1):
            name = names.get(digits[start : start + _DIGITS])
            if name is not None:
                yield name


def _counts(needs: _Needs, history: frozenset[ContentHash]) -> dict[ContentHash, int]:
    """Count the users of each blob: sessions, and the history of objects."""
    counts = dict.fromkeys(history, 1)
    for names in needs.blobs.values():
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    return counts


def _release_needs(names: set[ContentHash], counts: dict[ContentHash, int]) -> set[ContentHash]:
    """Subtract a session's needs. Return the content without remaining users."""
    for name in names:
        counts[name] -= 1
    return {name for name in names if not counts[name]}


def _ended_sessions(sessions: Sequence[KeptSession], retention: Retention, now: float) -> list[KeptSession]:
    """Return the ended sessions, least recently used first."""
    others = [one for one in sessions if not one.is_own]
    idle = [one for one in others if one.ended or (one.touched is not None and now - one.touched >= retention.idle)]
    return sorted(idle, key=lambda one: one.touched or 0.0)


def _reason(session: KeptSession, retention: Retention, now: float, size: int) -> str | None:
    """Return why an ended session is removed, or None if it stays.

    size: bytes of the store without what is removed already
    """
    unused = None if session.touched is None else now - session.touched
    words = "of unknown age" if unused is None else f"unused for {unused / DAY:,.0f} days"
    if retention.keep is not None and unused is not None and unused >= retention.keep:
        return words
    return f"over the quota, {words}" if retention.quota is not None and size > retention.quota else None
