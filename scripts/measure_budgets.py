"""Replay read budgets over recorded sessions: how many sessions would meet a limit, and how much markers and searches save.

    python scripts/measure_budgets.py DIR|ARCHIVE... [--json]

A read is a call whose result shows the lines of one file; a search, a call that lists files or lines with matches. New lines
are those whose text was not shown at their number since the last compaction, so a read without new lines is one that a
marker would answer. A session goes on as it was recorded: what a model would have done after a refusal is not known.
"""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pagein.model.entries import CompactionEntry, MessageEntry, NoteEntry
from pagein.model.guard_notes import ReadMeasureNote, SearchMeasureNote
from pagein.model.messages import HostEvent, Message, Recorded, ToolCall, ToolResult
from pagein.policy.clients.profile import Profile
from pagein.policy.clients.profiles import profile_by_calls
from pagein.policy.guards.budgets import TOP_PATHS
from pagein.policy.guards.guard_state import START, step
from pagein.policy.guards.limits import PROFILES, Limits, ProfileName
from pagein.policy.guards.relevance import excluded_folder, is_unrelated
from pagein.replay.readers import Source, find, read_source

_SEARCH_TOOL: Final = re.compile(r"grep|glob|search|find|^ls$", re.IGNORECASE)
_SEARCH_COMMAND: Final = re.compile(r"(?:^|[\s;&|\"'(])(?:rg|e?grep|git grep|ag|find|fd)\s")
_FOUND_PATH: Final = re.compile(r"^(?:\./)?([\w@~./+-]*[\w-]\.\w{1,8})(?=$|[:\s-])", re.MULTILINE)
_WAYS: Final = ("as written", "restored", "new lines", "restored, new lines")
"""Never restored with every line counted, as in the design; and with each of the two changes."""


@dataclass
class Worst:
    """The most that a session ever had spent, by way of counting; and the longest read.

    answered, unrelated, excluded: reads, those that would be told to be unrelated, and those in excluded folders.
    """

    reads: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    lines: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    longest: int = 0
    answered: int = 0
    unrelated: int = 0
    excluded: int = 0

    def add(self, way: str, reads: int, lines: int) -> None:
        """Take what was spent before a further read."""
        self.reads[way] = max(self.reads[way], reads)
        self.lines[way] = max(self.lines[way], lines)

    def is_hard(self, way: str, limits: Limits) -> bool:
        """Whether a read was refused."""
        return _reaches(self.reads[way], limits.reads, 1.0) or _reaches(self.lines[way], limits.total_lines, 1.0)

    def is_soft(self, way: str, limits: Limits) -> bool:
        """Whether a read was shortened, or met a budget that was nearly spent."""
        near = _reaches(self.reads[way], limits.reads, 0.8) or _reaches(self.lines[way], limits.total_lines, 0.8)
        return near or (limits.lines is not None and self.longest > limits.lines)


def _reaches(count: int, limit: int | None, share: float) -> bool:
    return limit is not None and count >= int(limit * share)


class Counting:
    """One session, through the fold of the guards."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.worst = Worst()
        self.states = dict.fromkeys(_WAYS, START)
        self.calls: dict[str, ToolCall] = {}
        self.shown: dict[str, dict[int, str]] = defaultdict(dict)

    def take(self, entry: Recorded) -> None:
        """Take one entry of the recording."""
        if isinstance(entry, HostEvent) and entry.kind == "compaction":
            self.shown.clear()
            self._restoring(CompactionEntry())
        if not isinstance(entry, Message):
            return
        self._restoring(MessageEntry(entry))
        for block in entry.blocks:
            if isinstance(block, ToolCall):
                self.calls[block.id] = block
            elif isinstance(block, ToolResult) and block.call_id in self.calls:
                self._result(self.calls[block.call_id], block)

    def _result(self, call: ToolCall, result: ToolResult) -> None:
        shown = self.profile.lines_shown(call, result)
        if shown is not None and shown.lines:
            before = self.shown[shown.path]
            new = sum(before.get(number) != line for number, line in enumerate(shown.lines, shown.first))
            before.update(enumerate(shown.lines, shown.first))
            self._read(ReadMeasureNote("file", shown.path, shown.first, shown.last, len(shown.lines), 0, new))
        elif _is_search(call):
            paths = tuple(dict.fromkeys(_FOUND_PATH.findall(result.text)))[:TOP_PATHS]
            self._restoring(NoteEntry.of(SearchMeasureNote(call.arguments, paths, len(paths))))

    def _restoring(self, body: MessageEntry | CompactionEntry | NoteEntry) -> None:
        for way in _WAYS:
            if way.startswith("restored"):
                self.states[way] = step(self.states[way], body)

    def _read(self, note: ReadMeasureNote) -> None:
        self.worst.longest = max(self.worst.longest, note.lines)
        state = self.states["restored"]
        places = () if state.search is None else state.search.paths
        told = is_unrelated("file", note.path, state.search, since=state.since, known=state.files)
        self.worst.answered += 1
        self.worst.unrelated += told and not _is_among(note.path, places)
        self.worst.excluded += excluded_folder(note.path, "") is not None
        for way in _WAYS:
            spent = self.states[way].spent
            counted = note if way.endswith("new lines") else replace(note, new=note.lines)
            if counted.new:  # a read that a marker answers is never refused
                self.worst.add(way, spent.reads, spent.lines)
            self.states[way] = step(self.states[way], NoteEntry.of(counted))


def _is_among(path: str, found: tuple[str, ...]) -> bool:
    """Return whether a path is one of those found, some of which are relative."""
    return any(
        f"/{path}".endswith("/" + one.removeprefix("./").lstrip("/")) or one.endswith(f"/{path}") for one in found
    )


def _is_search(call: ToolCall) -> bool:
    return _SEARCH_TOOL.search(call.name) is not None or _SEARCH_COMMAND.search(call.arguments) is not None


def sessions(paths: list[Path]) -> Iterator[Worst]:
    """Yield what each recorded session with a read has spent at most."""
    for source in find(paths):
        for session in read_source(source) if isinstance(source, Source) else ():
            entries = list(session.entries)
            said = (block for one in entries if isinstance(one, Message) for block in one.blocks)
            counting = Counting(profile_by_calls(one for one in said if isinstance(one, ToolCall)))
            for entry in entries:
                counting.take(entry)
            if counting.worst.longest:
                yield counting.worst


def table(found: list[Worst]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the shares of sessions that meet the limits, by profile and way of counting."""
    profiles: tuple[ProfileName, ...] = ("strict", "balanced")
    return {
        profile: {
            way: {
                "soft": _share(one.is_soft(way, PROFILES[profile]) for one in found),
                "hard": _share(one.is_hard(way, PROFILES[profile]) for one in found),
            }
            for way in _WAYS
        }
        for profile in profiles
    }


def quantiles(found: list[Worst]) -> dict[str, dict[str, list[int]]]:
    """Return the median and the 90th, 95th, 99th percentile and the maximum of what sessions spend, by way of counting."""
    marks = (0.5, 0.9, 0.95, 0.99, 1.0)
    return {
        way: {
            what: [sorted(values)[min(len(values) - 1, int(mark * len(values)))] for mark in marks]
            for what, values in (
                ("reads", [one.reads[way] for one in found]),
                ("lines", [one.lines[way] for one in found]),
            )
        }
        for way in _WAYS
    }


def _share(are: Iterator[bool]) -> float:
    every = list(are)
    return round(sum(every) / (len(every) or 1), 4)


def main(arguments: list[str]) -> int:
    """Measure and print."""
    paths = [Path(word) for word in arguments if not word.startswith("--")]
    if not paths:
        print(__doc__)
        return 2
    found = list(sessions(paths))
    if not found:
        sys.stderr.write("no session could be used\n")
        return 2
    total = sum(one.answered for one in found)
    told = {name: round(sum(getattr(one, name) for one in found) / total, 4) for name in ("unrelated", "excluded")}
    answer = {"sessions": len(found), "meets": table(found), "spent": quantiles(found), "reads": total, "told": told}
    if "--json" in arguments:
        print(json.dumps(answer, indent=1))
        return 0
    print(
        f"{len(found)} sessions with {total:,} reads; {told['unrelated']:.1%} unrelated, {told['excluded']:.1%} excluded\n"
    )
    print("| profile | counted | meet SOFT_LIMIT | meet HARD_LIMIT |\n|---|---|---|---|")
    for profile, ways in table(found).items():
        for way, shares in ways.items():
            print(f"| {profile} | {way} | {shares['soft']:.1%} | {shares['hard']:.1%} |")
    print("\n| counted | spent before a read | p50 | p90 | p95 | p99 | max |\n|---|---|---|---|---|---|---|")
    for way, kinds in quantiles(found).items():
        for what, values in kinds.items():
            print(f"| {way} | {what} | {' | '.join(f'{value:,}' for value in values)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
