"""A store whose sessions expose what they saved by cache TTLs and borrow from one another, at a provider that keeps its word.

Terms, leases and loans are those of the engine. The provider's cache and both bills are counted here, by rules A3, A5 and A6
and nothing else: an entry ends where a breakpoint was, and a read renews all entries in front of it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.engine.cache.branch_leases import Leases
from pagein.engine.cache.cache_evidence import CacheEvidence
from pagein.engine.cache.cache_ttl import TtlQuery, TtlTerms, prefix_after_answer
from pagein.engine.cache.cached_prefix import note_of
from pagein.engine.log.journal import Journal
from pagein.engine.log.state import START, State
from pagein.model.entries import Body, EntryId, NoteEntry, RequestSent
from pagein.model.messages import Usage
from pagein.policy.economics.rewrite_cost import CAUTION, Account, Moment

MODEL: Final = "claude-opus-4-6"
SHARE: Final = 0.02
_READ, _WRITE, _WRITE_LONG = 0.1, 1.25, 2.0
SHORT, LONG = 300.0, 3600.0


@dataclass(frozen=True, slots=True)
class Step:
    """A request. gap: seconds since the request of any session before. said, told: tokens of the model's last answer and of the news behind it.

    wastes: share of the bankroll that a rewrite spends for nothing. rewrites: share of the window that a rewrite writes again, for nothing,
    where the bankroll covers it. is_silent: whether the answer's usage is not reported.
    """

    session: int
    gap: float
    said: int
    told: int
    wastes: float = 0.0
    rewrites: float = 0.0
    is_silent: bool = False


@dataclass(slots=True)
class Cache:
    """What the provider holds of a prompt that only grows. entries: end in tokens, expiry, TTL."""

    entries: list[tuple[float, float, float]] = field(default_factory=list)

    def serve(self, now: float, marks: list[tuple[float, float]]) -> tuple[float, float, float]:
        """Return the tokens read, written for the short TTL, written for the long one. marks: end and TTL of each breakpoint."""
        alive = [one for one in self.entries if now <= one[1]]
        read = max((end for end, _, _ in alive), default=0.0)
        self.entries = [(end, now + ttl, ttl) for end, _, ttl in alive]
        written, place = {SHORT: 0.0, LONG: 0.0}, read
        for end, ttl in marks:
            if end > place:
                written[ttl] += end - place
                self.entries.append((end, now + ttl, ttl))
                place = end
        return read, written[SHORT], written[LONG]


def _bill(served: tuple[float, float, float]) -> float:
    read, short, long = served
    return _READ * read + _WRITE * short + _WRITE_LONG * long


def _step(state: State, body: Body) -> State:
    match body:
        case RequestSent(moment=at, bill=bill, saved=saved):
            return replace(state, sent_at=at, account=Account(bill, saved))
        case _:
            return state


class StoreSession:
    """One session, with its bills by pagein and by append-only."""

    def __init__(self, name: str, evidence: CacheEvidence, *, long: bool) -> None:
        self.journal: Journal[State] = Journal(START, _step)
        self.leases = Leases(self.journal, evidence, name)
        self.long, self.size, self.count = long, 0.0, 0
        self.was_short = False
        self.cache, self.other = Cache(), Cache()
        self.ours = self.theirs = self.wasted = self.most_lent = 0.0
        self.leaf: EntryId | None = None

    def send(self, now: float, step: Step) -> None:
        """Send a request."""
        asked = LONG if self.long else SHORT
        last, said = self.size, float(step.said if self.size else 0)
        self.size += said + step.told
        moment = Moment(now, None, round(self.size), round(self.size - last), round(said))
        query = TtlQuery(MODEL, self.long, 0.0, self.was_short, documented=True)
        terms = self.leases.terms(self.leaf, self.leaf, query, moment, anew=False)
        assert terms is not None
        self.most_lent = max(self.most_lent, terms.reserve)
        bankroll = terms.before.lease.saved - self.wasted + SHARE * self.theirs + min(0.0, terms.reserve)
        is_lost = terms.before.lease.lost_at(now, asked) > 0  # a rewrite is free then
        spent = 0.0 if is_lost else step.wastes * max(0.0, min(bankroll, (_WRITE_LONG - _READ) * self.size))
        again = 0.0 if spent else step.rewrites * last
        is_short, paid = self._rewrite(terms, bankroll, last, last - again)
        terms = terms.settle(rewritten=spent > 0 or paid is not None, short=is_short)
        marks = [(self.size, terms.asking)]
        if terms.exposable:
            terms = terms.split_at(self.count - 1)
            marks = [(self.size - min(terms.behind, terms.exposable), LONG), (self.size, SHORT)]
        self.theirs += _bill(self.other.serve(now, [(self.size, asked)]))
        read, short, long = served = self.cache.serve(now, marks)
        self.wasted += spent + (paid or 0.0)
        self.ours += _bill(served) + spent
        self.count += 2
        self.was_short = self.long and terms.asking == SHORT and terms.split < 0
        self._journal(RequestSent(0, self.count, now, self.ours, -self.wasted))
        if step.is_silent:
            return
        entry = self.leaf
        usage = Usage(fresh=0, read=round(read), written=round(short + long), written_1h=round(long))
        held = prefix_after_answer(terms, usage, rewritten=spent > 0 or paid is not None, messages=self.count)
        self._journal(NoteEntry.of(note_of(held)))
        assert entry is not None
        self.leases.share_savings(held, terms, MODEL, entry)

    def _rewrite(self, terms: TtlTerms, bankroll: float, last: float, first: float) -> tuple[bool, float | None]:
        """Change the window from token `first` on, for nothing, if the bankroll covers that. Return whether for the short TTL, and the cost.

        last: tokens of the last request.
        """
        if first >= last:
            return False, None
        place = max((end for end, until, _ in self.cache.entries if end <= first and terms.at <= until), default=0.0)
        lease = terms.before.lease
        is_cold = lease.sent is not None and not lease.alive(terms.at)  # without any answer the client's own TTL counts
        cost = 0.0 if is_cold else (_WRITE - _READ) * (last - place)
        is_short = terms.rewrite is not None and terms.rewrite.is_covered(cost, 0.0)
        if self.long and not is_short and not is_cold:
            cost = (_WRITE_LONG - _READ) * (last - place)
        if CAUTION * cost > bankroll:
            return False, None
        self.cache.entries = [one for one in self.cache.entries if one[0] <= place]
        return is_short, cost

    def _journal(self, body: Body) -> None:
        self.leaf = self.journal.append(self.leaf, body).id


class SavingsStore:
    """The sessions of one store. evidence: returns what the process of a request knows of the store."""

    def __init__(self, evidence: Callable[[], CacheEvidence]) -> None:
        self._evidence = evidence
        self.sessions: dict[int, StoreSession] = {}
        self.now = 1_800_000_000.0

    def run(self, step: Step, *, long: bool = True) -> StoreSession:
        """Send a request, and return its session, which begins with its first request."""
        self.now += step.gap + 0.001  # no session sends two requests at once
        if step.session not in self.sessions:
            self.sessions[step.session] = StoreSession(str(step.session), self._evidence(), long=long)
        self.sessions[step.session].send(self.now, step)
        return self.sessions[step.session]

    @property
    def excess(self) -> float:
        """What all sessions cost beyond 1.02 times append-only, in BIT."""
        return sum(one.ours - (1 + SHARE) * one.theirs for one in self.sessions.values())
