"""Measure which ranking of a symbol map puts the files first that a session touches later.

    python scripts/measure_symbol_ranks.py SOURCE.tar.xz...   archives of recorded sessions (pagein-session/1), snapshots beside them

The workspace of a source is every source file that one of its sessions showed or wrote, with the longest text known. A case is a message of
a user: its words are the question, and the files that the session touches for the first time afterwards, until the next message, are
what should come first. Prints for each source and ranking the mean share of those files among the first 5, 10 and 20.
"""

import json
import re
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeAlias

from pagein.errors import BadInput
from pagein.model.symbols import FileSymbols
from pagein.policy.symbols.file_ranks import file_words, rank_files, score_files
from pagein.policy.symbols.lookup import Names, names_in
from pagein.policy.symbols.reference_counts import count_references
from pagein.policy.symbols.words import words_of
from pagein.workspace.symbols.grammars import load_grammar
from pagein.workspace.symbols.languages import language_of
from pagein.workspace.symbols.tags import extract_symbols

Row: TypeAlias = dict[str, Any]
Scores: TypeAlias = Mapping[str, float]
FIRST: Final = (5, 10, 20)
_GUTTER: Final = re.compile(r"^ *\d+(?:\u2192|\t|\|)", re.MULTILINE)
_DAMPING: Final = 0.85
_ROUNDS: Final = 30
_MOST_DEFINING: Final = 5
_LONGEST_QUESTION: Final = 4_000


@dataclass(slots=True)
class Case:
    """A question, the files touched before it, the latest last, and the new ones touched after it."""

    question: str
    before: tuple[str, ...]
    wanted: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Workspace:
    """The files of a source with their longest texts, and its cases."""

    texts: dict[str, str] = field(default_factory=dict)
    cases: list[Case] = field(default_factory=list)

    def add_text(self, path: str, text: str) -> None:
        if language_of(path) is not None and len(text) > len(self.texts.get(path, "")):
            self.texts[path] = text


def sessions(archive: Path) -> Iterator[list[Row]]:
    """Yield the rows of each session."""
    with tarfile.open(archive, "r:xz") as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isfile() else None
            if file is not None:
                yield [json.loads(line) for line in file.read().decode().split("\n") if line]


def read_workspace(archive: Path) -> Workspace:
    """Return the files and cases of a source."""
    found = Workspace()
    beside = archive.with_name(archive.name.replace(".tar.xz", ".snapshots.tar.xz"))
    snapshots = {row["sha"]: row["text"] for rows in sessions(beside) for row in rows} if beside.exists() else {}
    for rows in sessions(archive):
        _add_session(found, rows, snapshots)
    found.cases = [case for case in found.cases if case.wanted]
    return found


def _add_session(found: Workspace, rows: Sequence[Row], snapshots: Mapping[str, str]) -> None:
    calls: dict[str, Row] = {}
    touched: dict[str, None] = {}
    case: Case | None = None
    for row in rows:
        for block in row.get("content") or ():
            if row.get("role") == "user" and block["type"] == "text" and block["text"].strip():
                case = Case(block["text"][:_LONGEST_QUESTION], tuple(touched))
                found.cases.append(case)
            elif block["type"] == "tool_call":
                calls[block["id"]] = block
                for op in block.get("ops") or ():
                    path = _path(op)
                    if path is not None and op["op"] in ("read", "edit", "write"):
                        if case is not None and path not in touched:
                            case.wanted.add(path)
                        touched.pop(path, None)
                        touched[path] = None
                        if op["op"] == "write":
                            found.add_text(path, str((block.get("args") or {}).get("content") or ""))
            elif block["type"] == "tool_result" and not block.get("is_error"):
                _add_result(found, calls.get(block["id"]), block, snapshots)


def _add_result(found: Workspace, call: Row | None, block: Row, snapshots: Mapping[str, str]) -> None:
    for op in (call or {}).get("ops") or ():
        path, meta = _path(op), block.get("meta") or {}
        if path is None:
            continue
        if isinstance(meta, dict) and meta.get("before") in snapshots:
            found.add_text(path, snapshots[meta["before"]])
        elif op["op"] == "read" and not op.get("filtered"):
            found.add_text(path, _GUTTER.sub("", str(block.get("text") or "")))


def _path(op: Row) -> str | None:
    path = str(op.get("path") or "")
    return None if not path or path.startswith(("/", "..")) or language_of(path) is None else str(PurePosixPath(path))


def page_rank(files: Mapping[str, FileSymbols], names: Names, start: Scores | None = None) -> dict[str, float]:
    """Return the PageRank of files over references, from the one that refers to the one that defines. start: where walks begin."""
    homes = {name: {path for path, _ in places} for name, places in names.items()}
    edges: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for path, symbols in files.items():
        for name, count in symbols.references.items():
            others = homes.get(name, set()) - {path}
            if others and len(others) <= _MOST_DEFINING:
                for other in others:
                    edges[path][other] += count**0.5
    total = sum((start or {}).values())
    begin = {path: (start or {}).get(path, 0.0) / total if total else 1 / len(files) for path in files}
    rank = dict(begin)
    for _ in range(_ROUNDS):
        flow = {path: (1 - _DAMPING) * share for path, share in begin.items()}
        for path, share in rank.items():
            out = edges.get(path)
            if not out:
                for other in flow:
                    flow[other] += _DAMPING * share * begin[other]
                continue
            weight = sum(out.values())
            for other, part in out.items():
                flow[other] += _DAMPING * share * part / weight
        rank = flow
    return rank


def measure(workspace: Workspace) -> dict[str, list[float]]:
    """Return for each ranking the mean recall at each of `FIRST`."""
    files = {path: _symbols(path, text) for path, text in sorted(workspace.texts.items())}
    names = names_in(files)
    into = count_references(files, names).into
    words = {path: file_words(path, symbols) for path, symbols in files.items()}
    paths = {path: file_words(path, FileSymbols("")) for path in files}
    everywhere = page_rank(files, names)
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(FIRST))
    count = 0
    for case in workspace.cases:
        wanted = case.wanted & files.keys()
        if not wanted:
            continue
        count += 1
        known = [path for path in case.before if path in files]
        open_files = [path for path in files if path not in known]
        bm25 = score_files(words, words_of(case.question))
        near = page_rank(files, names, dict.fromkeys(known, 1.0)) if known else everywhere
        led = page_rank(files, names, bm25) if bm25 else everywhere
        rankings: dict[str, Scores] = {
            "BM25 of definitions and paths": bm25,
            "BM25 of paths alone": score_files(paths, words_of(case.question)),
            "references into the file": into,
            "PageRank": everywhere,
            "PageRank from the BM25": led,
            "PageRank from the files touched": near,
            "BM25 x (1 + PageRank share)": _mixed(bm25, everywhere),
            "BM25 + a tenth by references": _added(bm25, into),
            "BM25 + a tenth by PageRank from the files touched": _added(bm25, near),
            "same folder as the last touched": {path: float(_nearness(path, known)) for path in open_files},
            "BM25 + a fifth for the folder": _folder(bm25, known, open_files),
        }
        for name, scores in rankings.items():
            ranked = rank_files(open_files, scores, into)
            for place, most in enumerate(FIRST):
                sums[name][place] += len(wanted & set(ranked[:most])) / len(wanted)
    print(f"  {len(files)} files, {count} cases")
    return {name: [one / max(count, 1) for one in values] for name, values in sums.items()}


def _symbols(path: str, text: str) -> FileSymbols:
    language = language_of(path)
    if language is None:
        raise BadInput(path)
    return extract_symbols(load_grammar(language.name), text.encode("utf-8", "replace"))


def _mixed(bm25: Scores, rank: Scores) -> dict[str, float]:
    most = max(rank.values(), default=1.0)
    return {path: score * (1 + rank.get(path, 0.0) / most) for path, score in bm25.items()}


def _added(bm25: Scores, rank: Scores, part: float = 0.1) -> dict[str, float]:
    high, most = max(bm25.values(), default=1.0), max(rank.values(), default=1.0) or 1.0
    return {path: bm25.get(path, 0.0) + part * high * rank.get(path, 0.0) / most for path in {*bm25, *rank}}


def _nearness(path: str, known: Sequence[str]) -> int:
    if not known:
        return 0
    mine, last = PurePosixPath(path).parent.parts, PurePosixPath(known[-1]).parent.parts
    return sum(1 for one, other in zip(mine, last, strict=False) if one == other) if mine[:1] == last[:1] else 0


def _folder(bm25: Scores, known: Sequence[str], files: Sequence[str]) -> dict[str, float]:
    near = {path: float(_nearness(path, known)) for path in files}
    return _added(bm25, near, 0.2)


def main(archives: Sequence[str]) -> None:
    """Print the figures of each source, and their mean."""
    totals: dict[str, list[list[float]]] = defaultdict(list)
    for archive in map(Path, archives):
        print(archive.name.partition(".")[0])
        for name, values in measure(read_workspace(archive)).items():
            totals[name].append(values)
            _show(name, values)
    print("mean of the sources")
    for name, rows in totals.items():
        _show(name, [sum(column) / len(rows) for column in zip(*rows, strict=True)])


def _show(name: str, values: Sequence[float]) -> None:
    print(f"  {name:52}" + "".join(f"  @{most} {value:6.1%}" for most, value in zip(FIRST, values, strict=True)))


if __name__ == "__main__":
    main(sys.argv[1:])
