"""Measure the saving from rereads by clients' own tools, from the messages alone, and check the proof of each answer.

    python scripts/measure_rereads.py DIR|ARCHIVE... [--json]

As `measure_reads.py`, without its files: the version of a file is what a result showed. Exit status 1 if the witness objects to
anything.
"""

import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from pagein.model.messages import HostEvent, Message, Recorded, ToolCall, ToolResult
from pagein.policy.audit.witness import witness
from pagein.policy.clients.client_reads import START
from pagein.policy.clients.client_rereads import RereadRules, answer, with_message
from pagein.policy.clients.profile import Profile
from pagein.policy.clients.profiles import profile_by_calls
from pagein.replay.readers import Source, find, read_source

_LEAST_BLOCKS = 40


@dataclass
class Figures:
    """chars: of results of reads that show their lines exactly, gutters included; spared: of these. seconds: that deciding took."""

    reads: int = 0
    results: int = 0
    chars: int = 0
    spared: int = 0
    answered: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    by_tool: Counter[str] = field(default_factory=Counter)
    objections: list[str] = field(default_factory=list)


class Measuring:
    """One session."""

    def __init__(self, profile: Profile, figures: Figures) -> None:
        self.reader = RereadRules(profile)
        self.figures = figures
        self._begin()

    def _begin(self) -> None:
        self.state = START
        self.sent: list[Message] = []

    def end(self) -> None:
        """The window ends: everything in it is witnessed."""
        objections = witness(self.sent, self.state.files.claims(), self.state.files.versions().get)
        self.figures.objections += [f"{one.call_id}: {one.why} (line {one.line})" for one in objections]
        self._begin()

    def take(self, entry: Recorded) -> None:
        """One entry of the recording."""
        if isinstance(entry, HostEvent) and entry.kind == "compaction":
            self.end()
        if isinstance(entry, Message):
            began = time.perf_counter()
            self._say(entry)
            took = time.perf_counter() - began
            self.figures.seconds += took
            self.figures.slowest = max(self.figures.slowest, took)

    def _say(self, message: Message) -> None:
        stands: dict[str, str] = {}
        for block in message.blocks:
            if isinstance(block, ToolResult):
                # several results of one message are answered one after the other
                one = replace(message, blocks=(block,))
                stands[block.call_id] = self._answer(block)
                self.state = with_message(self.state, self.reader, one, stands)
            else:
                self.state = with_message(self.state, self.reader, replace(message, blocks=(block,)))
        blocks = tuple(
            replace(block, text=stands[block.call_id]) if isinstance(block, ToolResult) else block
            for block in message.blocks
        )
        self.sent.append(replace(message, blocks=blocks))

    def _answer(self, result: ToolResult) -> str:
        figures, call = self.figures, self.state.calls.get(result.call_id)
        figures.results += len(result.text)
        if call is None or self.reader.profile.lines_shown(call, result) is None:
            return result.text
        found = answer(self.state, self.reader, result)
        figures.reads += 1
        figures.chars += len(result.text)
        figures.by_tool[call.name] += 1
        if found is None:
            return result.text
        figures.answered += 1
        figures.spared += len(result.text) - len(found.text)
        return found.text


def measure(paths: list[Path]) -> dict[str, Figures]:
    """Per source."""
    found: dict[str, Figures] = {}
    for source in find(paths):
        for session in read_source(source) if isinstance(source, Source) else ():
            entries = list(session.entries)
            blocks = sum(len(entry.blocks) for entry in entries if isinstance(entry, Message))
            if session.head.parent is not None or blocks < _LEAST_BLOCKS:
                continue
            figures = found.setdefault(session.head.source, Figures())
            said = (block for one in entries if isinstance(one, Message) for block in one.blocks)
            measuring = Measuring(profile_by_calls(one for one in said if isinstance(one, ToolCall)), figures)
            for entry in entries:
                measuring.take(entry)
            measuring.end()
    return found


def row(one: Figures) -> dict[str, object]:
    """The figures of a source."""
    return {
        "reads": one.reads,
        "by tool": dict(one.by_tool),
        "characters": one.chars,
        "share of all results": round(one.chars / (one.results or 1), 4),
        "answered": one.answered,
        "saved": round(one.spared / (one.chars or 1), 4),
        "seconds": round(one.seconds, 2),
        "slowest message, ms": round(1000 * one.slowest, 1),
        "objections": len(one.objections),
    }


def main(arguments: list[str]) -> int:
    paths = [Path(word) for word in arguments if not word.startswith("--")]
    if not paths:
        print(__doc__)
        return 2
    found = {source: figures for source, figures in sorted(measure(paths).items()) if figures.reads}
    rows = {source: row(figures) for source, figures in found.items()}
    if "--json" in arguments:
        print(json.dumps(rows, indent=1))
    else:
        for source, values in rows.items():
            print(source)
            for name, value in values.items():
                print(f"  {name:24} {value}")
    for figures in found.values():
        print(*figures.objections[:5], sep="\n", end="")
    return 1 if any(figures.objections for figures in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
