"""The symbols of every file of a workspace, brought up to the files on request.

Rules of this file
------------------
1. Symbols belong to a content: a file is parsed only if no file of its language with the same bytes was parsed before.
2. Which files there are, and what they contain, is asked of the disk at each look. No question is part of what is kept.
3. A file that cannot be parsed is told with the reason, and costs no other file.
4. Excluded and ignored files are never opened (law 9).
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Self, TypeAlias

from pagein.errors import BadInput
from pagein.model.symbols import FileSymbols, SymbolScan
from pagein.model.trees import TreeFile, TreeMatches
from pagein.policy.privacy.exclusions import EXCLUDED
from pagein.ports import Signal, SymbolCache
from pagein.workspace.symbols.crew import ParseOrder, ParserCrew
from pagein.workspace.symbols.grammars import check_grammars
from pagein.workspace.symbols.languages import Language, has_breadth, language_of
from pagein.workspace.symbols.stored_form import KnownFile, SymbolShelf
from pagein.workspace.tree import FileTree

Tell: TypeAlias = Callable[[int, int], object]
"""Told while files are looked at: how many were, and how many there are."""
LARGEST_FILE: Final = 4 * 1024 * 1024
"""Bytes of the largest file that is parsed. Larger ones are mostly generated."""
_SECONDS: Final = 30.0
"""Longest time to parse a file."""


@dataclass(frozen=True, slots=True)
class IndexState:
    """The files of a workspace at one moment, by path.

    hashes: of the contents that the symbols are from, by path
    scan: counts, and what failed. number: grows with each look that changed something.
    """

    files: Mapping[str, FileSymbols]
    hashes: Mapping[str, str]
    scan: SymbolScan
    number: int


class SymbolIndex:
    """The symbols of a folder's files. Thread-safe; looks wait for each other. `close` ends its processes.

    folder: absolute
    excluded: name patterns of files that are never read
    cache: keeps symbols between processes; None for this process only
    jobs: number of processes that parse; 0: one per core
    """

    def __init__(
        self,
        folder: str,
        *,
        excluded: tuple[str, ...] = EXCLUDED,
        cache: SymbolCache | None = None,
        jobs: int = 0,
    ) -> None:
        check_grammars()
        self.tree = FileTree(folder, excluded)
        self._crew = ParserCrew(jobs, _SECONDS)
        self._shelf = SymbolShelf(cache)
        self._lock = threading.Lock()
        self._known: dict[str, KnownFile] | None = None
        self._state = IndexState({}, {}, SymbolScan(0, 0), 0)

    @property
    def state(self) -> IndexState:
        """What the last look found."""
        return self._state

    def refresh(self, signal: Signal | None = None, tell: Tell | None = None) -> SymbolScan:
        """Look at all files. Raises AbortedOperation; the files parsed before are kept."""
        with self._lock:
            matches = self.tree.match(["."], signal)
            return self._look(matches, lambda _: True, signal, tell)

    def update(self, changed: Iterable[str], signal: Signal | None = None) -> SymbolScan:
        """Look at the files at some absolute paths and below, and at no other file. Raises AbortedOperation."""
        paths = set(changed)
        if any(path.endswith("/.gitignore") for path in paths):
            return self.refresh(signal)
        with self._lock:
            root = self.tree.root
            below = tuple(path.removeprefix(f"{root}/") for path in map(self.tree.place_of, paths))
            matches = self.tree.match_changed(paths, signal)
            return self._look(
                matches, lambda path: any(path == one or path.startswith(f"{one}/") for one in below), signal
            )

    def close(self) -> None:
        """End the processes. The index can be used again."""
        with self._lock:
            self._crew.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _look(
        self, matches: TreeMatches, concerns: Callable[[str], bool], signal: Signal | None, tell: Tell | None = None
    ) -> SymbolScan:
        """Look at the matched files, and forget the known files in question without a match."""
        before = self._shelf.load() if self._known is None else self._known
        known = {path: one for path, one in before.items() if not concerns(path)}
        look = _Look(self.tree, before, known)
        try:
            for parsed in self._crew.parse(look.orders(matches.files, signal, tell), signal):
                look.take(parsed.path, parsed.hash, parsed.answer)
        except BaseException:
            # what was parsed is not lost; files that were not looked at stay as they were known
            self._known = {**before, **known}
            raise
        self._known = known
        self._shelf.keep(known)
        scan = self._scan(known, look.parsed)
        if concerns(""):  # only a look at all files counts them
            scan = replace(scan, other=look.other, excluded=look.excluded, ignored=matches.ignored)
        self._state = self._next_state(known, scan)
        return scan

    def _next_state(self, known: Mapping[str, KnownFile], scan: SymbolScan) -> IndexState:
        files = {path: one.symbols for path, one in sorted(known.items()) if one.symbols is not None}
        hashes = {path: known[path].hash for path in files}
        is_same = hashes == self._state.hashes
        return IndexState(files, hashes, scan, self._state.number + (not is_same))

    def _scan(self, known: Mapping[str, KnownFile], parsed: int) -> SymbolScan:
        last = self._state.scan
        failed = tuple((path, one.reason) for path, one in sorted(known.items()) if one.symbols is None)
        partial = tuple(
            path for path, one in sorted(known.items()) if one.symbols is not None and one.symbols.has_errors
        )
        return replace(last, files=len(known) - len(failed), parsed=parsed, failed=failed, partial=partial)


class _Look:
    """One look at files: the files to parse, and the knowledge of the files afterwards."""

    def __init__(self, tree: FileTree, before: Mapping[str, KnownFile], known: dict[str, KnownFile]) -> None:
        self._tree, self._before, self._known = tree, before, known
        self._by_content = {
            (one.symbols.language, one.hash): one.symbols for one in before.values() if one.symbols is not None
        }
        self.parsed = self.other = self.excluded = 0

    def orders(self, files: Iterable[TreeFile], signal: Signal | None, tell: Tell | None) -> Iterator[ParseOrder]:
        """Yield the files to parse, with their contents. Note the others at once."""
        usable = [(file, language) for file in files if (language := self._language(file)) is not None]
        for number, (file, language) in enumerate(usable, 1):
            order = self._order(file, language, signal)
            if order is not None:
                yield order
            if tell is not None:
                tell(number, len(usable))

    def _language(self, file: TreeFile) -> Language | None:
        language = language_of(file.path)
        if language is not None and language.is_extra and not has_breadth():
            language = None
        self.excluded += file.excluded
        self.other += language is None and not file.excluded
        return None if file.excluded else language

    def _order(self, file: TreeFile, language: Language, signal: Signal | None) -> ParseOrder | None:
        try:
            if file.size > LARGEST_FILE:
                raise BadInput(f"larger than {LARGEST_FILE // 1024**2} MiB")  # noqa: TRY301 - one way for all reasons
            document = self._tree.document(file, signal)
        except BadInput as problem:
            self._known[file.path] = KnownFile("", None, str(problem))
            return None
        digest = document.hash.hex
        last = self._before.get(file.path)
        known = self._by_content.get((language.name, digest))
        if known is not None:
            self._known[file.path] = KnownFile(digest, known)
        elif last is not None and last.hash == digest and last.symbols is None:
            self._known[file.path] = last  # it failed before, and would again
        else:
            return ParseOrder(file.path, digest, language.name, document.content)
        return None

    def take(self, path: str, digest: str, answer: FileSymbols | str) -> None:
        """Note what became of a file."""
        self.parsed += 1
        if isinstance(answer, str):
            self._known[path] = KnownFile(digest, None, answer)
        else:
            self._known[path] = KnownFile(digest, answer)
            self._by_content[answer.language, digest] = answer
