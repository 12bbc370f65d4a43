"""Export a whole store as JSON lines for other programs. The format is in docs/reference/format.md, the reader in `importer`.

Rules of this file
------------------
1. A record follows every record that it refers to, so that a reader needs a single pass. A version's blobs come directly before it,
   so that a store can keep them as a delta against the version before.
2. The last line counts the records and hashes the bytes before it, so that a truncated or changed file is detected.
3. An export is a snapshot, and depends only on stored content: equal content gives equal bytes.
4. Objects that follow from the journals in the file are left out: an import makes them again (see `derived_objects`). Each
   entry therefore has its place in the order over all sessions, in which an import follows the journals.
"""

import base64
import hashlib
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

from pagein.errors import DamagedBlob, MissingBlob
from pagein.model.codec import encode_entry
from pagein.model.json_text import decode_json, encode_json
from pagein.model.messages import UnreadableLine
from pagein.model.names import ContentHash
from pagein.model.objects import EXPIRED, StoredObject
from pagein.model.references import Reference
from pagein.model.store_inventory import OWN_JOURNAL, OWN_JOURNALS, KeptSession
from pagein.model.versions import Version
from pagein.policy.privacy.exclusions import EXCLUDED
from pagein.ports import WholeStore
from pagein.store.exchange.derived_objects import DerivedObjects, derived_objects
from pagein.store.exchange.export_redaction import (
    ExportRedaction,
    blobs_of_excluded,
    is_withheld,
    may_show_withheld,
)
from pagein.store.exchange.import_bounds import LONGEST_LINE
from pagein.store.exchange.private_evictions import NOTICE, NOTICE_NAME, PrivateEvictions, private_evictions
from pagein.store.upkeep.collection import hashes_in
from pagein.store.upkeep.journal_check import leaf_of

FORMAT: Final = 1
HEADER: Final = "export"
_PAGE: Final = 500
Fields: TypeAlias = dict[str, Any]
Tick: TypeAlias = Callable[[str], object]


@dataclass(slots=True)
class ExportReport:
    """Result of an export.

    counts: records by type
    withheld: records changed or left out by law 9
    lost: unreadable records, in words
    """

    counts: dict[str, int] = field(default_factory=dict)
    withheld: int = 0
    lost: list[str] = field(default_factory=list)


def export(
    store: WholeStore,
    write: Callable[[bytes], object],
    tick: Tick = lambda _: None,
    patterns: tuple[str, ...] = EXCLUDED,
) -> ExportReport:
    """Write the whole store, line by line. Raises StoreError, and any exception of `write`.

    tick: called with the type of each record
    patterns: names of excluded files
    """
    done = ExportReport()
    digest = hashlib.sha256()

    def line(fields: Fields) -> None:
        data = encode_json(fields) + b"\n"
        digest.update(data)
        write(data)

    store.secret()  # create a missing key before the read-only snapshot
    with store.snapshot():
        line({"pagein": HEADER, "v": FORMAT})
        for fields in _records(store, patterns, done):
            line(fields)
            kind = record_kind(fields)
            done.counts[kind] = done.counts.get(kind, 0) + 1
            tick(kind)
    total = sum(done.counts.values())
    write(encode_json({"type": "end", "records": total, "sha256": digest.hexdigest()}) + b"\n")
    return done


def _records(store: WholeStore, patterns: tuple[str, ...], done: ExportReport) -> Iterator[Fields]:
    yield {"type": "key", "key": store.secret().hex()}
    for one in sorted(store.tombstones()):
        yield {"type": "tombstone", "digest": one.digest, "chars": one.chars, "beginning": one.beginning}
    derived = derived_objects(store, partial(readable_log, store))
    withheld = _withheld_objects(store, patterns, derived)
    evicted = list(store.paged_objects())
    evictions = private_evictions(store.journal_lines() if evicted else (), patterns)
    hidden = _withheld_hashes(store, withheld, derived, evictions)
    done.withheld += sum(store.has(name) for name in hidden)
    blobs = _Blobs(store, hidden | derived.blobs | _shared_hashes(store, derived), done)
    of_versions = frozenset(
        name for version in readable_log(store) if version.id not in derived.objects for name in version.contents
    )
    objects = list(map(evictions.record, evicted))
    notice = {stored.content for stored in objects} & {NOTICE_NAME}
    for name in sorted(notice.union(store.names())):
        if name not in of_versions:
            yield from blobs.out(name)
    yield from _versions(store, withheld, derived, blobs, done)
    for stored in objects:
        if blobs.has(stored.content) and stored.kind != EXPIRED:
            yield _object_out(stored)
        elif stored.kind != EXPIRED:
            done.lost.append(f"object {stored.id}: its content is lost")
    places = array("q", _places(store))
    for session in store.sessions():
        yield from _session_out(store, session, places, ExportRedaction(evictions.in_session()), done)


def _places(store: WholeStore) -> Iterator[int]:
    """Yield the places of all entries, in ascending order."""
    last = 0
    while page := store.places(last, _PAGE):
        last = page[-1][0]
        yield from (place for place, _ in page)


def _versions(
    store: WholeStore, withheld: set[str], derived: DerivedObjects, blobs: "_Blobs", done: ExportReport
) -> Iterator[Fields]:
    numbers: Counter[str] = Counter()
    for version in readable_log(store, done):
        if version.id in derived.objects:
            continue
        if version.id in withheld:
            done.withheld += 1
            continue
        for fields in _version_with_blobs(version, blobs, done):
            if fields["type"] == "version":  # lost versions leave no gap in the numbers
                numbers[version.id] += 1
                fields["number"] = numbers[version.id]
                if version.sequence in derived.requests:
                    fields["requests"] = derived.requests[version.sequence]
            yield fields


class _Blobs:
    """The blobs of an export. Each blob is written once, before the first record with the blob."""

    def __init__(self, store: WholeStore, hidden: set[ContentHash], done: ExportReport) -> None:
        self._store = store
        self._done = done
        self._hidden = hidden
        self._written: dict[ContentHash, bool] = {}

    def out(self, name: ContentHash) -> Iterator[Fields]:
        """Yield the blob's record, unless the blob was written before, is withheld or is lost."""
        if name in self._written or name in self._hidden:
            return
        try:
            content = NOTICE if name == NOTICE_NAME else self._store.get(name)
        except (DamagedBlob, MissingBlob) as problem:
            self._written[name] = False
            self._done.lost.append(str(problem))
            return
        record = _blob_out(name, content)
        # escaping cannot make a content this short too long
        if len(content) > LONGEST_LINE // 8 and len(encode_json(record)) > LONGEST_LINE - 1:
            self._written[name] = False
            self._done.lost.append(f"the {len(content):,} bytes under {name} are too long for a line of an export")
            return
        self._written[name] = True
        yield record

    def has(self, name: ContentHash) -> bool:
        """Return whether the blob's record was already written."""
        return self._written.get(name, False)


def _version_with_blobs(version: Version, blobs: _Blobs, done: ExportReport) -> Iterator[Fields]:
    needed = sorted(version.contents)
    for name in needed:
        yield from blobs.out(name)
    if all(map(blobs.has, needed)):
        yield _version_out(version)
    else:
        done.lost.append(f"version {version.number} of {version.id}: its content is lost")


def readable_log(store: WholeStore, done: ExportReport | None = None, page: int = _PAGE) -> Iterator[Version]:
    """Yield every readable version, oldest first.

    A damaged version makes its page unreadable; the page is then read version by version.
    """
    after, size = 0, page
    while True:
        try:
            versions = store.log(after, size)
        except DamagedBlob as problem:
            if size == 1:
                after += 1
                if done is not None and str(problem) not in done.lost:
                    done.lost.append(str(problem))
            size = 1
            continue
        if not versions:
            return
        yield from versions
        after, size = versions[-1].sequence, page


def _withheld_objects(store: WholeStore, patterns: tuple[str, ...], derived: DerivedObjects) -> set[str]:
    """Return the ids of excluded files, and of calls that may show one and chats with such calls, as far as they are exported."""
    withheld = {version.id for version in readable_log(store) if is_withheld(version, patterns)}
    for version in readable_log(store):
        chat = version.metadata.get("chat_ref")
        told_in = chat.target if isinstance(chat, Reference) else version.id
        if not {version.id, told_in} <= derived.objects and may_show_withheld(version, withheld, store.get, patterns):
            withheld.add(version.id)
    return withheld


def _withheld_hashes(
    store: WholeStore, withheld: set[str], derived: DerivedObjects, evictions: PrivateEvictions
) -> set[ContentHash]:
    """Return the hashes of withheld content: content of excluded files without any other record."""
    hidden = blobs_of_excluded(store.journal_lines(), evictions.patterns)
    others: set[ContentHash] = set()
    for stored in store.paged_objects():
        (others if evictions.record(stored) is stored else hidden).add(stored.content)
    for version in readable_log(store):
        contents = {*version.additional.values(), *([version.content_hash] if version.content_hash else ())}
        if version.id in withheld:
            hidden |= contents
        elif version.id not in derived.objects:
            others |= contents
    return hidden - others


def _shared_hashes(store: WholeStore, derived: DerivedObjects) -> set[ContentHash]:
    """Return the hashes of content in the lines of journals alone; an export has the content in the lines."""
    shared = {name for line in store.journal_lines() for name in line.texts}
    if not shared:
        return shared
    known = {name.hex: name for name in shared}
    needed = {stored.content for stored in store.paged_objects()}
    for version in readable_log(store):
        if version.id not in derived.objects:
            needed |= version.contents
    for line in store.journal_lines():
        needed.update(hashes_in(line.line, known))
    return shared - needed


def _blob_out(name: ContentHash, content: bytes) -> Fields:
    try:
        return {"type": "blob", "hash": name.hex, "text": content.decode("utf-8")}
    except UnicodeDecodeError:
        return {"type": "blob", "hash": name.hex, "base64": base64.b64encode(content).decode("ascii")}


def _version_out(version: Version) -> Fields:
    writer = version.writer
    return {
        "type": "version",
        "object": version.id,
        "number": version.number,
        "at": version.at,
        "writer": {"kind": writer.kind, "reason": writer.reason, "session": writer.session},
        "object_hash": version.object_hash.hex,
        "record": version.record,
    }


def _object_out(stored: StoredObject) -> Fields:
    return {
        "type": "object",
        "id": str(stored.id),
        "content": stored.content.hex,
        "kind": stored.kind,
        "workspace": stored.workspace,
        "session": stored.origin.session,
        "call_id": stored.origin.call_id,
        "description": stored.description,
        "tokens": stored.tokens,
        "chars": stored.chars,
    }


def record_kind(fields: Fields) -> str:
    """Return the type under which a record is counted: pagein's own journals are no sessions."""
    kind = str(fields["type"])
    return OWN_JOURNAL if kind == "session" and str(fields["name"]).startswith(OWN_JOURNALS) else kind


def _session_out(
    store: WholeStore, session: KeptSession, places: Sequence[int], withholding: ExportRedaction, done: ExportReport
) -> Iterator[Fields]:
    leaf = session.leaf if session.leaf is None else leaf_of(store, session) or session.leaf
    yield {"type": "session", "name": session.name, "leaf": leaf, "ended": session.ended}
    for place, entry in store.news(session.name):
        if isinstance(entry, UnreadableLine):
            done.lost.append(f"entry {entry.line} of session {session.name!r}: {entry.why}")
            continue
        leaving = withholding.entry(entry)
        done.withheld += leaving is not entry
        yield {"type": "entry", "place": bisect_right(places, place), "entry": decode_json(encode_entry(leaving))}
