"""Evidence from pauses about the caches of providers, for all sessions of an engine (`policy.economics.cache_trust`).

A verdict is journaled twice: in the session whose pause showed it, and in a journal of its own (`VERDICTS`). That journal
also has what the choice of cache TTLs saved, and what sessions borrowed of it (`policy.economics.savings_reserve`). The
engine reads it before each loan, so that it knows the loans of other processes on the same store, and of itself before a
restart. A loan is not visible to them between its request and the answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Lock
from typing import Final, Protocol

from pagein.model.cache_notes import CacheSavingsNote, CacheVerdictNote
from pagein.model.entries import Entry, EntryId, NoteEntry
from pagein.policy.economics.cache_trust import TRIED_AGAIN, UNKNOWN, CacheTrust, trust_after
from pagein.policy.economics.savings_reserve import Draw, Exposure, SessionRequest, SharedSavings
from pagein.ports import JournalStore

VERDICTS: Final = "pagein.cache-verdicts"
"""Name of the session whose journal holds the verdicts."""
_DAY: Final = 86_400.0
_WORTH_STORING: Final = 10_000.0
"""BIT from which savings, or a change of a loan, are worth an entry; those below are lost when the process ends."""


class VerdictSession(Protocol):
    """The session whose journal holds the verdicts."""

    def note(self, note: CacheVerdictNote | CacheSavingsNote) -> EntryId:
        """Journal a verdict, or savings."""

    def keep(self) -> None:
        """Store it. Raises StoreError."""


class CacheEvidence:
    """The verdicts by model. Thread-safe.

    journals: the store with the journal of verdicts, which is read when the first of them is needed; None without a store.
    session: returns the session of that journal; None to store nothing.
    """

    def __init__(
        self,
        journals: JournalStore | None = None,
        session: Callable[[], VerdictSession] | None = None,
    ) -> None:
        self._journals = journals
        self._session = session
        self._lock = Lock()
        self._trusts: dict[str, CacheTrust] = {}
        self._savings = SharedSavings()
        self._unstored = 0.0  # the savings that are not stored yet
        self._lent: dict[str, float] = {}  # by session: the loan that is stored
        self._own: set[EntryId] = set()  # entries of this process, which it need not read again
        self._place = 0  # in the journal, up to which it was read

    def trust(self, model: str, at: float | None = None) -> CacheTrust:
        """Return the verdicts on a model's cache, as they stand at time `at`. Raises StoreError."""
        with self._lock:
            return self._known().get(model, UNKNOWN).at(at)

    def failed(self) -> Mapping[str, CacheTrust]:
        """Return the verdicts on the models with a practice that failed. Raises StoreError."""
        with self._lock:
            return {name: one for name, one in self._known().items() if "fails" in (one.hour, one.keep_alive)}

    def add(self, verdict: CacheVerdictNote) -> bool:
        """Add a verdict, and store a new verdict. Returns whether the verdict is new. Raises StoreError."""
        with self._lock:
            known = self._known()
            before = known.get(verdict.model, UNKNOWN).at(verdict.at)
            after = known[verdict.model] = _trust_with(before, verdict)
        if after != before and self._session is not None:
            self._store(self._session(), verdict)
        return after != before

    def lend(self, request: SessionRequest, before: SessionRequest, most: Exposure) -> float:
        """Return how much of the others' savings a session may risk, in BIT, and reserve the part that its request may take.

        Negative where others have borrowed of its own savings. Raises StoreError.

        before: the session's last request. most: the most that the request may expose.
        """
        with self._lock:
            self._known()
            now = request.at or 0.0
            savings = self._savings.at(now)
            reserve, draw = savings.reserve(most.own, now, before), most.draw()
            held = replace(draw, lent=min(draw.lent, max(0.0, reserve)))
            self._savings = savings.with_draw(request, held, before)
            return reserve

    def hold(self, request: SessionRequest, draw: Draw) -> None:
        """Reserve the part of the savings that a request may take, in place of its reservation so far."""
        with self._lock:
            self._savings = self._savings.with_draw(request, draw)

    def add_savings(self, saved: float, at: float, request: SessionRequest | None = None) -> None:
        """Add what the choice of TTLs saved with a request, or lost. Raises StoreError.

        Stored, with the loan of its session, once one of them is worth an entry.
        """
        with self._lock:
            self._known()
            self._savings = replace(self._savings, saved=self._savings.saved + saved)
            self._unstored += saved
            note = self._note_worth_storing(at, "" if request is None else request.session)
        if note is not None and self._session is not None:
            self._store(self._session(), note)

    def _note_worth_storing(self, at: float, session: str) -> CacheSavingsNote | None:
        draws = [one for request, one in self._savings.draws.items() if request.session == session]
        lent, until = sum(one.lent for one in draws), max((one.until for one in draws), default=0.0)
        if max(abs(self._unstored), abs(lent - self._lent.get(session, 0.0))) < _WORTH_STORING:
            return None
        saved, self._unstored = self._unstored, 0.0
        self._lent[session] = lent
        return CacheSavingsNote(saved, at, session, lent, until) if session else CacheSavingsNote(saved, at)

    def _store(self, session: VerdictSession, note: CacheVerdictNote | CacheSavingsNote) -> None:
        name = session.note(note)
        with self._lock:
            self._own.add(name)
        session.keep()

    def _known(self) -> dict[str, CacheTrust]:
        """Return the verdicts, after reading what other processes have journaled."""
        for place, one in () if self._journals is None else self._journals.news(VERDICTS, self._place):
            self._place = place
            if isinstance(one, Entry) and one.id not in self._own:
                self._take(one)
        return self._trusts

    def _take(self, entry: Entry) -> None:
        match entry.body:
            case NoteEntry(note=CacheVerdictNote() as seen):
                self._trusts[seen.model] = _trust_with(self._trusts.get(seen.model, UNKNOWN).at(seen.at), seen)
            case NoteEntry(note=CacheSavingsNote() as seen):
                savings = replace(self._savings, saved=self._savings.saved + seen.saved)
                elsewhere = SessionRequest(seen.session, None)
                self._savings = savings.with_draw(elsewhere, Draw(0.0, seen.lent, seen.until), elsewhere)
            case _:
                pass


def _trust_with(trust: CacheTrust, verdict: CacheVerdictNote) -> CacheTrust:
    return trust_after(trust, verdict.practice, held=verdict.held, at=verdict.at)


def words_of(verdict: CacheVerdictNote, trust: CacheTrust) -> str:
    """Return a verdict and its consequence in a sentence. trust: the verdicts on the model by now."""
    if verdict.practice == "renewal":
        return f"{verdict.model}: an entry of {verdict.read:,.0f} tokens was read that only renewal kept, so rewrites rest on it."
    what = (
        "the cache entry of a keep-alive request" if verdict.practice == "keep_alive" else "a cache entry of one hour"
    )
    read = f"{verdict.read:,.0f} of {verdict.anchored:,.0f} tokens were read after a pause"
    if verdict.held:
        return f"{verdict.model}: {what} outlived a pause ({read}), so the choice of cache lifetimes rests on facts."
    told = f"{verdict.model}: {what} did not outlive a pause ({read})"
    if (trust.keep_alive if verdict.practice == "keep_alive" else trust.hour) != "fails":
        return f"{told}. Others did before, so the next pause decides whether this was a single loss."
    stops = (
        "no more keep-alive requests are sent"
        if verdict.practice == "keep_alive"
        else "its cache lifetimes are the client's again"
    )
    return f"{told}, so {stops} for this model, for {TRIED_AGAIN / _DAY:.0f} days."
