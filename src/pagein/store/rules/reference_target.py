"""What a reference means, given what a store can look up."""

from collections.abc import Callable
from dataclasses import dataclass

from pagein.model.links import Found, Resolution, UnresolvedReference
from pagein.model.names import ContentHash
from pagein.model.references import Pin, Reference
from pagein.model.versions import Version
from pagein.ports import ObjectStore

ByHash = Callable[[str, ContentHash], Version | None]


def resolve_reference(store: ObjectStore, by_hash: ByHash, reference: Reference) -> Resolution | UnresolvedReference:
    """The contract of `ObjectStore.resolve`. by_hash: the newest version of an object with this object hash."""
    if reference.pin is not None:
        return _static(store, by_hash, reference, reference.pin)
    version = store.current(reference.target)
    if version is None:
        return UnresolvedReference(reference, "no such object")
    return Resolution(reference, version, "id" if version.id == reference.target else "nickname")


def _static(store: ObjectStore, by_hash: ByHash, reference: Reference, pin: Pin) -> Resolution | UnresolvedReference:
    found: Found = "time"
    version = store.as_of(reference.target, pin.at)
    if version is None or version.object_hash != pin.object:
        found, version = "hash", by_hash(reference.target, pin.object)
    if version is None:
        there = store.version(reference.target, 1) is not None
        return UnresolvedReference(reference, "no such version" if there else "no such object")
    if (version.content_hash, version.metadata_view_hash) != (pin.content, pin.view):
        return UnresolvedReference(reference, "hashes disagree")
    return Resolution(reference, version, found)


@dataclass(frozen=True, slots=True)
class ReferenceTarget:
    """What the references to an object say. id: in static ones. names: in dynamic ones. pinned: only static ones with this hash."""

    id: str
    names: frozenset[str]
    pinned: ContentHash | None

    def met_by(self, reference: Reference) -> bool:
        """Whether a reference means this."""
        if reference.pin is None:
            return self.pinned is None and reference.target in self.names
        return reference.target == self.id and self.pinned in (None, reference.pin.object)


def target_of(store: ObjectStore, text: str, pinned: ContentHash | None) -> ReferenceTarget:
    """The target under an id or nickname, or under a text that names nothing yet."""
    meant = store.current(text)
    if meant is None:
        return ReferenceTarget(text, frozenset({text}), pinned)
    names = {meant.id}
    # an id goes before a nickname, so a nickname that is also an id means somebody else
    if meant.nickname is not None and store.version(meant.nickname, 1) is None:
        names.add(meant.nickname)
    return ReferenceTarget(meant.id, frozenset(names), pinned)
