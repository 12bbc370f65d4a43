"""Count how often a store's sessions recalled what had left their windows, beside what the stress model assumes.

A replay charges drawn recalls (`replay.policies.stress_needs`), because a recording cannot show every need. A store
shows what models really asked for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pagein.model.entries import Body, EpochEntry, NoteEntry, PreviewEntry, RecallEntry, RequestSent
from pagein.model.journal_notes import RecallNote
from pagein.replay.policies.stress_needs import StressNeeds


@dataclass(frozen=True, slots=True)
class RecallCount:
    """Recalls of texts that left in one way.

    absent: texts that left. recalled: those that a tool recalled at least once while they were absent.
    drawn: those that the stress model draws.
    """

    absent: int = 0
    recalled: int = 0
    drawn: int = 0

    def __add__(self, other: "RecallCount") -> "RecallCount":
        """Return the sum of two counts."""
        return RecallCount(self.absent + other.absent, self.recalled + other.recalled, self.drawn + other.drawn)


@dataclass(frozen=True, slots=True)
class RecallCounts:
    """Recalls of evicted texts, and of outputs that entered as previews.

    calls: model calls of the sessions.
    """

    calls: int = 0
    evicted: RecallCount = RecallCount()
    previewed: RecallCount = RecallCount()

    def __add__(self, other: "RecallCounts") -> "RecallCounts":
        """Return the sum of the counts of two sessions."""
        return RecallCounts(self.calls + other.calls, self.evicted + other.evicted, self.previewed + other.previewed)


def recall_counts(session: str, bodies: Iterable[Body]) -> RecallCounts:
    """Count over the entries of a session's journal, in the order of the journal.

    session: its name, from which the stress model draws.
    """
    counter = _RecallCounter(session)
    for body in bodies:
        counter.add(body)
    return RecallCounts(counter.calls, counter.count(counter.evicted), counter.count(counter.previewed))


class _RecallCounter:
    """Counts recalls while a journal is read. Not thread-safe."""

    def __init__(self, session: str) -> None:
        self.calls = 0
        self.evicted: dict[str, int] = {}  # by object: its number for the stress model
        self.previewed: dict[str, int] = {}
        self._recalled: set[str] = set()
        self._drawn: set[int] = set()
        self._stress = StressNeeds(session, drawn=True)

    def add(self, body: Body) -> None:
        """Count an entry."""
        match body:
            case RequestSent():
                self._drawn.update(self._stress.due(self.calls))
                self.calls += 1
            case PreviewEntry(paged=paged):
                for one in paged:
                    self._stress.draw_preview(self.calls, self.previewed.setdefault(one.object_id, self._number))
            case EpochEntry(paged=paged):
                for one in paged:
                    self._stress.draw(self.calls, self.evicted.setdefault(one.object_id, self._number))
            case RecallEntry(object_id=object_id):
                self._recalled.add(object_id)
            case NoteEntry(note=RecallNote(objects=objects)):
                self._recalled.update(objects)
            case _:
                pass

    def count(self, absent: Mapping[str, int]) -> RecallCount:
        """Return the count of texts that left in one way."""
        drawn = self._drawn.intersection(absent.values())
        return RecallCount(len(absent), len(self._recalled.intersection(absent)), len(drawn))

    @property
    def _number(self) -> int:
        return len(self.evicted) + len(self.previewed)
