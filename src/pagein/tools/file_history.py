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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pagein.engine.recall.stored_fields import contents_of, stored_bytes
from pagein.memory.object_orders import is_order
from pagein.model.derived_versions import FILES, is_indexed
from pagein.model.file_homes import may_be_on
from pagein.model.links import Resolution
from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.values import Value, canonical
from pagein.model.version_hash import decode_content, value_of
from pagein.model.versions import Version
from pagein.model.writes import Query
from pagein.policy.blame.known_states import NOBODY, Author, Deed, KnownState, lines_of
from pagein.policy.clients.edit_arguments import text_edits
from pagein.policy.reads.text_edit import TextEdit
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
    arguments = _arguments_of_each(store, _edits_to_read(versions))
    texts, spans = (set(filter(None, map(name_in, versions))) for name_in in (_text_name, _spans_name))
    stored = stored_bytes(store, [*texts, *spans, *arguments.values()])  # together: most are in the same bundles
    reader = _Reader(
        {name: lines_of(decode_content(stored[name])) for name in texts},
        {name: _spans_in(value_of(stored[name])) for name in spans},
        {sequence: value_of(stored[name]) for sequence, name in arguments.items()},
    )
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


def _text_name(version: Version) -> ContentHash | None:
    """Return the hash of the text that a version knows, if it knows enough of it."""
    is_likely = version.metadata.get("known") == "likely"
    is_unknown = version.deleted or is_likely or (_is_part(version) and "spans" not in version.additional)
    return None if is_unknown else version.content_hash


def _spans_name(version: Version) -> ContentHash | None:
    """Return the hash of the field with the lines that a version knows, if it knows a part."""
    return version.additional.get("spans") if _is_part(version) else None


def _is_part(version: Version) -> bool:
    return version.metadata.get("known") == "part"


def _edits_to_read(versions: Sequence[Version]) -> list[Version]:
    """Return the edits of agents whose arguments tell more than the text: not those behind a text of the same session that is
    known whole.
    """
    wanted: list[Version] = []
    sure: str | None = None  # the session whose edits need no arguments: it knows the whole newest text
    for one in versions:
        deed, author = _deed(one), _author(one)
        is_sure = one.metadata.get("known") == "whole" and (deed in ("read", "write") or sure == author.session)
        if deed == "edit" and author.maker == "agent" and not is_sure:
            wanted.append(one)
        sure = author.session if is_sure else None
    return wanted


def _arguments_of_each(store: ObjectStore, versions: Sequence[Version]) -> dict[int, ContentHash]:
    """Return the hashes of the arguments of the calls that made versions, by the sequences of these."""
    names: dict[int, ContentHash] = {}
    for one in versions:
        call = one.metadata.get("call")
        made = store.current(call.target) if isinstance(call, Reference) else None
        if made is not None and "args" in made.additional:
            names[one.sequence] = made.additional["args"]
    return names


def _spans_in(spans: Value) -> tuple[tuple[int, int], ...]:
    pairs = spans if isinstance(spans, tuple) else ()
    return tuple((int(str(pair[0])), int(str(pair[1]))) for pair in pairs if isinstance(pair, tuple))


@dataclass(frozen=True, slots=True)
class _Reader:
    """What was read of the versions of a file: texts and spans by their hashes, the arguments of edits by the sequences of versions."""

    texts: Mapping[ContentHash, tuple[str, ...]]
    spans: Mapping[ContentHash, tuple[tuple[int, int], ...]]
    arguments: Mapping[int, Value]

    def state(self, version: Version) -> KnownState:
        name, spans = _text_name(version), _spans_name(version)
        return KnownState(
            f"{version.id}@{version.number}",
            version.at,
            _deed(version),
            _author(version),
            None if name is None else self.texts[name],
            (() if spans is None else self.spans[spans]) if _is_part(version) else None,
            self._edits(version),
        )

    def _edits(self, version: Version) -> tuple[TextEdit, ...]:
        if version.sequence not in self.arguments:
            return ()
        told = self.arguments[version.sequence]
        return text_edits(told if isinstance(told, str) else canonical(told), str(version.metadata.get("path")))


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


def words_of_each(store: ObjectStore, versions: Sequence[Version]) -> list[str | None]:
    """Return the user's words in the turn of each version; None if the store has no record of the turn."""
    asked = [one.metadata.get("user_ref") for one in versions]
    found = {one: store.resolve(one) for one in dict.fromkeys(one for one in asked if isinstance(one, Reference))}
    said = {one: told.version.content_hash for one, told in found.items() if isinstance(told, Resolution)}
    words = contents_of(store, [name for name in said.values() if name is not None])
    names = [said.get(one) if isinstance(one, Reference) else None for one in asked]
    return [None if name is None else words[name] for name in names]
