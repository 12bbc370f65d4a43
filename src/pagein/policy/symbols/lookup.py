"""Find the definitions that a name may mean: a plain name, a qualified name, or the id of a symbol.

Rules of this file
------------------
1. A qualified name is given by its last parts, and may begin in the path: `start`, `Server.start` and `app.Server.start` all mean
   `Server.start` in `src/app.py`.
2. All that a name may mean is found. Choosing is left to who asked, by a path or an id.
3. Upper and lower case count; only `similar_names` ignores case.
"""

import difflib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from pagein.model.symbols import Definition, FileSymbols, Symbol
from pagein.policy.recall.path_filter import path_matches

Files: TypeAlias = Mapping[str, FileSymbols]
Names: TypeAlias = Mapping[str, Sequence[tuple[str, int]]]
"""By name, the places of its definitions: path of the file, and place among the file's definitions."""

_JOINTS: Final = ("::", "->", "\\")
_FACES: Final = frozenset(("__init__", "index", "mod"))
"""Names of files that stand for their folder."""
_MOST_SIMILAR: Final = 5


def names_in(files: Files) -> Names:
    """Return where each name is defined."""
    found: dict[str, list[tuple[str, int]]] = {}
    for path, symbols in files.items():
        for place, definition in enumerate(symbols.definitions):
            found.setdefault(definition.name, []).append((path, place))
    return found


def symbols_of(path: str, symbols: FileSymbols) -> tuple[Symbol, ...]:
    """Return the symbols of a file with their ids."""
    counts: dict[str, int] = {}
    found: list[Symbol] = []
    for definition in symbols.definitions:
        number = counts[definition.qualified] = counts.get(definition.qualified, 0) + 1
        mark = "" if number == 1 else f"~{number}"
        found.append(Symbol(f"{path}#{definition.qualified}{mark}", path, definition))
    return tuple(found)


def find_symbols(files: Files, names: Names, asked: str, path: str | None = None) -> tuple[Symbol, ...]:
    """Return the symbols that a name may mean, in the order of paths and lines.

    path: a file, a folder or a glob that tells several apart (see `is_at`). Raises BadInput for an invalid glob.
    """
    by_id = _by_id(files, asked)
    if by_id is not None:
        return (by_id,)
    parts = _parts(asked)
    if not parts:
        return ()
    found: list[Symbol] = []
    for file, places in _by_file(names.get(parts[-1], ())):
        if path is None or is_at(file, path, files):
            symbols = symbols_of(file, files[file])
            found += [symbols[place] for place in places if _is_meant(parts, file, symbols[place].definition)]
    return tuple(sorted(found, key=lambda one: (one.path, one.definition.start)))


def is_at(file: str, path: str, files: Container[str]) -> bool:
    """Return whether a file is at a path: the file of just this name if there is one, else as a filter (`path_matches`).

    files: paths of all files. Raises BadInput for an invalid glob.
    """
    name = path.strip("/")
    return file == name if name in files else path_matches(path, file)


def similar_names(names: Iterable[str], asked: str) -> tuple[str, ...]:
    """Return names that are spelled much like the last part of the name, the most alike first."""
    parts = _parts(asked)
    if not parts:
        return ()
    wanted = parts[-1].lower()
    spelled: dict[str, list[str]] = {}
    for name in names:
        spelled.setdefault(name.lower(), []).append(name)
    close = difflib.get_close_matches(wanted, spelled, _MOST_SIMILAR, 0.75)
    return tuple(name for one in close for name in spelled[one])[:_MOST_SIMILAR]


def similar_ids(files: Files, names: Names, similar: Iterable[str], path: str | None = None) -> tuple[str, ...]:
    """Return ids of definitions by their names, the first few, definitions at the path in front."""
    found = [one for name in similar for one in find_symbols(files, names, name)[:_MOST_SIMILAR]]
    found.sort(key=lambda one: path is not None and not is_at(one.path, path, files))
    return tuple(one.id for one in found)[:_MOST_SIMILAR]


def _by_id(files: Files, asked: str) -> Symbol | None:
    place = asked.find("#")
    while place > 0:
        symbols = files.get(asked[:place])
        if symbols is not None:
            return next((one for one in symbols_of(asked[:place], symbols) if one.id == asked), None)
        place = asked.find("#", place + 1)
    return None


def _by_file(places: Iterable[tuple[str, int]]) -> Iterator[tuple[str, list[int]]]:
    grouped: dict[str, list[int]] = {}
    for file, place in places:
        grouped.setdefault(file, []).append(place)
    yield from grouped.items()


def _parts(asked: str) -> list[str]:
    name = asked.strip().removesuffix("()")
    for joint in _JOINTS:
        name = name.replace(joint, ".")
    return [part for part in name.split(".") if part]


def _is_meant(parts: Sequence[str], path: str, definition: Definition) -> bool:
    own = definition.qualified.split(".")
    if len(parts) <= len(own):
        return own[-len(parts) :] == list(parts)
    folders = path.rpartition(".")[0].split("/")
    above = folders[:-1] if folders[-1] in _FACES else folders
    full = [*above, *own]
    return full[-len(parts) :] == list(parts)
