"""What a store knows of a file's past, as states for `policy/blame/`.

Rules of this file
------------------
1. The versions of all objects at a path count, in the order of their times: old sessions may be remembered after new ones.
2. A version is an agent's if the index made it from a journal, for a call that wrote or edited the file.
3. A version is a person's if a program that opened the store said so: generator `human`, writer `client`. So does a gateway
   whose user settled it (`follow_files`), of a change while no agent worked. The watcher of a program also says `human`, of any
   change that it finds; it sees bytes and nobody's deed, so its versions are only seen texts.
4. A version that only gives the object a name or a view says nothing about the file.
5. Every other version proves that a text existed, and nothing else.
"""

import re
from dataclasses import dataclass
from typing import Final

from pagein.memory.object_orders import is_order
from pagein.model.derived_versions import FILES, is_indexed
from pagein.model.file_homes import may_be_on
from pagein.model.links import Resolution
from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.values import canonical
from pagein.model.versions import Version
from pagein.model.writes import Query
from pagein.policy.blame.known_states import NOBODY, Author, Deed, KnownState, lines_of
from pagein.policy.clients.file_changes import text_edits
from pagein.policy.reads.own_writes import TextEdit
from pagein.ports import ObjectStore

_FILES: Final = frozenset({"file", "note"})
_DEEDS: Final[dict[str, Deed]] = {name: name for name in ("read", "write", "edit", "delete", "move")}
_TURN: Final = re.compile(r"turns\.([0-9]{1,9})(?:\.|$)")


@dataclass(frozen=True, slots=True)
class FileHistory:
    """The states of a file, oldest first, each with its version."""

    states: tuple[KnownState, ...]
    versions: tuple[Version, ...]


def file_history(store: ObjectStore, path: str, machine: str | None = None) -> FileHistory:
    """Return what the store knows of the file at an absolute path. Raises StoreError.

    machine: id of the machine that has the file; files of other machines do not count. None: all count.
    """
    versions = _versions_at(store, path, machine)
    reader = _Reader(store)
    return FileHistory(tuple(map(reader.state, versions)), tuple(versions))


def knows_path(store: ObjectStore, path: str) -> bool:
    """Return whether the store has an object at an absolute path, or had one."""
    return bool(_objects_at(store, path, limit=1))


def _versions_at(store: ObjectStore, path: str, machine: str | None) -> list[Version]:
    found = _objects_at(store, path)
    names = dict.fromkeys(
        one.id for one in found if machine is None or may_be_on(one.metadata.get("home", ""), machine)
    )
    versions = [one for name in names for one in store.history(name) if not is_order(one)]
    return sorted(versions, key=lambda one: (one.at, one.sequence))


def _objects_at(store: ObjectStore, path: str, limit: int | None = None) -> list[Version]:
    """Return the objects now at a path, then the objects deleted there."""
    queries = (Query(types=_FILES, where={name: path}, deleted=None, limit=limit) for name in ("path", "last_path"))
    return [one for query in queries for one in store.objects(query)]


class _Reader:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._texts: dict[ContentHash, tuple[str, ...]] = {}
        self._sure: str | None = None  # the session whose edits need no arguments: it knows the whole newest text

    def state(self, version: Version) -> KnownState:
        deed, author = _deed(version), _author(version)
        known = version.metadata.get("known")
        is_part, is_likely = known == "part", known == "likely"
        edits: tuple[TextEdit, ...] = ()
        is_sure = known == "whole" and (deed in ("read", "write") or self._sure == author.session)
        if deed == "edit" and author.maker == "agent" and not is_sure:
            edits = self._edits(version)
        self._sure = author.session if is_sure else None
        return KnownState(
            f"{version.id}@{version.number}",
            version.at,
            deed,
            author,
            None
            if version.deleted or is_likely or (is_part and "spans" not in version.additional)
            else self._lines(version),
            self._spans(version) if is_part else None,
            edits,
        )

    def _lines(self, version: Version) -> tuple[str, ...] | None:
        name = version.content_hash
        if name is None:
            return None
        if name not in self._texts:
            self._texts[name] = lines_of(self._store.content(version) or "")
        return self._texts[name]

    def _spans(self, version: Version) -> tuple[tuple[int, int], ...]:
        spans = self._store.additional(version, "spans") if "spans" in version.additional else ()
        pairs = spans if isinstance(spans, tuple) else ()
        return tuple((int(str(pair[0])), int(str(pair[1]))) for pair in pairs if isinstance(pair, tuple))

    def _edits(self, version: Version) -> tuple[TextEdit, ...]:
        call = version.metadata.get("call")
        made = self._store.current(call.target) if isinstance(call, Reference) else None
        if made is None or "args" not in made.additional:
            return ()
        value = self._store.additional(made, "args")
        return text_edits(value if isinstance(value, str) else canonical(value), str(version.metadata.get("path")))


def _deed(version: Version) -> Deed:
    if version.deleted:
        return "delete"
    deed = _DEEDS.get(str(version.metadata.get("op")), "read")
    return "write" if deed == "read" and _is_told_of_a_person(version) else deed


def _author(version: Version) -> Author:
    session = version.writer.session or ""
    if session == FILES:
        return Author("person") if _is_told_of_a_person(version) else NOBODY
    if is_indexed(version.writer):
        return Author("agent", session, turn_of(version))
    return Author("person", session) if _is_told_of_a_person(version) else NOBODY


def _is_told_of_a_person(version: Version) -> bool:
    is_told = version.writer.kind == "client" or version.writer.session == FILES
    return is_told and version.provenance.generator == "human"


def turn_of(version: Version) -> int:
    """Return the number of a version's turn, from 1; 0 if unknown."""
    turn, chat = version.metadata.get("turn"), version.metadata.get("turn_ref")
    if isinstance(turn, int):
        return turn
    found = _TURN.match(chat.field or "") if isinstance(chat, Reference) else None
    return int(found[1]) if found else 0


def words_of(store: ObjectStore, version: Version) -> str | None:
    """Return the user's words in a version's turn; None if the store has no record of the turn."""
    asked = version.metadata.get("user_ref")
    found = store.resolve(asked) if isinstance(asked, Reference) else None
    return store.content(found.version) if isinstance(found, Resolution) else None
