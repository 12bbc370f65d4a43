"""Follow files as objects: a touched file becomes an object, and every later change becomes a version.

Rules of this file
------------------
1. Only files that an agent touched or listed become objects; nothing is stored of other files.
2. Changes are detected by hash. The clock only gives the time of a version.
3. A moved file stays the same object, recognized by the id in its frontmatter, otherwise by content (`policy/file_moves.py`).
4. Deletion is a version. A file counts as deleted if its folder is readable and does not contain it; an inaccessible file stays
   unchanged. A file that returns to its path, or whose bytes appear elsewhere, continues its old object.
5. Files that must not be stored are not read, and a file moved to an excluded name counts as deleted.
6. A file that was only listed never replaces known content.
"""

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pagein.errors import BadInput, StoreError
from pagein.model.values import Fields, Value
from pagein.model.versions import SOMEBODY, Draft, Provenance, Version, Writer, deletion
from pagein.model.writes import NEW, Query, Write, WriteRefusal, Written
from pagein.policy.file_moves import FilePlace, moves
from pagein.ports import Clock, IdSource, ObjectStore
from pagein.workspace.file_description import FoundFile, facts, file_type, name_of, object_type
from pagein.workspace.folder import Folder
from pagein.workspace.folder_walk import digest_of, files_at, size_of, walk
from pagein.workspace.note_links import link_target

_WATCHER: Final = Writer("watcher", "watcher_sync")
_TYPES: Final = frozenset({"file", "note"})
_PAGE: Final = 500
_TRIES: Final = 5
_REMEMBERED: Final = 20_000
_LARGEST: Final = 16 * 1024 * 1024
"""Larger files (in bytes) become objects without content."""

Deed: TypeAlias = Literal["created", "changed", "moved", "deleted", "returned"]


@dataclass(frozen=True, slots=True)
class FollowOutcome:
    """A recorded change of a file.

    before: the old path of a moved file
    """

    deed: Deed
    version: Version
    before: str | None = None


@dataclass(frozen=True, slots=True)
class News:
    """Recorded changes of known files.

    doubtful: paths of missing files whose deletion is not yet certain
    """

    done: list[FollowOutcome]
    doubtful: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rim:
    """External services for following files.

    home: identifies machine and folder among every user of the store
    """

    store: ObjectStore
    clock: Clock
    ids: IdSource
    home: str


class FileObjects:
    """The files of a working folder as objects. Called from several threads, one at a time; raises StoreError.

    Changes found by comparison are recorded for the watcher; what an agent touches has no writer of its own.
    """

    def __init__(self, folder: Folder, rim: Rim) -> None:
        real = os.path.realpath(folder.path)
        self._folder = replace(folder, path=real, max_bytes=min(folder.max_bytes, _LARGEST))
        self._rim = rim
        self._writer = SOMEBODY
        self._one_at_a_time = threading.RLock()
        self._heard: OrderedDict[str, None] = OrderedDict()

    # --- files touched by an agent ---

    def touch(self, path: str, generator: str = "agent") -> Version | None:
        """Return the updated object of a file that was read, written or edited.

        Return None for a file that must not be stored.

        Raises BadInput, in the host's words, for a missing file.
        """
        located = self._folder.locate(path)
        if located.excluded:
            return None
        with self._as(SOMEBODY):
            found = self._look(located.key)
            if found is None:
                self._folder.read(located)  # raises with the reason
                return None
            return self._store_version(found, generator).version

    def discover(self, paths: Iterable[str]) -> list[Version]:
        """Return the objects of listed files: known objects unchanged, new objects by name alone, without content."""
        found = []
        for path in paths:
            located = self._folder.locate(path)
            if located.excluded or not Path(located.key).is_file():
                continue
            with self._as(SOMEBODY):
                known = self._at(located.key)
                found.append(known if known is not None else self._store_name(located.key))
        return found

    # --- changes of known files ---

    def known_files(self) -> Iterator[Version]:
        """Yield the newest versions of every followed file, without deleted files."""
        before: int | None = None
        while page := self._rim.store.objects(self._query(before=before, limit=_PAGE)):
            yield from page
            before = page[-1].sequence

    def look_again(self) -> list[FollowOutcome]:
        """Compare every known file with the disk by hash, to find changes made while unwatched.

        Linear in the size of the known files.
        """
        with self._as(_WATCHER):
            return self._compare(list(self.known_files()), (), thorough=True).done

    def news(self, paths: Iterable[str], *, patient: bool = False) -> News:
        """Handle events at these paths: files or folders, known or unknown. Return the changes of known files.

        patient: do not count a missing file as deleted yet, because it may be on its way to another path
        """
        known: dict[str, Version] = {}
        come: dict[str, None] = {}
        with self._as(_WATCHER):
            for path in dict.fromkeys(paths):
                known.update((one.id, one) for one in self._under(path))
                come.update(dict.fromkeys(files_at(path)))
            taken = {_path(one) for one in known.values()}
            fresh = [path for path in come if path not in taken]
            news = self._compare(list(known.values()), fresh, patient=patient)
            self._hear(fresh)
            return news

    @contextlib.contextmanager
    def _as(self, writer: Writer) -> Iterator[None]:
        with self._one_at_a_time:
            self._writer = writer
            yield

    # --- comparing ---

    def _compare(
        self, known: Sequence[Version], come: Sequence[str], *, thorough: bool = False, patient: bool = False
    ) -> News:
        done: list[FollowOutcome] = []
        gone: list[Version] = []
        for version in known:
            if self._is_missing(_path(version)):
                gone.append(version)
            elif not version.metadata.get("unread"):
                found = self._look(_path(version))
                if found is not None and found.digest != version.metadata.get("file_hash"):
                    done.append(self._store_version(found, "human", version))
        moved = self._record_moves(gone, come, thorough=thorough)
        settled, taken = {one.version.id for one in moved}, {_path(one.version) for one in moved}
        lost = [version for version in gone if version.id not in settled]
        deleted = [] if patient else [self._store_deletion(version) for version in lost]
        returned = self._record_returns([path for path in come if path not in taken])
        doubtful = tuple(_path(version) for version in lost) if patient else ()
        return News([*done, *moved, *deleted, *returned], doubtful)

    def _record_moves(self, gone: Sequence[Version], come: Sequence[str], *, thorough: bool) -> list[FollowOutcome]:
        if not gone:
            return []
        old = [_file_place(version.metadata) for version in gone]
        sizes, named = {file.size for file in old}, any(file.note_id for file in old)
        candidates = dict.fromkeys([*come, *self._heard, *(walk(self._folder.path) if thorough else ())])
        seen: dict[str, FoundFile] = {}
        for path in candidates:
            if (named and object_type(path) == "note") or size_of(path) in sizes:
                found = self._look(path)
                if found is not None and self._at(path) is None:
                    seen[path] = found
        new = [_file_place(self._facts(one)) for one in seen.values()]
        pairs = moves(old, new)
        return [
            replace(
                self._store_version(seen[pairs[_path(version)]], "human", version), deed="moved", before=_path(version)
            )
            for version in gone
            if _path(version) in pairs
        ]

    def _record_returns(self, come: Sequence[str]) -> list[FollowOutcome]:
        """Record deleted files that exist again."""
        done = []
        for path in come:
            last = self._was_at(path)
            found = self._look(path) if last is not None or self._size_was_known(path) else None
            if found is None:
                continue
            last = last or self._had(found)
            if last is not None and self._at(path) is None:
                done.append(replace(self._store_version(found, "human", last), deed="returned"))
        return done

    def _is_missing(self, path: str) -> bool:
        """Return whether the file is missing rather than inaccessible."""
        inside = path.startswith(self._folder.path.rstrip("/") + "/")
        nearest = self._folder.path if inside else os.path.dirname(path)  # noqa: PTH120  paths stay text here
        if self._folder.locate(path).excluded:
            return True
        try:
            return not os.path.lexists(path) and Path(nearest).is_dir()
        except (OSError, ValueError):
            return False

    def _look(self, path: str) -> FoundFile | None:
        """Return the file's current state, or None for an unreadable or unstorable file.

        A too large file gives only its hash.
        """
        located = self._folder.locate(path)
        if located.excluded or located.key != path:
            return None
        try:
            size = size_of(path)
            if size is not None and size > self._folder.max_bytes:
                return FoundFile(path, digest_of(path), size, None)
            return FoundFile.of(self._folder.read(located))
        except (BadInput, OSError):
            return None

    # --- finding objects ---

    def _query(self, **asked: object) -> Query:
        where = {"home": self._rim.home, **asked.pop("where", {})}  # type: ignore[dict-item]  # a mapping, as written below
        return Query(types=_TYPES, where=where, **asked)  # type: ignore[arg-type]  # fields of Query, as written below

    def _first(self, query: Query) -> Version | None:
        found = self._rim.store.objects(replace(query, limit=1))
        return found[0] if found else None

    def _at(self, path: str) -> Version | None:
        return self._first(self._query(where={"path": path}))

    def _under(self, path: str) -> list[Version]:
        beginning = self._rim.store.objects(self._query(under=("path", path)))
        return [one for one in beginning if _path(one) == path or _path(one).startswith(path.rstrip("/") + "/")]

    def _was_at(self, path: str) -> Version | None:
        return self._first(self._query(where={"last_path": path}, deleted=True))

    def _had(self, seen: FoundFile) -> Version | None:
        if not seen.size:
            return None
        return self._first(self._query(where={"file_hash": seen.digest}, deleted=True))

    def _size_was_known(self, path: str) -> bool:
        size = size_of(path)
        return bool(size) and self._first(self._query(where={"size": size}, deleted=True)) is not None

    # --- writing versions ---

    def _store_version(self, seen: FoundFile, generator: str, known: Version | None = None) -> FollowOutcome:
        """Store the current state of a file as a version. If another writer is faster, compare again."""
        for _ in range(_TRIES):
            current = known if known is not None else self._at(seen.path) or self._was_at(seen.path)
            draft = self._new(seen, generator) if current is None else self._next(seen, current)
            outcome = self._write(draft, current)
            if isinstance(outcome, Written):
                return FollowOutcome("created" if current is None else "changed", outcome.version)
            if known is not None and outcome.why == "version_conflict":
                known = outcome.current
        raise StoreError(f"{seen.path} could not be stored: others change it all the time")

    def _new(self, seen: FoundFile, generator: str) -> Draft:
        return Draft(
            id=self._rim.ids(self._rim.clock()),
            type=object_type(seen.path),
            content=seen.text,
            metadata=self._facts(seen),
            nickname=self._free_name(seen.path),
            provenance=Provenance(seen.path, generator),
        )

    def _next(self, seen: FoundFile, current: Version) -> Draft:
        metadata, nickname = self._facts(seen), current.nickname
        was = current.metadata.get("path") or current.metadata.get("last_path")
        if object_type(seen.path) == "note" and (
            nickname is None or (isinstance(was, str) and nickname == name_of(was))
        ):
            nickname = self._free_name(seen.path, current)
        added = {name: value for name, value in current.metadata.items() if name not in _OURS}
        return replace(
            current.draft(seen.text), metadata=Fields({**added, **metadata}), nickname=nickname, deleted=False
        )

    def _facts(self, seen: FoundFile) -> Fields:
        return facts(
            seen, self._rim.home, lambda target, path: link_target(self._rim.store, self._rim.home, target, path)
        )

    def _free_name(self, path: str, owner: Version | None = None) -> str | None:
        """Return a note's file name as nickname, unless another object has it."""
        name = name_of(path).strip()
        if object_type(path) != "note" or not 0 < len(name) <= 200 or len(name.splitlines()) != 1:  # noqa: PLR2004 - a nickname's limit
            return None
        holder = self._rim.store.current(name)
        taken = holder is not None and (owner is None or holder.id != owner.id)
        return None if taken else name

    def _store_name(self, path: str) -> Version:
        metadata = Fields({"path": path, "home": self._rim.home, "file_type": file_type(path), "unread": True})
        draft = Draft(
            id=self._rim.ids(self._rim.clock()),
            type=object_type(path),
            metadata=metadata,
            provenance=Provenance(path, "tool"),
        )
        outcome = self._write(draft, None)
        if isinstance(outcome, WriteRefusal):
            raise StoreError(f"{path} could not be stored: {outcome.why}")
        return outcome.version

    def _store_deletion(self, version: Version) -> FollowOutcome:
        draft = deletion(version)
        draft = replace(draft, metadata=Fields({**draft.metadata, "last_path": _path(version)}))  # type: ignore[dict-item]  # frozen
        outcome = self._write(draft, version)
        if isinstance(outcome, WriteRefusal):
            # another writer was faster: its version counts, and is compared in its turn
            return FollowOutcome("changed", outcome.current or version)
        return FollowOutcome("deleted", outcome.version, _path(version))

    def _write(self, draft: Draft, current: Version | None) -> Written | WriteRefusal:
        now = self._rim.clock()
        expected = NEW if current is None else current.number
        return self._rim.store.write(Write(f"file:{self._rim.ids(now)}", draft, now, expected, self._writer))

    def _hear(self, paths: Iterable[str]) -> None:
        """Remember unknown files: a missing known file may turn out to have moved to a remembered path."""
        for path in paths:
            self._heard[path] = None
            self._heard.move_to_end(path)
        while len(self._heard) > _REMEMBERED:
            self._heard.popitem(last=False)


_OURS: Final = frozenset(
    [
        "path",
        "home",
        "file_type",
        "file_hash",
        "size",
        "media_type",
        "title",
        "note_id",
        "tags",
        "aliases",
        "frontmatter",
        "links",
        "blocks",
        "problem",
        "unread",
        "last_path",
    ]
)
"""Metadata derived from the file, and replaced with each version. Metadata added by others stays."""


def _path(version: Version) -> str:
    path = version.metadata.get("path")
    return path if isinstance(path, str) else ""


def _file_place(known: Mapping[str, Value]) -> FilePlace:
    path, digest, size, note_id = (known.get(name) for name in ("path", "file_hash", "size", "note_id"))
    return FilePlace(
        path if isinstance(path, str) else "",
        digest if isinstance(digest, str) else "",
        size if isinstance(size, int) else -1,
        note_id if isinstance(note_id, str) else None,
    )
