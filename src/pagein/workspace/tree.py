"""Match paths and globs against the files of a workspace, for ingest.

Rules of this file
------------------
1. Nothing outside of the folder is matched or read: the real path is checked in the file system once before a file is
   accepted, and again after reading it.
2. Files ignored by git are skipped (`.gitignore` in any folder from the repository's root on down, `.git/info/exclude`), and so
   are `.git` and `node_modules`. A file named directly, without a glob, is accepted even if ignored.
3. Links to folders are not followed. A link to a file counts as its target.
4. Every name that leads to a file decides whether its content may be stored (law 9).
"""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pagein.errors import AbortedOperation, BadInput
from pagein.model.documents import Document
from pagein.model.trees import TreeFile, TreeMatches
from pagein.policy.privacy.exclusions import EXCLUDED, is_excluded
from pagein.policy.recall.path_filter import path_matches
from pagein.ports import Signal
from pagein.workspace import paths
from pagein.workspace.files import MAX_FILE_BYTES, load_document
from pagein.workspace.hardlinks import names_an_excluded

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

NEVER: Final = frozenset({".git", "node_modules"})
"""Names of folders that are never searched."""
_MAGIC: Final = re.compile(r"[*?\[{]")
_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")
_MOST_ALTERNATIVES: Final = 256
_SNIFFED: Final = 512
_MOST: Final = 1_000_000
"""Number of entries checked before a pattern is refused as too wide."""


@dataclass(frozen=True, slots=True)
class FileTree:
    """The tree of a folder on this machine. Stateless: every question goes to the disk.

    folder: absolute
    excluded: name patterns of files whose content is never stored
    """

    folder: str
    excluded: tuple[str, ...] = EXCLUDED

    def match(self, patterns: Sequence[str], signal: Signal | None = None) -> TreeMatches:
        """Return the files matching paths and globs, relative to the folder. A folder stands for every file in it.

        Raises BadInput for an invalid pattern, and AbortedOperation.
        """
        search = _Search(self, Path(self.root), signal)
        for pattern in patterns:
            for one in _alternatives(pattern.strip(), str(search.root)):
                search.look_for(one)
        files = tuple(search.files[path] for path in sorted(search.files))
        return TreeMatches(files, tuple(search.left), search.ignored)

    def match_changed(self, changed: Iterable[str], signal: Signal | None = None) -> TreeMatches:
        """Return the files below the given absolute paths that `match` would find in the whole folder.

        A path that is gone, or that the workspace ignores, gives no file. Raises AbortedOperation.
        """
        search = _Search(self, Path(self.root), signal)
        for path in changed:
            search.look_at(Path(path))
        files = tuple(search.files[path] for path in sorted(search.files))
        return TreeMatches(files, tuple(search.left), search.ignored)

    @property
    def root(self) -> str:
        """The real path of the folder."""
        return os.path.realpath(self.folder)

    def place_of(self, path: str) -> str:
        """Return an absolute path with the links above its last part resolved, as in a walk of the folder."""
        above, _, name = path.rstrip("/").rpartition("/")
        return f"{os.path.realpath(above or '/').rstrip('/')}/{name}"

    def document(self, file: TreeFile, signal: Signal | None = None) -> Document:
        """Return the file's content, read once; it need not be UTF-8.

        Raises BadInput with a short reason for a file that is unreadable, outside of the folder or binary; AbortedOperation.
        """
        try:
            document = load_document(file.key, file.key, signal, max_bytes=MAX_FILE_BYTES)
        except BadInput as problem:
            raise BadInput("unreadable") from problem
        # the name may have become a link to another place meanwhile; then the content must not count
        if os.path.realpath(file.key) != file.key or not Path(file.key).is_relative_to(self.root):
            raise BadInput("outside the workspace")
        if document.media_type is not None or b"\0" in document.content[:_SNIFFED]:
            raise BadInput("binary")
        return document

    def check_text(self, file: TreeFile) -> None:
        """Raise BadInput with a short reason for a file that is unreadable or binary, by its first bytes."""
        try:
            with Path(file.key).open("rb") as opened:
                begin = opened.read(_SNIFFED)
        except OSError as problem:
            raise BadInput("unreadable") from problem
        if b"\0" in begin:
            raise BadInput("binary")

    def text(self, file: TreeFile, signal: Signal | None = None) -> str:
        """Return the file's text, read once.

        Raises BadInput with a short reason for the list of skipped files; AbortedOperation.
        """
        document = self.document(file, signal)
        if not document.strict:
            raise BadInput("not UTF-8")
        return document.text


@dataclass(slots=True)
class _Search:
    tree: FileTree
    root: Path
    signal: Signal | None
    files: dict[str, TreeFile] = field(default_factory=dict)
    left: list[tuple[str, str]] = field(default_factory=list)
    ignored: int = 0
    seen: int = 0
    keys: set[str] = field(default_factory=set)

    def look_for(self, pattern: str) -> None:
        """Add the files of a path or glob."""
        if not pattern:
            raise BadInput("a path to ingest is empty")
        if "\0" in pattern:
            raise BadInput("a path to ingest holds a NUL character")
        literal, glob = _split(paths.absolute(pattern, str(self.root)))
        base = Path(os.path.realpath(literal))
        if not base.is_relative_to(self.root):
            self.left.append((pattern, "outside the workspace"))
            return
        if ".git" in base.relative_to(self.root).parts:
            self.left.append((pattern, "excluded"))
        elif glob is None and base.is_file():
            self._take(Path(literal), base)
        elif glob is None and not base.is_dir():
            self.left.append((pattern, "unreadable" if base.exists() else "no such file"))
        else:
            self._walk(base, glob)

    def look_at(self, path: Path) -> None:
        """Add the file at a path, or the files below it, as far as a walk of the whole folder comes there."""
        # the folder's own links are resolved, so that the path has the form that a walk gives it
        path = Path(self.tree.place_of(str(path)))
        if not path.is_relative_to(self.root) or path == self.root:
            return
        below = path.relative_to(self.root).parts
        rules: tuple[_Rules, ...] = _rules_above(self.root / below[0], self.root)
        place = self.root
        for part in below:
            place /= part
            is_folder = place.is_dir() and not place.is_symlink()
            if is_folder and part in NEVER:
                return
            if _is_ignored(place, rules, is_folder=is_folder):
                self.ignored += 1
                return
            if is_folder and place != path:
                rules = (*rules, *_rules_in(place))
        if path.is_dir() and not path.is_symlink():
            self._walk(path, None)
        elif path.is_file():
            self._take(path, Path(os.path.realpath(path)))

    def _walk(self, base: Path, glob: str | None) -> None:
        wanted = None if glob is None else "/" + glob
        is_key = paths.path_key(str(base)) == str(base)
        waiting = [(base, _rules_above(base, self.root))]
        links: list[Path] = []
        while waiting:
            folder, rules = waiting.pop()
            rules = (*rules, *_rules_in(folder))
            for entry in _entries(folder):
                self._check()
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_folder and entry.name in NEVER:
                    continue
                path = Path(entry.path)
                if _is_ignored(path, rules, is_folder=is_folder):
                    self.ignored += 1
                elif is_folder:
                    waiting.append((path, rules))
                elif wanted is None or path_matches(wanted, path.relative_to(base).as_posix()):
                    if is_key and entry.is_file(follow_symlinks=False):
                        self._take_listed(entry)
                    else:
                        links.append(path)
        for path in links:  # after the files, so that a file has its own name and not that of a link
            self._take(path, Path(os.path.realpath(path)))

    def _take_listed(self, entry: "os.DirEntry[str]") -> None:
        """Add a listed regular file under its path, the key."""
        key = entry.path
        if key in self.keys:
            return
        name = key.removeprefix(f"{self.root.as_posix()}/")
        try:
            about = entry.stat(follow_symlinks=False)
        except OSError:
            self.left.append((name, "unreadable"))
            return
        self.keys.add(key)
        excluded = is_excluded(key, self.tree.excluded)
        if not excluded and about.st_nlink > 1:
            excluded = names_an_excluded(key, str(self.root), self.tree.excluded)
        self.files[name] = TreeFile(name, key, about.st_size, excluded)

    def _take(self, path: Path, real: Path) -> None:
        """Add a regular file inside the folder, under the first of its names only."""
        # a path through a link above the folder is named by its real path
        name = (path if path.is_relative_to(self.root) else real).as_posix().removeprefix(f"{self.root.as_posix()}/")
        key = paths.path_key(str(real))
        if key in self.keys:
            return
        if not real.is_relative_to(self.root):
            self.left.append((name, "outside the workspace"))
            return
        try:
            about = real.stat()
        except OSError:
            self.left.append((name, "unreadable"))
            return
        if not real.is_file():  # a pipe, a device, a link to a folder
            return
        self.keys.add(key)
        ways = paths.names_leading_to(str(path), key)
        excluded = any(is_excluded(way, self.tree.excluded) for way in ways)
        excluded = excluded or names_an_excluded(key, str(self.root), self.tree.excluded)
        self.files[name] = TreeFile(name, key, about.st_size, excluded)

    def _check(self) -> None:
        self.seen += 1
        if self.seen > _MOST:
            raise BadInput(f"more than {_MOST} files and folders were looked at; use more specific patterns")
        if self.signal is not None and self.signal.is_set():
            raise AbortedOperation("Operation aborted")


def _entries(folder: Path) -> "Iterator[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


# --- globs ---


def _alternatives(pattern: str, root: str) -> list[str]:
    """Expand the braces of a glob: `a.{c,h}` becomes `a.c` and `a.h`. An existing file of this very name is no glob."""
    if "{" in pattern and "\0" not in pattern and paths.exists(paths.absolute(pattern, root)):
        return [pattern]
    done, waiting = list[str](), [pattern]
    while waiting:
        one = waiting.pop(0)
        found = _BRACES.search(one)
        if found is None:
            done.append(one)
            continue
        waiting += [one[: found.start()] + part + one[found.end() :] for part in found[1].split(",")]
        if len(waiting) + len(done) > _MOST_ALTERNATIVES:
            raise BadInput(f"the braces of {pattern[:80]!r} stand for more than {_MOST_ALTERNATIVES} paths")
    return done


def _split(absolute: str) -> tuple[str, str | None]:
    """Split a glob into its leading folder and the rest; a path without a glob has no rest.

    An existing file whose name contains glob characters is taken literally.
    """
    if not _MAGIC.search(absolute) or paths.exists(absolute):
        return absolute, None
    parts = absolute.split("/")
    first = next(place for place, part in enumerate(parts) if _MAGIC.search(part))
    return "/".join(parts[:first]) or "/", "/".join(parts[first:])


# --- files ignored by git ---


@dataclass(frozen=True, slots=True)
class _Rules:
    """The ignore rules of a file, valid for a folder and its subfolders."""

    folder: Path
    spec: "GitIgnoreSpec"


def _rules_above(base: Path, root: Path) -> tuple[_Rules, ...]:
    """Return the rules of the folders above `base`, from the repository's root.

    From the workspace if there is no repository.
    """
    above = (*reversed(base.parents),)
    top = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
    found = [*_rules_of(top / ".git" / "info" / "exclude", top)]
    for folder in above:
        if folder.is_relative_to(top):
            found += _rules_in(folder)
    return tuple(found)


def _rules_in(folder: Path) -> Iterable[_Rules]:
    return _rules_of(folder / ".gitignore", folder)


def _rules_of(file: Path, folder: Path) -> Iterator[_Rules]:
    from pathspec import GitIgnoreSpec

    try:
        lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return
    usable: list[str] = []
    for line in lines:
        # an invalid line is skipped, as in git
        with contextlib.suppress(ValueError):
            GitIgnoreSpec.from_lines([line])
            usable.append(line)
    yield _Rules(folder, GitIgnoreSpec.from_lines(usable))


def _is_ignored(path: Path, rules: Sequence[_Rules], *, is_folder: bool) -> bool:
    """Return whether the last matching rule, nearest file first, ignores a path."""
    for one in reversed(rules):
        below = path.relative_to(one.folder).as_posix()
        said = one.spec.check_file(below + "/" if is_folder else below).include
        if said is not None:
            return said
    return False
