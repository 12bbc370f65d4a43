"""The survey of an operation's targets, before any cost: readable targets, their sizes, and hits of the pattern."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from pagein.engine.recall.child_results import ChildResults
from pagein.errors import BadName, HostError, NotRecallable, StoreError
from pagein.policy.recall.pattern_search import Pattern


@dataclass(frozen=True, slots=True)
class SurveyedTarget:
    """A target without text. Ten thousand targets then need little memory.

    asked: the given name. name: id of the object, with the number of its version.
    why: why it cannot be read; None for a readable target. has_hit: whether it contains the text to find; True without such a
    text.
    """

    asked: str
    name: str
    tokens: int = 0
    why: str | None = None
    has_hit: bool = True

    @property
    def is_asked(self) -> bool:
        """Whether a child is asked about the target."""
        return self.why is None and self.has_hit


def survey_targets(
    results: ChildResults, names: tuple[str, ...], pattern: Pattern | None, stop: threading.Event
) -> Iterator[SurveyedTarget]:
    """Yield the targets in their order, each once.

    stop: ends the survey early.
    """
    for asked in dict.fromkeys(names):
        if stop.is_set():
            return
        try:
            target = results.target(asked)
        except (NotRecallable, HostError, StoreError, BadName) as problem:
            yield SurveyedTarget(asked, asked, why=f"Object {asked[:80]} not found: {problem}")
            continue
        has_hit = pattern is None or next(pattern.matches(target.text), None) is not None
        yield SurveyedTarget(asked, target.name, results.tokens(target.text), has_hit=has_hit)
