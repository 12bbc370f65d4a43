"""Prove that the objects made from journals agree with the journals. Reads only.

The journals are followed again with a writer that writes nothing: it compares each version that an entry gives with the
version that the store has for it.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pagein.memory.file_sightings import verify_sighting
from pagein.memory.followed_place import FORM, LAYER
from pagein.memory.indexer import is_session
from pagein.memory.object_writer import Cause, IndexedStore, ObjectWriter
from pagein.memory.remade_objects import RemadeObjects
from pagein.memory.session_index import SessionIndex
from pagein.memory.session_machines import SessionMachines
from pagein.model.derived_versions import FILES, INDEXER, ORDERS
from pagein.model.entries import Entry, NoteEntry
from pagein.model.memory_notes import OpenChatsNote
from pagein.model.messages import UnreadableLine
from pagein.model.note_forms import kind_of
from pagein.model.version_hash import SealedDraft
from pagein.model.versions import Draft, Version
from pagein.policy.privacy.erasure import holds_erasure
from pagein.ports import WholeStore

_OPEN_CHATS = kind_of(OpenChatsNote)
_MET: Final = 64
"""Requests whose versions are kept in memory."""


@dataclass(frozen=True, slots=True)
class ProjectionFault:
    """A difference between a version and the journals.

    where: name of the object. why: the difference.
    """

    where: str
    why: str


def projection_faults(store: WholeStore, tick: Callable[[], object] = lambda: None) -> Iterator[ProjectionFault]:
    """Yield the differences between the objects of a store and its journals, as far as they were followed.

    Objects of sessions without a journal are left out: their journals were removed. So are those that are just made again.
    """
    layer = store.layer(LAYER)
    if layer is None or layer[1] != FORM:
        return
    remade = RemadeObjects.load(store)
    waiting = frozenset[str]() if remade is None else remade.sessions
    told = sorted({one.name for one in store.sessions() if one.leaf is not None and is_session(one.name)} - waiting)
    confirmed: set[int] = set()
    followed: set[str] = {FILES}
    asked = _questions(store, layer[0])
    machines = SessionMachines(store)
    machines.catch_up()
    for name in told:
        writer = _VerifyingWriter(store)
        session = SessionIndex(name, writer, machines)
        entries = heapq.merge(store.news(name), asked.get(name, ()), key=lambda one: one[0])
        unfollowed = _follow(session, entries, layer[0], tick)
        if not unfollowed:
            followed.add(name)
        confirmed |= writer.confirmed
        yield from writer.faults
        yield from _obstacle(session, unfollowed)
    sighted = _check_sightings(store, layer[0])
    confirmed |= sighted.confirmed
    yield from sighted.faults
    for version in _log(store):
        if version.writer.kind == INDEXER and version.writer.session in followed and version.sequence not in confirmed:
            yield ProjectionFault(
                f"{version.type} {version.id}", f"no entry of its session gives version {version.number}"
            )


def _follow(
    session: SessionIndex,
    entries: Iterable[tuple[int, Entry | UnreadableLine]],
    last: int,
    tick: Callable[[], object],
) -> list[Entry | UnreadableLine]:
    """Follow the entries of a session up to a place. Return the entries after it."""
    unfollowed: list[Entry | UnreadableLine] = []
    for place, entry in entries:
        if place > last:
            unfollowed.append(entry)
        elif isinstance(entry, Entry) and isinstance(entry.body, NoteEntry) and entry.body.kind == _OPEN_CHATS:
            session.save_open_chats(entry.id)
        elif isinstance(entry, Entry):
            session.follow(place, entry)
            tick()
    return unfollowed


def _check_sightings(store: WholeStore, last: int) -> "_VerifyingWriter":
    """Compare the versions that looks at the disk gave, up to a place."""
    writer = _VerifyingWriter(store)
    for place, entry in store.news(FILES):
        if place <= last and isinstance(entry, Entry):
            verify_sighting(writer, entry)
    return writer


def _obstacle(session: SessionIndex, entries: Sequence[Entry | UnreadableLine]) -> Iterator[ProjectionFault]:
    """Yield the first entry that cannot be followed, because the layer would never get past it."""
    for entry in entries:
        if isinstance(entry, Entry):
            try:
                session.follow(session.place, entry)
            except Exception as problem:  # noqa: BLE001 - whatever stops the layer is told
                why = f"the layer memory is stuck here, {type(problem).__name__}: {problem}"
                yield ProjectionFault(f"entry {entry.id} of {session.name}", why)
                return


def _questions(store: WholeStore, last: int) -> dict[str, list[tuple[int, Entry]]]:
    """Return the orders to save the open chats of each session, up to a place."""
    found: dict[str, list[tuple[int, Entry]]] = {}
    for place, entry in store.news(ORDERS):
        if place <= last and isinstance(entry, Entry) and isinstance(entry.body, NoteEntry):
            note = entry.body.note
            if isinstance(note, OpenChatsNote):
                found.setdefault(note.session, []).append((place, entry))
    return found


def _log(store: WholeStore) -> Iterator[Version]:
    last = 0
    while page := store.log(last, 500):
        last = page[-1].sequence
        yield from page


class _VerifyingWriter(ObjectWriter):
    """Compares versions instead of writing them.

    confirmed: sequences of the versions that entries gave.
    """

    def __init__(self, store: IndexedStore) -> None:
        super().__init__(store)
        self.confirmed: set[int] = set()
        self.faults: list[ProjectionFault] = []
        self._met: dict[str, Version | None] = {}

    def known(self, request: str) -> Version | None:
        # an entry asks for the version of a call, and writes it behind the versions of files
        if request not in self._met:
            if len(self._met) >= _MET:
                self._met.clear()
            self._met[request] = self.store.answered(request)
        return self._met[request]

    def answered(self, request: str, content: str | None) -> Version | None:
        known = self.answer_with(request, content)
        if known is not None:
            self.confirmed.add(known.sequence)
            content = self.redaction.text(content)
            if not (self.is_content(known, content) or holds_erasure(self.store.content(known) or "")):
                why = f"version {known.number} has another content than its entry gives"
                self.faults.append(ProjectionFault(f"{known.type} {known.id}", why))
        return known

    def write(self, request: str, draft: Draft, cause: Cause) -> Version:
        draft = self.redaction.draft(draft)
        _, known = self.answer_to(request, draft, cause)
        if known is None:
            self.faults.append(
                ProjectionFault(f"{draft.type} {draft.id}", f"entry {cause.entry} of {cause.session} gave no version")
            )
            return self.unstored(draft, cause)
        self.confirmed.add(known.sequence)
        # names, views and locks are given by people
        wanted = replace(draft, id=known.id, nickname=known.nickname, view=known.view, locked=known.locked)
        if SealedDraft.of(wanted).object_hash != known.object_hash:
            why = f"version {known.number} is not what entry {cause.entry} of {cause.session} gives"
            self.faults.append(ProjectionFault(f"{draft.type} {draft.id}", why))
        return known
