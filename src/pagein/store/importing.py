"""Reading an export back into a store. The format is docs/format.md, its writer `portable`.

Rules of this file
------------------
1. An import is one transaction: all of the file is there at its end, or nothing of it.
2. What is there already is left alone, so importing again changes nothing. What contradicts it is refused.
3. Every hash is proven before anything rests on it. A complaint names the file and the line.
4. A session that is here already goes on where it stands, unless the file's own session has gone on from there.
"""

import base64
import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from pagein.errors import BadInput, BadName, MissingBlob
from pagein.model.codec import decode_entry, decode_json, encode_json
from pagein.model.entries import Entry, EntryId
from pagein.model.messages import Unreadable
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, Origin, StoredObject
from pagein.model.sealing import Sealed, decoded, object_hash_of, value_of, version_of
from pagein.model.versions import Version, Writer
from pagein.model.writes import Refused, Write
from pagein.ports import WholeStore
from pagein.store.portable import FORMAT, HEADER, Fields, Tick

_BATCH: Final = 500
_MOST_WAITING: Final = 16_000_000
Record: TypeAlias = Callable[[Fields], None]


@dataclass(slots=True)
class Imported:
    """What an import found. counts: records by type. added: those of them that were not there before."""

    counts: dict[str, int] = field(default_factory=dict)
    added: dict[str, int] = field(default_factory=dict)


def import_lines(store: WholeStore, lines: Iterable[bytes], name: str, tick: Tick = lambda _: None) -> Imported:
    """Take in an export, given as lines with their newlines. `name` is that of the file, for complaints.

    Raises BadInput for a file that is damaged, cut short, of a newer format or at odds with the store, and StoreError.
    Either way nothing of it has been kept then.
    """
    with store.exclusive():
        reader = _Reader(store)
        number = 0
        for number, line in enumerate(lines, start=1):
            try:
                kind = reader.take(line)
            except KeyError as problem:
                raise BadInput(f"{name}, line {number}: the field {problem} is missing; nothing was imported") from None
            except (BadInput, BadName, TypeError, ValueError, MissingBlob, RecursionError) as problem:
                raise BadInput(f"{name}, line {number}: {problem}; nothing was imported") from problem
            tick(kind)
        if not reader.ended:
            raise BadInput(
                f"{name}, line {number}: the file ends here without its last record, so it was cut short; nothing was imported"
            )
        reader.finish()
        return reader.done


class _Reader:
    """One pass over one file."""

    def __init__(self, store: WholeStore) -> None:
        self.done = Imported()
        self.ended = False
        self._store = store
        self._names = {one.name for one in store.sessions()}
        self._digest = hashlib.sha256()
        self._begun = False
        self._records: Mapping[str, Record] = {
            "key": self._key,
            "blob": self._blob,
            "version": self._version,
            "object": self._object,
            "session": self._session,
            "entry": self._entry,
        }
        self._histories: dict[str, _History] = {}
        self._journal: _Incoming | None = None
        # Blobs on their way: a version keeps its own as what differs from the version before, unless they are there already.
        self._waiting: dict[ContentHash, bytes] = {}
        self._waiting_bytes = 0

    def take(self, line: bytes) -> str:
        """One line. Returns the type of its record."""
        if self.ended:
            raise BadInput("there is more behind the last record")
        if not line.endswith(b"\n"):
            raise BadInput("the file ends in the middle of this line")
        fields = decode_json(line)
        if not isinstance(fields, dict):
            raise BadInput("not a JSON object")
        if not self._begun:
            self._begin(fields)
            kind = HEADER
        elif (kind := fields["type"]) == "end":
            self._end(fields)
        else:
            self._record(kind, fields)
        self._digest.update(line)
        return str(kind)

    def finish(self) -> None:
        """The file is whole."""
        self._put_waiting()
        self._close_session()

    def _begin(self, fields: Fields) -> None:
        if fields.get("pagein") != HEADER:
            raise BadInput("this is no export of pagein")
        if fields["v"] != FORMAT:
            raise BadInput(f"format {fields['v']!r} was written by a newer pagein; this one reads format {FORMAT}")
        self._begun = True

    def _end(self, fields: Fields) -> None:
        if fields["records"] != sum(self.done.counts.values()) or fields["sha256"] != self._digest.hexdigest():
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
        self.done.counts[kind] = self.done.counts.get(kind, 0) + 1
        take(fields)

    def _added(self, kind: str, count: int = 1) -> None:
        self.done.added[kind] = self.done.added.get(kind, 0) + count

    # --- one method for each type of record ---

    def _key(self, fields: Fields) -> None:
        key = bytes.fromhex(fields["key"])
        if len(key) != 32:  # noqa: PLR2004 -- the contract of `BlobStore.secret`
            raise BadInput("a key has 32 bytes")
        self._store.adopt_secret(key)

    def _blob(self, fields: Fields) -> None:
        name = ContentHash.parse(fields["hash"])
        content = fields["text"].encode() if "text" in fields else base64.b64decode(fields["base64"], validate=True)
        if ContentHash.of(content) != name:
            raise BadInput("the content is not the one that its hash names")
        if not self._store.has(name):
            self._added("blob")
        if self._waiting_bytes > _MOST_WAITING:
            self._put_waiting()
        self._waiting[name] = content
        self._waiting_bytes += len(content)

    def _put_waiting(self) -> None:
        self._store.put_many(tuple(self._waiting.values()))
        self._waiting, self._waiting_bytes = {}, 0

    def _content(self, name: ContentHash) -> bytes:
        return self._waiting[name] if name in self._waiting else self._store.get(name)

    def _version(self, fields: Fields) -> None:
        record = _text(fields["record"])
        if object_hash_of(record).hex != fields["object_hash"]:
            raise BadInput("the record is not the one that its object hash names")
        writer = Writer(**{name: fields["writer"][name] for name in ("kind", "reason", "session")})
        number, at = int(fields["number"]), float(fields["at"])
        version = version_of(record, sequence=0, number=number, at=at, chars=0, writer=writer)
        if version.id != fields["object"]:
            raise BadInput("the record is that of another object")
        history = self._histories.get(version.id)
        if history is None:
            known = [one.object_hash for one in self._store.history(version.id)]
            history = self._histories[version.id] = _History(known)
        if history.is_next(version.object_hash):
            self._write(version, at)
            history.known.append(version.object_hash)
            history.place += 1
            self._added("version")
        self._put_waiting()

    def _write(self, version: Version, at: float) -> None:
        content = None if version.content_hash is None else decoded(self._content(version.content_hash))
        additional = {name: value_of(self._content(one)) for name, one in version.additional.items()}
        draft = version.draft(content, additional)
        if Sealed.of(draft).object_hash != version.object_hash:
            raise BadInput("the record does not follow from its own fields")
        request = f"import {version.id} {version.number} {version.object_hash}"
        outcome = self._store.write(Write(request, draft, at, writer=version.writer))
        if isinstance(outcome, Refused):
            raise BadInput(f"object {version.id} cannot be had beside what is here: {outcome.why}")

    def _object(self, fields: Fields) -> None:
        stored = StoredObject(
            ObjectId.parse(fields["id"]),
            ContentHash.parse(fields["content"]),
            _text(fields["kind"]),
            _text(fields["workspace"]),
            Origin(_text(fields["session"]), _text(fields["call_id"])),
            _text(fields["description"]),
            int(fields["tokens"]),
            int(fields["chars"]),
        )
        found = self._store.find(stored.id)
        if found is None:
            self._added("object")
        elif (found.content, found.workspace, found.kind) == (stored.content, stored.workspace, stored.kind):
            return
        if self._store.put_objects([(stored, self._store.get(stored.content))]):
            raise BadInput(f"the id {stored.id} means something else here")

    def _session(self, fields: Fields) -> None:
        name, leaf = _text(fields["name"]), fields["leaf"]
        known = {entry.id for entry in self._store.entries(name) if isinstance(entry, Entry)}
        here = self._store.leaf(name)
        if here is None and leaf is not None:
            self._added("session")
        self._journal = _Incoming(name, leaf, here, fields["ended"] is True and name not in self._names, known)

    def _entry(self, fields: Fields) -> None:
        if self._journal is None:
            raise BadInput("an entry without a session above it")
        entry = decode_entry(encode_json(fields["entry"]))
        if isinstance(entry, Unreadable):
            raise BadInput(f"the entry cannot be understood: {entry.why}")
        if entry.parent is not None and entry.parent not in self._journal.parents:
            raise BadInput("the entry stands behind one that is not above it")
        if entry.at is not None and not math.isfinite(entry.at):
            raise BadInput("the entry's time is no number")
        self._journal.parents[entry.id] = entry.parent
        if entry.id not in self._journal.known:
            self._added("entry")
            self._journal.waiting.append(entry)
        if len(self._journal.waiting) >= _BATCH:
            self._keep_waiting(self._journal)

    def _keep_waiting(self, journal: "_Incoming") -> None:
        if journal.waiting:
            self._store.append(journal.name, journal.waiting)
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


@dataclass(slots=True)
class _History:
    """The versions of an object. known: their hashes, as they are here. place: how many the file has told of."""

    known: list[ContentHash]
    place: int = 0

    def is_next(self, version: ContentHash) -> bool:
        """Whether the file's next version is new here. Raises BadInput where another one stands in its place."""
        if self.place >= len(self.known):
            return True
        if self.known[self.place] != version:
            raise BadInput(f"version {self.place + 1} of this object is another one here: the histories have parted")
        self.place += 1
        return False


@dataclass(slots=True)
class _Incoming:
    """A session of the file.

    here: where the session of this name stands in the store. ended: it is to be ended. known: its entries that are here already.
    parents: of the entries read so far.
    """

    name: str
    leaf: EntryId | None
    here: EntryId | None
    ended: bool
    known: set[EntryId]
    parents: dict[EntryId, EntryId | None] = field(default_factory=dict)
    waiting: list[Entry] = field(default_factory=list)

    def stands_at(self) -> EntryId:
        """Where the session is to stand."""
        leaf = self.leaf if self.leaf in self.parents else next(reversed(self.parents))
        if self.here is None:
            return str(leaf)
        above: EntryId | None = leaf
        while above is not None and above != self.here:
            above = self.parents[above]
        return str(leaf) if above == self.here else self.here


def _text(value: Any) -> str:  # noqa: ANN401 -- whatever a file says
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:40]!r} is not a text")
    return value
