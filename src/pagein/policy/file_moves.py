"""Which files that are gone are the same as files that have come: moved, not deleted and made anew (memory-system 12.1).

A path is no identity. Two things are: an id that a note gives itself, and content. Content is compared, never guessed from the
order of events; where several files have the same content, the likelier pair is that with the more similar path.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A file where it lies, or lay. digest: hash of its bytes. note_id: the id that it gives itself, if any. size: in bytes."""

    path: str
    digest: str
    size: int
    note_id: str | None = None


def moves(gone: Sequence[FilePlace], come: Sequence[FilePlace]) -> dict[str, str]:
    """Old paths with the new ones of the same files. Every file is in one pair at most; what fits nothing is in none."""
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
    """Notes that name themselves. A name that several give is no name."""
    old, new = _files_by_note(gone), _files_by_note(come)
    yield from ((old[name], new[name]) for name in sorted(old.keys() & new.keys()))


def _files_by_note(files: Sequence[FilePlace]) -> dict[str, FilePlace]:
    named: dict[str, list[FilePlace]] = defaultdict(list)
    for file in files:
        if file.note_id is not None:
            named[file.note_id].append(file)
    return {name: those[0] for name, those in named.items() if len(those) == 1}


def _tells(old: FilePlace, new: FilePlace) -> bool:
    """Whether equal content says anything: every empty file has the same."""
    return old.size > 0 or _name(old.path) == _name(new.path)


def _unlikeness(old: str, new: str) -> tuple[int, int]:
    """The less, the more parts both paths end with, and begin with."""
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
