"""Collect garbage: unreferenced content, and ended sessions past their retention time.

Rules of this file
------------------
1. A session needs every hash and object id found anywhere in its journal, whatever its meaning there, and every object evicted
   from the session. This keeps too much rather than too little, and stays correct for new kinds of entries.
2. Only ended sessions are deleted: sessions marked as ended, or unused for a long time.
3. Content needed by any version of any object is never deleted: history stays.
4. A plan is made without blocking writers. It is carried out in transactions that are short, because agents wait for them. Content that
   is needed by then is kept.
5. Every writer of a blob stores a reference in the same transaction; an unreferenced blob is garbage at once.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
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
_AT_ONCE: Final = 1 << 18
"""Stored bytes of the journals that one transaction removes. It takes well under a second."""
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

    freed: bytes that it takes, of `size` stored bytes; once it is deleted, by how much the store became smaller
    after: stored bytes after the deletion; None before
    place, version: ends of the journals and of the versions that were read for the plan
    forgettings: how often a text was forgotten before the plan
    reasons: why each session is removed, in words
    """

    sessions: tuple[KeptSession, ...]
    objects: frozenset[ObjectId]
    blobs: frozenset[ContentHash]
    freed: int
    size: int
    place: int
    version: int = 0
    forgettings: int = 0
    reasons: tuple[str, ...] = ()
    after: int | None = None

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
        history, version = store.contents()
        forgettings = store.forgettings()
    known = {one.name for one in sessions}
    for stored in objects:
        for name in known.intersection({stored.origin.session, *needs.objects.get(stored.id, ())}):
            needs.blobs.setdefault(name, set()).add(stored.content)
    counts = _counts(needs, history)
    garbage = {name for name in sizes if name not in counts} - {NO_BYTES}
    size = _size(sizes, sessions)
    freed = sum(sizes[name] for name in garbage)
    dropped: list[KeptSession] = []
    reasons: list[str] = []
    for session in _idle_sessions(sessions, retention, now):
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
    blobs = frozenset(garbage)
    return CollectionPlan(
        tuple(dropped), orphans, blobs, freed, size, needs.place, version, forgettings, reasons=tuple(reasons)
    )


def ended_sessions(store: WholeStore, retention: Retention, now: float) -> tuple[KeptSession, ...]:
    """Return the sessions that a plan would remove. Journals and versions are read only if the store is over its quota."""
    sessions = store.sessions()
    if retention.quota is not None and _size(store.blob_sizes(), sessions) > retention.quota:
        return plan(store, retention, now).sessions
    return tuple(one for one in _idle_sessions(sessions, retention, now) if _reason(one, retention, now, 0) is not None)


def collect(
    store: WholeStore,
    planned: CollectionPlan,
    go_on: Callable[[], bool] = lambda: True,
    has_objects: Callable[[], bool] = lambda: True,
) -> CollectionPlan:
    """Carry out a plan as far as still valid.

    go_on: called between two transactions, to wait for others; returns whether to go on. What is left is garbage for the next plan.
    has_objects: called within a transaction; returns whether the objects of the sessions are there. Nothing makes them without a journal.

    Return the deleted content. Raises StoreError: if a session that is to be removed is used again, sessions before it are gone.
    """
    removed: list[KeptSession] = []
    for some in _portions(planned.sessions):
        with store.exclusive():
            _demand_as_planned(store, planned, some)
            if not has_objects():
                raise StoreError("objects are just made again from the journals; the rest stays, plan anew")
            store.drop_sessions([one.name for one in some])
        removed += some
        while store.bundle_more(rest=True):  # what was compressed against a journal is alone now, and takes much room
            pass
        if not go_on():
            return _carried_out(store, planned, removed, frozenset(), frozenset())
    with store.exclusive():
        _demand_as_planned(store, planned, ())
        sizes = store.blob_sizes()
        needs = _needs(store.journal_lines(planned.place), sizes)
        orphans = planned.objects.difference(needs.objects)
        blobs = planned.blobs - _needed(store, needs, orphans, planned.version)
        store.drop_objects(sorted(orphans))
        store.drop_blobs(sorted(blobs))
        blobs = frozenset(name for name in blobs if not store.has(name))
    return _carried_out(store, planned, removed, orphans, blobs)


def _portions(sessions: Sequence[KeptSession]) -> Iterator[Sequence[KeptSession]]:
    """Yield the sessions in portions of about `_AT_ONCE` bytes."""
    first = size = 0
    for end, session in enumerate(sessions, 1):
        size += session.size
        if size >= _AT_ONCE or end == len(sessions):
            yield sessions[first:end]
            first, size = end, 0


def _demand_as_planned(store: WholeStore, planned: CollectionPlan, sessions: Sequence[KeptSession]) -> None:
    """Raise StoreError if one of the sessions was used since the plan, or if entries were rewritten."""
    # without the sizes: a line takes less room after its segment was made
    listed = {one.name: replace(one, size=0) for one in store.sessions()} if sessions else {}
    if any(listed.get(one.name) != replace(one, size=0) for one in sessions):
        raise StoreError("a session that was to be given up was just taken up again; it stays, plan anew")
    if store.forgettings() != planned.forgettings:
        raise StoreError("a text was forgotten meanwhile; the rest stays, plan anew")


def _carried_out(
    store: WholeStore,
    planned: CollectionPlan,
    removed: Sequence[KeptSession],
    objects: frozenset[ObjectId],
    blobs: frozenset[ContentHash],
) -> CollectionPlan:
    reasons = planned.reasons[: len(removed)]
    done = replace(planned, sessions=tuple(removed), objects=objects, blobs=blobs, reasons=reasons)
    return measured(store, done)


def measured(store: WholeStore, done: CollectionPlan) -> CollectionPlan:
    """Return the deleted content with what the store takes now. Bytes that others wrote meanwhile lower the figure `freed`."""
    after = _size(store.blob_sizes(), store.sessions())
    return replace(done, freed=max(0, done.size - after), after=after)


def drop_unneeded(store: WholeStore) -> int:
    """Remove the content that nothing needs, and return the number of blobs. If a line cannot be read, all content stays.

    Journals and versions are read before the transaction, and in it only what was added meanwhile.
    """
    sizes, rewritings, needs = store.blob_sizes(), store.forgettings(), _Needs()
    try:
        _add_needs(needs, store.journal_lines(), sizes)
        history, version = store.contents()
        with store.exclusive():
            place, version = (needs.place, version) if store.forgettings() == rewritings else (0, 0)
            _add_needs(needs, store.journal_lines(place), sizes)
            needed = _needed(store, needs, (), version) | history
            return store.drop_blobs(sorted(sizes.keys() - needed - {NO_BYTES}))
    except _UnknownNeeds:
        return 0


def _size(blobs: Mapping[ContentHash, int], sessions: Iterable[KeptSession]) -> int:
    return sum(blobs.values()) + sum(one.size for one in sessions)


def _needed(store: WholeStore, needs: _Needs, orphans: Container[ObjectId], after: int = 0) -> set[ContentHash]:
    """Return the content that journals, the history of objects, or evicted objects other than orphans need.

    after: a sequence; only later versions count
    """
    needed = set(store.contents(after)[0]).union(*needs.blobs.values())
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


def _idle_sessions(sessions: Sequence[KeptSession], retention: Retention, now: float) -> list[KeptSession]:
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
