"""The evicted objects of an export: its records `object`, and the entries of journals that name them.

Rules of this file
------------------
1. A known object stays unchanged. Its result is the same one where a text was erased from it in one of the two stores; entries then name
   the content that is here.
2. An object that expired here comes back.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from pagein.errors import BadInput
from pagein.model.entries import Entry, EpochEntry, PagedOut, PreviewEntry, ThinkingObject, TurnsLeft
from pagein.model.names import ContentHash
from pagein.model.objects import EXPIRED, ObjectId, Origin, StoredObject
from pagein.policy.privacy.erasure import holds_erasure
from pagein.ports import WholeStore
from pagein.store.exchange.exporter import Fields
from pagein.store.exchange.import_bounds import chars_of, count, text

_Evicted = TypeVar("_Evicted", PagedOut, TurnsLeft, ThinkingObject)


class ImportObjects:
    """Reader of the records `object`.

    look: returns the content with a hash, of the file or of the store
    take_content: the same, for content that is stored
    left_behind: hashes of content that is not taken, because an object has other content here
    """

    def __init__(
        self,
        store: WholeStore,
        look: Callable[[ContentHash], bytes],
        take_content: Callable[[ContentHash], bytes],
    ) -> None:
        self.left_behind: set[ContentHash] = set()
        self._store = store
        self._look = look
        self._take_content = take_content
        self._kept: dict[str, ContentHash] = {}
        """The content here, by the ids of objects with other content in the file."""

    def take(self, fields: Fields) -> bool:
        """Store an object. Return whether it is new here. Raises BadInput for a contradiction."""
        stored = StoredObject(
            ObjectId.parse(text(fields["id"])),
            ContentHash.parse(text(fields["content"])),
            text(fields["kind"]),
            text(fields["workspace"]),
            Origin(text(fields["session"]), text(fields["call_id"])),
            text(fields["description"]),
            count(fields["tokens"], "tokens"),
            count(fields["chars"], "chars"),
        )
        content = self._look(stored.content)
        if (chars := chars_of(content)) not in (None, stored.chars):
            raise BadInput(f"the content has {chars} characters, and not {stored.chars}")
        found = self._store.find(stored.id)
        if found is not None and found.kind != EXPIRED:
            if (found.content, found.workspace, found.kind) == (stored.content, stored.workspace, stored.kind):
                self._take_content(stored.content)
                return False
            if self._is_same_result(found, stored, content):
                self._kept[str(stored.id)] = found.content
                self.left_behind.add(stored.content)
                return False
        if self._store.put_objects([(stored, self._take_content(stored.content))]):
            raise BadInput(f"the id {stored.id} means something else here")
        return found is None or found.kind == EXPIRED

    def entry(self, entry: Entry) -> Entry:
        """Return an entry that names the content of objects here; the same object if the file's content is here."""
        match entry.body if self._kept else None:
            case PreviewEntry(paged=paged) as body:
                body = replace(body, paged=tuple(map(self._as_here, paged)))
            case EpochEntry(paged=paged, thought=thought, turns=turns) as body:
                body = replace(
                    body,
                    paged=tuple(map(self._as_here, paged)),
                    thought=None if thought is None else self._as_here(thought),
                    turns=tuple(map(self._as_here, turns)),
                )
            case _:
                return entry
        return entry if body == entry.body else replace(entry, body=body)

    def _as_here(self, evicted: _Evicted) -> _Evicted:
        return replace(evicted, content=self._kept.get(evicted.object_id, evicted.content))

    def _is_same_result(self, found: StoredObject, stored: StoredObject, content: bytes) -> bool:
        """Return whether two records are of one evicted text, from which something was erased in one store."""
        if (found.origin, found.workspace, found.kind) != (stored.origin, stored.workspace, stored.kind):
            return False
        told = (content, self._store.get(found.content))
        return any(holds_erasure(one.decode("utf-8", "replace")) for one in told)
