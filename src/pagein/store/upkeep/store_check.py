"""Whether a store keeps what it promises, and the repair of what can be repaired.

Everything is read and proven: each blob by its hash, each object and stub by recalling it, each version by its record, each
reference, each journal entry by its place in the tree. What a journal itself claims about files (law 2) is audited by whoever
brings `audit`, as only the engine understands its notes.
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

Kind: TypeAlias = Literal[
    "database", "blob", "object", "version", "reference", "entry", "session", "stub", "thinking", "turn", "answer"
]
Audit: TypeAlias = Callable[[Sequence[Entry]], Sequence[str]]
Tick: TypeAlias = Callable[[str], object]
_FURTHEST: Final = 40
"""How far behind a damaged version one that can be read is sought: so many powers of two."""


@dataclass(frozen=True, slots=True)
class StoreFault:
    """Something that is not as it should be. where: the thing's name. repaired: it is as it should be by now."""

    kind: Kind
    where: str
    why: str
    repaired: bool = False


@dataclass(slots=True)
class CheckReport:
    """What a check found. counts: how many things of each kind were looked at. unresolved: references that lead nowhere yet, which is no fault."""

    counts: dict[str, int] = field(default_factory=dict)
    findings: list[StoreFault] = field(default_factory=list)
    unresolved: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong, or nothing any more."""
        return all(one.repaired for one in self.findings)

    def count(self, kind: str) -> None:
        """One more thing was looked at."""
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def add(self, kind: Kind, where: str, why: str, *, repaired: bool = False) -> None:
        """Something is wrong."""
        self.findings.append(StoreFault(kind, where, why, repaired))


@dataclass(slots=True)
class CheckRun:
    """A check under way. good: blobs that were proven. audit: objections against the answers told of by the entries of one session."""

    store: WholeStore
    report: CheckReport
    audit: Audit
    tick: Tick
    good: set[ContentHash] = field(default_factory=set)
    bad: dict[ContentHash, str] = field(default_factory=dict)

    def saw(self, kind: str) -> None:
        """One more thing was looked at."""
        self.report.count(kind)
        self.tick(kind)

    def lacks(self, name: ContentHash) -> str | None:
        """Why these bytes cannot be had, None where they can."""
        return None if name in self.good else self.bad.get(name, f"nothing is stored under {name}")


def check_contents(checked: CheckRun) -> None:
    """The database beneath, blobs, objects and versions. Raises StoreError where the store cannot be opened."""
    for fault in checked.store.faults():
        checked.report.add("database", "file", fault)
    guard_check(checked, "blob", lambda: _check_blobs(checked))
    guard_check(checked, "object", lambda: _check_objects(checked))
    guard_check(checked, "version", lambda: _check_versions(checked))


def guard_check(checked: CheckRun, kind: Kind, look: Callable[[], None], where: str = "all of them") -> None:
    """Look at some things; where they cannot even be looked at, that is what was found."""
    try:
        look()
    except Exception as problem:  # noqa: BLE001 -- a damaged row may have any shape, and no shape may stop a check
        checked.report.add(kind, where, f"cannot be looked at: {type(problem).__name__}: {problem}")


def _check_blobs(checked: CheckRun) -> None:
    for name in checked.store.names():
        checked.saw("blob")
        try:
            checked.store.get(name)
        except (DamagedBlob, MissingBlob) as problem:
            checked.bad[name] = str(problem)
            checked.report.add("blob", name.hex, str(problem))
        else:
            checked.good.add(name)


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
    try:
        chars = len(decode_content(checked.store.get(stored.content)))
    except UnicodeDecodeError:
        return  # bytes that are no text have no characters to count
    if chars != stored.chars:
        checked.report.add("object", str(stored.id), f"has {chars} characters, its record says {stored.chars}")


def _check_versions(checked: CheckRun) -> None:
    numbers: dict[str, int] = {}
    for version in _versions(checked):
        checked.saw("version")
        where = f"version {version.number} of {version.id}"
        last = numbers.get(version.id, 0)
        if version.number != last + 1:
            checked.report.add("version", where, f"comes behind number {last}")
        numbers[version.id] = version.number
        try:
            _check_version(checked, version, where)
        except StoreError as problem:
            checked.report.add("version", where, str(problem))
    for object_id, last in numbers.items():
        _check_newest(checked, object_id, last)


def _versions(checked: CheckRun, page: int = 200) -> Iterator[Version]:
    """All versions that can be read. One that cannot be read hides the page it is on, so that page is read one by one, up to the next one
    that can be read; where there is none, nothing behind it can be looked at.
    """
    after, size, readable = 0, page, 0
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
        after, size = versions[-1].sequence, page


def _readable_behind(checked: CheckRun, after: int) -> int:
    """A sequence behind which the store answers again, sought ever further away; 0 where there is none."""
    for power in range(_FURTHEST):
        with contextlib.suppress(StoreError):
            checked.store.log(after + (1 << power), 1)
            return after + (1 << power)
    return 0


def _check_version(checked: CheckRun, version: Version, where: str) -> None:
    if view_hash_of(version) != version.metadata_view_hash:
        checked.report.add("version", where, "its metadata view has another hash")
    contents = [version.content_hash] if version.content_hash is not None else []
    lacking = [why for name in (*contents, *version.additional.values()) if (why := checked.lacks(name)) is not None]
    if lacking:
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
    """Whether a nickname leads to its object, or to another whose id it is: ids go before nicknames."""
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
