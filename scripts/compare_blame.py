"""Compare `pagein blame` with git, line by line, on the files of recorded sessions.

    python scripts/compare_blame.py DIR|ARCHIVE... [--json] [--show N]

The edits of all sessions of a source are replayed, in the order of their times, into a git repository: one commit for what
a turn did, and one for each change that nobody's call explains. Then `git blame -w -M -C` and the rules of
`policy/blame/` answer for each line of each file whose text is known whole at the end. `--show N` prints N lines on which
they differ. Exit status 1 if less than 99 % of the lines agree.
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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.policy.blame.known_states import NOBODY, Hand, KnownState, LineOrigin, lines_of
from pagein.policy.blame.line_origins import line_origins
from pagein.replay.readers import Source, find, read_source, snapshots_beside
from scripts.recorded_edits import RecordedTexts, text_states

_LEAST_SHARE = 0.99
Writer = tuple[str, int]
"""Session and turn; ("", 0) for a text that nobody's call explains."""


@dataclass(slots=True)
class Comparison:
    """What a comparison found.

    lines, equal: of the files compared. files, edited: files known whole at the end, and all that were written or edited.
    differing: the lines that differ, by why.
    slowest: longest time for the origins of one file, seconds, with its states and lines.
    """

    lines: int = 0
    equal: int = 0
    files: int = 0
    edited: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    matches: Counter[str] = field(default_factory=Counter)
    differing: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    slowest: tuple[float, int, int] = (0.0, 0, 0)


def source_states(paths: Iterable[Path]) -> dict[str, RecordedTexts]:
    """Return the states of the files of each source."""
    found: dict[str, RecordedTexts] = defaultdict(RecordedTexts)
    for path in paths:
        snapshots: Mapping[str, str] = snapshots_beside(path) if path.is_file() else {}
        for source in find([path]):
            if isinstance(source, Source):
                for session in read_source(source):
                    found[session.head.source].add(text_states(session, snapshots.get))
    return found


def compare(texts: RecordedTexts, folder: Path) -> Comparison:
    """Replay the states into a repository in an empty folder, and compare."""
    states, found = texts.by_path(), Comparison(edited=len(texts.edited))
    whole = {path: those for path, those in states.items() if those[-1].lines is not None and path in texts.edited}
    writers = _make_repository(folder, whole)
    for path, those in whole.items():
        lines = those[-1].lines or ()
        before = time.perf_counter()
        ours = line_origins(those, lines)
        spent = time.perf_counter() - before
        found.slowest = max(found.slowest, (spent, len(those), len(lines)))
        theirs = _blamed(folder, path, ("-w", "-M", "-C"))
        plain = _blamed(folder, path, ("-w",))
        found.files += 1
        for number, (origin, line) in enumerate(zip(ours, lines, strict=True)):
            told = _writer(origin, those)
            found.lines += 1
            found.answers[origin.answer] += 1
            found.matches[origin.match] += 1
            if told == writers[theirs[number]]:
                found.equal += 1
                continue
            why = _reason(told, writers[plain[number]], line)
            found.differing[why] += 1
            found.examples.append(f"{path}:{number + 1}: {why}: {told} {writers[theirs[number]]} {line.strip()[:70]!r}")
    return found


def _reason(told: Writer, plain: Writer, line: str) -> str:
    if not any(map(str.isalnum, line)):
        return "blank line or bracket"
    if told == plain:
        return "git follows a copy or a move, here it was written anew"
    return "other"


def _writer(origin: LineOrigin, states: Sequence[KnownState]) -> Writer:
    if origin.answer != "agent" or origin.state is None:
        return "", 0
    hand = states[origin.state].hand
    return hand.session, hand.turn


def _make_repository(folder: Path, states: Mapping[str, Sequence[KnownState]]) -> dict[str, Writer]:
    """Commit the states of all files in the order of their times; return who made each commit."""
    subprocess.run(["git", "init", "-q", folder], check=True)
    ordered = sorted(
        ((state.at, number, path, state) for path, those in states.items() for number, state in enumerate(those)),
        key=lambda row: row[:3],
    )
    writers: list[Writer] = []
    stream: list[bytes] = []
    last: Writer | None = None
    for _, _, path, state in ordered:
        writer = (state.hand.session, state.hand.turn) if state.deed in ("write", "edit") else ("", 0)
        if writer != last or writer == ("", 0):
            writers.append(writer)
            stream.append(_commit_head(len(writers)))
            last = writer
        stream.append(_file_change(path, state.lines))
    done = subprocess.run(
        ["git", "fast-import", "--quiet", f"--export-marks={folder / 'marks'}"],
        cwd=folder, input=b"".join(stream), check=True, capture_output=True,
    )  # fmt: skip
    del done
    marks = dict(line.split() for line in (folder / "marks").read_text().splitlines())
    return {marks[f":{number}"]: writer for number, writer in enumerate(writers, start=1)}


def _commit_head(number: int) -> bytes:
    who = f"committer a <a@example.invalid> {1_000_000_000 + number} +0000"
    return f"commit refs/heads/main\nmark :{number}\n{who}\ndata 0\n".encode()


def _file_change(path: str, lines: Sequence[str] | None) -> bytes:
    quoted = json.dumps(path.lstrip("/"), ensure_ascii=False)
    if lines is None:
        return f"D {quoted}\n".encode()
    text = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")
    return f"M 100644 inline {quoted}\ndata {len(text)}\n".encode() + text + b"\n"


def _blamed(folder: Path, path: str, options: Sequence[str]) -> list[str]:
    """Return the commit that git names for each line."""
    told = subprocess.run(
        ["git", "blame", "--porcelain", *options, "main", "--", path.lstrip("/")],
        cwd=folder, capture_output=True, check=True,
    ).stdout.split(b"\n")  # fmt: skip
    return list(_commits(told))


def _commits(rows: Iterable[bytes]) -> Iterator[str]:
    for row in rows:
        words = row.split(b" ")
        if not row.startswith(b"\t") and len(words[0]) == 40 and len(words) in (3, 4):  # noqa: PLR2004 - hex digits
            yield words[0].decode()


def main() -> int:
    """Compare, print, and judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="DIR|ARCHIVE")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--show", type=int, default=0, metavar="N")
    given = parser.parse_args()
    rows, worst = {}, 1.0
    for source, texts in sorted(source_states(given.paths).items()):
        with tempfile.TemporaryDirectory() as folder:
            found = compare(texts, Path(folder))
        if not found.lines:
            continue
        worst = min(worst, found.equal / found.lines)
        seconds, states, lines = found.slowest
        rows[source] = {
            "files edited": found.edited,
            "known whole": found.files,
            "lines": found.lines,
            "equal": found.equal,
            "share": round(found.equal / found.lines, 5),
            "answers": dict(found.answers),
            "matches": dict(found.matches),
            "differing": dict(found.differing),
            "slowest": f"{1000 * seconds:.0f} ms for {states} states, {lines} lines",
        }
        if given.json:
            continue
        print(source)
        for name, value in rows[source].items():
            print(f"  {name:14} {value}")
        for line in found.examples[:: max(1, len(found.examples) // max(1, given.show))][: given.show]:
            print("   ", line)
    if given.json:
        print(json.dumps(rows))
    return int(worst < _LEAST_SHARE)


if __name__ == "__main__":
    sys.exit(main())
