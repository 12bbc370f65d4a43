"""Read a definition by its name, and the symbol map of a workspace.

Both show what is in the files now: a file that has changed since the last look is parsed again first.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pagein.errors import BadInput
from pagein.model.symbols import (
    AmbiguousSymbol,
    Definition,
    FileSymbols,
    Symbol,
    SymbolAnswer,
    SymbolCandidate,
    SymbolScan,
    SymbolText,
    UnknownSymbol,
)
from pagein.model.trees import TreeFile
from pagein.policy.symbols.file_ranks import FileWords, file_words, rank_files, score_files
from pagein.policy.symbols.lookup import Names, find_symbols, is_at, names_in, similar_ids, similar_names
from pagein.policy.symbols.map_blocks import MapBlock, blocks_within, map_block, signature_of
from pagein.policy.symbols.reference_counts import ReferenceCounts, count_references
from pagein.policy.symbols.words import words_of
from pagein.ports import Signal
from pagein.workspace.code_search import is_below
from pagein.workspace.symbols.symbol_index import IndexState, SymbolIndex

MOST_CANDIDATES: Final = 20
_MOST_LOOKS: Final = 3


@dataclass(frozen=True, slots=True)
class SymbolMap:
    """The symbol map of a workspace, or of a part.

    blocks: of the files, in their rank. is_whole: whether each file has its block.
    files: number of files that the map is about. scan: the result of looking at the files, failures included.
    """

    blocks: tuple[MapBlock, ...]
    is_whole: bool
    files: int
    scan: SymbolScan


@dataclass(frozen=True, slots=True)
class _IndexViews:
    """What is derived from a state of the index, once."""

    number: int
    names: Names
    references: ReferenceCounts


class SymbolReader:
    """Answers about the symbols in an index. Thread-safe. The index is brought up to the files by its owner."""

    def __init__(self, index: SymbolIndex) -> None:
        self._index = index
        self._derived: _IndexViews | None = None
        self._words: dict[str, tuple[FileSymbols, FileWords]] = {}

    def read(
        self,
        name: str,
        *,
        path: str | None = None,
        include_context: bool = False,
        skipped: frozenset[str] = frozenset(),
        signal: Signal | None = None,
    ) -> SymbolAnswer:
        """Return the definition with a name, qualified name or id; else the candidates, possibly empty.

        path: a file, folder or glob that tells several apart.
        skipped: names of folders whose definitions count only if the name is defined nowhere else, or with a path.
        Raises BadInput for an invalid glob or an unreadable file; AbortedOperation.
        """
        for _ in range(_MOST_LOOKS):
            state = self._index.state
            found = find_symbols(state.files, self._of(state).names, name, path)
            if path is None:
                found = tuple(one for one in found if not is_below(one.path, skipped)) or found
            if not found:
                names = self._of(state).names
                similar = similar_names(names, name)
                return UnknownSymbol(name, similar, state.scan, similar_ids(state.files, names, similar, path))
            contents = self._contents(state, found[:MOST_CANDIDATES], signal)
            if contents is not None:
                return _answer(name, found, contents, state, include_context=include_context)
        raise BadInput(f"the files that define {name[:80]!r} change while they are read; try again")

    def map(
        self,
        question: str = "",
        *,
        path: str | None = None,
        without: Collection[str] = (),
        characters: int | None = None,
        signal: Signal | None = None,
    ) -> SymbolMap:
        """Return the map of the workspace, the files first that fit the question.

        path: only these files (a file, folder or glob). without: paths whose text is in the window anyway.
        characters: about how long the map may be. Raises BadInput for an invalid glob; AbortedOperation.
        """
        state = self._index.state
        paths = [one for one in state.files if one not in without and (path is None or is_at(one, path, state.files))]
        references = self._of(state).references
        ranked = rank_files(paths, self._scores(state, paths, question), references.into)
        blocks, is_whole = blocks_within(self._blocks(state, ranked, references, signal), characters)
        return SymbolMap(blocks, is_whole, len(ranked), self._index.state.scan)

    def references_to(self, name: str) -> int:
        """Return how often the workspace refers to a name; approximate."""
        return self._of(self._index.state).references.names.get(name, 0)

    def references_into(self) -> Mapping[str, int]:
        """Return the number of references from other files to the definitions of each file, for the first order of a tiered prompt."""
        return self._of(self._index.state).references.into

    def _of(self, state: IndexState) -> _IndexViews:
        derived = self._derived
        if derived is None or derived.number != state.number:
            names = names_in(state.files)
            derived = self._derived = _IndexViews(state.number, names, count_references(state.files, names))
        return derived

    def _scores(self, state: IndexState, paths: Sequence[str], question: str) -> Mapping[str, float]:
        if not question.strip():
            return {}
        kept: dict[str, tuple[FileSymbols, FileWords]] = {}
        for path, symbols in state.files.items():
            known = self._words.get(path)
            kept[path] = known if known is not None and known[0] is symbols else (symbols, file_words(path, symbols))
        self._words = kept
        words = {path: kept[path][1] for path in paths}
        return score_files(words, words_of(question))

    def _blocks(
        self, state: IndexState, paths: Sequence[str], references: ReferenceCounts, signal: Signal | None
    ) -> Iterator[MapBlock]:
        for path in paths:
            try:
                document = self._index.tree.document(_file(self._index, path), signal)
            except BadInput:
                continue  # gone since the last look
            symbols, content = state.files[path], document.content
            if document.hash.hex != state.hashes[path]:
                changed = self._look_again(path, signal)
                if changed is None:
                    continue
                symbols, content = changed
            signatures = [signature_of(content, one) for one in symbols.definitions]
            yield map_block(path, symbols, signatures, references.into.get(path, 0), references.out_of.get(path, 0))

    def _look_again(self, path: str, signal: Signal | None) -> tuple[FileSymbols, bytes] | None:
        """Return the symbols and the content of a file changed since the last look; None for a file that is still
        changing.
        """
        self._index.update([f"{self._index.tree.root}/{path}"], signal)
        state = self._index.state
        try:
            document = self._index.tree.document(_file(self._index, path), signal)
        except BadInput:
            return None
        return (state.files[path], document.content) if state.hashes.get(path) == document.hash.hex else None

    def _contents(self, state: IndexState, found: Sequence[Symbol], signal: Signal | None) -> dict[str, bytes] | None:
        """Return the contents of the files; None after a change, and the changed file is then read again."""
        contents: dict[str, bytes] = {}
        changed: list[str] = []
        for path in dict.fromkeys(one.path for one in found):
            try:
                document = self._index.tree.document(_file(self._index, path), signal)
            except BadInput:
                changed.append(path)
                continue
            contents[path] = document.content
            if document.hash.hex != state.hashes[path]:
                changed.append(path)
        if changed:
            self._index.update([f"{self._index.tree.root}/{path}" for path in changed], signal)
            return None
        return contents


def _file(index: SymbolIndex, path: str) -> TreeFile:
    return TreeFile(path, os.path.realpath(f"{index.tree.root}/{path}"), 0)


def _answer(
    name: str, found: Sequence[Symbol], contents: Mapping[str, bytes], state: IndexState, *, include_context: bool
) -> SymbolAnswer:
    if len(found) > 1:
        return AmbiguousSymbol(
            name, tuple(_candidate(one, contents[one.path]) for one in found[:MOST_CANDIDATES]), len(found)
        )
    (symbol,) = found
    definition, symbols, content = symbol.definition, state.files[symbol.path], contents[symbol.path]
    lines = content.split(b"\n")
    text = b"\n".join(lines[definition.whole - 1 : definition.last]).decode("utf-8", "replace")
    context = tuple(_context(definition, symbols, lines, content)) if include_context else ()
    signature = signature_of(content, definition)
    return SymbolText(symbol, symbols.language, definition.whole, definition.last, text, signature, context)


def _candidate(symbol: Symbol, content: bytes) -> SymbolCandidate:
    one = symbol.definition
    return SymbolCandidate(symbol.id, symbol.path, one.kind, one.first, one.last, signature_of(content, one))


def _context(
    definition: Definition, symbols: FileSymbols, lines: Sequence[bytes], content: bytes
) -> Iterator[tuple[int, str]]:
    """Yield the lines of the imports, and of the headers around a definition, that the definition does not show itself."""
    spans = [(one.first, one.last) for one in symbols.imports]
    place = definition.parent
    while place >= 0:
        outer = symbols.definitions[place]
        spans.append((outer.first, outer.first + content.count(b"\n", outer.start, outer.head_end)))
        place = outer.parent
    numbers = {number for first, last in spans for number in range(first, last + 1)}
    for number in sorted(numbers - set(range(definition.whole, definition.last + 1))):
        yield number, lines[number - 1].decode("utf-8", "replace")
