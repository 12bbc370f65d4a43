"""The ages of a prompt's cache entries, and what they show of a provider that may not renew the entries that are read.

Anthropic documents that a read renews an entry, and those in front of it (rules A5 and A6). Behind another address this
may not hold. It stays unseen while the prompt only grows, because the youngest entry is read. But a rewrite reads an old
entry in front of its first change; if that one has ended, the whole prompt is written again.

So until such a provider has shown that it renews entries, a rewrite is certain to read only an entry that is younger
than its TTL (`WrittenParts.sure_from`). It has shown it once an entry was read that was written longer ago than its TTL
(`WrittenParts.shows_renewal`).

Sizes are in tokens as the provider counts, times in seconds.
"""

from dataclasses import dataclass
from math import inf
from typing import Final

from pagein.policy.economics.cache_keepalive import LATE, MARGIN

_APART: Final = 1 / 16
"""Share of the TTL that lies between two remembered parts, so that few are remembered however fast requests follow."""


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """A part of the prompt that one request wrote to the cache.

    at: time of the request. until: time until which its entries live, even if no read renews them.
    start: tokens in front of it; 0 if the request wrote the whole prompt. end: tokens up to its last entry.
    """

    at: float
    until: float
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class WrittenParts:
    """The parts of the prompt whose age is known, oldest first.

    least: tokens up to the oldest entry that this session wrote; those of the prompt prefix alone may be others'.
    """

    parts: tuple[WrittenPart, ...] = ()
    least: float = 0.0

    def after(self, at: float, read: float, written: float, ttl: float) -> "WrittenParts":
        """Return the parts after a request at a time, from the tokens that it read and wrote.

        ttl: TTL of what it wrote.
        """
        kept = tuple(one for one in self.parts if one.end <= read)
        if not written:
            return WrittenParts(kept, self.least if kept else 0.0)
        if kept and at - kept[-1].at < _APART * ttl:
            return WrittenParts(kept, self.least)
        end = read + written
        added = WrittenPart(at, at + ttl, end if read else 0.0, end)
        old = [one for one in kept if one.until + LATE < at]
        return WrittenParts((*old[-1:], *kept[len(old) :], added), self.least if kept else end)

    def sure_from(self, now: float) -> float:
        """Return the least tokens in front of a change with which a request now surely reads an entry."""
        return min((one.start for one in self.parts if now <= one.until - MARGIN), default=inf)

    def shows_renewal(self, now: float, read: float) -> bool:
        """Return whether a request now read an entry that would have ended if reads did not renew it."""
        if read < self.least:
            return False
        last = next((one for one in self.parts if read <= one.end), None)
        return last is not None and now > last.until + LATE


NOTHING_WRITTEN: Final = WrittenParts()
