"""Search the files of a workspace for a text or an expression.

Rules of this file
------------------
1. Searched are the files that an ingest would take: inside the workspace, not ignored by git, text. Excluded files are not
   read, and are not given to ripgrep either (law 9).
2. ripgrep only chooses the files to look into; every place is found by pagein's own engine. So the hits are the same with
   and without ripgrep.
3. A literal text is also looked for in the paths of the files, because a model asks for a file by its name, too.
4. A search ends after its time or its bytes, and says so.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pagein.errors import AbortedOperation, BadInput
from pagein.model.code_search import CodeFile, CodeHit, CodeQuery, CodeResults, SearchEngine
from pagein.model.trees import TreeFile
from pagein.policy.privacy.exclusions import EXCLUDED
from pagein.policy.recall.file_matches import rank_files, rank_names
from pagein.policy.recall.line_search import LineMatch, match_lines
from pagein.policy.recall.pattern_search import Pattern, parse_pattern
from pagein.ports import Signal
from pagein.workspace.ripgrep import files_with_matches, ripgrep_path
from pagein.workspace.tree import FileTree

_MOST_NAMED = 50
LARGE = 8_000_000
"""Bytes of a file from which on it is searched only by its own path: data, most of the time."""
_MOST_HITS = 1_000
"""Most places of one file that are counted."""


@dataclass(frozen=True, slots=True)
class CodeSearch:
    """The search of a folder on this machine. Stateless: every question goes to the disk.

    folder: absolute.
    excluded: name patterns of files whose content is never read.
    ripgrep: returns the path of ripgrep; None if it is not installed.
    """

    folder: str
    excluded: tuple[str, ...] = EXCLUDED
    ripgrep: Callable[[], str | None] = ripgrep_path

    def search(self, query: CodeQuery, signal: Signal | None = None) -> CodeResults:
        """Return the places of a pattern. Raises BadInput for an unusable pattern or path, and AbortedOperation."""
        pattern = parse_pattern(query.pattern)
        tree = FileTree(self.folder, self.excluded)
        matched = tree.match([query.path or "."], signal)
        run = _Run(tree, pattern, query, time.monotonic() + query.seconds, signal)
        run.unsearched += matched.left
        run.ignored = matched.ignored
        named = query.path is not None and len(matched.files) == 1
        files = [one for one in matched.files if named or not is_below(one.path, query.skipped)]
        if query.path is not None and matched.files and not files:
            run.unsearched.append((query.path, "in an excluded folder; a file named by path is searched"))
        if pattern.expression is None:
            run.named = rank_names(pattern.literal, [_file(one) for one in files if not one.excluded])
        run.look_into(run.readable(files, named=named), self.ripgrep())
        return run.results()


@dataclass(slots=True)
class _Run:
    """A search in progress."""

    tree: FileTree
    pattern: Pattern
    query: CodeQuery
    ends: float
    signal: Signal | None
    found: dict[str, tuple[CodeFile, list[CodeHit]]] = field(default_factory=dict)
    unsearched: list[tuple[str, str]] = field(default_factory=list)
    named: Sequence[CodeFile] = ()
    searched: int = 0
    not_text: int = 0
    ignored: int = 0
    is_partial: bool = False
    engine: SearchEngine = "re2"

    def readable(self, files: Sequence[TreeFile], *, named: bool = False) -> list[TreeFile]:
        """Return the files that may be read, as many as the bytes allow.

        named: whether the only file was named, so that it may be large.
        """
        chosen: list[TreeFile] = []
        size = 0
        for file in files:
            if file.excluded:
                self.unsearched.append((file.path, "excluded"))
            elif file.size > LARGE and not named:
                self.unsearched.append((file.path, f"larger than {LARGE // 1_000_000} MB; name it by path"))
            elif size + file.size > self.query.bytes:
                self.is_partial = True
            else:
                size += file.size
                chosen.append(file)
        return chosen

    def look_into(self, files: Sequence[TreeFile], program: str | None) -> None:
        """Search the files, in the order of their paths."""
        likely = None
        if program is not None and files:
            likely = files_with_matches(program, self.pattern, [one.key for one in files], self.ends, self.signal)
        self.engine = "re2" if likely is None else "rg"
        for file in files:
            if self.signal is not None and self.signal.is_set():
                raise AbortedOperation("Operation aborted")
            if time.monotonic() > self.ends:
                self.is_partial = True
                return
            try:
                if likely is None or file.key in likely:
                    self._look_into(file)
                else:
                    self.tree.check_text(file)
            except BadInput as problem:
                if str(problem) in ("binary", "not UTF-8"):
                    self.not_text += 1
                else:
                    self.unsearched.append((file.path, str(problem)))
            else:
                self.searched += 1

    def _look_into(self, file: TreeFile) -> None:
        """Note the hits in a file. Raises BadInput with a short reason for a file without text, and AbortedOperation."""
        text = self.tree.text(file, self.signal)
        total = text.count("\n") + (not text.endswith("\n") and bool(text))
        hits: list[CodeHit] = []
        count = 0
        for place in match_lines(self.pattern, text):
            count += 1
            if count <= min(self.query.per_file, self.query.limit):
                hits.append(_hit(file, place, total))
            if count >= _MOST_HITS:
                break
        if count:
            self.found[file.path] = CodeFile(file.path, file.key, count, total), hits

    def results(self) -> CodeResults:
        """Return what was found, the best files first."""
        ranked = rank_files(self.query.pattern, [file for file, _ in self.found.values()])
        hits = [hit for file in ranked for hit in self.found[file.path][1]][: self.query.limit]
        return CodeResults(
            tuple(ranked),
            tuple(hits),
            self.engine,
            tuple(one for one in self.named if one.path not in self.found),
            self.searched,
            self.not_text,
            tuple(self.unsearched[:_MOST_NAMED]),
            self.ignored,
            self.is_partial,
            self.pattern.notice,
        )


def _file(file: TreeFile) -> CodeFile:
    return CodeFile(file.path, file.key, 0, 0)


def _hit(file: TreeFile, place: LineMatch, total: int) -> CodeHit:
    return CodeHit(file.path, file.key, place.first, place.last, place.column, place.text, total, place.is_shortened)


def is_below(path: str, folders: frozenset[str]) -> bool:
    """Return whether a file is below some folders, at any depth."""
    return not folders.isdisjoint(path.split("/")[:-1])
