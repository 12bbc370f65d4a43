"""Compare `pagein blame` with git, line by line, on the files of recorded sessions.

    python scripts/compare_blame.py DIR|ARCHIVE... [--together] [--json] [--show N]

The edits of each session are replayed into a git repository: one commit for what a turn did, and one for each change that
no call explains. Then `git blame -w -M -C` and the rules of `policy/blame/` answer for each line of each file whose text is
known whole at the end. With `--together` all sessions of a source share one repository, in the order of their times: then
branches are switched and people edit between sessions.

Lines are counted in classes. `moved`: git's answer depends on `-M -C`, or our rules say moved. `laid out`: git's answer
depends on `-w`, or our rules say reformatted. `came back`: git names a change that no call explains, for a line that an
older state has, that the state before the change lacks, and that our rules give to the turn that wrote it. All others are
`plain`. `--show N` prints N lines on which both differ. Exit status 1 if less than 99 % of the plain lines agree.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.recorded_edits import RecordedTexts, text_states

from pagein.policy.blame.known_states import KnownState, LineOrigin
from pagein.policy.blame.line_origins import line_origins
from pagein.replay.readers import Source, find, read_source, snapshots_beside

_LEAST_SHARE = 0.99
_CLASSES = ("plain", "moved", "laid out", "came back")
Writer = tuple[str, int]
"""Session and turn; ("", 0) for a text that no call explains."""


class Commit(NamedTuple):
    """Who made a commit, and its place in the order of commits."""

    writer: Writer
    place: int


@dataclass(slots=True)
class Comparison:
    """What a comparison found.

    edited, whole: the files that were written or edited, and those known whole at the end.
    lines, equal: by class. either: equal to git with or without its options. turns: lines that either gives to a turn.
    slowest: longest time for the origins of one file, seconds, with its states and lines.
    """

    edited: int = 0
    whole: int = 0
    lines: Counter[str] = field(default_factory=Counter)
    equal: Counter[str] = field(default_factory=Counter)
    either: Counter[str] = field(default_factory=Counter)
    turns: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    slowest: tuple[float, int, int] = (0.0, 0, 0)

    def add(self, other: "Comparison") -> None:
        """Add the figures of another repository."""
        self.edited += other.edited
        self.whole += other.whole
        self.lines += other.lines
        self.equal += other.equal
        self.either += other.either
        self.turns += other.turns
        self.answers += other.answers
        self.examples += other.examples
        self.slowest = max(self.slowest, other.slowest)

    def figures(self) -> dict[str, object]:
        """The figures by name."""
        seconds, states, lines = self.slowest
        shares = {
            f"{name}: lines, equal, equal without options": (
                self.lines[name],
                round(self.equal[name] / self.lines[name], 5),
                round(self.either[name] / self.lines[name], 5),
            )
            for name in _CLASSES
            if self.lines[name]
        }
        differing = self.lines["plain"] - self.equal["plain"]
        return {
            "files edited, known whole": (self.edited, self.whole),
            "lines": self.lines.total(),
            **shares,
            "plain lines of turns, equal": (self.turns["plain"], round(1 - differing / (self.turns["plain"] or 1), 5)),
            "answers": dict(self.answers),
            "slowest": f"{1000 * seconds:.0f} ms for {states} states, {lines} lines",
        }


def recorded_texts(paths: Iterable[Path], *, together: bool) -> dict[str, list[RecordedTexts]]:
    """Return the texts of the files of each source: of each session alone, or of all together."""
    found: dict[str, list[RecordedTexts]] = defaultdict(list)
    for path in paths:
        snapshots: Mapping[str, str] = snapshots_beside(path) if path.is_file() else {}
        for source in find([path]):
            for session in read_source(source) if isinstance(source, Source) else ():
                those = found[session.head.source]
                if not those or not together:
                    those.append(RecordedTexts())
                those[-1].add(text_states(session, snapshots.get))
    return found


def compare(texts: RecordedTexts, folder: Path) -> Comparison:
    """Replay the texts into a repository in an empty folder, and compare."""
    states, found = texts.by_path(), Comparison(edited=len(texts.edited))
    whole = {path: those for path, those in states.items() if those[-1].lines is not None and path in texts.edited}
    if whole:
        commits, places = _make_repository(folder, whole)
        for path, those in whole.items():
            _compare_file(_File(folder, path, those, commits, places[path]), found)
    return found


@dataclass(frozen=True, slots=True)
class _File:
    folder: Path
    path: str
    states: Sequence[KnownState]
    commits: Mapping[str, Commit]
    places: Sequence[int]  # of the commits of the states

    def blamed(self, *options: str) -> list[Commit]:
        """The commits that git names for the lines."""
        command = ["git", "blame", "--porcelain", *options, "main", "--", self.path.lstrip("/")]
        told = subprocess.run(command, cwd=self.folder, capture_output=True, check=True).stdout
        return [self.commits[name] for name in _commits(told.split(b"\n"))]

    def came_back(self, line: str, origin: LineOrigin, commit: Commit) -> bool:
        """Whether git names a later change without a call, before which the file did not have the line."""
        if origin.state is None or commit.writer != _NOBODY or self.places[origin.state] >= commit.place:
            return False
        before = [state for state, place in zip(self.states, self.places, strict=True) if place < commit.place]
        return line in (self.states[origin.state].lines or ()) and line not in (before[-1].lines or ())


_NOBODY: Writer = ("", 0)


def _compare_file(file: _File, found: Comparison) -> None:
    lines = file.states[-1].lines or ()
    start = time.perf_counter()
    ours = line_origins(file.states, lines)
    spent = time.perf_counter() - start
    found.slowest = max(found.slowest, (spent, len(file.states), len(lines)))
    found.whole += 1
    answers = file.blamed("-w", "-M", "-C"), file.blamed("-w"), file.blamed()
    for number, (line, origin, theirs, in_place, exact) in enumerate(zip(lines, ours, *answers, strict=True), start=1):
        told = _writer(origin, file.states)
        if theirs != in_place or origin.match == "moved":
            kind = "moved"
        elif in_place != exact or origin.match == "reformatted":
            kind = "laid out"
        else:
            kind = "came back" if told != theirs.writer and file.came_back(line, origin, theirs) else "plain"
        found.answers[origin.answer] += 1
        found.lines[kind] += 1
        found.equal[kind] += told == theirs.writer
        found.either[kind] += told in (theirs.writer, in_place.writer, exact.writer)
        found.turns[kind] += {told, theirs.writer} != {_NOBODY}
        if told != theirs.writer:
            found.examples.append(f"{file.path}:{number}: {kind}: {told}, git: {theirs.writer} {line.strip()[:70]!r}")


def _writer(origin: LineOrigin, states: Sequence[KnownState]) -> Writer:
    if origin.answer != "agent" or origin.state is None:
        return _NOBODY
    author = states[origin.state].author
    return author.session, author.turn


def _make_repository(
    folder: Path, states: Mapping[str, Sequence[KnownState]]
) -> tuple[dict[str, Commit], dict[str, list[int]]]:
    """Commit the states of all files in the order of their times.

    Return the commits by name, and for each file the places of the commits of its states.
    """
    subprocess.run(["git", "init", "-q", folder], check=True)
    writers: list[Writer] = []
    stream: list[bytes] = []
    places: dict[str, list[int]] = defaultdict(list)
    for path, state in _in_order(states):
        writer = _NOBODY if state.deed == "read" else (state.author.session, state.author.turn)
        if not writers or writer != writers[-1] or writer == _NOBODY:
            writers.append(writer)
            stream.append(_commit_head(len(writers)))
        stream.append(_file_change(path, state.lines))
        places[path].append(len(writers))
    command = ["git", "fast-import", "--quiet", f"--export-marks={folder / 'marks'}"]
    subprocess.run(command, cwd=folder, input=b"".join(stream), check=True, capture_output=True)
    marks = dict(line.split() for line in (folder / "marks").read_text().splitlines())
    commits = {marks[f":{place}"]: Commit(writer, place) for place, writer in enumerate(writers, start=1)}
    return commits, places


def _in_order(states: Mapping[str, Sequence[KnownState]]) -> list[tuple[str, KnownState]]:
    rows = [(state.at, number, path) for path, those in states.items() for number, state in enumerate(those)]
    return [(path, states[path][number]) for _, number, path in sorted(rows)]


def _commit_head(number: int) -> bytes:
    who = f"committer a <a@example.invalid> {1_000_000_000 + number} +0000"
    return f"commit refs/heads/main\nmark :{number}\n{who}\ndata 0\n".encode()


def _file_change(path: str, lines: Sequence[str] | None) -> bytes:
    quoted = json.dumps(path.lstrip("/"), ensure_ascii=False)
    if lines is None:
        return f"D {quoted}\n".encode()
    text = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")
    return f"M 100644 inline {quoted}\ndata {len(text)}\n".encode() + text + b"\n"


def _commits(rows: Iterable[bytes]) -> Iterator[str]:
    for row in rows:
        words = row.split(b" ")
        if not row.startswith(b"\t") and len(words[0]) == 40 and len(words) in (3, 4):  # noqa: PLR2004 - hex digits
            yield words[0].decode()


def main() -> int:
    """Compare, print, and judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="DIR|ARCHIVE")
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--show", type=int, default=0, metavar="N")
    given = parser.parse_args()
    total = Comparison()
    rows: dict[str, dict[str, object]] = {}
    for source, repositories in sorted(recorded_texts(given.paths, together=given.together).items()):
        found = Comparison()
        for texts in repositories:
            with tempfile.TemporaryDirectory() as folder:
                found.add(compare(texts, Path(folder)))
        total.add(found)
        rows[source] = found.figures()
    rows["all"] = total.figures()
    if given.json:
        print(json.dumps(rows))
    else:
        _show(rows, total.examples[:: max(1, len(total.examples) // max(1, given.show))][: given.show])
    return int(total.equal["plain"] < _LEAST_SHARE * total.lines["plain"])


def _show(rows: Mapping[str, Mapping[str, object]], examples: Iterable[str]) -> None:
    for source, figures in rows.items():
        print(source)
        for name, value in figures.items():
            print(f"  {name:45} {value}")
    for line in examples:
        print(" ", line)


if __name__ == "__main__":
    sys.exit(main())
