"""Resolve a path written by a model to a file.

Rules of this file
------------------
1. A path is resolved as by the host's built-in `read`: one leading `@` dropped, unicode spaces made plain, `~` expanded,
   absolute paths unchanged, relative paths joined to the folder. Only if no file exists there, the spellings of macOS are tried,
   in the host's order.
2. `name:3-6` names lines of `name` only if no file is called `name:3-6`.
3. Identity is the canonical real path: links, `..`, spellings in another case or unicode form share a key. The file system
   decides whether two spellings are the same file; it is never guessed from the name.
4. Every name that leads to a file is reported, so that a link called `notes.txt` does not publish the `.env` behind it.
"""

import os
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pagein.errors import BadInput

_UNICODE_SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_AM_PM = re.compile(r" (AM|PM)\.", re.IGNORECASE)
_NARROW_NO_BREAK_SPACE = "\u202f"
_CURLY_QUOTE = "\u2019"
_ONE_LINE = re.compile(r"[0-9]{1,15}")
_MAX_LINKS = 40  # the limit of Linux
_LINE_RANGE = re.compile(r"([0-9]{1,15})-([0-9]{1,15})")


@dataclass(frozen=True, slots=True)
class RequestedPath:
    """The resolved path of a read call.

    given: the path as written in the call, without a line suffix; appears in texts shown to the model
    absolute: absolute path, existing or not; not canonical, because the host shows it in its errors
    offset, limit: from the call, or from the path's suffix
    """

    given: str
    absolute: str
    offset: float | None = None
    limit: float | None = None


def parse_path(path: str, cwd: str, *, offset: float | None = None, limit: float | None = None) -> RequestedPath:
    """Resolve the path of a read call made in the folder `cwd`.

    A trailing `:start` or `:start-end` selects lines if the call gives neither offset nor limit, no file has the whole
    name, and a file has the name before the colon. Raises BadInput, in the host's words, for a suffix that is not a range of
    lines.
    """
    whole = existing_path(path, cwd)
    if offset is not None or limit is not None or exists(whole):
        return RequestedPath(path, whole, offset, limit)
    name, _, suffix = path.rpartition(":")
    if not name or not suffix:
        return RequestedPath(path, whole)
    candidate = existing_path(name, cwd)
    if not exists(candidate):
        return RequestedPath(path, whole)
    start, end = lines_of_suffix(suffix)
    return RequestedPath(name, candidate, start, None if end is None else end - start + 1)


def lines_of_suffix(suffix: str) -> tuple[int, int | None]:
    """Return the first and last line (from 1, inclusive) of `3` or `3-6`; the last is None for `3`. Raises BadInput."""
    if _ONE_LINE.fullmatch(suffix):
        return _line_number(suffix, "start"), None
    match = _LINE_RANGE.fullmatch(suffix)
    if match is None:
        raise BadInput(f'Invalid range suffix "{suffix}". Use :<start> or :<start>-<end>.')
    start, end = _line_number(match[1], "start"), _line_number(match[2], "end")
    if end < start:
        raise BadInput(f'Invalid range "{suffix}": end line must be greater than or equal to start line.')
    return start, end


def _line_number(digits: str, which: str) -> int:
    number = int(digits)
    if number < 1:
        raise BadInput(f'Invalid {which} line number "{number}". Line numbers must be positive integers.')
    return number


def existing_path(path: str, cwd: str) -> str:
    """Return the absolute path of the first spelling of `path` with an existing file.

    Otherwise the absolute path of the plain spelling.
    """
    plain = absolute(path, cwd)
    if exists(plain):
        return plain
    return next((variant for variant in spellings(plain) if exists(variant)), plain)


def absolute(path: str, cwd: str) -> str:
    """Return the absolute form of `path` as the host's read tool does.

    An absolute path stays unchanged, including `..`.
    """
    plain = _UNICODE_SPACES.sub(" ", path.removeprefix("@"))
    if plain == "~" or plain.startswith("~/"):
        plain = os.path.expanduser("~") + plain[1:]  # noqa: PTH111  pathlib would fold `//` and `.`, the host does not
    if plain.startswith("/"):
        return plain
    joined = os.path.normpath(os.path.join(cwd, plain))  # noqa: PTH118  folds `..` by text alone, as the host does
    return "/" + joined.lstrip("/")


def spellings(plain: str) -> tuple[str, ...]:
    """Return other names that macOS may have given this file, in the order tried by the host."""
    decomposed = unicodedata.normalize("NFD", plain)
    tried = (
        _AM_PM.sub(rf"{_NARROW_NO_BREAK_SPACE}\1.", plain),
        decomposed,
        plain.replace("'", _CURLY_QUOTE),
        decomposed.replace("'", _CURLY_QUOTE),
    )
    return tuple(variant for variant in dict.fromkeys(tried) if variant != plain)


def exists(path: str) -> bool:
    """Return whether anything exists at this path. False for an invalid path (with a NUL)."""
    return os.path.exists(path)  # noqa: PTH110  paths stay text here: each read asks several times


class FileNames(Protocol):
    """File system queries for rule 3. Both may raise OSError or ValueError; then the given spelling is used."""

    def same(self, first: str, second: str) -> bool:
        """Return whether both paths lead to the same existing file."""
        ...

    def list_folder(self, folder: str) -> Iterable[str]:
        """Return the names in this folder, in the file system's spelling."""
        ...


class _RealFileNames:
    def same(self, first: str, second: str) -> bool:
        return os.path.samefile(first, second)  # noqa: PTH121  paths stay text here

    def list_folder(self, folder: str) -> Iterable[str]:
        return os.listdir(folder)  # noqa: PTH208  names, not paths


def path_key(path: str, names: FileNames | None = None) -> str:
    """Return the key of the file at this absolute path: the real path, in the file system's spelling.

    Missing parts of a path keep their spelling, so that a file has its key before its first write.
    """
    try:
        real = os.path.realpath(path)
    except (OSError, ValueError):
        return path
    return spell_path(real, names or _RealFileNames())


def spell_path(real: str, names: FileNames) -> str:
    """Return `real` with each part in its folder's spelling.

    A folder is listed only if the file system accepts another spelling of the part for the same file. So a case-sensitive
    file system costs one query per part.
    """
    so_far = "/"
    for part in real.split("/"):
        if part:
            so_far = f"{so_far.rstrip('/')}/{_spelled_part(so_far, part, names)}"
    return so_far


def _spelled_part(folder: str, part: str, names: FileNames) -> str:
    here = f"{folder.rstrip('/')}/"
    others = {part.swapcase(), unicodedata.normalize("NFC", part), unicodedata.normalize("NFD", part)} - {part}
    try:
        # the other spelling first: where there is no such file, one query is enough
        if not any(_same(names, here + other, here + part) for other in others):
            return part
        listing = sorted(names.list_folder(folder))
        if part in listing:
            return part
        return next((name for name in listing if _same(names, here + part, here + name)), part)
    except (OSError, ValueError):
        return part


def _same(names: FileNames, first: str, second: str) -> bool:
    try:
        return names.same(first, second)
    except (OSError, ValueError):
        return False


def same_file(path: str, among: Iterable[str]) -> str | None:
    """Return the first path in `among` that is a hard link to the file at `path`, or None.

    Only a file with several links is compared at all.
    """
    try:
        if Path(path).stat().st_nlink < 2:  # noqa: PLR2004  one link is the file itself
            return None
    except (OSError, ValueError):
        return None
    real = _RealFileNames()
    return next((other for other in among if _same(real, path, other)), None)


def names_leading_to(path: str, key: str) -> tuple[str, ...]:
    """Return every path through which a read of `path` reaches the file `key`.

    The path itself, each link on the way, and the key.
    """
    ways = [path]
    for _ in range(_MAX_LINKS):
        try:
            target = os.readlink(ways[-1])  # noqa: PTH115  paths stay text here
        except (OSError, ValueError):
            break
        ways.append(os.path.join(os.path.dirname(ways[-1]), target))  # noqa: PTH118, PTH120  paths stay text here
    return (*ways, key)
