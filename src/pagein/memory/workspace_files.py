"""The workspace files touched by sessions, compared with the journals.

Rules of this file
------------------
1. Only files that a session touched are opened, and only inside the workspace, links resolved. Excluded files are never opened.
2. A file is looked at when it has been quiet for a moment, so that no half-written text is taken for one.
3. What was found is told when the calls of the sessions are in the journal: until then a call may explain it.
4. What is kept in memory until then is bounded; the oldest texts are dropped first, never the newest of a file.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from pagein.errors import BadInput
from pagein.memory.file_sightings import NewNote, journal_notes
from pagein.memory.object_writer import IndexedStore
from pagein.memory.redacted_drafts import DraftRedaction
from pagein.memory.session_machines import SessionMachines
from pagein.model.derived_versions import FILES as SIGHTINGS
from pagein.model.memory_notes import FileSightingNote, SightingOp
from pagein.model.names import ContentHash
from pagein.model.versions import Version
from pagein.model.writes import Query
from pagein.policy.file_moves import FilePlace, moves
from pagein.policy.file_sightings import FileLook, ToldContent, ToldEdit, key_of, untold
from pagein.workspace.file_description import FoundFile
from pagein.workspace.folder import Folder
from pagein.workspace.folder_walk import files_at, size_of, walk

IsPerson: TypeAlias = Callable[[float], bool]
"""Returns whether a change at a time is a person's."""

_FILES: Final = frozenset({"file", "note"})
_LARGEST: Final = 4 * 1024 * 1024
"""Larger files (in bytes) are not followed."""
_MOST_FILES: Final = 5_000
_MOST_HEARD: Final = 20_000
_MOST_LOOKS: Final = 32
_MOST_CHARS: Final = 64 * 1024 * 1024
_QUIET: Final = 0.15
"""Seconds without a change before a file is looked at."""
_GRACE: Final = 1.0
"""Seconds that a file may be missing before it counts as gone: many programs save by deleting and recreating a file."""


@dataclass(frozen=True, slots=True)
class _Follow:
    """A followed file. sequence: of the newest version taken in. shown: key of its content at the last look."""

    sequence: int
    shown: str | None
    place: FilePlace


class WorkspaceFiles:
    """The touched files of a folder. Not thread-safe; raises StoreError.

    folder: its path is as clients tell it. machine: id of this machine.
    """

    def __init__(self, store: IndexedStore, folder: Folder, machine: str) -> None:
        self._store = store
        self._folder = replace(folder, max_bytes=min(folder.max_bytes, _LARGEST))
        self._real = os.path.realpath(folder.path)
        self._machine = machine
        self._machines = SessionMachines(store)
        self._redaction = DraftRedaction(store)
        self._followed: dict[str, _Follow] = {}
        self._looks: dict[str, list[FileLook]] = {}
        self._gone: dict[str, float] = {}
        self._changed: set[str] = set()
        self._heard: OrderedDict[str, None] = OrderedDict()
        self._chars = 0

    @property
    def is_waiting(self) -> bool:
        """Whether a finding is not journaled yet."""
        return bool(self._looks or self._gone)

    # --- looking ---

    def hear(self, paths: Iterable[str]) -> None:
        """Record changed paths for the next look: real paths of files or folders."""
        for path in map(self._told_path, paths):
            if path in self._followed:
                self._changed.add(path)
                continue
            if size_of(path) is None:  # a folder, or something that is gone
                self._changed.update(one for one in self._followed if one.startswith(f"{path}/"))
            for come in files_at(path):
                if come not in self._followed:
                    self._heard[come] = None
                    self._heard.move_to_end(come)
        while len(self._heard) > _MOST_HEARD:
            self._heard.popitem(last=False)

    def hear_all(self) -> None:
        """Look at every followed file again, after events may have been lost."""
        self._changed.update(self._followed)

    def look(self, now: float) -> None:
        """Look at the files that changed and are quiet now. now: seconds since 1970."""
        for path in sorted(self._changed):
            is_there = os.path.lexists(path)
            changed = _changed_at(path) if is_there else None
            if changed is not None and now - _QUIET < changed <= now:
                continue
            self._changed.discard(path)
            if not is_there:
                self._gone.setdefault(path, now)
            elif changed is not None and (found := self._read(path)) is not None:
                self._gone.pop(path, None)
                self._keep(path, found)

    def _read(self, path: str) -> FileLook | None:
        located = self._folder.locate(path)
        inside = located.key.startswith(f"{self._real}/")
        if located.excluded or not inside:
            return None
        try:
            found = FoundFile.of(self._folder.read(located))
        except (BadInput, OSError):
            return None
        changed = _changed_at(path)
        if changed is None or self._folder.locate(path).key != located.key:
            return None
        return FileLook(changed, self._storable(found.text), found.digest, found.size)

    def _storable(self, text: str | None) -> str | None:
        """Return a text, or None for a text with unstorable content, such as forgotten texts."""
        return text if self._redaction.text(text) == text else None

    def _keep(self, path: str, found: FileLook) -> None:
        looks = self._looks.setdefault(path, [])
        if looks and looks[-1].key == found.key:
            return
        looks.append(found)
        self._chars += len(found.text or "")
        while len(looks) > 1 and (len(looks) > _MOST_LOOKS or self._chars > _MOST_CHARS):
            self._chars -= len(looks.pop(0).text or "")

    # --- telling ---

    def settle(self, now: float, is_person: IsPerson) -> int:
        """Journal the changes that no call of a session explains, and return the number of notes.

        To be called when the objects are up to the journals, and no call is under way.
        """
        objects = self._objects()
        self._note_missing(objects, now)
        notes = [*self._moved(objects, now), *self._deleted(objects, now)]
        for path, version in objects.items():
            notes += self._changes(path, version, is_person)
        notes += self._returned(objects)
        journal_notes(self._store, notes)
        self._looks.clear()
        self._chars = 0
        return len(notes)

    def _objects(self) -> dict[str, Version]:
        """Return the followed files by path, and drop the state of files no longer followed."""
        self._machines.catch_up()
        under = ("path", f"{self._folder.path.rstrip('/')}/")
        found: dict[str, Version] = {}
        for home in (self._machine, ""):
            for one in self._store.objects(Query(types=_FILES, where={"home": home}, under=under, limit=_MOST_FILES)):
                path = str(one.metadata["path"])
                is_here = bool(home) or self._is_here(one)
                if is_here and path not in found:
                    found[path] = one
        for path in [one for one in self._followed if one not in found]:
            del self._followed[path]
            self._gone.pop(path, None)
        return found

    def _is_here(self, version: Version) -> bool:
        return self._machines.is_on(self._store.history(version.id), self._machine, self._store.last_place() + 1)

    def _note_missing(self, objects: dict[str, Version], now: float) -> None:
        """Find the files lost before the following began here."""
        gone = [path for path in objects if path not in self._followed and not os.path.lexists(path)]
        for path in gone:
            self._followed[path] = _Follow(objects[path].sequence, None, self._place_of(path, objects[path]))
            self._gone.setdefault(path, now - _GRACE)
        if gone:
            self._heard.update(dict.fromkeys(walk(self._folder.path)))

    def _place_of(self, path: str, version: Version) -> FilePlace:
        digest, size = version.metadata.get("file_hash"), version.metadata.get("size")
        if isinstance(digest, str) and isinstance(size, int):
            return FilePlace(path, digest, size)
        text = self._store.content(version) if _is_whole(version) else None
        content = b"" if text is None else text.encode("utf-8", "surrogatepass")
        return FilePlace(path, ContentHash.of(content).hex, len(content)) if content else FilePlace(path, "", -1)

    def _changes(self, path: str, version: Version, is_person: IsPerson) -> Iterator[NewNote]:
        follow, looks = self._followed.get(path), self._looks.get(path, [])
        if path in self._gone or (follow is not None and follow.sequence == version.sequence and not looks):
            return
        now = self._read(path)
        if now is None:
            return
        if not looks or looks[-1].key != now.key:
            looks = [*looks, now]
        told = self._told(version.id, follow)
        for op, look in untold(told, looks):
            is_by_person = op == "change" and told.newest is not None and is_person(look.at)
            yield self._note(path, op, look, is_by_person=is_by_person)
        self._heard.pop(path, None)
        self._followed[path] = _Follow(version.sequence, now.key, FilePlace(path, now.digest, now.size))

    def _told(self, name: str, follow: _Follow | None) -> ToldContent:
        versions = sorted(self._store.history(name), key=lambda one: (one.at, one.sequence))
        since = [one for one in versions if follow is None or one.sequence > follow.sequence]
        changed = [one for one in since if one.metadata.get("op") != "read" and one.writer.session != SIGHTINGS]
        # a read of a part proves nothing new of the whole
        telling = [one for one in versions if one.metadata.get("op") != "read" or _is_whole(one)]
        newest = telling[-1] if telling else None
        return ToldContent(
            None if follow is None else follow.shown,
            frozenset(key for one in since if (key := self._key(one)) is not None),
            None if newest is None else self._key(newest),
            newest.at if newest is not None else 0.0,
            is_open=any(not _is_whole(one) for one in changed),
            edits=tuple(self._edits(versions, changed)),
        )

    def _edits(self, versions: Sequence[Version], changed: Sequence[Version]) -> Iterator[ToldEdit]:
        """Yield the calls among some versions, in the order of their times, whose text is likely."""
        likely = {one.number for one in changed if one.metadata.get("known") == "likely"}
        before: set[str] = set()
        for version in versions if likely else ():
            text = self._store.content(version) if version.metadata.get("known") in ("whole", "likely") else None
            if text is None:
                continue
            lines = set(text.splitlines())
            if version.number in likely:
                yield ToldEdit(version.at, key_of(text), lines - before)
            before = lines

    def _key(self, version: Version) -> str | None:
        if version.deleted:
            return None
        if not _is_whole(version):
            digest = version.metadata.get("file_hash")
            return f"bytes:{digest}" if version.writer.session == SIGHTINGS else None
        text = self._store.content(version)
        return None if text is None else key_of(text)

    def _moved(self, objects: dict[str, Version], now: float) -> list[NewNote]:
        gone = [self._followed[path] for path, at in self._gone.items() if path in objects and now - at >= _GRACE]
        sizes = {one.place.size for one in gone}
        come = [one for one in self._heard if one not in objects and size_of(one) in sizes] if gone else []
        seen = {path: look for path in come if (look := self._read(path)) is not None}
        pairs = moves(
            [one.place for one in gone], [FilePlace(path, look.digest, look.size) for path, look in seen.items()]
        )
        notes = []
        for before, path in pairs.items():
            objects.pop(before)
            self._forget(before)
            self._heard.pop(path, None)
            notes.append(self._note(path, "move", seen[path], before=before))
        return notes

    def _deleted(self, objects: dict[str, Version], now: float) -> list[NewNote]:
        gone = [path for path, at in self._gone.items() if now - at >= _GRACE and path in objects]
        notes = []
        for path in gone:
            objects.pop(path)
            self._forget(path)
            if Path(self._real).is_dir() and not os.path.lexists(path):
                notes.append(NewNote(FileSightingNote(self._machine, path, "delete"), now))
        return notes

    def _returned(self, objects: dict[str, Version]) -> Iterator[NewNote]:
        """Yield a note for each deleted file that is there again."""
        for path in [one for one in self._heard if one not in objects]:
            query = Query(types=_FILES, where={"last_path": path}, deleted=True)
            was_here = any(
                one.metadata.get("home") == self._machine or self._is_here(one) for one in self._store.objects(query)
            )
            if was_here and (look := self._read(path)) is not None:
                self._heard.pop(path, None)
                yield self._note(path, "change", look)

    def _note(
        self, path: str, op: SightingOp, look: FileLook, *, before: str = "", is_by_person: bool = False
    ) -> NewNote:
        note = FileSightingNote(
            self._machine, path, op, before, digest=look.digest, size=look.size, is_by_person=is_by_person
        )
        return NewNote(note, look.at, look.text)

    def _forget(self, path: str) -> None:
        self._followed.pop(path, None)
        self._looks.pop(path, None)
        self._gone.pop(path, None)

    def _told_path(self, path: str) -> str:
        """Return a real path as the client spells it."""
        if path == self._real or path.startswith(f"{self._real}/"):
            return f"{self._folder.path.rstrip('/')}{path.removeprefix(self._real)}"
        return path


def _is_whole(version: Version) -> bool:
    return version.metadata.get("known") == "whole" and not version.deleted


def _changed_at(path: str) -> float | None:
    """Return the time of the last change of a file's content or name; None if unknown."""
    try:
        return os.stat(path).st_ctime  # noqa: PTH116 - paths stay text here
    except (OSError, ValueError):
        return None
