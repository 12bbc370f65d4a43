"""The ages of the cache entries on each branch, as requests and reported usage tell (`policy.economics.written_parts`)."""

from dataclasses import dataclass, replace
from typing import Final

from pagein.engine.cache.cache_inputs import NO_HEAD, is_switched, prices_for
from pagein.engine.log.journal import Fold, Journal
from pagein.engine.log.state import State
from pagein.model.cache_notes import CacheVerdictNote
from pagein.model.entries import Body, NoteEntry, RequestSent
from pagein.model.journal_notes import PrefixDigests, UsageNote
from pagein.model.messages import Usage
from pagein.policy.economics.written_parts import NOTHING_WRITTEN, WrittenParts


@dataclass(frozen=True, slots=True)
class BranchEntries:
    """The cache entries of a branch.

    head: the prompt prefix of the last request. at: time of that request; None if unknown.
    is_open: whether no usage was reported for that request yet.
    """

    written: WrittenParts = NOTHING_WRITTEN
    head: PrefixDigests = NO_HEAD
    at: float | None = None
    is_open: bool = False

    def sure_from(self, head: PrefixDigests, now: float) -> float:
        """Return the least tokens in front of a change with which a request now surely reads an entry.

        head: the prompt prefix of that request.
        """
        is_known = not self.is_open and not is_switched(self.head, head)
        return (self.written if is_known else NOTHING_WRITTEN).sure_from(now)

    def renewal_shown(self, usage: Usage) -> CacheVerdictNote | None:
        """Return the renewal of an entry that the answer of the last request shows; None if it shows none."""
        read = float(usage.read)
        if self.at is None or not self.written.shows_renewal(self.at, read):
            return None
        return CacheVerdictNote(self.head.model, "renewal", held=True, at=self.at, anchored=read, read=read)


_UNSENT: Final = BranchEntries()


def branch_entries(journal: Journal[State]) -> Fold[BranchEntries]:
    """Return the cache entries at each entry of a journal."""
    return Fold(journal, _UNSENT, _follow, "entries", takes=(PrefixDigests, RequestSent, UsageNote))


def _follow(seen: BranchEntries, body: Body) -> BranchEntries:
    match body:
        case NoteEntry(note=PrefixDigests() as head):
            return replace(seen, written=NOTHING_WRITTEN if is_switched(seen.head, head) else seen.written, head=head)
        case RequestSent(moment=at):
            # a request without a report may have changed the prompt in front of the entries
            return replace(seen, written=NOTHING_WRITTEN if seen.is_open else seen.written, at=at, is_open=True)
        case NoteEntry(note=UsageNote(usage=usage)):
            return replace(seen, written=_written_after(seen, usage), is_open=False)
        case _:
            return seen


def _written_after(seen: BranchEntries, usage: Usage) -> WrittenParts:
    price = prices_for(seen.head.model, seen.at)
    if price is None or price.cache.model != "breakpoints" or seen.at is None:
        return NOTHING_WRITTEN
    ttl = price.cache.long_ttl if usage.written_1h == usage.written else price.cache.ttl
    return seen.written.after(seen.at, float(usage.read), float(usage.written), ttl)
