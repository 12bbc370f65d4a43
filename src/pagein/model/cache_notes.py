"""Journal notes about providers' caches: the verdicts after pauses, and the savings of the chosen cache TTLs."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

CachePractice: TypeAlias = Literal["hour", "keep_alive", "renewal"]
"""What the choice of cache TTLs rests on (`policy.economics.cache_trust`)."""


@dataclass(frozen=True, slots=True)
class CacheVerdictNote:
    """An answer showed whether the provider keeps a cache entry that pagein rests on.

    model: name of the model.
    practice: `hour`, an entry of one hour after a prefix of five minutes; `keep_alive`, that of a keep-alive request;
        `renewal`, an entry older than its TTL.
    held: whether the request read the entry, the first two after a pause.
    at: time of that request, in seconds since 1970.
    anchored, read: tokens of the entry, and tokens read.
    """

    model: str
    practice: CachePractice
    held: bool
    at: float
    anchored: float = 0.0
    read: float = 0.0


@dataclass(frozen=True, slots=True)
class CacheMissNote:
    """The request before read less from the provider's cache than the call before had left there, or the provider says so.

    cause, who: the reason as a word, and the responsible party, as in `providers.caches.cache_doctor`; "" if only the
        provider tells of a miss.
    tokens: number of tokens missed.
    words: the reason as a sentence.
    told: the provider's own reason, in its words; "" if it told none.
    """

    cause: str
    who: str
    tokens: int
    words: str = ""
    told: str = ""


@dataclass(frozen=True, slots=True)
class CacheSavingsNote:
    """What the choice of cache TTLs saved in some answered requests of the store's sessions.

    saved: BIT, less losses and keep-alive requests; negative for a net loss.
    at: time of the last of these requests, in seconds since 1970.
    session: the session whose pause may take `lent` of the others' savings, in BIT, until the time `until`; "" for none.
    """

    saved: float
    at: float = 0.0
    session: str = ""
    lent: float = 0.0
    until: float = 0.0
