"""Resolve the target of a note's link to an object."""

import posixpath

from pagein.model.writes import Query
from pagein.ports import ObjectStore
from pagein.workspace.notes import SUFFIXES


def link_target(store: ObjectStore, home: str, target: str, path: str) -> str:
    """Return the id of the object named by a link in the note at `path`, or a name to resolve later.

    A link names an object by its id, a file by its path from the note's folder or a folder above, with or without the suffix
    of a note, or an object by its nickname. The path comes first: of the notes of one name in several projects, the first has
    it as nickname. A link to a missing note gives the note's name, so that it resolves as soon as the note exists.
    """
    named = store.current(target)
    if named is not None and named.id == target:
        return named.id
    for candidate in _paths(target, path):
        found = store.objects(
            Query(types=frozenset({"file", "note"}), where={"home": home, "path": candidate}, limit=1)
        )
        if found:
            return found[0].id
    if named is not None:
        return named.id
    name = posixpath.basename(target.rstrip("/")) or target
    bare = next((name[: -len(suffix)] for suffix in SUFFIXES if name.lower().endswith(suffix)), name)
    named = store.current(bare) if bare else None
    return named.id if named is not None else bare or target


def _paths(target: str, path: str) -> list[str]:
    folder = posixpath.dirname(path)
    whole = posixpath.normpath(posixpath.join(folder, target))
    # the note's folder, and every folder above it: links may also be relative to the root of a collection of notes
    above = [whole]
    if not target.startswith((".", "/")):
        while folder not in ("/", ""):
            folder = posixpath.dirname(folder)
            above.append(posixpath.normpath(posixpath.join(folder, target)))
    return [candidate + suffix for candidate in above for suffix in ("", SUFFIXES[0])]
