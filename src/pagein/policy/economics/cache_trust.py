"""Trust in a provider's cache: whether the first observed pauses of a model support chosen cache TTLs.

Three practices rest on documented behaviour that an upstream may lack (`CachePractice`):

- `hour`: an anchor, one entry with the long TTL after a prefix with the short one, outlives a pause;
- `keep_alive`: so does the anchor of a keep-alive request, because the request read the window in time;
- `renewal`: a read renews an entry, so that a rewrite finds the old entries in front of it (`policy.economics.written_parts`).

The first request after a pause between the two TTLs shows the first two: by then only the anchor can be read. A practice that failed
is not used for the model for `TRIED_AGAIN`. A keep-alive request that held proves both practices, an anchor that failed disproves
both. While nothing is known, a session buys one anchor, and one keep-alive request in an hour is on trial. So a provider
that keeps neither costs the price of one.
"""

from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from pagein.model.cache_notes import CachePractice
from pagein.policy.economics.cache_keepalive import LATE, MISSED, CacheLease, Lifetimes

TRIED_AGAIN: Final = 30 * 86_400.0
"""Seconds after which a practice that failed is tried again: the address or the provider may have changed."""

FRONT_READ: Final = 0.9
"""Least share of the prompt prefix that is read where the provider keeps it; its size is an estimate."""

Verdict: TypeAlias = Literal["unknown", "holds", "fails"]


@dataclass(frozen=True, slots=True)
class CacheTrust:
    """The verdicts on a model's cache.

    renewal: whether a read renews an entry; it never fails (`policy.economics.written_parts`).
    failed_at: time of the last failure, seconds since 1970; None if unknown.
    """

    hour: Verdict = "unknown"
    keep_alive: Verdict = "unknown"
    renewal: Verdict = "unknown"
    failed_at: float | None = field(default=None, compare=False)

    def at(self, now: float | None) -> "CacheTrust":
        """Return the verdicts that stand at a time: an old failure is forgotten."""
        if now is None or self.failed_at is None or now - self.failed_at < TRIED_AGAIN:
            return self
        return CacheTrust(_after_a_while(self.hour), _after_a_while(self.keep_alive), self.renewal)


UNKNOWN: Final = CacheTrust()


def trust_after(trust: CacheTrust, practice: CachePractice, *, held: bool, at: float | None = None) -> CacheTrust:
    """Return the verdicts after a pause has shown whether a practice holds, at time `at`.

    A provider may lose an entry once: a practice that held before is unknown again first.
    """
    if practice == "renewal":
        return replace(trust, renewal="holds") if held else trust
    if held:
        return replace(trust, hour="holds", keep_alive="holds" if practice == "keep_alive" else trust.keep_alive)
    hour = trust.hour if practice == "keep_alive" else _after_failure(trust.hour)
    return CacheTrust(hour, _after_failure(trust.keep_alive), trust.renewal, at)


def _after_failure(verdict: Verdict) -> Verdict:
    return "unknown" if verdict == "holds" else "fails"


def _after_a_while(verdict: Verdict) -> Verdict:
    return "unknown" if verdict == "fails" else verdict


def has_anchor_held(lease: CacheLease, lifetimes: Lifetimes, at: float, read: float, front: float = 0.0) -> bool | None:
    """Return whether an anchor outlived a pause, from the tokens read by the first request after the pause.

    None if that request cannot show it: no pause between the two TTLs, no anchor that is known to have an entry of the
    short TTL in front of it, or a loss of the prompt prefix too, for which the client itself asked for the long TTL.

    front: tokens of the prompt prefix, which other sessions, or an hour of the client's own, may have kept readable.
    """
    if lease.sent is None or not lease.mixed or not lease.anchored or at > lease.until:
        return None
    if at - lease.sent <= lifetimes.short + LATE:
        return None
    if lifetimes.asked > lifetimes.short and read < FRONT_READ * front:
        return None
    if read < MISSED * lease.anchored:
        return False
    return read - front >= MISSED * (lease.anchored - front) if lease.anchored > front else None
