"""The compared recordings, with the sizes that `pagein replay` gives them for the same paths."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pagein.providers.prices.price_lookup import Prices
from pagein.replay.prompt.billable_session import BillableSession, record
from pagein.replay.prompt.model_calls import RecordedCalls, gather
from pagein.replay.prompt.prompt_sizes import SourceFacts, session_facts, source_facts
from pagein.replay.prompt.token_calibration import Sample, chars_per_token, samples
from pagein.replay.readers import SkippedSource, find, read_source
from pagein.replay.record.recorded_session import SessionHead


@dataclass(frozen=True, slots=True)
class Session:
    """A recorded session, and what the sessions beside it tell about its source."""

    head: SessionHead
    calls: RecordedCalls
    facts: SourceFacts
    chars_per_token: float

    @property
    def name(self) -> str:
        """As the tables show it."""
        whole = self.head.id
        short = whole if len(whole) <= _SHORT else f"{whole[:8]}{'-sub' if self.head.parent else ''}"
        return f"{self.head.source} {short}"

    def under(self, prices: Prices) -> BillableSession:
        """The recording, ready to be billed by a price table."""
        return record(self.head, self.calls, self.facts, self.chars_per_token, prices)


_SHORT = 12


def load(paths: Sequence[Path]) -> tuple[list[Session], list[SkippedSource]]:
    """Every session with a model call in these paths, and what could not be used."""
    skipped: list[SkippedSource] = []
    found = list(_read(paths, skipped))
    ratios = _ratios(found)
    by_source: dict[str, list[tuple[SessionHead, RecordedCalls]]] = defaultdict(list)
    for head, calls in found:
        by_source[head.source].append((head, calls))
    sessions: list[Session] = []
    for source, some in by_source.items():
        told = [
            (session_facts(calls, is_sub=head.parent is not None), ratios[source, model_of(head, calls)])
            for head, calls in some
        ]
        facts = source_facts(told)
        sessions += [Session(head, calls, facts, ratios[source, model_of(head, calls)]) for head, calls in some]
    return sessions, skipped


def model_of(head: SessionHead, calls: RecordedCalls) -> str:
    """The model that answered first."""
    return next((call.model for call in calls.calls if call.model), next(iter(head.models), ""))


def _read(paths: Sequence[Path], skipped: list[SkippedSource]) -> Iterator[tuple[SessionHead, RecordedCalls]]:
    for source in find(paths):
        if isinstance(source, SkippedSource):
            skipped.append(source)
            continue
        for session in read_source(source):
            calls = gather(session.entries)
            if calls.calls:
                yield session.head, calls


def _ratios(found: Sequence[tuple[SessionHead, RecordedCalls]]) -> dict[tuple[str, str], float]:
    sampled: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for head, calls in found:
        sampled[head.source, model_of(head, calls)].extend(samples(calls))
    return {key: chars_per_token(key[1], some) for key, some in sampled.items()}
