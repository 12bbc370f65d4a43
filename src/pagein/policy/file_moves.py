"""Detection of moved files: match disappeared files with new files.

A path is no identity. Two things are: an id in a note's own text, and content. Content is compared, never guessed from
the order of events; where several files have the same content, the likelier pair is the pair with the more similar
paths.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A file at its present or former path.

    digest: hash of its bytes. size: in bytes. note_id: the id in its text, if any.
    """

    path: str
    digest: str
    size: int
    note_id: str | None = None


def moves(gone: Sequence[FilePlace], come: Sequence[FilePlace]) -> dict[str, str]:
    """Return the new path of each moved file by its old path.

    Every file is in one pair at most; a file without a match is in no pair.
    """
    found: dict[str, str] = {}
    for old, new in _pairs(gone, come):
        if old.path not in found and new.path not in found.values():
            found[old.path] = new.path
    return found


def _pairs(gone: Sequence[FilePlace], come: Sequence[FilePlace]) -> Iterator[tuple[FilePlace, FilePlace]]:
    yield from _by_id(gone, come)
    by_digest: dict[str, list[FilePlace]] = defaultdict(list)
    for new in come:
        by_digest[new.digest].append(new)
    pairs = [(old, new) for old in gone for new in by_digest.get(old.digest, ()) if _tells(old, new)]
    yield from sorted(pairs, key=lambda pair: (_unlikeness(pair[0].path, pair[1].path), pair[0].path, pair[1].path))


def _by_id(gone: Sequence[FilePlace], come: Sequence[FilePlace]) -> Iterator[tuple[FilePlace, FilePlace]]:
    """Yield pairs of notes with the same id; skip ids that several notes carry."""
    old, new = _files_by_note(gone), _files_by_note(come)
    yield from ((old[name], new[name]) for name in sorted(old.keys() & new.keys()))


def _files_by_note(files: Sequence[FilePlace]) -> dict[str, FilePlace]:
    named: dict[str, list[FilePlace]] = defaultdict(list)
    for file in files:
        if file.note_id is not None:
            named[file.note_id].append(file)
    return {name: those[0] for name, those in named.items() if len(those) == 1}


def _tells(old: FilePlace, new: FilePlace) -> bool:
    """Return whether equal content proves identity; empty files match only with equal names."""
    return old.size > 0 or _name(old.path) == _name(new.path)


def _unlikeness(old: str, new: str) -> tuple[int, int]:
    """Return a sort key that is lower the more parts both paths share, at the end and then at the beginning."""
    first, second = old.split("/"), new.split("/")
    return -_common(first[::-1], second[::-1]), -_common(first, second)


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


def _name(path: str) -> str:
    return path.rpartition("/")[2]
