"""Find the sources in the paths given by a person: files, folders, compressed files, archives."""

import stat
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from pagein.errors import BadInput, NoSession
from pagein.replay.readers.detection import check
from pagein.replay.readers.file_snapshots import FileSnapshots
from pagein.replay.readers.opencode import database_sessions
from pagein.replay.readers.rows import DAMAGE
from pagein.replay.readers.source import SkippedSource, Source

_COMPRESSED: Final = (".gz", ".zst", ".xz")
_PLAIN: Final = (".jsonl", ".json")
_SESSIONS: Final = _PLAIN + tuple(plain + packed for plain in _PLAIN for packed in _COMPRESSED)
_ARCHIVES: Final = (".tar", ".tar.xz", ".tar.gz", ".tgz", ".txz")
_DATABASES: Final = (".db", ".sqlite", ".sqlite3")
_SNAPSHOTS: Final = ".snapshots"
_SIDECARS: Final = (".meta.json", ".snapshots.jsonl", ".snapshots.json", "-wal", "-shm")
_NEVER: Final = frozenset(("auth.json", "credentials.json", "package.json", "package-lock.json", "tsconfig.json"))
_PASSED_OVER: Final = frozenset((".git", "node_modules"))
_LARGEST_MEMBER: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A file that may hold sessions, not opened yet. label: its name in messages and reports."""

    path: Path
    label: str


def find(paths: Iterable[Path]) -> Iterator[Source | SkippedSource]:
    """Yield the sources in these paths, including folders, in the order of their names.

    A file with the name of a session but other content comes as SkippedSource; nothing is raised.
    """
    for found in session_files(paths):
        if isinstance(found, SkippedSource):
            yield found
        else:
            yield from sources_of(found)


def session_files(paths: Iterable[Path]) -> Iterator[SessionFile | SkippedSource]:
    """Yield the files in these paths, including folders, in the order of their names, and open none.

    In a folder, a file with an impossible name for a session is ignored; named directly, it counts. A file reachable
    by several paths comes once. What is no file comes as SkippedSource; nothing is raised.
    """
    seen: set[Path] = set()
    for path in paths:
        kind = _kind(path)
        if kind == "folder":
            yield from _in_folder(path, seen)
        elif kind == "file" and _is_news(path, seen):
            yield SessionFile(path, path.name)
        elif kind not in ("folder", "file"):
            yield SkippedSource(str(path), kind)


def _kind(path: Path) -> str:
    """Return `folder`, `file`, or the reason for neither, in words."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "no such file or folder"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if stat.S_ISDIR(mode):
        return "folder"
    return (
        "file" if stat.S_ISREG(mode) else "a pipe or device. A session is read more than once: save it to a file first"
    )


def _is_news(path: Path, seen: set[Path]) -> bool:
    """Return whether this file is new, by any path."""
    real = path.resolve()
    new = real not in seen
    seen.add(real)
    return new


def _in_folder(folder: Path, seen: set[Path]) -> Iterator[SessionFile | SkippedSource]:
    for found in _walk_folder(folder):
        label = (found if isinstance(found, Path) else found[0]).relative_to(folder.parent if folder.name else folder)
        if isinstance(found, tuple):
            yield SkippedSource(label.as_posix(), found[1])
        elif _may_hold_sessions(found.name) and _is_news(found, seen):
            yield SessionFile(found, label.as_posix())


def _walk_folder(folder: Path) -> Iterator[Path | tuple[Path, str]]:
    """Yield the files below a folder; for an unreadable entry, its path and the reason.

    In OpenCode's storage only session infos are yielded: messages and parts belong to them.
    """
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        kind = _kind(path)
        if kind == "folder":
            try:
                children = sorted(path.iterdir(), reverse=True)
            except OSError as error:
                yield path, f"the folder cannot be read: {error.strerror}"
                continue
            waiting.extend(_worth_a_look(children))
        elif kind == "file":
            yield path
        elif _may_hold_sessions(path.name):
            yield path, kind


def _worth_a_look(children: list[Path]) -> Iterator[Path]:
    names = {child.name for child in children}
    stored = {"session", "message"} <= names
    for child in children:
        if child.name in _PASSED_OVER or _plain_twin(child, names):
            continue
        if _kind(child) != "folder" or not (child.is_symlink() or (stored and child.name != "session")):
            yield child


def _plain_twin(path: Path, names: set[str]) -> bool:
    """Return whether this is the compressed copy of a file beside it: hosts keep both for a while."""
    return path.suffix in _COMPRESSED and path.name.removesuffix(path.suffix) in names


def _may_hold_sessions(name: str) -> bool:
    lowered = name.lower()
    if lowered.startswith(".") or lowered in _NEVER or lowered.endswith(_SIDECARS) or _is_snapshots(lowered):
        return False
    return lowered.endswith(_SESSIONS + _ARCHIVES) or (lowered.endswith(_DATABASES) and lowered.startswith("opencode"))


def _is_snapshots(name: str) -> bool:
    return any(name.endswith(_SNAPSHOTS + archive) for archive in _ARCHIVES)


def sources_of(file: SessionFile) -> Iterator[Source | SkippedSource]:
    """Yield the sources in a file: the file itself, the members of an archive, the sessions of a database."""
    path, label = file.path, file.label
    if _is_snapshots(path.name):
        yield SkippedSource(label, "file snapshots, used with the sessions beside them", is_sound=True)
    elif path.name.lower().endswith(_ARCHIVES):
        yield from _members(path, label)
    elif path.name.lower().endswith(_DATABASES):
        yield from _rows(path, label)
    else:
        yield _check_source(Source(label, path))


def _check_source(source: Source) -> Source | SkippedSource:
    try:
        check(source)
    except BadInput as error:
        reason = str(error).removeprefix(source.label).lstrip(":, ")
        return SkippedSource(source.label, reason, isinstance(error, NoSession))
    return source


def _rows(path: Path, label: str) -> Iterator[Source | SkippedSource]:
    try:
        rows = database_sessions(path)
    except BadInput as error:
        yield SkippedSource(label, str(error))
        return
    for session in rows:
        yield Source(f"{label}:{session[0]}", path, member=session[0])


def _members(path: Path, label: str) -> Iterator[Source | SkippedSource]:
    """Yield the members of an archive one at a time: only the requested one is in memory."""
    group = path.name.partition(".tar")[0] or None
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                name = PurePosixPath(member.name).name
                if not member.isfile() or not _may_hold_sessions(name) or name.lower().endswith(_ARCHIVES + _DATABASES):
                    continue
                yield _member(archive, member, f"{label}:{member.name}", group)
    except (tarfile.TarError, *DAMAGE) as error:
        yield SkippedSource(label, f"the archive cannot be read further: {str(error) or type(error).__name__}")


def _member(archive: tarfile.TarFile, member: tarfile.TarInfo, label: str, group: str | None) -> Source | SkippedSource:
    if member.size > _LARGEST_MEMBER:
        return SkippedSource(label, f"a member of over {_LARGEST_MEMBER >> 20} MiB; unpack the archive first")
    stream = archive.extractfile(member)
    if stream is None:
        return SkippedSource(label, "a member without content")
    return _check_source(Source(label, content=stream.read(), group=group))


def snapshots_beside(path: Path) -> Mapping[str, str]:
    """Return whole files before recorded edits, by their name in `ToolResult.before`; empty if none are stored.

    path: an archive or file of sessions. `NAME.snapshots.tar.xz` (or another archive, or `.jsonl`) beside it is read at
    the first access to a file.
    """
    base = path.name
    for suffix in sorted(_ARCHIVES + _SESSIONS, key=len, reverse=True):
        if base.endswith(suffix):
            base = base.removesuffix(suffix)
            break
    suffixes = (*_ARCHIVES, ".jsonl", *(f".jsonl{packed}" for packed in _COMPRESSED))
    candidates = (path.with_name(f"{base}{_SNAPSHOTS}{suffix}") for suffix in suffixes)
    return FileSnapshots(next((candidate for candidate in candidates if candidate.is_file()), None))
