"""The authors of a file's lines by `git blame`. Runs the `git` executable, reads only, and changes nothing in the repository."""

import hashlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SECONDS: Final = 30.0
_DIGITS: Final = frozenset((40, 64))  # of a commit's name, by SHA-1 or SHA-256
_TREE: Final = "worktree "
_MOST_PLACES: Final = 16
_OPTIONS: Final = ("-c", "core.fsmonitor=false", "-c", "blame.ignoreRevsFile=", "--no-optional-locks")
_QUIET: Final = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}  # asks nobody, fetches nothing


@dataclass(frozen=True, slots=True)
class GitLine:
    """The commit that git names for a line.

    at: when the commit was made, seconds since 1970.
    path, number: of the line in that commit.
    """

    commit: str
    author: str
    at: float
    path: str
    number: int


@dataclass(frozen=True, slots=True)
class GitBlame:
    """Git's answer for a file.

    path: of the file in its repository. head: the commit that is checked out.
    is_changed: whether the content differs from that commit, so that its line numbers do not apply there.
    lines: None for a line of no commit.
    elsewhere: absolute paths of the file in other worktrees, and under the names that its lines had before.
    """

    path: str
    head: str
    is_changed: bool
    lines: tuple[GitLine | None, ...]
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GitAbsence:
    """No answer of git. why: for people."""

    why: str


def git_blame(path: str, content: bytes) -> GitBlame | GitAbsence:
    """Return git's answer for a file with this content, by `git blame -w -M -C`.

    path: absolute
    """
    folder, name = os.path.split(path)
    try:
        told = os.fsdecode(_run(folder, "rev-parse", "--show-prefix", "HEAD", f"HEAD:./{name}")).split("\n")
        options = ("--porcelain", "--no-textconv", "-w", "-M", "-C", "--contents", "-", "--", name)
        rows = _run(folder, "blame", *options, content=content)
        trees = os.fsdecode(_run(folder, "worktree", "list", "--porcelain")).split("\n")
    except FileNotFoundError:
        return GitAbsence("git is not installed" if Path(folder).is_dir() else "its folder is missing")
    except subprocess.TimeoutExpired:
        return GitAbsence(f"git took longer than {_SECONDS:.0f} seconds")
    except subprocess.CalledProcessError as error:
        return GitAbsence(_reason(error.stderr))
    lines = tuple(_lines(rows.split(b"\n")))
    here = path.removesuffix(told[0] + name)
    roots = dict.fromkeys((here, *(f"{row.removeprefix(_TREE)}/" for row in trees if row.startswith(_TREE))))
    names = dict.fromkeys((told[0] + name, *(line.path for line in lines if line is not None)))
    places = [root + one for root in roots for one in names if root + one != path]
    is_changed = told[2] not in (_object_name(one, len(told[2])) for one in (content, content.replace(b"\r\n", b"\n")))
    return GitBlame(told[0] + name, told[1], is_changed, lines, tuple(places[:_MOST_PLACES]))


def _object_name(content: bytes, digits: int) -> str:
    """Return the name that git gives to a file's content, in a repository whose names have so many digits."""
    algorithm = "sha256" if digits == max(_DIGITS) else "sha1"
    return hashlib.new(algorithm, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _run(folder: str, command: str, *options: str, content: bytes = b"") -> bytes:
    return subprocess.run(  # noqa: S603 - a fixed program; the file's name stands behind `--`
        ["git", *_OPTIONS, command, *options],  # noqa: S607 - git as the user has it
        cwd=folder, input=content, capture_output=True, check=True, timeout=_SECONDS, env={**os.environ, **_QUIET},
    ).stdout  # fmt: skip


def _reason(stderr: bytes) -> str:
    told = stderr.decode("utf-8", "replace").strip().split("\n")[0].removeprefix("fatal: ")
    if "not a git repository" in told:
        return "the file is in no git repository"
    if "no such path" in told or "not in 'HEAD'" in told:
        return "the file is in no commit"
    if "unknown revision" in told or "ambiguous argument 'HEAD'" in told:
        return "the repository has no commit"
    return f"git: {told[:200]}" if told else "git failed without a reason"


def _lines(rows: list[bytes]) -> Iterator[GitLine | None]:
    """Yield the commits of a porcelain output. Facts of a commit stand at its first line alone."""
    facts: dict[str, dict[bytes, str]] = {}
    commit, number = "", 0
    for row in rows:
        if row.startswith(b"\t"):
            known = facts[commit]
            is_committed = bool(commit.strip("0"))
            yield (
                GitLine(commit, known[b"author"], float(known[b"committer-time"]), known[b"filename"], number)
                if is_committed
                else None
            )
            continue
        head, _, rest = row.partition(b" ")
        if len(head) in _DIGITS and rest[:1].isdigit():
            commit, number = head.decode(), int(rest.split(b" ")[0])
            facts.setdefault(commit, {})
        elif commit:
            facts[commit][head] = rest.decode("utf-8", "replace")
