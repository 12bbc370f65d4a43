"""Import an export into a store. The format is in docs/reference/format.md, the writer in `exporter`.

Rules of this file
------------------
1. An import is a single transaction: afterwards the store contains the whole file or nothing of it.
2. Known records stay unchanged, so importing again changes nothing. Contradicting records are refused.
3. Every hash is verified before use. Every number and size is compared with the counted records or bytes. An error message names the
   file and the line.
4. A known session keeps its leaf, unless the file's session continues from that leaf.
5. Content that must not be stored (law 9) is never imported, whatever the file declares.
"""

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from pagein.errors import BadInput, BadName, MissingBlob
from pagein.model.codec import decode_entry
from pagein.model.entries import Entry, is_bridge
from pagein.model.json_text import encode_json
from pagein.model.messages import UnreadableLine
from pagein.model.names import ContentHash
from pagein.model.version_hash import SealedDraft, decode_content, object_hash_of, value_of, version_of
from pagein.model.versions import Version, Writer
from pagein.model.writes import Write, WriteRefusal
from pagein.policy.privacy.exclusions import EXCLUDED
from pagein.ports import WholeStore
from pagein.store.exchange.export_redaction import ExportRedaction, hashes_of_excluded, may_show_withheld
from pagein.store.exchange.exporter import FORMAT, HEADER, Fields, Tick, record_kind
from pagein.store.exchange.import_bounds import count, following_request, moment, record, text
from pagein.store.exchange.import_key import ImportKey
from pagein.store.exchange.import_objects import ImportObjects
from pagein.store.exchange.import_state import NO_EXPORT, ImportedSession, ImportReport, KnownHistory

_BATCH: Final = 500
_MOST_WAITING: Final = 16_000_000
_LONGEST_CALL: Final = 400
Record: TypeAlias = Callable[[Fields], None]


def import_lines(
    store: WholeStore,
    lines: Iterable[bytes],
    name: str,
    tick: Tick = lambda _: None,
    patterns: tuple[str, ...] = EXCLUDED,
) -> ImportReport:
    """Import an export, given as lines with their newlines.

    name: of the file, for error messages
    patterns: names of excluded files

    Raises BadInput for a damaged, truncated, newer or contradicting file, and StoreError. In both cases nothing is
    stored.
    """
    with store.exclusive():
        reader = _ImportReader(store, patterns)
        number = 0
        for number, line in enumerate(lines, start=1):
            try:
                kind = reader.take(line)
            except KeyError as problem:
                raise BadInput(f"{name}, line {number}: the field {problem} is missing; nothing was imported") from None
            except (
                BadInput,
                BadName,
                TypeError,
                ValueError,
                ArithmeticError,
                AttributeError,
                MissingBlob,
                RecursionError,
                MemoryError,
            ) as problem:
                why = problem if reader.begun else NO_EXPORT
                raise BadInput(f"{name}, line {number}: {why}; nothing was imported") from problem
            tick(kind)
        if not reader.ended:
            why = "ends here without its last record, so it was cut short" if number else "is empty"
            raise BadInput(f"{name}, line {number}: the file {why}; nothing was imported")
        reader.finish()
        return reader.done


class _ImportReader:
    """State of a single pass over a file."""

    def __init__(self, store: WholeStore, patterns: tuple[str, ...]) -> None:
        self.done = ImportReport()
        self.ended = False
        self._patterns = patterns
        self._store = store
        self._names = {one.name for one in store.sessions()}
        self._digest = hashlib.sha256()
        self._key = ImportKey(store, self.done)
        self._objects = ImportObjects(store, self._look, self._content, patterns)
        self.begun = False
        self._records: Mapping[str, Record] = {
            "key": self._key.take,
            "tombstone": self._key.take_tombstone,
            "blob": self._blob,
            "version": self._version,
            "object": self._object,
            "session": self._session,
            "entry": self._entry,
        }
        self._histories: dict[str, KnownHistory] = {}
        self._seen: set[tuple[str, str]] = set()
        # for excluded files: their objects, the contents of their versions, and the hashes of contents recorded by reads
        self._excluded: set[str] = set()
        self._private: dict[ContentHash, bytes] = {}
        self._left_behind: set[ContentHash] = set()
        self._fresh: set[ContentHash] = set()
        self._needed: set[ContentHash] = set()
        self._journal: ImportedSession | None = None
        # entries of the file are stored behind all others, in the order of their places
        self._behind = store.last_place()
        self._places: set[int] = set()
        # Blobs not yet stored: a version stores its blobs as deltas against the version before, unless they are known already.
        self._waiting: dict[ContentHash, bytes] = {}
        self._waiting_bytes = 0

    def take(self, line: bytes) -> str:
        """Read a line. Return the type of its record."""
        if self.ended:
            raise BadInput("there is more behind the last record")
        if not line.endswith(b"\n"):
            raise BadInput("the file ends in the middle of this line")
        fields = record(line)
        if not self.begun:
            self._begin(fields)
            kind = HEADER
        elif (kind := fields["type"]) == "end":
            self._end(fields)
        else:
            self._record(kind, fields)
        self._digest.update(line)
        return str(kind)

    def finish(self) -> None:
        """Store pending records and tombstones, and drop withheld content, after the last line."""
        self._put_waiting()
        self._close_session()
        self.done.withheld += self._objects.store()
        # stored before the journal showed that it must be withheld; content needed by other records stays
        unneeded = self._fresh - self._needed
        hidden = self._left_behind & unneeded
        self.done.withheld += len(hidden)
        if left := hidden | self._objects.left_behind & unneeded:
            self._store.drop_blobs(sorted(left))
            self._count_added("blob", -len(left))
        self._key.bury()

    def _begin(self, fields: Fields) -> None:
        if fields.get("pagein") != HEADER:
            raise BadInput(NO_EXPORT)
        self.begun = True
        if count(fields["v"], "the format's number") != FORMAT:
            raise BadInput(f"format {fields['v']!r} was written by a newer pagein; this one reads format {FORMAT}")

    def _end(self, fields: Fields) -> None:
        if (
            count(fields["records"], "records") != sum(self.done.counts.values())
            or fields["sha256"] != self._digest.hexdigest()
        ):
            raise BadInput("the records above are not the ones that were written: something was lost or changed")
        self.ended = True

    def _record(self, kind: str, fields: Fields) -> None:
        take = self._records.get(kind)
        if take is None:
            raise BadInput(f"unknown type of record {kind!r}")
        if kind != "entry":
            self._close_session()
        if kind not in ("blob", "version"):
            self._put_waiting()
        counted = record_kind(fields)
        self.done.counts[counted] = self.done.counts.get(counted, 0) + 1
        take(fields)

    def _count_added(self, kind: str, count: int = 1) -> None:
        self.done.added[kind] = self.done.added.get(kind, 0) + count

    def _once(self, kind: str, name: str) -> None:
        if (kind, name) in self._seen:
            raise BadInput(f"this {kind} stands above already; each is written once")
        self._seen.add((kind, name))

    # --- one method for each other type of record ---

    def _blob(self, fields: Fields) -> None:
        name = ContentHash.parse(text(fields["hash"]))
        if ("text" in fields) == ("base64" in fields):
            raise BadInput("a blob has either text or base64")
        content = (
            text(fields["text"]).encode()
            if "text" in fields
            else base64.b64decode(text(fields["base64"]), validate=True)
        )
        if ContentHash.of(content) != name:
            raise BadInput("the content is not the one that its hash names")
        self._once("blob", name.hex)
        if not self._store.has(name):
            self._count_added("blob")
            self._fresh.add(name)
        if self._waiting_bytes > _MOST_WAITING:
            self._put_waiting()
        self._waiting[name] = content
        self._waiting_bytes += len(content)

    def _put_waiting(self) -> None:
        self._store.put_many(tuple(self._waiting.values()))
        self._waiting, self._waiting_bytes = {}, 0

    def _content(self, name: ContentHash) -> bytes:
        self._needed.add(name)
        if name in self._private:  # another record has the same content
            self._waiting[name] = self._private.pop(name)
        return self._waiting[name] if name in self._waiting else self._store.get(name)

    def _look(self, name: ContentHash) -> bytes:
        return self._private.get(name) or self._waiting.get(name) or self._store.get(name)

    def _withhold(self, version: Version) -> None:
        """Leave out a version of an excluded file, and its content unless another record needs the content."""
        self.done.withheld += 1
        for name in version.contents & self._waiting.keys():
            if name in self._fresh:
                self._private[name] = self._waiting.pop(name)
                self.done.added["blob"] -= 1
        if sum(map(len, self._private.values())) > _MOST_WAITING:
            raise BadInput(
                "too much content of files that must not be stored; export again with a newer pagein, which leaves it out"
            )

    def _version(self, fields: Fields) -> None:
        told = text(fields["record"])
        if object_hash_of(told).hex != fields["object_hash"]:
            raise BadInput("the record is not the one that its object hash names")
        session = fields["writer"]["session"]
        writer = Writer(
            text(fields["writer"]["kind"]), text(fields["writer"]["reason"]), None if session is None else text(session)
        )
        number, at = count(fields["number"], "number", 1), moment(fields["at"], "at")
        version = version_of(told, sequence=0, number=number, at=at, chars=0, writer=writer)
        if version.id != fields["object"]:
            raise BadInput("the record is that of another object")
        requests = [following_request(one) for one in fields.get("requests", ())]
        history = self._histories.get(version.id)
        if history is None:
            name = self._name_here(version, requests)
            known = [(one.number, one.object_hash) for one in self._store.history(name)]
            history = self._histories[version.id] = KnownHistory(name, known)
        if number != history.told + 1:
            raise BadInput(
                f"version {number} stands behind version {history.told} of its object; they count up by one, from 1"
            )
        history.told = number
        if may_show_withheld(version, self._excluded, self._look, self._patterns):
            self._excluded.add(version.id)
            self._withhold(version)
        else:
            self._keep(history, version, at, requests)
        self._put_waiting()

    def _name_here(self, version: Version, requests: Sequence[str]) -> str:
        """Return the id of an object in this store: a new id where another call has the same id here."""
        for one in requests:
            if (known := self._store.answered(one)) is not None:
                return known.id
        others = self._store.history(version.id) if requests and version.type == "toolcall" else ()
        is_taken = others and version.object_hash not in {one.object_hash for one in others}
        return f"{version.id[:_LONGEST_CALL]}~{version.object_hash.hex[:8]}" if is_taken else version.id

    def _keep(self, history: KnownHistory, version: Version, at: float, requests: Sequence[str]) -> None:
        """Store a version, unless it is here.

        requests: by which a journal gave the version, if any
        """
        is_known = any(self._store.answered(one) is not None for one in requests)
        is_next = history.is_next(version.object_hash, derived=bool(requests))
        if history.left_out is not None:
            self._put_back(history, version, history.left_out, at, requests)
        elif is_next and not is_known:
            self._write(history, version, at, requests[:1])
            if history.place == len(history.known):
                history.place += 1
            history.known.append((history.told, version.object_hash))
            self._count_added("version")
        for request in requests:  # the newest version answers more requests, without another version
            current = self._store.current(history.name)
            if current is not None and current.object_hash == version.object_hash and not self._store.answered(request):
                self._write(history, version, at, [request])

    def _put_back(
        self, history: "KnownHistory", version: Version, number: int, at: float, requests: Sequence[str]
    ) -> None:
        """Restore a lost version between its neighbours."""
        write = self._as_written(version, at)
        if self._store.put_version(replace(write, request=requests[0]) if requests else write, number):
            history.known.insert(history.place, (number, version.object_hash))
            history.place += 1
            self._count_added("version")
        else:
            self.done.lost.append(
                f"version {number} of {version.id} is missing in the store, and has no place between the others any more"
            )

    def _write(self, history: KnownHistory, version: Version, at: float, requests: Sequence[str]) -> None:
        write = self._as_written(version, at)
        if history.name != version.id:
            write = replace(write, draft=replace(write.draft, id=history.name))
        for request in requests:
            write = replace(write, request=request)
        outcome = self._store.write(write)
        if requests and isinstance(outcome, WriteRefusal) and outcome.why == "nickname_taken":
            outcome = self._store.write(replace(write, draft=replace(write.draft, nickname=None)))
        if isinstance(outcome, WriteRefusal):
            raise BadInput(f"object {version.id} cannot be had beside what is here: {outcome.why}")

    def _as_written(self, version: Version, at: float) -> Write:
        content = None if version.content_hash is None else decode_content(self._content(version.content_hash))
        additional = {name: value_of(self._content(one)) for name, one in version.additional.items()}
        draft = version.draft(content, additional)
        if SealedDraft.of(draft).object_hash != version.object_hash:
            raise BadInput("the record does not follow from its own fields")
        request = f"import {version.id} {version.number} {version.object_hash}"
        return Write(request, draft, at, writer=version.writer)

    def _object(self, fields: Fields) -> None:
        self._once("object", text(fields["id"]))
        if self._objects.take(fields):
            self._count_added("object")

    def _session(self, fields: Fields) -> None:
        name, leaf = text(fields["name"]), None if fields["leaf"] is None else text(fields["leaf"])
        if not isinstance(fields["ended"], bool):
            raise TypeError("ended is not true or false")
        if not name:
            raise BadInput("a session has a name, and this one's is empty")
        self._once("session", name)
        entries = [entry for entry in self._store.entries(name) if isinstance(entry, Entry)]
        known = {entry.id for entry in entries if not is_bridge(entry)}
        bridged = {entry.id for entry in entries} - known
        here = self._store.leaf(name)
        if here is None and leaf is not None:
            self._count_added(record_kind(fields))
        withholding = ExportRedaction(self._objects.evictions.in_session())
        is_ended = fields["ended"] and name not in self._names
        self._journal = ImportedSession(name, leaf, here, is_ended, known, bridged, withholding)

    def _entry(self, fields: Fields) -> None:
        if self._journal is None:
            raise BadInput("an entry without a session above it")
        entry = decode_entry(encode_json(fields["entry"]))
        if isinstance(entry, UnreadableLine):
            raise BadInput(f"the entry cannot be understood: {entry.why}")
        if entry.parent is not None and entry.parent not in self._journal.parents:
            raise BadInput("the entry stands behind one that is not above it")
        if entry.id in self._journal.parents:
            raise BadInput("this entry stands above already; each is written once")
        place = self._journal.next_place(fields["place"], self._places) if "place" in fields else None
        self._journal.parents[entry.id] = entry.parent
        self._left_behind |= hashes_of_excluded(entry, self._patterns)
        kept = self._journal.withholding.entry(entry)
        if entry.id not in self._journal.known and not (is_bridge(entry) and entry.id in self._journal.bridged):
            self.done.withheld += kept is not entry
            self._count_added("entry")
            self._journal.waiting.append((place, self._objects.entry(kept)))
        if len(self._journal.waiting) >= _BATCH:
            self._keep_waiting(self._journal)

    def _keep_waiting(self, journal: ImportedSession) -> None:
        for place, entry in journal.waiting:
            if place is not None and entry.id not in journal.bridged:
                self._store.put_entry(journal.name, self._behind + place, entry)
        # others are the next ones, or take the places of their bridges
        others = [entry for place, entry in journal.waiting if place is None or entry.id in journal.bridged]
        if others:
            self._store.append(journal.name, others)
        journal.waiting = []

    def _close_session(self) -> None:
        journal, self._journal = self._journal, None
        if journal is None:
            return
        self._keep_waiting(journal)
        if journal.parents and (leaf := journal.stands_at()) != self._store.leaf(journal.name):
            self._store.stand(journal.name, leaf)
        if journal.ended:
            self._store.end_session(journal.name)
