"""Count the recalls of evicted texts in a store's sessions, beside the recalls that the stress model assumes.

A replay charges drawn recalls (`replay.policies.stress_needs`), because a recording cannot show every need. A store
shows what models really asked for. Both are priced as a replay prices a recall: one more request that reads the prompt,
and the recalled text, written once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pagein.model.entries import Body, EpochEntry, NoteEntry, PagedOut, PreviewEntry, RecallEntry, RequestSent
from pagein.model.journal_notes import FurtherUsageNote, PrefixDigests, RecallNote, UsageNote
from pagein.model.messages import Usage
from pagein.providers.prices.price_lookup import cost, newest_prices
from pagein.replay.policies.ledger import RECALL_OUTPUT, SLICE_TOKENS
from pagein.replay.policies.stress_needs import StressNeeds


@dataclass(frozen=True, slots=True)
class RecallCount:
    """Recalls of texts evicted in the same way.

    absent: number of evicted texts. recalled: number of texts that a tool recalled while they were absent.
    drawn: number of texts whose recall the stress model assumes.
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
    usd: their bill in dollars, without calls of unknown price. recalled_usd, drawn_usd: cost of the recalls, and of the assumed
    recalls.
    """

    calls: int = 0
    evicted: RecallCount = RecallCount()
    previewed: RecallCount = RecallCount()
    usd: float = 0.0
    recalled_usd: float = 0.0
    drawn_usd: float = 0.0

    def __add__(self, other: "RecallCounts") -> "RecallCounts":
        """Return the sum of the counts of two sessions."""
        return RecallCounts(
            self.calls + other.calls,
            self.evicted + other.evicted,
            self.previewed + other.previewed,
            self.usd + other.usd,
            self.recalled_usd + other.recalled_usd,
            self.drawn_usd + other.drawn_usd,
        )


def recall_counts(session: str, bodies: Iterable[Body]) -> RecallCounts:
    """Count over the entries of a session's journal, in the order of the journal.

    session: its name, from which the stress model draws.
    """
    counter = _RecallCounter(session)
    for body in bodies:
        counter.add(body)
    counter.charge()
    evicted, previewed = counter.count(counter.evicted), counter.count(counter.previewed)
    return RecallCounts(counter.calls, evicted, previewed, counter.usd, counter.recalled_usd, counter.drawn_usd)


class _RecallCounter:
    """Counts and prices recalls while a journal is read. Not thread-safe."""

    def __init__(self, session: str) -> None:
        self.calls = 0
        self.evicted: dict[str, int] = {}  # by object: its number for the stress model
        self.previewed: dict[str, int] = {}
        self.usd = self.recalled_usd = self.drawn_usd = 0.0
        self._tokens: dict[str, int] = {}
        self._model = ""
        self._usage = Usage()
        self._recalled: set[str] = set()
        self._drawn: set[int] = set()
        self._due: list[int] = []  # drawn for the call whose usage comes next
        self._asked: list[str] = []  # recalled since the last usage
        self._stress = StressNeeds(session, drawn=True)

    def add(self, body: Body) -> None:
        """Count an entry."""
        match body:
            case RequestSent():
                self._due += self._stress.due(self.calls)
                self.calls += 1
            case PreviewEntry(paged=paged):
                for one in paged:
                    self._stress.draw_preview(self.calls, self._number_of(one, self.previewed))
            case EpochEntry(paged=paged):
                for one in paged:
                    self._stress.draw(self.calls, self._number_of(one, self.evicted))
            case RecallEntry(object_id=object_id):
                self._recall((object_id,))
            case NoteEntry(note=RecallNote(objects=objects)):
                self._recall(objects)
            case NoteEntry(note=PrefixDigests(model=model)):
                self._model = model or self._model
            case NoteEntry(note=UsageNote() | FurtherUsageNote() as told):
                self._bill(told)
            case _:
                pass

    def _bill(self, told: UsageNote | FurtherUsageNote) -> None:
        self.usd += self._dollars(told.usage)
        if isinstance(told, UsageNote):
            self._usage = told.usage
            self.charge()

    def charge(self) -> None:
        """Price the recalls since the last reported usage."""
        self._drawn.update(self._due)
        by_number = {number: one for kind in (self.evicted, self.previewed) for one, number in kind.items()}
        self.drawn_usd += sum(self._price(by_number[one]) for one in self._due)
        self.recalled_usd += sum(map(self._price, self._asked))
        self._due, self._asked = [], []

    def count(self, absent: Mapping[str, int]) -> RecallCount:
        """Return the count of texts that left in one way."""
        drawn = self._drawn.intersection(absent.values())
        return RecallCount(len(absent), len(self._recalled.intersection(absent)), len(drawn))

    def _recall(self, objects: Iterable[str]) -> None:
        self._recalled.update(objects)
        self._asked += [one for one in objects if one in self._tokens]

    def _price(self, object_id: str) -> float:
        text = round(min(SLICE_TOKENS, self._tokens[object_id]))
        return self._dollars(Usage(read=self._usage.prompt, written=text, output=round(RECALL_OUTPUT)))

    def _dollars(self, usage: Usage) -> float:
        """Return a price in dollars; 0 for a model without one."""
        paid = newest_prices(self._model)
        return 0.0 if paid is None else paid.usd(cost(usage, paid, None)) or 0.0

    def _number_of(self, one: PagedOut, absent: dict[str, int]) -> int:
        self._tokens[one.object_id] = one.tokens
        return absent.setdefault(one.object_id, len(self.evicted) + len(self.previewed))
