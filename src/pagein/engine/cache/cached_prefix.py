"""The part of a branch in the provider's cache, and its journal note.

It is journaled after each answered request, so another process can continue from it.
"""

from dataclasses import dataclass

from pagein.model.entries import Body, NoteEntry
from pagein.model.journal_notes import CachedPrefixNote
from pagein.policy.economics.cache_keepalive import CacheLease


@dataclass(frozen=True, slots=True)
class CachedPrefix:
    """The part of a branch in the provider's cache.

    lease: its size and expiry.
    kept: keep-alive requests so far.
    spent: their cost in BIT.
    place: message at which the anchor ends.
    left: the place of the anchor in the cache of the model used before this one; -1 without one.
    left_until: expiry of the anchor at `left`, in seconds.
    bridged: True if the last request of all was a keep-alive request.
    """

    lease: CacheLease
    kept: int = 0
    spent: float = 0.0
    place: int = -1
    left: int = -1
    left_until: float = float("-inf")
    bridged: bool = False


def note_of(held: CachedPrefix) -> CachedPrefixNote:
    """Return the note of a cached prefix."""
    one = held.lease
    return CachedPrefixNote(
        one.lifetime,
        one.saved,
        one.sent,
        one.held,
        one.anchored,
        _json_time(one.until),
        one.whole,
        one.returns,
        held.kept,
        held.spent,
        held.place,
        _json_time(one.elsewhere),
        held.left,
        _json_time(held.left_until),
        _json_time(one.lingers),
        one.feared,
        one.calls,
        one.stops,
        one.short,
        one.mixed,
        held.bridged,
    )


def _json_time(time: float) -> float | None:
    """Return a time as a JSON value; None for minus infinity."""
    return time if time > float("-inf") else None


def _time(told: float | None) -> float:
    return float("-inf") if told is None else told


def step(held: CachedPrefix | None, body: Body) -> CachedPrefix | None:
    """Return the cached prefix after a further entry.

    None before the first record.
    """
    match body:
        case NoteEntry(note=CachedPrefixNote() as note):
            return _prefix_of(note)
        case _:
            return held


def _prefix_of(one: CachedPrefixNote) -> CachedPrefix:
    until, elsewhere = _time(one.until), _time(one.elsewhere)
    of_entry = (one.lifetime, one.saved, one.sent, one.held, one.anchored, until, one.whole, one.returns)
    of_pauses = (one.feared, one.calls, one.stops, one.short, one.mixed)
    lease = CacheLease(*of_entry, elsewhere, _time(one.lingers), *of_pauses)
    return CachedPrefix(lease, one.kept, one.spent, one.place, one.left, _time(one.left_until), one.bridged)
