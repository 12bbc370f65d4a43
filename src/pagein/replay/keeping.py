"""pagein with lifetimes and keep-alive requests of its own, as a policy of the replay (`policy.keepalive`).

What the policy must know beyond the window, sizes and what was written, the provider's usage tells it at work; here the ledger does.
A sub-agent is kept alive while a tool runs and never behind its end.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from pagein.engine.engine import Settings
from pagein.policy import keepalive
from pagein.policy.economics import Economics
from pagein.policy.keepalive import Lease, Lifetimes, Request
from pagein.providers.cache import Served
from pagein.providers.prices import Prices
from pagein.replay.bridging import Course
from pagein.replay.calls import Block
from pagein.replay.changes import Hide
from pagein.replay.growth import FIVE_MINUTES, ONE_HOUR, Sized
from pagein.replay.layers import FULL
from pagein.replay.ledger import Ledger
from pagein.replay.paging import USUAL, OpenEngine, Paging
from pagein.replay.recording import Recording


class KeptPaging(Paging):
    """The engine at work, and the cache's lifetimes chosen beside it."""

    def __init__(
        self,
        recording: Recording,
        open_engine: OpenEngine,
        prices: Prices,
        name: str = FULL,
        usual: Settings = USUAL,
    ) -> None:
        super().__init__(recording, open_engine, prices, name, usual)
        rules = prices.cache
        # elsewhere nobody is asked for a lifetime, or for another than a client's marks can say
        self._works = rules.model == "breakpoints" and (rules.ttl, rules.long_ttl) == (FIVE_MINUTES, ONE_HOUR)
        self.lifetimes = Lifetimes(
            float(recording.ttl), prices.read, prices.write_5m, prices.write_1h, rules.ttl, rules.long_ttl
        )
        self.lease = Lease(self.lifetimes.asked)
        self._asking = self.lifetimes.asked
        self._fresh, self._rewrites = 0.0, False
        self.course = Course()
        self._is_sub = recording.head.parent is not None

    @property
    def ttl(self) -> int | None:  # type: ignore[override]
        """The lifetime of the request that is about to leave."""
        if not self._works:
            return None
        return ONE_HOUR if self._asking > self.lifetimes.short else FIVE_MINUTES

    def decide(self, sized: Sized, ledger: Ledger) -> Hide:
        """Choose the lifetime, then let the engine decide by it."""
        if not self._works:
            return super().decide(sized, ledger)
        if sized.opens_segment:
            self.lease = keepalive.begun_anew(self.lease)
        size, before = ledger.window.size, self.lease
        floor = ledger.recording.floor[0]
        goes_on = before.sent is not None and not sized.opens_segment
        self._fresh = max(0.0, size - (before.held if goes_on else floor))
        # of what others hold nobody knows before the answer; in the gateway too all of it counts as written (`engine.leasing`)
        written = self._fresh if before.alive(sized.call.at) else size
        self._asking = keepalive.chosen(before, self.lifetimes, size, written, self._saved)
        if self._asking != self.lifetimes.asked and self.ttl is not None:
            self.course.asked[sized.call.index] = self.ttl
        hide = super().decide(sized, ledger)
        self._fresh = max(0.0, self._fresh - _spared(hide))
        self._rewrites = hide.rewrites
        return hide

    def _economics(self, now: float) -> Economics | None:
        """The prices of this moment: when the cache is cold, what a change would void, and what was saved beside the window."""
        usual = self._settings.residency.economics
        expires = self.lease.expires()
        if usual is None or expires is None or self.lease.sent is None:
            return usual
        whole = self.lease.whole or self.lease.paused(now)
        write = self.lifetimes.write if self._asking <= self.lifetimes.short else self.lifetimes.write_long
        return replace(
            usual,
            write=write,
            lifetime=expires - self.lease.sent if math.isfinite(usual.lifetime) else usual.lifetime,
            keeps_front=usual.keeps_front and not whole,
            aside=self.lease.saved,
        )

    @property
    def _saved(self) -> float:
        """What paging saved so far."""
        return self._session.journal.state_at(self._session.leaf).account.saved

    def served(self, sized: Sized, served: Served, size: float) -> None:
        """Told what the provider says of a request."""
        if self._works:
            request = Request(sized.call.at, self._asking, size, self._fresh, served.written, self._rewrites)
            self.lease = keepalive.sent(self.lease, self.lifetimes, request)
            self._fresh, self._rewrites = 0.0, False

    def keeps(self, sized: Sized, answered: Sequence[Block]) -> bool:  # noqa: ARG002 the keeper's interface
        """Whether the window is to be kept alive behind this answer."""
        if not self._works or (self._is_sub and not any(block.kind == "arguments" for block in answered)):
            return False
        return keepalive.keeps(self.lease, self.lifetimes, self._saved)

    def kept(self, sized: Sized, at: float, cost: float) -> None:
        """A keep-alive request went out."""
        self.course.kept.add(sized.call.index)
        self.lease = keepalive.kept(self.lease, self.lifetimes, at, cost)


def _spared(hide: Hide) -> float:
    """Tokens that do not enter, less those that enter besides."""
    previews = sum(one.block.tokens - one.tokens for one in hide.previews)
    return previews + sum(one.block.tokens - one.tokens for one in hide.rereads) - hide.notices
