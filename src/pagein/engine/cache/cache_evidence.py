"""Evidence from pauses about the caches of providers, for all sessions of an engine (`policy.economics.cache_trust`).

A verdict is journaled twice: in the session whose pause showed it, and in a journal of its own (`VERDICTS`), from which
the engine reads all of them after a restart.
"""

from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Final, Protocol

from pagein.model.cache_notes import CacheSavingsNote, CacheVerdictNote
from pagein.model.entries import Entry, NoteEntry
from pagein.model.messages import UnreadableLine
from pagein.policy.economics.cache_lifetimes import reserve_of
from pagein.policy.economics.cache_trust import TRIED_AGAIN, UNKNOWN, CacheTrust, trust_after
from pagein.ports import JournalStore

VERDICTS: Final = "pagein.cache-verdicts"
"""Name of the session whose journal holds the verdicts."""
_DAY: Final = 86_400.0
_WORTH_STORING: Final = 10_000.0
"""BIT from which savings are worth an entry; savings below are lost when the process ends."""


class VerdictSession(Protocol):
    """The session whose journal holds the verdicts."""

    def note(self, note: CacheVerdictNote | CacheSavingsNote) -> object:
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
        self._trusts: dict[str, CacheTrust] | None = None
        self._saved = 0.0  # BIT saved by the choice of TTLs, over all sessions
        self._unstored = 0.0  # the part of it that is not stored yet

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
            session = self._session()
            session.note(verdict)
            session.keep()
        return after != before

    def reserve(self, own: float) -> float:
        """Return the BIT that a session may expose because other sessions saved more. Raises StoreError.

        own: what the session itself saved by the choice of TTLs, in BIT.
        """
        with self._lock:
            self._known()
            return reserve_of(self._saved - max(0.0, own))

    def add_savings(self, saved: float, at: float) -> None:
        """Add what the choice of TTLs saved with a request, or lost; stored once it is worth an entry. Raises StoreError."""
        with self._lock:
            self._known()
            self._saved += saved
            self._unstored += saved
            told = self._unstored if abs(self._unstored) >= _WORTH_STORING else 0.0
            self._unstored -= told
        if told and self._session is not None:
            session = self._session()
            session.note(CacheSavingsNote(told, at))
            session.keep()

    def _known(self) -> dict[str, CacheTrust]:
        if self._trusts is None:
            entries = () if self._journals is None else tuple(self._journals.entries(VERDICTS))
            self._trusts, self._saved = trusts_of(entries), savings_of(entries)
        return self._trusts


def trusts_of(entries: Iterable[Entry | UnreadableLine]) -> dict[str, CacheTrust]:
    """Return the verdicts in a journal, by model."""
    found: dict[str, CacheTrust] = {}
    for one in entries:
        match one:
            case Entry(body=NoteEntry(note=CacheVerdictNote() as seen)):
                found[seen.model] = _trust_with(found.get(seen.model, UNKNOWN).at(seen.at), seen)
            case _:
                pass
    return found


def savings_of(entries: Iterable[Entry | UnreadableLine]) -> float:
    """Return the BIT that the choice of TTLs saved, by a journal."""
    notes = (one.body.note for one in entries if isinstance(one, Entry) and isinstance(one.body, NoteEntry))
    return sum(note.saved for note in notes if isinstance(note, CacheSavingsNote))


def _trust_with(trust: CacheTrust, verdict: CacheVerdictNote) -> CacheTrust:
    return trust_after(trust, verdict.practice, held=verdict.held, at=verdict.at)


def words_of(verdict: CacheVerdictNote, trust: CacheTrust) -> str:
    """Return a verdict and its consequence in a sentence. trust: the verdicts on the model by now."""
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
