"""Write the versions of files that calls show, write, change or delete."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pagein.memory.object_orders import is_order
from pagein.memory.object_writer import Cause, ObjectWriter
from pagein.memory.session_machines import SessionMachines
from pagein.model.file_homes import home_of_path
from pagein.model.journal_notes import ReadNote
from pagein.model.links import Resolution
from pagein.model.object_names import object_name, request_name
from pagein.model.pool_notes import PoolNote
from pagein.model.read_events import FileRead, FileWrite
from pagein.model.references import Reference
from pagein.model.values import Value
from pagein.model.versions import Draft, Provenance, Version, deletion
from pagein.policy.clients.known_files import FileDeed
from pagein.ports import ObjectStore
from pagein.workspace.file_description import file_type, name_of, note_facts, object_type

_GONE: Final[Mapping[str, object]] = {"path": None, "op": "delete", "known": "name"}
_LOOKED_AT: Final = (8, 256)
"""Latest versions of a file among which the changes of others are sought: few, then many."""


class FileVersions:
    """The files of one session as objects. Not thread-safe; raises StoreError."""

    def __init__(self, session: str, writer: ObjectWriter, machines: SessionMachines) -> None:
        self._session = session
        self._writer = writer
        self._machines = machines
        self._known: dict[str, Version] = {}
        self._machine = ""
        self._follows = False
        self._place = 0
        self._whole: dict[str, Version] = {}
        self._wanted: dict[str, str] = {}  # ids under which the pools told of files

    def go_to(self, place: int) -> None:
        """Use the last note about the session's machine before a place of the journals."""
        told = self._machines.of(self._session, place)
        if told is not None:
            self._machine, self._follows = told.machine, told.follows
        self._place = place

    def weigh_deed(self, deed: FileDeed, cause: Cause, place: tuple[int, int]) -> FileDeed:
        """Return a deed, marked as likely if another session changed the file meanwhile.

        An edit on a whole text is likely if another session, or a person, changed the file since this session knew the text.
        """
        if deed.deed != "edit" or deed.known != "whole":
            return deed
        answered = self._writer.known(_request(cause, *place))
        if answered is None:
            is_likely = self._is_overtaken(deed.path, cause.at)
        else:  # what other sessions did since then changes nothing
            is_likely = answered.metadata.get("known") == "likely"
        return replace(deed, known="likely", is_trusted=False) if is_likely else deed

    def _is_overtaken(self, path: str, at: float) -> bool:
        base = self._whole.get(path)
        if base is None:
            return False
        store = self._writer.store
        for most in _LOOKED_AT:
            found = store.latest_versions(base.id, most)
            if len(found) < most or found[-1].at <= base.at:
                break
        between = (one for one in found if base.at < one.at <= at and one.writer.session != self._session)
        return any(_is_change(store, one, base) for one in between)

    def note_deed(
        self, deed: FileDeed, cause: Cause, origin: Mapping[str, object], call: str, place: tuple[int, int]
    ) -> Reference | None:
        """Write the version for a deed, and return the call's reference to the file.

        origin: where in the chat the call is. call: id of the call's object. place: number of the result in its
        message, and of the deed in it.
        """
        if deed.deed == "delete" and deed.other and self._follows:
            return None  # told with the version at the new path, which is of the same object
        known = self._known.get(deed.path)
        if not deed.is_news and known is not None:
            return known.static(relation=deed.deed)
        if deed.deed == "read" and deed.known == "name":
            version = (
                self._writer.answered(_request(cause, *place), deed.content)
                or self._current(deed.path)
                or self._write(deed, cause, {**origin, "unread": True}, call, *place)
            )
            return Reference(version.id, relation=deed.deed)
        version = self._write(deed, cause, origin, call, *place)
        self._keep(deed.path, version)
        return version.static(relation=deed.deed)

    def note_copy(self, call: Version) -> None:
        """Take over the files of an earlier call; this session has a copy of the call."""
        refs = call.metadata.get("file_refs")
        for ref in refs if isinstance(refs, tuple) else ():
            found = self._writer.store.resolve(ref) if isinstance(ref, Reference) and ref.pin is not None else None
            if isinstance(found, Resolution):
                path = found.version.metadata.get("path") or found.version.metadata.get("last_path")
                self._keep(str(path), found.version)

    def _keep(self, path: str, version: Version) -> None:
        self._known[path] = version
        if version.metadata.get("known") == "whole":
            self._whole[path] = version

    def note_read(self, note: ReadNote, cause: Cause, origin: Mapping[str, object]) -> None:
        """Write the version read or written by pagein's own read tool. The store has the content already."""
        event = note.event
        if not isinstance(event, FileRead | FileWrite):
            return
        known = self._known.get(event.path)
        if known is not None and known.metadata.get("file_hash") == event.version.hex:
            return
        text = self._writer.text(event.version.hex)
        deed = FileDeed(
            event.path,
            "read" if isinstance(event, FileRead) else "write" if event.whole else "edit",
            "name" if text is None else "whole",
            text,
            total=event.total,
            proof="shown" if isinstance(event, FileRead) else "written",
        )
        if text is not None or isinstance(event, FileWrite):
            self._keep(event.path, self._write(deed, cause, {**origin, "file_hash": event.version.hex}))

    def note_pool(self, note: PoolNote, cause: Cause, origin: Mapping[str, object]) -> None:
        """Write the versions of the files that entered a session's pools. The store has the contents already."""
        for number, act in enumerate(note.acts):
            known = self._known.get(act.path)
            is_known = known is not None and known.metadata.get("file_hash") == act.version
            if act.type not in ("file", "note") or not act.path or not act.version or is_known:
                continue
            text = self._writer.text(act.version)
            if text is not None:
                self._wanted[act.path] = act.id
                deed = FileDeed(act.path, "read", "whole", text, total=text.count("\n") + 1, proof="shown")
                facts = {**origin, "file_hash": act.version}
                self._keep(act.path, self._write(deed, cause, facts, "", number, 0))

    def _home(self, path: str) -> str:
        return home_of_path(path, self._session, self._machine)

    def _current(self, path: str) -> Version | None:
        home = self._home(path)
        return self._machines.file_at(self._writer, home, path, self._place)

    def _moved(self, deed: FileDeed, current: Version | None, cause: Cause, *place: int) -> Version | None:
        """Return the file that moves to the path of a deed; a file that was there is gone."""
        moved = self._current(deed.other)
        if moved is None or moved.deleted or (current is not None and current.id == moved.id):
            return current
        if current is not None and not current.deleted:
            gone = replace(deletion(current), metadata={**_GONE, "last_path": deed.path, "home": self._home(deed.path)})
            self._writer.write(_request(cause, *place, 1), gone, cause)
        return moved

    def _path_before(self, deed: FileDeed, current: Version | None) -> object:
        """Return the former path of a moved file, still in use by people."""
        if deed.deed == "move" and self._follows:
            return deed.other
        return None if current is None else current.metadata.get("before")

    def _free_id(self, home: str, path: str, cause: Cause, *place: int) -> str:
        """Return the id of a new file; the file that had this name first may be at another path now."""
        name = self._wanted.get(path) or object_name("file", home, path, at=None)
        if self._writer.store.current(name) is None:
            return name
        return object_name("file", home, path, cause.session, cause.entry, *map(str, place), at=None)

    def _nickname(self, path: str, call: str) -> str | None:
        """Return a new note's name, if no object has the name. The id of the call is taken: the call's object is written next."""
        name = self._writer.free_name(name_of(path))
        return None if name == call else name

    def _write(
        self, deed: FileDeed, cause: Cause, origin: Mapping[str, object], call: str = "", *place: int
    ) -> Version:
        request = _request(cause, *place)
        known = self._writer.answered(request, deed.content)
        if known is not None:
            return known
        current = self._current(deed.path)
        if deed.deed == "move" and self._follows:
            current = self._moved(deed, current, cause, *place)
        home = self._home(deed.path)
        object_id = self._free_id(home, deed.path, cause, *place) if current is None else current.id
        is_gone = deed.deed == "delete"
        metadata: dict[str, object] = {
            "path": None if is_gone else deed.path,
            **({"last_path": deed.path} if is_gone else {}),
            **({"before": before} if (before := self._path_before(deed, current)) else {}),
            "home": home,
            "file_type": file_type(deed.path),
            "op": deed.deed,
            "known": deed.known,
            **({"proof": deed.proof} if deed.proof else {}),
            **({"last_end": "unknown"} if deed.is_end_open else {}),
            **({"lines": deed.total} if deed.total is not None else {}),
            **({"call": Reference(call, relation="call")} if call else {}),
            **origin,
        }
        type_ = object_type(deed.path) if current is None else current.type
        additional: dict[str, Value] = {}
        if deed.known == "part" and deed.text is not None:
            additional["spans"] = ((deed.first, deed.first + deed.text.count("\n")),)
        if type_ == "note" and deed.known in ("whole", "likely") and deed.content is not None:
            metadata |= note_facts(deed.content, deed.path, self._writer.target_of(home))
        draft = Draft(
            id=object_id,
            type=type_,
            content=deed.content,
            metadata=metadata,
            additional=additional,
            nickname=self._nickname(deed.path, call) if type_ == "note" and current is None else None,
            provenance=Provenance(deed.path, "agent"),
            deleted=is_gone,
        )
        return self._writer.write(request, draft, cause)


def _request(cause: Cause, *place: int) -> str:
    # Not by the id of the call's object, which depends on the other calls in the store, nor by the path, which may be erased.
    return request_name("file", cause.session, cause.entry, *map(str, place))


def _is_change(store: ObjectStore, version: Version, base: Version) -> bool:
    """Return whether a version proves that the file was no longer as in an earlier version."""
    if is_order(version) or version.content_hash == base.content_hash:
        return False
    if version.metadata.get("op") != "read":
        return True
    # a read may not show the last line end
    shown = (store.content(one) or "" for one in (version, base))
    return version.metadata.get("known") == "whole" and len({text.removesuffix("\n") for text in shown}) > 1
