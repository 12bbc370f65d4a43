"""In-memory objects with versions: the shortest implementation of ObjectStore, and the reference for other stores."""

from collections.abc import Sequence
from functools import partial
from itertools import islice

from pagein.errors import StoreError
from pagein.model.links import Backlink, Link, Resolution, UnresolvedReference
from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.values import Value, place_order
from pagein.model.version_hash import SealedDraft, decode_content, value_of
from pagein.model.versions import Version
from pagein.model.writes import Change, Outcome, Query, Write, Written, matches, query_order
from pagein.store.memory.memory_blobs import MemoryBlobs
from pagein.store.rules.reference_target import resolve_reference, target_of
from pagein.store.rules.write_rules import AppendVersion, Earlier, RememberedAnswer, WriteFacts, decide


class MemoryStore(MemoryBlobs):
    """An in-process BlobStore and ObjectStore without persistence. Keeps every other promise of the real stores."""

    def __init__(self) -> None:
        super().__init__()
        self._log: list[Version] = []
        self._history: dict[str, list[Version]] = {}
        self._placed: list[tuple[tuple[str, Reference], ...]] = []
        self._requests: dict[str, Earlier] = {}

    def write(self, write: Write) -> Outcome:
        sealed = SealedDraft.of(write.draft)
        with self._writer:
            current = self._newest(write.draft.id)
            facts = WriteFacts(self._requests.get(write.request), current, self._holder(write.draft.nickname))
            match decide(write, sealed, facts):
                case AppendVersion(number, change):
                    version = self._append_version(write, sealed, number)
                    self._remember(write.request, sealed, version, change)
                    return Written(version, change)
                case RememberedAnswer(answer):
                    self._remember(write.request, sealed, answer.version, answer.change)
                    return answer
                case answer:
                    return answer

    def answered(self, request: str) -> Version | None:
        earlier = self._requests.get(request)
        return None if earlier is None else earlier.version

    def current(self, name: str) -> Version | None:
        found = self._newest(name)
        holder = self._holder(name) if found is None else None
        return found if holder is None else self._newest(holder)

    def version(self, object_id: str, number: int) -> Version | None:
        return next((one for one in self._history.get(object_id, ()) if one.number == number), None)

    def as_of(self, object_id: str, at: float) -> Version | None:
        until = (one for one in self._history.get(object_id, ()) if one.at <= at)
        return max(until, key=lambda one: (one.at, one.number), default=None)

    def history(self, object_id: str) -> Sequence[Version]:
        return tuple(self._history.get(object_id, ()))

    def latest_versions(self, object_id: str, most: int | None = None) -> Sequence[Version]:
        versions = self._history.get(object_id, ())
        return tuple(sorted(versions, key=lambda one: (one.at, one.number), reverse=True)[:most])

    def objects(self, query: Query) -> Sequence[Version]:
        newest = sorted(self._heads(), key=partial(query_order, query), reverse=True)
        return tuple(islice((one for one in newest if matches(query, one)), query.limit))

    def log(self, after: int = 0, limit: int | None = None) -> Sequence[Version]:
        first = max(after, 0)
        return tuple(self._log[first : None if limit is None else first + max(limit, 0)])

    def content(self, version: Version) -> str | None:
        return None if version.content_hash is None else decode_content(self.get(version.content_hash))

    def additional(self, version: Version, name: str) -> Value:
        return value_of(self.get(version.additional[name])) if name in version.additional else None

    def load(self, names: Sequence[ContentHash]) -> Sequence[bytes | StoreError]:
        return [self._one(name) for name in names]

    def resolve(self, reference: Reference) -> Resolution | UnresolvedReference:
        return resolve_reference(self, self._by_hash, reference)

    def references(self, version: Version) -> Sequence[Link]:
        return tuple(Link(path, one, isinstance(self.resolve(one), Resolution)) for path, one in self._links(version))

    def backlinks(
        self, target: str, *, pinned: ContentHash | None = None, ever: bool = False, most: int | None = None
    ) -> Sequence[Backlink]:
        wanted = target_of(self, target, pinned)
        sources = sorted(self._log if ever else self._heads(), key=lambda one: (one.at, one.sequence), reverse=True)
        found = (
            Backlink(source, path, reference)
            for source in sources
            for path, reference in self._links(source)
            if wanted.met_by(reference)
        )
        return tuple(islice(found, most))

    def contents(self, after: int = 0) -> tuple[frozenset[ContentHash], int]:
        later = self._log[after:]
        return frozenset().union(*(version.contents for version in later)), after + len(later)

    def _one(self, name: ContentHash) -> bytes | StoreError:
        try:
            return self.get(name)
        except StoreError as problem:
            return problem

    def _newest(self, object_id: str) -> Version | None:
        history = self._history.get(object_id)
        return history[-1] if history else None

    def _heads(self) -> list[Version]:
        with self._writer:
            return [history[-1] for history in self._history.values() if history]

    def _holder(self, nickname: str | None) -> str | None:
        return None if nickname is None else next((one.id for one in self._heads() if one.nickname == nickname), None)

    def _by_hash(self, object_id: str, name: ContentHash) -> Version | None:
        return next((one for one in reversed(self._history.get(object_id, ())) if one.object_hash == name), None)

    def _links(self, version: Version) -> Sequence[tuple[str, Reference]]:
        return self._placed[version.sequence - 1]

    def _append_version(self, write: Write, sealed: SealedDraft, number: int) -> Version:
        sequence = len(self._log) + 1
        version = sealed.version(sequence=sequence, number=number, at=write.at, writer=write.writer)
        if sealed.content is not None:
            self.put(sealed.content)
        self.put_many([data for _, data in sealed.additional])
        history = self._history.setdefault(version.id, [])
        history.append(version)
        self._log.append(version)
        before = history[-2] if len(history) > 1 else None
        changed = None if before is None else sealed.changed_places(before.additional)
        links = () if before is None or changed is None else self._links(before)
        carried = [one for one in links if not one[0].startswith(changed or "")]
        self._placed.append(tuple(sorted((*sealed.references, *carried), key=lambda one: place_order(one[0]))))
        self._undone_by(lambda: (history.pop(), self._log.pop(), self._placed.pop()))
        return version

    def _remember(self, request: str, sealed: SealedDraft, version: Version, change: Change) -> None:
        self._requests[request] = Earlier(sealed.object_hash, version, change)
        self._undone_by(lambda: self._requests.pop(request))
