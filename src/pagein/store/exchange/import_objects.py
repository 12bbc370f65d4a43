"""The evicted objects of an export: its records `object`, and the entries of journals that name them.

Rules of this file
------------------
1. A known object stays unchanged. Its result is the same one where a text was erased from it, or its content withheld, in one of the
   two stores; entries then name the content that is here.
2. An object that expired here comes back.
3. Objects are stored behind the journals, which tell whether an object may show an excluded file.
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
from pagein.store.exchange.private_evictions import NOTICE, PrivateEvictions

_Evicted = TypeVar("_Evicted", PagedOut, TurnsLeft, ThinkingObject)


class ImportObjects:
    """Reader of the records `object`.

    look: returns the content with a hash, of the file or of the store
    take_content: the same, for content that is stored
    patterns: names of excluded files
    left_behind: hashes of content that is not taken, because an object has other content here
    """

    def __init__(
        self,
        store: WholeStore,
        look: Callable[[ContentHash], bytes],
        take_content: Callable[[ContentHash], bytes],
        patterns: tuple[str, ...],
    ) -> None:
        self.left_behind: set[ContentHash] = set()
        self._store = store
        self._look = look
        self._take_content = take_content
        self.evictions = PrivateEvictions(patterns=patterns)
        self._here: dict[str, ContentHash] = {}
        """The content here of objects in the file."""
        self._fresh: list[StoredObject] = []

    def take(self, fields: Fields) -> bool:
        """Read an object. Return whether it is new here. Raises BadInput for a contradiction."""
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
        is_expired = found is not None and found.kind == EXPIRED
        if found is None or (is_expired and (found.content, found.workspace) == (stored.content, stored.workspace)):
            self._fresh.append(stored)
            return True
        if (found.content, found.workspace, found.kind) == (stored.content, stored.workspace, stored.kind):
            self._take_content(stored.content)
        elif not is_expired and self._is_same_result(found, stored, content):
            self.left_behind.add(stored.content)
        else:
            raise BadInput(f"the id {stored.id} means something else here")
        self._here[str(stored.id)] = found.content
        return False

    def store(self) -> int:
        """Store the new objects, behind all entries. Return how many of them have a notice in place of their content."""
        withheld = 0
        for one in self._fresh:
            stored = self.evictions.record(one)
            if stored is not one:
                withheld += 1
                self.left_behind.add(one.content)
            self._store.put_objects([(stored, NOTICE if stored is not one else self._take_content(one.content))])
        return withheld

    def entry(self, entry: Entry) -> Entry:
        """Return an entry that names the content of objects here; the same object if the file's content is here."""
        match entry.body if self._here else None:
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
        return replace(evicted, content=self._here.get(evicted.object_id, evicted.content))

    def _is_same_result(self, found: StoredObject, stored: StoredObject, content: bytes) -> bool:
        """Return whether two records are of one evicted text, from which something was taken in one store."""
        if (found.origin, found.workspace, found.kind) != (stored.origin, stored.workspace, stored.kind):
            return False
        told = (content, self._store.get(found.content))
        return NOTICE in told or any(holds_erasure(one.decode("utf-8", "replace")) for one in told)
