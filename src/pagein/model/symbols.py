"""The symbols of source files: definitions, names and imports.

Lines are counted from 1 and end at line feeds only, as in `Document.lines`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

SymbolKind: TypeAlias = Literal[
    "class", "constant", "enum", "function", "interface", "macro", "method", "module", "namespace", "property", "struct",
    "trait", "type", "variable",
]  # fmt: skip
CONTAINERS: Final[frozenset[str]] = frozenset(("class", "enum", "interface", "module", "namespace", "struct", "trait"))
"""Kinds whose members have names of their own outside of them. What a function holds is local to it."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition in a file.

    name: as written. qualified: with the names around it in this file, joined by dots, such as `Server.start`.
    first, last: lines of the definition itself. whole: first line with the decorators and the comment above it.
    start, end: place of the definition itself in the file's bytes. head_end: where its signature ends there.
    parent: place of the enclosing definition among the file's definitions, or -1.
    """

    name: str
    qualified: str
    kind: SymbolKind
    first: int
    last: int
    whole: int
    start: int
    end: int
    head_end: int
    parent: int = -1


@dataclass(frozen=True, slots=True)
class ImportLine:
    """One import: the imported module as written, and the lines of the statement."""

    module: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class FileSymbols:
    """The symbols of a file.

    definitions: in the order of the file; a definition stands before what it encloses.
    references: how often the file refers to each name. By name alone, so approximate.
    has_errors: parts of the file could not be parsed, so that definitions may be missing.
    """

    language: str
    definitions: tuple[Definition, ...] = ()
    references: Mapping[str, int] = field(default_factory=dict)
    imports: tuple[ImportLine, ...] = ()
    has_errors: bool = False


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition with its file.

    id: names this definition in the workspace: `src/app.py#Server.start`, with `~2` for the second of that name.
    path: of the file, relative to the workspace, with slashes.
    """

    id: str
    path: str
    definition: Definition


@dataclass(frozen=True, slots=True)
class SymbolScan:
    """The result of a scan of a workspace's files.

    files: number of files with known symbols. parsed: how many of them were parsed by this look.
    failed: files without symbols because of a failure, each with the reason. partial: files of which only parts could be parsed.
    other: number of files in languages without a grammar. excluded: number of files that are never read (law 9).
    ignored: number of files and folders that the workspace ignores.
    """

    files: int
    parsed: int
    failed: tuple[tuple[str, str], ...] = ()
    partial: tuple[str, ...] = ()
    other: int = 0
    excluded: int = 0
    ignored: int = 0


@dataclass(frozen=True, slots=True)
class SymbolText:
    """The current lines of a definition.

    text: the lines from `first` to `last`, without the last line's end. signature: in one line.
    context: with `include_context`, lines of the imports and of the headers of the enclosing definitions, each with its number.
    """

    symbol: Symbol
    language: str
    first: int
    last: int
    text: str
    signature: str
    context: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SymbolCandidate:
    """A possible meaning of a name with several definitions."""

    id: str
    path: str
    kind: SymbolKind
    first: int
    last: int
    signature: str


@dataclass(frozen=True, slots=True)
class AmbiguousSymbol:
    """The answer to a name with several definitions: the list of definitions. `path` or an id selects a definition.

    total: how many there are; `candidates` holds the first of them.
    """

    name: str
    candidates: tuple[SymbolCandidate, ...]
    total: int


@dataclass(frozen=True, slots=True)
class UnknownSymbol:
    """The answer to a name without a definition: similar names, and the files left out, so that *empty* is not
    *failed*.

    ids: of definitions with the similar names, the first few.
    """

    name: str
    similar: tuple[str, ...]
    scan: SymbolScan
    ids: tuple[str, ...] = ()


SymbolAnswer: TypeAlias = SymbolText | AmbiguousSymbol | UnknownSymbol
