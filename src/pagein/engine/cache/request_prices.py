"""The prices of a request: by model, day, the cache TTL of its breakpoints, and the use of a cache.

Rules of this file
------------------
1. For Messages the cache holds only the prompt before a breakpoint. A request without breakpoints neither reads nor
   writes the cache; with breakpoints in tools or system prompt alone, only these are cached, and nothing of the
   conversation. Other formats and other caches need no breakpoints.
2. A change is journaled before the request: the client stops setting breakpoints, or starts again. So the same branch
   has the same prices in every process. For a client that always sets breakpoints nothing is journaled.
3. A provider that reports tokens read or written is believed: then a proxy after pagein sets breakpoints, and the cache
   takes part. If the client sets breakpoints on the prompt prefix, these are reported too; then the report counts only
   if next to nothing was paid in full.
4. A client that stopped setting breakpoints may return to an entry in the cache. Its TTL is unknown, so the longest is
   assumed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from math import inf
from typing import Final

from pagein.engine.intake.message_chain import Transcript
from pagein.errors import BadSetting
from pagein.model.entries import Body, MessageEntry, NoteEntry, RequestSent
from pagein.model.journal_notes import CacheMarksNote, UsageNote
from pagein.model.messages import Message, Usage
from pagein.policy.economics.decision_prices import economics_of, economics_without_cache, waits_for_marks
from pagein.policy.economics.rewrite_cost import Economics
from pagein.providers.prices.price_lookup import prices
from pagein.providers.prices.token_prices import Prices

_NAMED: Final = b'"cache_control"'
_LONG: Final = (b'"ttl":"1h"', b'"ttl": "1h"')
_LOOKED_AT: Final = 4  # messages at the end to search for the client's last breakpoint
_FEW: Final = 64
"""Most tokens paid in full if a breakpoint is at the prompt's end."""
_MARK: Final = re.compile(rb'"cache_control"\s*:\s*\{')  # null sets no breakpoint


@dataclass(frozen=True, slots=True)
class CacheUse:
    """The cache use of a branch.

    marks: True if the client set breakpoints in the last request's conversation.
    latest: time of the last request that the cache may hold, in seconds since 1970; infinite if unknown.
    told: True if the provider reported cached tokens without a breakpoint of the client.
    front: True if the client set breakpoints on the prompt prefix alone.
    """

    marks: bool = True
    latest: float = -inf
    told: bool = False
    front: bool = False

    def holds(self, at: float | None, lifetime: float) -> bool:
        """Return whether the cache may hold anything of the branch at this time."""
        return self.latest > -inf and (at is None or at - self.latest <= lifetime)


FROM_THE_START: Final = CacheUse()


def has_marks(fields: Mapping[str, bytes], script: Transcript) -> bool:
    """Return whether the conversation of a request may be cached: False only for Messages without a breakpoint."""
    if not script.format.cache.needs_breakpoints or bytes(fields.get("cache_control", b"")).lstrip().startswith(b"{"):
        return True
    # a client's last breakpoint is usually near the end
    return any(_MARK.search(item.raw) for item in reversed(script.items[script.head :]))


def marks_front(fields: Mapping[str, bytes], script: Transcript) -> bool:
    """Return whether the prompt prefix of a request has a breakpoint."""
    front = (*(fields[name] for name in ("system", "tools") if name in fields), *script.raws[: script.head])
    return any(_MARK.search(part) for part in front)


def step(caching: CacheUse, body: Body) -> CacheUse:
    """Return the cache use after a further entry."""
    match body:
        case NoteEntry(note=CacheMarksNote(marks="front")):
            return replace(caching, marks=False, front=True)
        case NoteEntry(note=CacheMarksNote(marks=marks)):
            return replace(caching, marks=marks == "marked", front=False, told=caching.told and not caching.front)
        case RequestSent() if caching.marks:
            return replace(caching, latest=inf if body.moment is None else max(caching.latest, body.moment))
        case _ if caching.marks or (caching.told and not caching.front):
            return caching
        case MessageEntry(message=Message(usage=Usage() as usage)) | NoteEntry(note=UsageNote(usage=usage)):
            is_cached = usage.read + usage.written > 0
            return replace(caching, told=not caching.front or usage.fresh <= _FEW) if is_cached else caching
        case _:
            return caching


def economics_for(model: str, fields: Mapping[str, bytes], script: Transcript, at: float | None) -> Economics | None:
    """Return the prices of a request.

    None for a model without a price.
    """
    day = None if at is None else datetime.fromtimestamp(at, UTC).date()
    return _economics(model, day, asks_long(fields, script)) if model else None


def prices_without_cache(model: str, at: float | None, caching: CacheUse, *, front: bool = False) -> Economics | None:
    """Return the prices of a request without breakpoints in its conversation.

    None if the cache takes part anyway.

    caching: the cache use of the branch.
    front: True if the prompt prefix has breakpoints.
    """
    found = prices_for(model, at)
    if found is None or caching.told or not waits_for_marks(found):
        return None
    held = caching.holds(at, found.cache.long_ttl + found.cache.grace)
    return economics_without_cache(economics_of(found, long=True), held=held, front=front)


def prices_for(model: str, at: float | None) -> Prices | None:
    """Return the price row of a model on a day.

    None for a model without a price.
    """
    return _prices(model, None if at is None else datetime.fromtimestamp(at, UTC).date()) if model else None


def asks_long(fields: Mapping[str, bytes], script: Transcript) -> bool:
    """Return whether the client asks the cache to keep the end of a request for an hour."""
    marked = [item.raw for item in script.items[-_LOOKED_AT:] if _NAMED in item.raw]
    last = marked[-1] if marked else fields.get("cache_control", b"")
    return any(one in last for one in _LONG)


@lru_cache(maxsize=256)
def _prices(model: str, day: date | None) -> Prices | None:
    try:
        return prices(model, day)
    except BadSetting:
        return None


@lru_cache(maxsize=256)
def _economics(model: str, day: date | None, long: bool) -> Economics | None:  # noqa: FBT001 -- a cache key
    try:
        return economics_of(prices(model, day), long=long)
    except BadSetting:
        return None
