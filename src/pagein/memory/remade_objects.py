"""What the store keeps of objects that were dropped to be made again, until they are.

They are made again in short transactions, so the order of a person to forget keeps no writer waiting. Whichever process follows the journals
goes on where another one stopped or died, before it follows any new entry.
"""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Self

from pagein.errors import StoreError
from pagein.model.text_removal import SessionGroup
from pagein.model.values import canonical
from pagein.ports import LayerStore, ObjectStore

STANDING: Final = -1
_NAME: Final = "memory.again"


@dataclass(frozen=True, slots=True)
class RemadeObjects:
    """Objects that are made again.

    sessions: whose objects.
    digest: of what must not change: their ids, and nicknames and links of the notes among them (see `fixed_facts`).
    last: place of the last entry to follow again. place: of the last one that was; `STANDING` while objects are still to be dropped.
    """

    sessions: frozenset[str]
    digest: str
    last: int
    place: int

    @classmethod
    def load(cls, store: LayerStore) -> Self | None:
        """Return what is left to make again, if anything. Raises StoreError."""
        found = store.layer(_NAME)
        if found is None or not found[1]:
            return None
        try:
            sessions, digest, last = json.loads(found[1])
            return cls(frozenset(sessions), digest, last, found[0])
        except ValueError as problem:
            raise StoreError("the store cannot tell which objects it makes again; run `pagein reindex`") from problem

    def save(self, store: LayerStore) -> None:
        """Keep what is left. Raises StoreError."""
        store.set_layer(_NAME, self.place, json.dumps([sorted(self.sessions), self.digest, self.last]))


def forget_remade(store: LayerStore) -> None:
    """Note that nothing is left to make again. Raises StoreError."""
    if store.layer(_NAME) is not None:
        store.set_layer(_NAME, 0, "")


def fixed_facts(store: ObjectStore, group: SessionGroup) -> str:
    """Return a digest of the ids of objects, and of nicknames and links of each version of their notes.

    They depend on the objects there are when a version is made, and some of these came later.
    """
    notes = tuple(
        (name, one.number, one.nickname, one.metadata.get("links"))
        for name in sorted(group.notes)
        for one in store.history(name)
    )
    return sha256(canonical((tuple(sorted(group.objects)), notes)).encode("utf-8", "surrogatepass")).hexdigest()
