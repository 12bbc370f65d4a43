"""Measure how many of the planner's evictions in tool loops the parameters of the provider's own clearing can express.

    python scripts/measure_clearing.py FILE|DIR|ARCHIVE...

The engine pages out as it does where nothing is bound. Of each epoch in a tool loop it is asked whether the parameters of
`clear_tool_uses` (a run of calls from the first on, all but named tools) can name its results: exactly; with all that is below 200
tokens in the run going along; and which part of its tokens the best run can name, then.
"""

import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pagein import wiring
from pagein.engine.engine import Engine, Settings
from pagein.engine.session import Session
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.providers.tokens.counters import ratio_counter
from pagein.replay.prompt.model_calls import gather
from pagein.replay.readers import Source, find, read_source
from pagein.replay.record.recorded_session import RecordedSession

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.clearing import Use, clear_run  # found from the root of the repository

_SMALL = 200


@dataclass(slots=True)
class Figures:
    """Epochs in tool loops, and their tokens: all, and what the parameters can say of them."""

    epochs: int = 0
    exactly: int = 0
    with_small: int = 0
    tokens: int = 0
    best: int = 0

    def row(self, name: str) -> str:
        """One line."""
        share = self.best / self.tokens if self.tokens else 0.0
        return f"{name:24} {self.epochs:6} {self.exactly:8} {self.with_small:11} {share:10.0%}"


class Window:
    """The calls of a window and their results. gone: calls whose results left."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self.results: dict[str, ToolResult] = {}
        self.gone: set[str] = set()

    def add(self, message: Message) -> None:
        """Something was said."""
        for block in message.blocks:
            if isinstance(block, ToolCall):
                self.calls.append(block)
            elif isinstance(block, ToolResult):
                self.results[block.call_id] = block

    def uses(self, *, above: float = 0.0) -> list[Use]:
        """As the parameters see them. above: results of so many tokens and less do not count."""
        counter = ratio_counter("claude")
        there = {
            name
            for name, one in self.results.items()
            if name not in self.gone and (not above or one.is_error or counter.count(one.text) > above)
        }
        return [Use(call.id, call.name, call.id in there) for call in self.calls]


def best(uses: Sequence[Use], tokens: Mapping[str, int]) -> int:
    """The most of these tokens that one run can name."""
    most, staying, going = 0, set[str](), defaultdict[str, int](int)
    for use in uses:
        if use.id in tokens:
            going[use.tool] += tokens[use.id]
        elif use.answered:
            staying.add(use.tool)
        most = max(most, sum(count for tool, count in going.items() if tool not in staying))
    return most


def measure(recorded: RecordedSession, engine: Engine, figures: Figures) -> None:
    """Let a session be paged, and look at each epoch."""
    calls = gather(recorded.entries)
    session, window = engine.session(recorded.head.id), Window()
    begins = [one.messages_before for one in calls.compactions]
    fed = 0
    for call in calls.calls:
        in_loop = False
        while fed < call.messages_before:
            if fed in begins:
                session.note_compaction()
                window = Window()
            message = calls.messages[fed]
            session.append(replace(message, usage=None))
            window.add(message)
            in_loop = message.role != "assistant" and (
                in_loop or any(isinstance(one, ToolResult) for one in message.blocks)
            )
            fed += 1
        _look(session, window, call.at, figures if in_loop else Figures())


def _look(session: Session, window: Window, at: float, figures: Figures) -> None:
    opened = session.advance(at).opened
    if opened is None or not opened.paged:
        return
    tokens = {one.call_id: one.tokens for one in opened.paged}
    large = [replace(use, answered=use.answered or use.id in tokens) for use in window.uses(above=_SMALL)]
    figures.epochs += 1
    figures.exactly += clear_run(window.uses(), tokens) is not None
    figures.with_small += clear_run(large, tokens) is not None
    figures.tokens += sum(tokens.values())
    figures.best += best(large, tokens)
    window.gone.update(tokens)


def main(arguments: Sequence[str]) -> int:
    """Print a line for each source."""
    found: dict[str, Figures] = {}
    for source in find([Path(one) for one in arguments]):
        if not isinstance(source, Source):
            continue
        for recorded in read_source(source):
            figures = found.setdefault(recorded.head.source, Figures())
            with tempfile.TemporaryDirectory(prefix="pagein-clearing-") as folder:
                engine = wiring.open_for_replay(
                    Path(folder) / "store.db", counter=ratio_counter("claude"), settings=Settings()
                )
                try:
                    measure(recorded, engine, figures)
                finally:
                    engine.close()
    print(f"{'':24} {'epochs':>6} {'exactly':>8} {'with small':>11} {'of tokens':>10}")
    for name, figures in sorted(found.items()):
        print(figures.row(name))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
