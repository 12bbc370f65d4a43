"""Whether the cache of a provider that waits for marks takes part in a conversation, by what its client marked so far on the branch.

Rules of this file
------------------
1. Of Messages the cache holds only what stands in front of a mark. A request without any is neither read from it nor written to it; of one
   with marks in its tools or its system prompt alone, these are, and nothing of the conversation. Other formats need no marks, nor do other
   caches.
2. What is not as it was is journaled before the request: that a client marks nothing of its conversation, and that it marks again. So the
   same branch has the same prices, whoever goes on with it. Of a client that always marks nothing is journaled.
3. A provider that tells of tokens it read or wrote is believed: then something between us and it marks, and the cache takes part. Where the
   client marks what stands in front, that is told of too; so there it counts only where next to nothing was paid in full.
4. A client that stopped marking may go back to what the cache still holds. Nobody knows for how long that is kept, so it is the longest.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from pagein.engine.intake.message_chain import Transcript
from pagein.engine.log.reply_notes import usage_in
from pagein.model.entries import Body, MessageEntry, NoteEntry, RequestSent

KIND: Final = "request.caching"
_WORDS: Final = {True: "marked", False: "unmarked"}
_FRONT: Final = "front"
_FEW: Final = 64
"""Tokens paid in full that tell of a mark at the end: what stands behind one is next to nothing."""
_MARK: Final = re.compile(rb'"cache_control"\s*:\s*\{')  # null is no mark


@dataclass(frozen=True, slots=True)
class CacheUse:
    """What is known of a branch. marks: whether its client marked the conversation of the last request; front: whether it marked what stands
    in front of that alone. latest: when the last one went out that the cache may hold, seconds since 1970, infinite where nobody knows.
    told: whether the provider told of a cache that holds what was not marked.
    """

    marks: bool = True
    latest: float = -inf
    told: bool = False
    front: bool = False

    def holds(self, at: float | None, lifetime: float) -> bool:
        """Whether the cache may hold anything of the branch at this time."""
        return self.latest > -inf and (at is None or at - self.latest <= lifetime)


FROM_THE_START: Final = CacheUse()


def has_marks(fields: Mapping[str, bytes], script: Transcript) -> bool:
    """Whether the conversation of a request may be cached: always but for one of Messages that has no mark in it."""
    if script.api != "anthropic" or bytes(fields.get("cache_control", b"")).lstrip().startswith(b"{"):
        return True
    # the client's last mark stands at the end, where there is one
    return any(_MARK.search(item.raw) for item in reversed(script.items[script.head :]))


def marks_front(fields: Mapping[str, bytes], script: Transcript) -> bool:
    """Whether a mark stands in front of the conversation of a request."""
    front = (*(fields[name] for name in ("system", "tools") if name in fields), *script.raws[: script.head])
    return any(_MARK.search(part) for part in front)


def note_before_request(caching: CacheUse, *, marks: bool, front: bool) -> str | None:
    """What is to be journaled before a request, None for nothing. front: whether it has marks in front of its conversation alone."""
    return None if (marks, front) == (caching.marks, caching.front) else _FRONT if front else _WORDS[marks]


def step(caching: CacheUse, body: Body) -> CacheUse:
    """What is known after one more entry."""
    match body:
        case NoteEntry(kind, data) if kind == KIND and data in _WORDS.values():
            return replace(caching, marks=data == _WORDS[True], front=False, told=caching.told and not caching.front)
        case NoteEntry(kind, data) if kind == KIND and data == _FRONT:
            return replace(caching, marks=False, front=True)
        case RequestSent() if caching.marks:
            return replace(caching, latest=inf if body.moment is None else max(caching.latest, body.moment))
        case _ if caching.marks or (caching.told and not caching.front):
            return caching
        case _:
            usage = body.message.usage if isinstance(body, MessageEntry) else usage_in(body)
            if usage is None or not usage.read + usage.written:
                return caching
            return replace(caching, told=not caching.front or usage.fresh <= _FEW)
