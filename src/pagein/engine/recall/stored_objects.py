"""The objects of a store, for reading: their versions, contents and references, and walks along these.

Rules of this file
------------------
1. Nothing here writes, and only `content`, `field` and `expand` load content.
2. A static reference leads to the version that it pins, verified by its hashes, or to none.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pagein.engine.recall.named_objects import find_version
from pagein.engine.recall.reference_graph import ALL, Direction, Expansion, Selection, Walk, expand, select, walk
from pagein.engine.recall.stored_chats import TurnPlaces, read_turns
from pagein.errors import NotRecallable
from pagein.model.chats import turns_as_text
from pagein.model.identifiers import version_named
from pagein.model.links import Backlink, Link, Resolution, UnresolvedReference
from pagein.model.references import Reference
from pagein.model.values import Fields, Value
from pagein.model.versions import Version
from pagein.model.writes import Query
from pagein.ports import ObjectStore

_LINK: Final = re.compile(r"\[\[([^\[\]|#^\n]{1,200})")
_OBJECTS: Final = Query()


@dataclass(frozen=True, slots=True)
class ShownLink:
    """A link `[[name]]` in a shown text, and the object of this name."""

    name: str
    target: Resolution | UnresolvedReference


class StoredObjects:
    """The objects of a store. An object is named by its id or nickname, a version of it with `@` and its number.

    refresh: brings the objects up to the journals; called before a query for objects
    """

    def __init__(self, store: ObjectStore, refresh: Callable[[], object] = lambda: None) -> None:
        self._store = store
        self._refresh = refresh

    def find(self, query: Query = _OBJECTS) -> Sequence[Version]:
        """Return the newest versions of the objects that match a query, newest first. Raises StoreError."""
        self._refresh()
        return self._store.objects(query)

    def get(self, name: str) -> Version:
        """Return the version of this name. Raises NotRecallable if there is none, and StoreError."""
        found, asked = self._store.current(name), version_named(name)
        if found is None and asked is not None:
            meant = self._store.current(asked[0])
            found = None if meant is None else self._store.version(meant.id, asked[1])
        if found is None:
            raise NotRecallable(f"no stored object or version has the name {name[:80]!r}")
        return found

    def named(self, name: str, paths: Sequence[str] = ()) -> Version:
        """Return the version that a model names: also by a path, the name of a session, or a beginning that only one has.

        paths: those that the name may mean, the most likely first; empty for the name itself.
        Raises BadInput for a name of several objects; NotRecallable; StoreError.
        """
        self._refresh()
        return find_version(self._store, name, paths=lambda given: paths or (given,))

    def places(self) -> TurnPlaces:
        """Return a finder of the turns in which versions were made, with the chats as they are now."""
        return TurnPlaces(self._store)

    def history(self, name: str) -> Sequence[Version]:
        """Return every version of an object, oldest first. Raises NotRecallable and StoreError."""
        return self._store.history(self.get(name).id)

    def content(self, version: Version) -> str | None:
        """Return the content of a version; None for a version without content. Raises StoreError."""
        return self._store.content(version)

    def field(self, version: Version, name: str) -> Value:
        """Return an additional field of a version; None for an unknown field. Raises StoreError."""
        return self._store.additional(version, name)

    def turns_text(self, chat: Version, first: int = 1, last: int | None = None) -> str:
        """Return turns of a chat as text; "" for absent turns. Raises BadInput for an unknown form, and StoreError."""
        return turns_as_text([turn for _, turn in read_turns(self._store, chat, first, last)])

    def summaries(self, chat: Version) -> tuple[str, str] | None:
        """Return the newest long and short summary of a chat, or None. Raises StoreError."""
        versions = (one for one in reversed(self._store.history(chat.id)) if "long_summary" in one.additional)
        found = next(versions, None)
        if found is None:
            return None
        return str(self.field(found, "long_summary")), str(self.field(found, "short_summary") or "")

    def references(self, version: Version) -> Sequence[Link]:
        """Return the references in a version, in the order of their places. Raises StoreError."""
        return self._store.references(version)

    def backlinks(self, name: str, *, ever: bool = False) -> Sequence[Backlink]:
        """Return the references to an object or unused name, with `ever` also from older versions. Raises StoreError."""
        return self._store.backlinks(name, ever=ever)

    def resolve(self, reference: Reference) -> Resolution | UnresolvedReference:
        """Return the version of a reference, a pinned version verified by its hashes. Raises StoreError."""
        return self._store.resolve(reference)

    def select(self, version: Version, selection: Selection = ALL) -> tuple[Link, ...]:
        """Return the selected references in a version (see `reference_graph.select`)."""
        return select(self._store, version, selection)

    def expand(self, links: Iterable[Link], fields: Sequence[str] | None = None) -> tuple[Expansion, ...]:
        """Load what stands behind references (see `reference_graph.expand`)."""
        return expand(self._store, links, fields)

    def walk(
        self,
        start: Iterable[Version],
        *,
        steps: int,
        direction: Direction = "out",
        selection: Selection = ALL,
        most: int = 1_000,
    ) -> Walk:
        """Follow references breadth first (see `reference_graph.walk`)."""
        return walk(self._store, start, steps=steps, direction=direction, selection=selection, most=most)

    def links_shown(self, name: str, text: str) -> tuple[ShownLink, ...]:
        """Return what the links `[[name]]` in a part of an object's text name, each once, in their order.

        Only a note has links to what is not there; in other texts, such as shell scripts, such brackets mean something else.
        Raises StoreError. Empty for an object without versions.
        """
        names = tuple(dict.fromkeys(found.strip() for found in _LINK.findall(text)))
        if not names:
            return ()
        try:
            shown = self.get(name)
        except NotRecallable:
            return ()
        meant = _written_links(shown)
        found = (ShownLink(one, self._store.resolve(meant.get(one, Reference(one)))) for one in names if one)
        return tuple(one for one in found if shown.type == "note" or isinstance(one.target, Resolution))


def _written_links(version: Version) -> dict[str, Reference]:
    """Return the references of a note's links, by their text. A link may name its target by a path from its own folder."""
    links = version.metadata.get("links")
    found: dict[str, Reference] = {}
    for link in links if isinstance(links, tuple) else ():
        if isinstance(link, Fields):
            text, to = link.get("text"), link.get("to")
            if isinstance(text, str) and isinstance(to, Reference):
                found.setdefault(text, to)
    return found
