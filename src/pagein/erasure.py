"""Erase a text from a store and from the files beside the store, then search every byte to prove the erasure.

Steps, in this order: rewrite the store, set tombstones and drop the objects made from journals, in one transaction; make these objects
again from the rewritten journals, in short transactions, so that nothing derived from an erased text stays; clean freed pages and the write-ahead log; empty the search
index, which is rebuilt from the remaining content; rewrite the logs of operations; read everything again.
"""

import contextlib
import fcntl
import os
import secrets
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias

from pagein.errors import BadInput, BadName, NotRecallable, StoreError
from pagein.memory.indexer import Indexer
from pagein.model.codec import decode_entry, decode_message
from pagein.model.derived_versions import is_derived
from pagein.model.entries import Entry, EntryId, MessageEntry, NoteEntry
from pagein.model.journal_notes import ForgottenNote
from pagein.model.memory_notes import AnswerNote
from pagein.model.messages import Image, Message, UnreadableLine
from pagein.model.objects import ObjectId
from pagein.model.store_inventory import session_name
from pagein.model.text_removal import Retold
from pagein.model.versions import Version
from pagein.policy.privacy.erased_texts import FORGOTTEN, tombstone
from pagein.policy.privacy.erasure import SHORTEST, finder, forms_of, is_gone, retold, texts_in
from pagein.policy.privacy.exclusions import words_of_block
from pagein.policy.privacy.own_words import is_own_word
from pagein.ports import ForgettingStore
from pagein.store.search.sqlite_index import SUFFIX, empty_sqlite_index
from pagein.store.sqlite.sqlite_database import schema_texts
from pagein.store.upkeep.collection import drop_unneeded

TELLING: Final = 40
"""Minimum length, in characters, of a session's text to get a tombstone. Shorter texts are common, and would be withheld in other sessions."""
_UNNEEDED: Final = "memory.unneeded"
"""Name under which the store keeps that contents of erased objects may be left, should this process die."""
_SIDES: Final = ("", "-wal", "-shm", "-journal")
_CHUNK: Final = 1 << 20
_PAGE: Final = 500
_LOOKING, _MAKING = "looking for it in the store", "making objects again"
_CLEANING, _PROVING = "cleaning the store's files", "looking for what is left"
Tell: TypeAlias = Callable[[str], object]


def _silent(_: str) -> None:
    """Tell nobody."""


@dataclass(slots=True)
class ErasureReport:
    """Result of an erasure.

    texts: number of erased texts
    found: number of changed places, by kind
    left: places where the text is or may be left, in words
    searched: files searched afterwards
    """

    texts: int = 0
    found: dict[str, int] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    searched: list[str] = field(default_factory=list)


def texts_of(store: ForgettingStore, target: str) -> tuple[str, ...]:
    """Return the texts to erase: every text of the object with this id or nickname, otherwise the argument itself.

    Raises BadInput and NotRecallable.
    """
    try:
        name = ObjectId.parse(target.strip())
    except BadName:
        version = store.current(target.strip())
        if version is None:
            return (_forgettable(target, target),)
        found = [store.content(one) for one in store.history(version.id)]
        return tuple(dict.fromkeys(_forgettable(one, target) for one in found if one and not is_gone(one)))
    stored = store.find(name)
    if stored is None:
        raise NotRecallable(f"{name} is not in this store; nothing was forgotten")
    text = store.get(stored.content).decode("utf-8", "surrogatepass")
    return () if is_gone(text) else (_forgettable(text, target),)


def _forgettable(text: str, target: str) -> str:
    """Return a text that may be forgotten. Raises BadInput for one that is too short, or stands in the store's own records."""
    if len(text.strip()) < SHORTEST:
        raise BadInput(
            f"{target[:20]!r} is too short to be forgotten: it would be taken out of everything that holds these letters; "
            f"give at least {SHORTEST} characters"
        )
    if is_own_word(text):
        raise BadInput(
            f"{target[:20]!r} stands in pagein's own records, and without them nothing could be stored any more; "
            "give more of the text around it"
        )
    return text


def forget_texts(
    store: ForgettingStore, texts: Sequence[str], file: Path | None, log: Path, tell: Tell = _silent
) -> ErasureReport:
    """Erase texts from the store and from the files beside the store. Raises StoreError.

    file: the store's file; None for a database
    log: the log of operations
    tell: called with what begins, in words
    """
    done = ErasureReport(len(texts))
    key = store.secret()
    tell(_LOOKING)
    indexer, finds = Indexer(store), finder(texts, shortened=True)

    def drop(sessions: Collection[str] | None) -> bool:
        if sessions is None or sessions:
            store.set_layer(_UNNEEDED, 0, "objects")
        return indexer.drop_of(store, sessions)

    holders = store.find_holders(finds)  # takes longest, and keeps nobody waiting
    with store.exclusive():
        told = store.retell(key, finds, drop, holders)
        store.bury(tombstone(text, key) for text in texts)
        _begin_anew(store, told)
    tell(_MAKING)
    indexer.catch_up()
    if (store.layer(_UNNEEDED) or (0, ""))[1]:
        drop_unneeded(store)  # what the objects were before tells the hash of the erased text
        store.set_layer(_UNNEEDED, 0, "")
    _count(done, told)
    tell(_CLEANING)
    _clean(store, done, file, log, texts)
    tell(_PROVING)
    _search(store, done, file, log, texts)
    return done


def forget_session(
    store: ForgettingStore, session: str, file: Path | None, log: Path, tell: Tell = _silent
) -> ErasureReport:
    """Erase everything said in a session, and every result evicted from it.

    session: the name, or the beginning of it
    tell: called with what begins, in words

    Raises BadInput for an unknown session, and StoreError.

    Its texts get tombstones, except short texts and texts that another session contains too.
    """
    names = {one.name for one in store.sessions()} | {version.writer.session or "" for version in _versions(store)}
    session = session_name(session, names)
    done = ErasureReport()
    tell(_LOOKING)
    key = store.secret()
    with store.exclusive():
        store.bury([tombstone(text, key) for text in _own_texts(store, session)])
        Indexer(store).drop(store)
        told = store.retell_session(session, key)
        _begin_anew(store, told)
        needed = set(store.contents()[0]).union(one.content for one in store.paged_objects())
        named: set[str] = set()
        for line in store.journal_lines():
            needed.update(line.texts)
            named.update(_hashes(line.line))
        garbage = [name for name in store.names() if name not in needed and name.hex not in named]
        told.blobs += store.drop_blobs(garbage)
    tell(_MAKING)
    Indexer(store).catch_up()
    _count(done, told)
    tell(_CLEANING)
    _clean(store, done, file, log, ())
    return done


def _own_texts(store: ForgettingStore, session: str) -> Iterator[str]:
    """Yield the session's texts that get a tombstone.

    A text that another session contains too is not private to this session.
    """
    ours: dict[bytes, str] = {}
    others: set[bytes] = set()
    for owner, text in _texts_of_sessions(store, has_journal=store.leaf(session) is not None):
        if len(text.strip()) < TELLING:
            continue
        digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
        if owner == session:
            ours[digest] = text
        else:
            others.add(digest)
    yield from (text for digest, text in ours.items() if digest not in others)


def _texts_of_sessions(store: ForgettingStore, *, has_journal: bool) -> Iterator[tuple[str | None, str]]:
    """Yield each text of a session, with the session.

    has_journal: whether journals tell all; else also read the versions of objects, which a session without a journal left
    """
    for line in store.journal_lines():
        entry = decode_entry(line.line)
        message = _message_in(entry)
        for block in () if message is None else message.blocks:
            if not isinstance(block, Image) and block.withheld is None:
                yield from ((line.session, text) for text in texts_in(words_of_block(block)))
    for version in () if has_journal else _versions(store):
        # the version of an order has the text of another one
        if version.writer.session is not None or not is_derived(version.writer):
            with contextlib.suppress(StoreError):
                yield version.writer.session, store.content(version) or ""


def _message_in(entry: Entry | UnreadableLine) -> Message | None:
    """Return the message of an entry, or the noted answer; None for other entries."""
    body = entry.body if isinstance(entry, Entry) else None
    if isinstance(body, MessageEntry):
        return body.message
    note = body.note if isinstance(body, NoteEntry) else None
    if not isinstance(note, AnswerNote):
        return None
    answer = decode_message(note.message.encode("utf-8", "surrogatepass"))
    return answer if isinstance(answer, Message) else None


def _versions(store: ForgettingStore) -> Iterator[Version]:
    after = 0
    while page := store.log(after, _PAGE):
        after = page[-1].sequence
        yield from page


def _hashes(line: bytes) -> Iterator[str]:
    import re

    for run in re.findall(rb"[0-9a-f]{64,}", line):
        text = run.decode()
        yield from (text[start : start + 64] for start in range(len(text) - 63))


def _begin_anew(store: ForgettingStore, told: Retold) -> None:
    """Append a note at the end of each branch: old thinking is no longer bound to a branch whose content was erased."""
    for session in sorted(told.sessions):
        parents: set[EntryId | None] = set()
        names: list[EntryId] = []
        for entry in store.entries(session):
            if isinstance(entry, Entry):
                names.append(entry.id)
                parents.add(entry.parent)
        leaf = store.leaf(session)
        ends = [name for name in names if name not in parents and name != leaf]
        if leaf is not None:
            ends.append(leaf)
        notes = [Entry(f"{FORGOTTEN}-{secrets.token_hex(8)}", end, NoteEntry.of(ForgottenNote())) for end in ends]
        store.append(session, notes)


def _count(done: ErasureReport, told: Retold) -> None:
    done.found = {"contents": told.blobs, "objects": told.objects, "entries": told.entries, "versions": told.versions}
    done.left += [f"{one}; nobody can say whether it holds the text" for one in told.unread]


def _clean(store: ForgettingStore, done: ErasureReport, file: Path | None, log: Path, texts: Sequence[str]) -> None:
    done.left += store.scrub()
    if file is not None:
        index = file.with_name(file.name + SUFFIX)
        if index.exists():
            try:
                empty_sqlite_index(index)
            except (sqlite3.Error, OSError) as problem:
                done.left.append(f"{index.name}: {problem}; it may be deleted, it is built anew")
    for one in _logs(log) if texts else ():
        try:
            done.found["log lines"] = done.found.get("log lines", 0) + _rewrite_log(one, texts)
        except OSError as problem:
            done.left.append(f"{one.name}: {problem.strerror}")


def _logs(log: Path) -> list[Path]:
    return sorted(log.parent.glob(f"{log.name}*")) if log.parent.is_dir() else []


def _rewrite_log(log: Path, texts: Sequence[str]) -> int:
    """Rewrite a log of operations without these texts, under its writers' lock. Return the number of changed lines."""
    finds, count = finder(texts), 0
    with contextlib.ExitStack() as stack:
        handle = os.open(log, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        stack.callback(os.close, handle)
        fcntl.flock(handle, fcntl.LOCK_EX)
        lines = log.read_bytes().splitlines(keepends=True)
        made = [retold(line.decode("utf-8", "surrogateescape"), finds, {}) for line in lines]
        for place, line in enumerate(made):
            raw = line.encode("utf-8", "surrogateescape")
            count += raw != lines[place]
            lines[place] = raw
        if count:
            data = b"".join(lines)
            before = os.fstat(handle).st_size
            os.pwrite(handle, data + b"\0" * max(0, before - len(data)), 0)
            os.ftruncate(handle, len(data))
            os.fsync(handle)
    return count


def _search(store: ForgettingStore, done: ErasureReport, file: Path | None, log: Path, texts: Sequence[str]) -> None:
    """Search stored content as read, and files as raw bytes, for the texts."""
    forms = [form.encode("utf-8", "surrogatepass") for text in texts for form in forms_of(text)]
    for where, data in _contents(store):
        if any(form in data for form in forms):
            done.left.append(f"{where} holds it still")
    databases = [] if file is None else [file, file.with_name(file.name + SUFFIX)]
    files = [(one.with_name(one.name + side), _schema_of(one)) for one in databases for side in _SIDES]
    for one, own in (*files, *((one, frozenset[bytes]()) for one in _logs(log))):
        if one.is_file():
            done.searched.append(str(one))
            if _holds(one, forms, own):
                done.left.append(f"{one.name} holds it still")


def _schema_of(database: Path) -> frozenset[bytes]:
    try:
        return schema_texts(database) if database.is_file() else frozenset()
    except sqlite3.Error:
        return frozenset()  # rather name the schema as a place than miss one


def _contents(store: ForgettingStore) -> Iterator[tuple[str, bytes]]:
    for name in store.names():
        with contextlib.suppress(StoreError):  # named already
            yield f"content {name.hex}", store.get(name)
    for line in store.journal_lines():
        yield f"entry {line.place} of session {line.session}", line.line
    for stored in store.paged_objects():
        yield f"object {stored.id}", stored.description.encode("utf-8", "surrogatepass")
    for version in _versions(store):
        yield f"version {version.sequence}", version.record.encode("utf-8", "surrogatepass")


def _holds(file: Path, forms: Sequence[bytes], own: Collection[bytes]) -> bool:
    """Return whether a file has one of the forms of a text, outside of its own texts."""
    longest = max(map(len, forms), default=1)
    kept, place = b"", 0
    with file.open("rb") as opened:
        while chunk := opened.read(_CHUNK):
            kept += chunk
            for form in forms:
                at = kept.find(form)
                while at >= 0:
                    if not _lies_within(opened.fileno(), place + at, form, own):
                        return True
                    at = kept.find(form, at + 1)
            place += max(0, len(kept) - longest)
            kept = kept[-longest:]
    return False


def _lies_within(file: int, place: int, form: bytes, own: Collection[bytes]) -> bool:
    """Return whether what stands at a place of a file is a part of one of its own texts."""
    for text in own:
        at = text.find(form)
        while at >= 0:
            if at <= place and os.pread(file, len(text), place - at) == text:
                return True
            at = text.find(form, at + 1)
    return False
