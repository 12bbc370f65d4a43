"""Find the objects to leave out of an export: an import makes derived objects again from the journals.

Rules of this file
------------------
1. An object is left out only if each of its versions follows from a journal in which every entry can be read. All its content is then
   in the journal, and an import makes the same versions again.
2. Names depend on the names of all other objects. So notes, and files with orders of people, are left out only if every derived version
   of the store follows from a journal.
3. Other objects are exported with all their versions, and with the requests by which journals are followed. So following the
   journals after an import finds these versions, and doubles nothing.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pagein.model.codec import decode_entry
from pagein.model.derived_versions import ARCHIVED, is_derived, is_following, is_indexed
from pagein.model.entries import Entry, is_bridge
from pagein.model.names import ContentHash
from pagein.model.versions import Version
from pagein.ports import WholeStore
from pagein.store.upkeep.collection import hashes_in


@dataclass(frozen=True, slots=True)
class DerivedObjects:
    """The objects that an export leaves out.

    objects: ids of objects
    blobs: content that nothing but these objects needs
    requests: of the derived versions of other objects, by sequence
    """

    objects: frozenset[str] = frozenset()
    blobs: frozenset[ContentHash] = frozenset()
    requests: dict[int, list[str]] = field(default_factory=dict)


def derived_objects(store: WholeStore, log: Callable[[], Iterator[Version]]) -> DerivedObjects:
    """Find the objects that follow from the journals of a store. Raises StoreError.

    log: returns every readable version
    """
    if not any(is_derived(version.writer) for version in log()):
        return DerivedObjects()
    known = {name.hex: name for name in store.names()}
    needed = {stored.content for stored in store.paged_objects()}
    whole = {one.name for one in store.sessions() if one.leaf is not None}
    for line in store.journal_lines():
        entry = None if line.damaged else decode_entry(line.line)
        if not isinstance(entry, Entry) or is_bridge(entry):
            whole.discard(line.session)
        needed.update(hashes_in(line.line, known))
    others = {version.id for version in log() if not _follows(version, whole)}
    if any(is_derived(version.writer) and version.id in others for version in log()):
        others |= {version.id for version in log() if _has_name(version)}
    objects, blobs, sequences = set[str](), set[ContentHash](), set[int]()
    for version in log():
        contents = {*version.additional.values(), *([version.content_hash] if version.content_hash else ())}
        if version.id not in others:
            objects.add(version.id)
            blobs |= contents
            continue
        needed |= contents
        if is_derived(version.writer):
            sequences.add(version.sequence)
    requests: dict[int, list[str]] = defaultdict(list)
    for request, sequence in store.requests() if sequences else ():
        if sequence in sequences and is_following(request):
            requests[sequence].append(request)
    return DerivedObjects(
        frozenset(objects), frozenset(blobs - needed), {at: sorted(ids) for at, ids in requests.items()}
    )


def _has_name(version: Version) -> bool:
    return version.type == "note" or (version.type == "file" and not is_indexed(version.writer))


def _follows(version: Version, whole: set[str]) -> bool:
    """Return whether a version follows from a complete journal."""
    writer = version.writer
    return is_derived(writer) and writer.kind != ARCHIVED and (writer.session is None or writer.session in whole)
