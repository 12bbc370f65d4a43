"""Check the integrity of a store.

Everything is read and verified: each blob by its hash, each object and stub by a recall, each version by its record, each
reference, each journal entry by its place in the tree. Claims of a journal about files (law 2) are verified by the `audit`
argument, because only the engine understands its notes.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from pagein.errors import DamagedBlob, MissingBlob, StoreError
from pagein.model.entries import Entry
from pagein.model.links import UnresolvedReference
from pagein.model.names import ContentHash
from pagein.model.objects import EXPIRED, StoredObject
from pagein.model.version_hash import SealedDraft, decode_content, view_hash_of
from pagein.model.versions import Version
from pagein.ports import WholeStore
from pagein.store.upkeep.version_proofs import VersionProofs

Kind: TypeAlias = Literal[
    "database",
    "blob",
    "object",
    "version",
    "reference",
    "entry",
    "session",
    "stub",
    "thinking",
    "turn",
    "answer",
    "projection",
]
Audit: TypeAlias = Callable[[Sequence[Entry]], Sequence[str]]
Tick: TypeAlias = Callable[[str], object]
_FURTHEST: Final = 40
"""Range of the search for a readable version after a damaged version, in powers of two."""
_PAGE: Final = 200
"""Versions that are read at once."""


@dataclass(frozen=True, slots=True)
class StoreFault:
    """A fault of the store.

    where: name of the faulty record
    repaired: whether the fault is repaired by now
    """

    kind: Kind
    where: str
    why: str
    repaired: bool = False


@dataclass(slots=True)
class CheckReport:
    """Result of a check.

    counts: number of checked records, by kind
    unresolved: references without a target yet, which is not a fault
    behind: places that each derived layer has not followed yet, which is not a fault
    """

    counts: dict[str, int] = field(default_factory=dict)
    findings: list[StoreFault] = field(default_factory=list)
    unresolved: int = 0
    behind: dict[str, int] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        """Return whether every fault, if any, is repaired."""
        return all(one.repaired for one in self.findings)

    def count(self, kind: str, count: int) -> None:
        """Count checked records."""
        self.counts[kind] = self.counts.get(kind, 0) + count

    def add(self, kind: Kind, where: str, why: str, *, repaired: bool = False) -> None:
        """Add a fault."""
        self.findings.append(StoreFault(kind, where, why, repaired))


@dataclass(slots=True)
class CheckRun:
    """A running check.

    good: verified blobs, with the number of characters; None for bytes that are no text
    bad: damaged blobs, with the reason
    audit: returns objections against the read answers in a session's entries
    """

    store: WholeStore
    report: CheckReport
    audit: Audit
    tick: Tick
    good: dict[ContentHash, int | None] = field(default_factory=dict)
    bad: dict[ContentHash, str] = field(default_factory=dict)

    def saw(self, kind: str, count: int = 1) -> None:
        """Count checked records and report progress."""
        if count:
            self.report.count(kind, count)
            self.tick(kind)

    def lacks(self, name: ContentHash) -> str | None:
        """Return why content is unavailable, or None if verified."""
        return None if name in self.good else self.bad.get(name, f"nothing is stored under {name}")


def check_contents(checked: CheckRun) -> None:
    """Check the database, blobs, objects and versions. Raises StoreError if the store cannot be opened."""
    for fault in checked.store.faults():
        checked.report.add("database", "file", fault)
    guard_check(checked, "blob", lambda: _check_blobs(checked))
    guard_check(checked, "object", lambda: _check_objects(checked))
    guard_check(checked, "version", lambda: _check_versions(checked))


def guard_check(checked: CheckRun, kind: Kind, look: Callable[[], None], where: str = "all of them") -> None:
    """Run a check, and report its failure as a fault."""
    try:
        look()
    except Exception as problem:  # noqa: BLE001 -- a damaged row may have any shape, and no shape may stop a check
        checked.report.add(kind, where, f"cannot be looked at: {type(problem).__name__}: {problem}")


def _check_blobs(checked: CheckRun) -> None:
    for name in checked.store.names():
        checked.saw("blob")
        try:
            content = checked.store.get(name)
        except (DamagedBlob, MissingBlob) as problem:
            checked.bad[name] = str(problem)
            checked.report.add("blob", name.hex, str(problem))
        else:
            checked.good[name] = _chars_of(content)


def _chars_of(content: bytes) -> int | None:
    try:
        return len(decode_content(content))
    except UnicodeDecodeError:
        return None


def _check_objects(checked: CheckRun) -> None:
    for stored in checked.store.paged_objects():
        checked.saw("object")
        _check_object(checked, stored)


def _check_object(checked: CheckRun, stored: StoredObject) -> None:
    if stored.kind == EXPIRED:
        return
    lacking = checked.lacks(stored.content)
    if lacking is not None:
        checked.report.add("object", str(stored.id), f"cannot be recalled: {lacking}")
        return
    chars = checked.good[stored.content]
    if chars not in (None, stored.chars):
        checked.report.add("object", str(stored.id), f"has {chars} characters, its record says {stored.chars}")


def _check_versions(checked: CheckRun) -> None:
    numbers: dict[str, int] = {}
    proofs = VersionProofs(checked.store, checked.good)
    for version in _versions(checked):
        checked.saw("version")
        where = f"version {version.number} of {version.id}"
        last = numbers.get(version.id, 0)
        if version.number != last + 1:
            checked.report.add("version", where, f"comes behind number {last}")
        numbers[version.id] = version.number
        known = None if _lacking(checked, version) else proofs.references(version)
        if known is not None:
            count, unresolved = known
            checked.saw("reference", count)
            checked.report.unresolved += unresolved
            continue
        try:
            _check_version(checked, version, where)
        except StoreError as problem:
            checked.report.add("version", where, str(problem))
    for object_id, last in numbers.items():
        _check_newest(checked, object_id, last)


def _versions(checked: CheckRun) -> Iterator[Version]:
    """Yield every readable version.

    A damaged version spoils its whole page, so that page is read version by version, up to the next readable version.
    If there is none, the rest cannot be checked.
    """
    after, size, readable = 0, _PAGE, 0
    while True:
        try:
            versions = checked.store.log(after, size)
        except StoreError as problem:
            if size == 1:
                readable = max(readable, _readable_behind(checked, after))
                if readable <= after:
                    checked.report.add("version", f"sequence {after + 1} and all behind it", str(problem))
                    return
                checked.report.add("version", f"sequence {after + 1}", str(problem))
                after += 1
            size = 1
            continue
        if not versions:
            return
        yield from versions
        after, size = versions[-1].sequence, _PAGE


def _readable_behind(checked: CheckRun, after: int) -> int:
    """Return a later sequence with readable versions after it, searched at growing distance; 0 if not found."""
    for power in range(_FURTHEST):
        with contextlib.suppress(StoreError):
            checked.store.log(after + (1 << power), 1)
            return after + (1 << power)
    return 0


def _lacking(checked: CheckRun, version: Version) -> list[str]:
    """Return why blobs of a version are unavailable."""
    contents = [version.content_hash] if version.content_hash is not None else []
    return [why for name in (*contents, *version.additional.values()) if (why := checked.lacks(name)) is not None]


def _check_version(checked: CheckRun, version: Version, where: str) -> None:
    if view_hash_of(version) != version.metadata_view_hash:
        checked.report.add("version", where, "its metadata view has another hash")
    if lacking := _lacking(checked, version):
        checked.report.add("version", where, lacking[0])
        return
    additional = {name: checked.store.additional(version, name) for name in version.additional}
    sealed = SealedDraft.of(version.draft(checked.store.content(version), additional))
    if sealed.object_hash != version.object_hash or sealed.chars != version.chars:
        checked.report.add("version", where, "its record does not follow from its fields")
    links = checked.store.references(version)
    if {(path, reference) for path, reference in sealed.references} != {(one.path, one.reference) for one in links}:
        checked.report.add("reference", where, "the references kept are not the ones that stand in it")
    for link in links:
        checked.saw("reference")
        found = checked.store.resolve(link.reference)
        if not isinstance(found, UnresolvedReference):
            continue
        if found.why == "hashes disagree":
            checked.report.add("reference", f"{where}, {link.path}", "what it is pinned to has other hashes")
        else:
            checked.report.unresolved += 1


def _is_found(checked: CheckRun, newest: Version, nickname: str) -> bool:
    """Return whether a nickname leads to its object, or to another object with this id.

    Ids have precedence over nicknames.
    """
    found = checked.store.current(nickname)
    return found == newest or (found is not None and found.id == nickname)


def _check_newest(checked: CheckRun, object_id: str, last: int) -> None:
    try:
        newest = checked.store.current(object_id)
        if newest is None or newest.number != last:
            checked.report.add(
                "version", object_id, f"its newest version is {last}, and another one is given out as that"
            )
        elif newest.nickname is not None and not _is_found(checked, newest, newest.nickname):
            checked.report.add("version", object_id, f"is not found by its nickname {newest.nickname!r}")
    except StoreError as problem:
        checked.report.add("version", object_id, str(problem))
