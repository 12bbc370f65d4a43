"""The sets of a session object: ids of active, inactive and pinned objects.

Rules of this file
------------------
1. A session has sets from the first note about its pools on. Sessions that pagein only watches have no sets.
2. The bounds of the active content, and the working folder, are those that the last note about the pools tells.
3. The inactive set is written in pages, so that one more change does not cost the whole set.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pagein.memory.object_writer import ObjectWriter
from pagein.memory.session_machines import SessionMachines
from pagein.model.entries import Entry, EntryId, MessageEntry, NoteEntry
from pagein.model.journal_notes import PinNote
from pagein.model.pool_notes import PoolNote
from pagein.policy.clients.client_prompts import user_words
from pagein.policy.pools.pool_fold import PoolFold, PoolWalk
from pagein.policy.pools.pool_values import USUAL, PoolRules, PoolState

PAGE: Final = 256
"""Objects of the metadata pool whose inactive ones stand on one page."""
_KEPT: Final = 64


class SessionSets:
    """The sets of one session, as its entries are followed. Not thread-safe; raises StoreError.

    fields: the sets as additional fields of the session object; empty before the first note about pools.
    """

    def __init__(self, name: str, writer: ObjectWriter, machines: SessionMachines) -> None:
        self.fields: Mapping[str, tuple[str, ...]] = {}
        self._name, self._writer, self._machines = name, writer, machines
        self._fold: PoolFold | None = None
        self._folder = ""
        self._walks: dict[EntryId, PoolWalk] = {}

    def follow(self, place: int, entry: Entry) -> None:
        """Follow an entry. The sets change with acts of a hand or a model, and with each turn."""
        body = entry.body
        is_act = isinstance(body, NoteEntry) and isinstance(body.note, PoolNote | PinNote)
        if isinstance(body, NoteEntry) and isinstance(body.note, PoolNote):
            self._take_terms(place, body.note)
        if self._fold is None:
            return
        before = self._walks.get(entry.parent or "")
        walk = self._whole(self._fold, entry) if before is None else self._fold.step(before, body)
        self._walks[entry.id] = walk
        if len(self._walks) > _KEPT:
            del self._walks[next(iter(self._walks))]
        if is_act or (isinstance(body, MessageEntry) and user_words(body.message)):
            self.fields = fields_of(walk.state)

    def _take_terms(self, place: int, note: PoolNote) -> None:
        """Apply the bounds and the folder in a note about the pools. With other terms, the branches are followed anew."""
        rules = USUAL if note.bounds is None else PoolRules(*note.bounds)
        if self._fold is None:
            told = self._machines.of(self._name, place)
            self._fold = PoolFold(self._name, "" if told is None else told.machine, rules, self._writer.text)
        elif (rules, note.folder) != (self._fold.rules, self._folder):
            self._fold = replace(self._fold, rules=rules)
            self._walks.clear()
        self._folder = note.folder

    def _whole(self, fold: PoolFold, entry: Entry) -> PoolWalk:
        """Follow the whole branch of an entry."""
        entries = {one.id: one for _, one in self._writer.store.news(self._name) if isinstance(one, Entry)}
        branch = [entry]
        while (before := entries.get(branch[-1].parent or "")) is not None:
            branch.append(before)
        return fold.walk((one.body for one in reversed(branch)), self._folder)


def fields_of(state: PoolState) -> Mapping[str, tuple[str, ...]]:
    """Return the sets as fields. The first page of the inactive set is `inactive_set`, the others have numbers."""
    active = state.active_ids()
    fields = {"active_set": tuple(one.id for one in state.active), "pinned_set": state.pinned}
    for page, first in enumerate(range(0, max(1, state.size), PAGE)):
        listed = state.pool(first, min(first + PAGE, state.size))
        name = f"inactive_set.{page + 1}" if page else "inactive_set"
        fields[name] = tuple(one.id for one in listed if one.id not in active)
    return fields
