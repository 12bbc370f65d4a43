"""The number of references between the files of a workspace. Counted by name alone, so approximate."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pagein.model.symbols import FileSymbols
from pagein.policy.symbols.lookup import Names

_MOST_DEFINING: Final = 5
"""Files that may define a name. What more files define, such as `get`, says nothing about where a reference leads."""


@dataclass(frozen=True, slots=True)
class ReferenceCounts:
    """References between files.

    into: by file, references from other files to names that it defines. out_of: by file, its references to names of others.
    names: by name, references in the whole workspace.
    """

    into: Mapping[str, int]
    out_of: Mapping[str, int]
    names: Mapping[str, int]


def count_references(files: Mapping[str, FileSymbols], names: Names) -> ReferenceCounts:
    """Return the references between the files of a workspace.

    A name that several files define counts for each of them; a name that more than five files define counts for none.
    """
    homes = {name: {path for path, _ in places} for name, places in names.items()}
    known = {name: paths for name, paths in homes.items() if len(paths) <= _MOST_DEFINING}
    into, out_of, total = Counter[str](), Counter[str](), Counter[str]()
    for path, symbols in files.items():
        for name, count in symbols.references.items():
            total[name] += count
            others = known.get(name, set()) - {path}
            if others and path not in known[name]:
                out_of[path] += count
                for other in others:
                    into[other] += count
    return ReferenceCounts(into, out_of, total)
