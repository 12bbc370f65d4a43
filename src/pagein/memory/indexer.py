"""The indexer: follows the journals of a store, and keeps the objects made from them up to date.

Rules of this file
------------------
1. Entries are followed in the order of their places, over all sessions. The place that was reached is stored in the same
   transaction as the objects, so that the death of the process at any moment loses nothing and doubles nothing.
2. A transaction is short: the writer of a journal never waits long for the indexer.
3. Several processes may follow one store. Whoever finds that another was faster goes on from there.
4. Objects of another form are dropped and made again from the journals. Those of some sessions are made again before new entries are
   followed (`remade_objects.py`).
5. A chat gets a version at certain steps only. Before an answer that must be complete, the sessions with newer steps get
   an order in the journal of orders (`save_open_chats`). So objects that are made again have the same versions.
"""

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from dataclasses import replace
from typing import Final, TypeAlias

from pagein.engine.log.journal import entry_name
from pagein.memory.file_sightings import write_sighting
from pagein.memory.followed_place import FORM, LAYER, OPEN_CHATS
from pagein.memory.object_orders import carry_out
from pagein.memory.object_writer import IndexedStore, ObjectWriter
from pagein.memory.remade_objects import STANDING, RemadeObjects, fixed_facts, forget_remade
from pagein.memory.session_index import SessionIndex
from pagein.memory.session_machines import SessionMachines
from pagein.model.derived_versions import DERIVED, FILES, ORDERS
from pagein.model.entries import Entry, NoteEntry
from pagein.model.layer_report import LayerReport
from pagein.model.memory_notes import OpenChatsNote
from pagein.model.messages import UnreadableLine
from pagein.ports import ForgettingStore, LayerStore, Progress, WholeStore

_OWN: Final = "pagein."
"""Beginning of the names of pagein's own journals, which are no sessions."""
_AT_ONCE: Final = 64
"""Entries followed in one transaction, at most."""
_DROPPED: Final = 100
"""Objects dropped in one transaction, at most."""
_LONGEST_TURN: Final = 0.02
"""Seconds after which a transaction ends."""
_PAGE: Final = 1_000
_OPEN: Final = 24
"""Sessions whose state is kept in memory."""

Placed: TypeAlias = tuple[int, Entry | UnreadableLine]


def is_session(journal: str) -> bool:
    """Return whether a journal belongs to a session, and not to pagein itself."""
    return not journal.startswith(_OWN)


class Indexer:
    """Follows the journals of a store. A derived layer; thread-safe; raises StoreError."""

    name = LAYER

    def __init__(self, store: IndexedStore) -> None:
        self._store = store
        self._writer = ObjectWriter(store)
        self._machines = SessionMachines(store)
        self._sessions: OrderedDict[str, SessionIndex] = OrderedDict()
        self._turn = threading.Lock()
        self._forgettings: int | None = None
        self._apart = _AT_ONCE  # entries since nothing more was to be bundled; unknown at first

    def catch_up(
        self, within: float | None = None, stop: Callable[[], bool] = lambda: False, tell: Progress | None = None
    ) -> LayerReport:
        """Follow the journals to their end.

        within: seconds after which to stop; None for no limit. stop: asked between transactions.
        """
        began, entries, versions, is_behind = time.monotonic(), 0, self._writer.written, True
        with self._turn:

            def goes_on() -> bool:
                return not stop() and (within is None or time.monotonic() - began < within)

            while is_behind and goes_on():
                done, is_behind = self._follow_some()
                entries += done
                self._apart += done
                while self._apart >= _AT_ONCE and goes_on():
                    self._apart = _AT_ONCE if self._store.bundle_more() else 0
                if done and tell is not None:
                    tell(self._place(), self._store.last_place())
        return LayerReport(entries, self._writer.written - versions, self.behind() if is_behind else 0)

    def save_open_chats(
        self,
        at: float,
        within: float | None = None,
        tell: Progress | None = None,
        only: Container[str] | None = None,
    ) -> LayerReport:
        """Bring the objects up to the journals, with the newest steps of all chats.

        at: time of the question, seconds since 1970. within, tell: as in `catch_up`. only: the sessions of the chats; None for all
        """
        report = self.catch_up(within, tell=tell)
        if report.behind or not self._open_chats(only):
            return report
        with self._turn, self._store.exclusive():
            parent = self._store.leaf(ORDERS)
            for session in self._open_chats(only):
                body = NoteEntry.of(OpenChatsNote(session))
                entry = Entry(entry_name(parent, body), parent, body, at)
                self._store.append(ORDERS, [entry])
                parent = entry.id
        return self.catch_up(within, tell=tell)

    def _open_chats(self, only: Container[str] | None = None) -> list[str]:
        found = self._store.layer(OPEN_CHATS)
        return [] if found is None else [one for one in json.loads(found[1]) if only is None or one in only]

    def _note_open_chats(self, followed: Iterable[str]) -> None:
        """Note the sessions with steps that are missing in every version of their chats."""
        before = self._open_chats()
        left = dict.fromkeys(before)
        for session in followed:
            if self._state(session).is_open:
                left[session] = None
            else:
                left.pop(session, None)
        if list(left) != before:
            self._store.set_layer(OPEN_CHATS, 0, json.dumps(list(left)))

    def drop(self, store: WholeStore) -> int:
        """Drop the objects made from journals, and return their number; `catch_up` makes them again.

        store: the same store, opened for upkeep.
        """
        with self._turn, store.exclusive():
            return self._drop_from(store)

    def drop_of(self, store: ForgettingStore, sessions: Collection[str] | None) -> bool:
        """Have `catch_up` drop the objects of sessions with entries that change, and of those that depend on them, and make them again.

        store: the same store. sessions: None for all

        If it is not known what depends on them, all objects are dropped at once. Return whether those of these sessions wait to be.
        """
        meant = {one for one in sessions or () if is_session(one) or one in (FILES, ORDERS)}
        if sessions is not None and not meant:
            return False
        with self._turn, store.exclusive():
            is_partial = sessions is not None and self._place() and RemadeObjects.load(store) is None
            group = store.sessions_together(meant) if is_partial and meant.isdisjoint((FILES, ORDERS)) else None
            if group is None or not group.sessions.isdisjoint((FILES, ORDERS)):
                self._drop_from(store)
                return False
            if not group.objects:
                return False
            RemadeObjects(group.sessions, fixed_facts(store, group), self._place(), STANDING).save(store)
            self._forget_states()
            return True

    def _make_some_again(self, remade: RemadeObjects) -> int:
        """Drop objects, or follow entries again whose objects were dropped. Return the number of both, at least 1.

        If the objects are not what they were, all are dropped: others were made with what the first ones were.
        """
        if remade.place == STANDING:
            dropped = self._store.drop_objects_of_sessions(remade.sessions, _DROPPED)
            if dropped < _DROPPED:
                replace(remade, place=0).save(self._store)
            return max(dropped, 1)
        passed, place, followed = 0, remade.place, dict.fromkeys(remade.sessions, False)
        readers: dict[str, Iterator[Placed]] = {}
        deadline = time.monotonic() + _LONGEST_TURN
        for place, session in self._store.places(remade.place, _PAGE):
            if place <= remade.last and session == ORDERS:
                followed |= dict.fromkeys(self._save_again(place, remade.sessions), True)
            elif place <= remade.last and session in remade.sessions:
                self._follow_session(session, place, readers)
                followed[session] = True
            passed += 1
            if place >= remade.last or time.monotonic() > deadline:
                break
        self._note_open_chats(session for session, is_followed in followed.items() if is_followed)
        self._close_sessions()
        if passed and place < remade.last:
            replace(remade, place=place).save(self._store)
            return passed
        made = self._store.sessions_together(remade.sessions)
        forget_remade(self._store)
        if made is None or fixed_facts(self._store, made) != remade.digest:
            self._drop_from(self._store)
        return max(passed, 1)

    def _drop_from(self, store: LayerStore) -> int:
        dropped = store.drop_objects_of(*DERIVED)
        store.set_layer(LAYER, 0, FORM)
        store.set_layer(OPEN_CHATS, 0, "[]")
        forget_remade(store)
        self._forget_states()
        return dropped

    def _place_in_turn(self) -> int:
        """Return the place of the last entry that was followed, and drop objects of another form: a repeated write would leave
        them as they are.
        """
        found = self._store.layer(LAYER)
        if found is not None and found[1] != FORM:
            self._drop_from(self._store)
            return 0
        return 0 if found is None else found[0]

    def follow_all(self, sessions: Container[str], at: float) -> Callable[[], bool]:
        """Make the objects of all entries so far, with the newest steps of the chats of some sessions. at: now, seconds since 1970.

        Return a function that tells whether they are there: they are dropped where a process makes objects again.
        """
        self.save_open_chats(at, only=sessions)
        place = self._place()
        return lambda: self._place() >= place and RemadeObjects.load(self._store) is None

    def behind(self) -> int:
        """Return the number of places that are not followed yet."""
        remade = RemadeObjects.load(self._store)
        place = self._place() if remade is None else max(remade.place, 0)
        return max(0, self._store.last_place() - place) if remade or self._store.places(place, 1) else 0

    def _place(self) -> int:
        found = self._store.layer(LAYER)
        return found[0] if found is not None and found[1] == FORM else 0

    def _follow_some(self) -> tuple[int, bool]:
        """Follow the next entries in one transaction. Return the number of entries, and whether there may be more."""
        if not self._store.places(self._place(), 1) and RemadeObjects.load(self._store) is None:
            return 0, False
        try:
            with self._store.exclusive():
                return self._follow_in_turn()
        except BaseException:
            self._forget_states()  # they may hold versions that were rolled back
            raise

    def _forget_states(self) -> None:
        self._sessions.clear()
        self._machines = SessionMachines(self._store)

    def _follow_in_turn(self) -> tuple[int, bool]:
        place = self._place_in_turn()
        if self._forgettings != (forgettings := self._store.forgettings()):  # another process rewrote entries
            self._forget_states()
            self._forgettings = forgettings
        if remade := RemadeObjects.load(self._store):
            self._machines.catch_up()
            return self._make_some_again(remade), True
        deadline = time.monotonic() + _LONGEST_TURN
        count, page = 0, self._store.places(place, _AT_ONCE)
        readers: dict[str, Iterator[Placed]] = {}
        followed: dict[str, None] = {}
        self._machines.catch_up()
        for at, session in page:
            if session == ORDERS:
                followed |= dict.fromkeys(self._carry_out(at))
            elif session == FILES:
                self._write_sighting(at)
            elif is_session(session):
                self._follow_session(session, at, readers)
                followed[session] = None
            place, count = at, count + 1
            if time.monotonic() > deadline:
                break
        self._note_open_chats(followed)
        self._store.set_layer(LAYER, place, FORM)
        self._close_sessions()
        return count, count < len(page) or count == _AT_ONCE

    def _follow_session(self, session: str, at: int, readers: dict[str, Iterator[Placed]]) -> None:
        """Follow the journal of a session up to the entry at a place."""
        if session not in readers:
            self._drop_removed(session)
        state = self._state(session)
        if session not in readers:
            readers[session] = iter(self._store.news(session, state.place))
        for place, entry in readers[session]:
            if isinstance(entry, Entry):
                state.follow(place, entry)
            if place >= at:
                break

    def _carry_out(self, at: int) -> tuple[str, ...]:
        """Carry out an order about objects. Return the sessions whose open chats got a version."""
        _, entry = next(self._store.news(ORDERS, at - 1))
        note = entry.body.note if isinstance(entry, Entry) and isinstance(entry.body, NoteEntry) else None
        if not isinstance(entry, Entry):
            return ()
        if not isinstance(note, OpenChatsNote):
            carry_out(self._store, entry)
            return ()
        return self._save_chats(at, note.session, entry.id)

    def _save_again(self, at: int, sessions: Collection[str]) -> tuple[str, ...]:
        """Carry out an order to save the open chats of one of some sessions. Objects with other orders are not made again alone."""
        _, entry = next(self._store.news(ORDERS, at - 1))
        note = entry.body.note if isinstance(entry, Entry) and isinstance(entry.body, NoteEntry) else None
        if isinstance(entry, Entry) and isinstance(note, OpenChatsNote) and note.session in sessions:
            return self._save_chats(at, note.session, entry.id)
        return ()

    def _save_chats(self, at: int, session: str, order: str) -> tuple[str, ...]:
        self._drop_removed(session)
        state = self._state(session)
        for place, one in self._store.news(session, state.place):  # nothing, if the state is kept in memory
            if place > at:
                break
            if isinstance(one, Entry):
                state.follow(place, one)
        state.save_open_chats(order)
        return (session,)

    def _write_sighting(self, at: int) -> None:
        """Give a file the version that a look at the disk told."""
        _, entry = next(self._store.news(FILES, at - 1))
        if isinstance(entry, Entry):
            write_sighting(self._writer, self._machines, at, entry)

    def _drop_removed(self, session: str) -> None:
        """Forget the state of a session whose journal was removed since: what it tells now begins anew."""
        known = self._sessions.get(session)
        if known is not None and known.place and not self._store.has_place(session, known.place):
            del self._sessions[session]

    def _state(self, session: str) -> SessionIndex:
        if session not in self._sessions:
            self._sessions[session] = SessionIndex(session, self._writer, self._machines)
        self._sessions.move_to_end(session)
        return self._sessions[session]

    def _close_sessions(self) -> None:
        while len(self._sessions) > _OPEN:
            self._sessions.popitem(last=False)
