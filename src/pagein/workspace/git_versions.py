"""A file as git keeps it: in a commit, in the index, or under another name. Through libgit2; reads only.

Rules of this file
------------------
1. Nothing in the repository is changed, and no filter, hook or other program of its configuration is run.
2. Content that is no text in git is reported by its kind: a submodule, a pointer to a large file, a link.
3. pygit2 is an extra and takes long to load, so it is imported where it is used.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

GitTrouble: TypeAlias = Literal["NO_GIT", "NO_REPOSITORY", "UNKNOWN_BASE", "UNMERGED"]

_LINK: Final = 0o120000
_SUBMODULE: Final = 0o160000
_POINTER: Final = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\n")
_HASH: Final = re.compile(r"[0-9a-fA-F]{4,64}")
_POINTER_BYTES: Final = 1_024
_MOST_CANDIDATES: Final = 200
_MOST_COMPARED: Final = 1_000_000
_LEAST_ALIKE: Final = 0.5
_SHORT: Final = 10


class GitProblem(Exception):
    """No answer of git.

    code: what kind of trouble. The text of the exception says why, and what to do.
    """

    def __init__(self, code: GitTrouble, why: str) -> None:
        super().__init__(why)
        self.code = code


@dataclass(frozen=True, slots=True)
class GitVersion:
    """A file in a state that git keeps.

    content: bytes; None where the state has no such file. For a submodule its commit, as text.
    folder: of the repository. name: path from there on, in that state.
    mode: of the file, as git writes it; 0 without a file.
    state: the state, for people, such as `HEAD (1a2b3c4d5e)`.
    renamed: whether the state has the file under another name.
    ignores_line_ends: whether git is told to convert line ends of the file.
    """

    content: bytes | None
    name: str
    mode: int
    state: str
    renamed: bool = False
    ignores_line_ends: bool = False
    folder: str = ""

    @property
    def is_submodule(self) -> bool:
        """Whether the entry is a submodule; git stores only the commit."""
        return self.mode == _SUBMODULE

    @property
    def is_link(self) -> bool:
        """Whether the file is a symbolic link; git stores the target."""
        return self.mode == _LINK


def git_version(path: str, against: str) -> GitVersion:
    """Return a file in a given state of the repository.

    path: absolute and canonical, existing or not.
    against: `HEAD`, `INDEX` or `commit:<sha>`.

    Raises GitProblem.
    """
    git = _library()
    repository = _repository(git, path)
    folder = os.path.realpath(repository.workdir)
    name = os.path.relpath(path, folder)
    try:
        return replace(_version(git, repository, name, path, against), folder=folder)
    except git.GitError as problem:
        raise GitProblem("NO_REPOSITORY", f"git cannot read the repository: {problem}") from problem
    except KeyError as problem:  # an object that a partial clone has not fetched
        why = f"The repository lacks the object {problem}, as partial clones do. Fetch it, for example with git show."
        raise GitProblem("UNKNOWN_BASE", why) from problem


def submodule_commit(path: str) -> str | None:
    """Return the checked-out commit of the repository at a folder; None for any other folder."""
    git = _library()
    if not Path(path, ".git").exists():
        return None
    try:
        repository = git.Repository(path)
        return None if repository.head_is_unborn else str(repository.head.target)
    except (git.GitError, KeyError, ValueError):
        return None


def pointer_of(content: bytes) -> str | None:
    """Return the content hash in a git-lfs pointer; None for other content."""
    found = _POINTER.match(content) if len(content) <= _POINTER_BYTES else None
    return None if found is None else found[1].decode()


def _library() -> Any:  # noqa: ANN401  pygit2 is an extra
    try:
        import pygit2
    except ImportError as problem:
        raise GitProblem(
            "NO_GIT", "Comparing with git needs the extra 'git'. Run: pip install 'pagein[git]'"
        ) from problem
    return pygit2


def _repository(git: Any, path: str) -> Any:  # noqa: ANN401
    folder = Path(path).parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    try:
        # the repository around a submodule keeps the submodule's commit
        found = git.discover_repository(str(folder))
        repository = None if found is None else git.Repository(found)
    except (git.GitError, KeyError) as problem:
        raise GitProblem("NO_REPOSITORY", f"The repository cannot be opened: {problem}") from problem
    if repository is None or repository.is_bare:
        why = "The file is in no git repository. Take against='snapshot:<id>@<version>', or give 'content' with against='WORKTREE'."
        raise GitProblem("NO_REPOSITORY", why)
    return repository


def _version(git: Any, repository: Any, name: str, path: str, against: str) -> GitVersion:  # noqa: ANN401
    converts = _converts_line_ends(repository, name)
    if against == "INDEX":
        return _in_index(git, repository, name, path, converts=converts)
    has_commit = not repository.head_is_unborn
    if against == "HEAD":
        if not has_commit:
            state = "HEAD (no commit yet)"
            return GitVersion(None, name, 0, state, ignores_line_ends=converts)
        commit = repository.head.peel(git.Commit)
    else:
        commit = _commit(git, repository, against.partition(":")[2])
    state = f"{'HEAD' if against == 'HEAD' else 'commit'} ({str(commit.id)[:_SHORT]})"
    entry = _entry(commit.tree, name)
    if entry is not None:
        return _of_entry(repository, entry.id, int(entry.filemode), name, state, converts=converts)
    earlier = _earlier_name(git, repository, commit.tree.diff_to_workdir(), path)
    if earlier is not None:
        before = _entry(commit.tree, earlier)
        if before is not None:
            version = _of_entry(repository, before.id, int(before.filemode), earlier, state, converts=converts)
            return GitVersion(version.content, earlier, version.mode, state, renamed=True, ignores_line_ends=converts)
    return GitVersion(None, name, 0, state, ignores_line_ends=converts)


def _in_index(git: Any, repository: Any, name: str, path: str, *, converts: bool) -> GitVersion:  # noqa: ANN401
    index = repository.index
    conflicts = index.conflicts
    if conflicts is not None and any(side is not None and side.path == name for one in conflicts for side in one):
        raise GitProblem("UNMERGED", f"{name} is in conflict, so the index has no one text of it. Take against='HEAD'.")
    try:
        entry = index[name]
    except KeyError:
        earlier = _earlier_name(git, repository, repository.diff(), path)
        if earlier is not None:
            before = index[earlier]
            version = _of_entry(repository, before.id, int(before.mode), earlier, "INDEX", converts=converts)
            return GitVersion(version.content, earlier, version.mode, "INDEX", renamed=True, ignores_line_ends=converts)
        return GitVersion(None, name, 0, "INDEX", ignores_line_ends=converts)
    return _of_entry(repository, entry.id, int(entry.mode), name, "INDEX", converts=converts)


def _commit(git: Any, repository: Any, named: str) -> Any:  # noqa: ANN401
    why = f"There is no commit {named[:64]!r}, or several begin so. Take the whole hash of a commit."
    if not _HASH.fullmatch(named):  # names of branches and other expressions of git are not taken
        raise GitProblem("UNKNOWN_BASE", why)
    try:
        return repository.revparse_single(named).peel(git.Commit)
    except (KeyError, ValueError, git.GitError) as problem:
        raise GitProblem("UNKNOWN_BASE", why) from problem


def _entry(tree: Any, name: str) -> Any:  # noqa: ANN401
    try:
        return tree[name]
    except KeyError:
        return None


def _of_entry(
    repository: Any,  # noqa: ANN401
    object_id: Any,  # noqa: ANN401
    mode: int,
    name: str,
    state: str,
    *,
    converts: bool,
) -> GitVersion:
    if mode == _SUBMODULE:
        return GitVersion(str(object_id).encode(), name, mode, state)
    found = repository[object_id]
    data = getattr(found, "data", None)  # a folder has none
    return GitVersion(data, name, mode if data is not None else 0, state, ignores_line_ends=converts)


def _converts_line_ends(repository: Any, name: str) -> bool:  # noqa: ANN401
    """Return whether git converts the line ends of this file between the disk and its objects."""
    text, eol = repository.get_attr(name, "text"), repository.get_attr(name, "eol")
    if text is False:
        return False
    if text not in (None, False) or eol in ("lf", "crlf"):
        return True
    try:
        told = str(repository.config["core.autocrlf"]).lower()
    except KeyError:
        return False
    return told in ("true", "input", "1", "yes", "on")


def _earlier_name(git: Any, repository: Any, diff: Any, path: str) -> str | None:  # noqa: ANN401
    """Return the path of a deleted file similar to the file at `path`; None without a match."""
    try:
        content = Path(path).read_bytes()
    except OSError:
        return None
    best, name = _LEAST_ALIKE, None
    for old in _gone(git, diff):
        data = repository[old.id].data
        likeness = _likeness(data, content)
        if likeness > best or (likeness == best and name is None):
            best, name = likeness, old.path
    return name


def _gone(git: Any, diff: Any) -> Iterator[Any]:  # noqa: ANN401
    count = 0
    for delta in diff.deltas:
        if delta.status == git.enums.DeltaStatus.DELETED and int(delta.old_file.mode) not in (_LINK, _SUBMODULE):
            count += 1
            if count > _MOST_CANDIDATES:
                return
            yield delta.old_file


def _likeness(old: bytes, new: bytes) -> float:
    """Return the share of lines that two contents have in common, from 0 to 1, weighed by their bytes."""
    if old == new:
        return 1.0
    if not old or not new or max(len(old), len(new)) > _MOST_COMPARED:
        return 0.0
    if min(len(old), len(new)) / max(len(old), len(new)) < _LEAST_ALIKE:
        return 0.0
    left: dict[bytes, int] = {}
    for line in old.split(b"\n"):
        left[line] = left.get(line, 0) + 1
    common = 0
    for line in new.split(b"\n"):
        if left.get(line, 0):
            left[line] -= 1
            common += len(line) + 1
    return common / max(len(old), len(new))
