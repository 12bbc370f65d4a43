"""Resolve references, given the lookups of a store."""

from collections.abc import Callable
from dataclasses import dataclass

from pagein.model.links import Found, Resolution, UnresolvedReference
from pagein.model.names import ContentHash
from pagein.model.references import Pin, Reference
from pagein.model.versions import Version
from pagein.ports import ObjectStore

ByHash = Callable[[str, ContentHash], Version | None]


def resolve_reference(store: ObjectStore, by_hash: ByHash, reference: Reference) -> Resolution | UnresolvedReference:
    """Resolve a reference as specified by `ObjectStore.resolve`.

    by_hash: returns the newest version of an object with a given object hash
    """
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
    """The texts by which references name an object.

    id: in static references
    names: in dynamic references
    pinned: only static references with this object hash
    """

    id: str
    names: frozenset[str]
    pinned: ContentHash | None

    def met_by(self, reference: Reference) -> bool:
        """Return whether a reference points to this target."""
        if reference.pin is None:
            return self.pinned is None and reference.target in self.names
        return reference.target == self.id and self.pinned in (None, reference.pin.object)


def target_of(store: ObjectStore, text: str, pinned: ContentHash | None) -> ReferenceTarget:
    """Return the target for an id, a nickname, or a text that names nothing yet."""
    meant = store.current(text)
    if meant is None:
        return ReferenceTarget(text, frozenset({text}), pinned)
    names = {meant.id}
    # an id has precedence, so a nickname equal to an id means the other object
    if meant.nickname is not None and store.version(meant.nickname, 1) is None:
        names.add(meant.nickname)
    return ReferenceTarget(meant.id, frozenset(names), pinned)
