"""pagein with cache TTLs and keep-alive requests of its own, as a policy of the replay
(`policy.economics.cache_keepalive`).

In production the provider's usage reports sizes and written tokens; in a replay the ledger does. The provider is taken to
keep what it documents, and earlier sessions to have saved what one session may expose, as in a store that is some sessions old,
unless the policy is one without the layer `reserve`, or a caller sets `trust` and `reserve`. The window of a
sub-agent is kept alive while a tool runs, but never after the end of the sub-agent.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from pagein.engine.engine import Settings
from pagein.model.journal_notes import CachedPrefixNote
from pagein.policy.economics import cache_keepalive, cache_lifetimes
from pagein.policy.economics.cache_keepalive import CacheLease, Lifetimes, Request
from pagein.policy.economics.cache_lifetimes import ShortRewrite
from pagein.policy.economics.cache_trust import CacheTrust, has_anchor_held, trust_after
from pagein.policy.economics.rewrite_cost import Economics, at_risk
from pagein.policy.economics.savings_reserve import RESERVE
from pagein.policy.economics.written_parts import NOTHING_WRITTEN
from pagein.providers.cache_simulator import CacheUsage
from pagein.providers.prices.price_lookup import Prices
from pagein.replay.policies.ablation import FULL, planner_settings
from pagein.replay.policies.keepalive_bill import Course, said_in
from pagein.replay.policies.ledger import Ledger
from pagein.replay.policies.pagein_policy import USUAL, OpenEngine, PageinPolicy
from pagein.replay.prompt.billable_session import BillableSession
from pagein.replay.prompt.model_calls import Block
from pagein.replay.prompt.prompt_changes import Hide
from pagein.replay.prompt.prompt_sizes import FIVE_MINUTES, ONE_HOUR, SizedCall


class KeepAlivePagein(PageinPolicy):
    """The engine at work, with cache TTLs chosen beside it."""

    def __init__(
        self,
        recording: BillableSession,
        open_engine: OpenEngine,
        prices: Prices,
        name: str = FULL,
        usual: Settings = USUAL,
    ) -> None:
        super().__init__(recording, open_engine, prices, name, usual)
        rules = prices.cache
        # other providers accept no TTL, or another one than a client's cache breakpoints can express
        self._works = rules.model == "breakpoints" and (rules.ttl, rules.long_ttl) == (FIVE_MINUTES, ONE_HOUR)
        self.lifetimes = Lifetimes(
            float(recording.ttl), prices.read, prices.write_5m, prices.write_1h, rules.ttl, rules.long_ttl, prices.cliff
        )
        self.lease = CacheLease(self.lifetimes.asked)
        self._asking = self.lifetimes.asked
        self._rewrite: ShortRewrite | None = None
        self._fresh, self._rewrites = 0.0, False
        self.exposable = 0.0  # tokens at the end of the request about to be sent that may have the short TTL alone
        self._uncached = 0.0  # tokens after the last breakpoint of the request
        self._model: str | None = None
        self._front = recording.floor[0]
        self.course = Course()
        self.trust = CacheTrust("holds", "holds", "holds")
        self._written = NOTHING_WRITTEN
        planning = planner_settings(name, usual)
        self.reserve = RESERVE if planning.borrows else 0.0
        self.borrows = False  # whether the reserve has decided a cache TTL
        self._was_bridged = False  # whether the last request was a keep-alive request
        self._bridges = planning.keeps_alive
        self._is_sub = recording.head.parent is not None

    @property
    def ttl(self) -> int | None:  # type: ignore[override]
        """The cache TTL of the request about to be sent, seconds."""
        if not self._works:
            return None
        return ONE_HOUR if self._asking > self.lifetimes.short else FIVE_MINUTES

    def decide(self, sized: SizedCall, ledger: Ledger) -> Hide:
        """Choose the cache TTL, then let the engine decide on this basis."""
        if not self._works:
            return super().decide(sized, ledger)
        if sized.opens_segment:
            self.lease = cache_keepalive.lease_after_restart(self.lease)
        model, self._model = self._model, sized.call.model
        if model not in (None, self._model):  # each model has a cache of its own
            self.lease = cache_keepalive.lease_after_switch(self.lease, self.lifetimes)
            self._written = NOTHING_WRITTEN
        size, before, at = ledger.window.size, self.lease, sized.call.at
        floor = ledger.recording.floor[0]
        goes_on = before.held > 0 and not sized.opens_segment
        self._fresh = max(0.0, size - (before.held if goes_on else floor))
        # how much of the prompt prefix other sessions keep cached is unknown before the answer
        certain = self._fresh if before.alive(at) else max(0.0, size - floor)
        said = sum(tokens for _, tokens in said_in(sized, self._recording)) if goes_on else 0.0
        # in front of the answer stands what the last request showed after its last breakpoint: in vain, if it stays
        shown = min(self._uncached, max(0.0, self._fresh - sum(sized.blocks))) if goes_on else 0.0
        asked = cache_lifetimes.UpcomingRequest(at, size, certain, said=said + shown if said else 0.0)
        in_hand = self._in_hand - (1.0 - self.lifetimes.read) * shown
        self._asking = cache_lifetimes.chosen(before, self.lifetimes, asked, in_hand + self.reserve)
        self._rewrite = cache_lifetimes.short_rewrite(before, self.lifetimes, asked, in_hand + self.reserve)
        lent = 0.0 if shown else self.reserve
        exposable = cache_lifetimes.exposable(before, self.lifetimes, asked, in_hand + lent)
        alone = cache_lifetimes.chosen(before, self.lifetimes, asked, in_hand)
        alone_exposable = cache_lifetimes.exposable(before, self.lifetimes, asked, in_hand)
        self.borrows = self.borrows or (alone, alone_exposable) != (self._asking, exposable)
        hide = super().decide(sized, ledger)
        self._uncached = size - ledger.window.cumulative[hide.tail - 2] if hide.tail else 0.0
        self._fresh = max(0.0, self._fresh - _tokens_spared(hide) - self._uncached)
        self._rewrites = hide.rewrites
        self.exposable = 0.0 if hide.changes_sent or hide.tail else exposable
        if self.exposable:
            self.course.exposable[sized.call.index] = self.exposable
        if self._rewrites:
            self._asking = self.lifetimes.short if self._is_short else self.lifetimes.asked
        if self._asking != self.lifetimes.asked and self.ttl is not None:
            self.course.ttls[sized.call.index] = self.ttl
        return hide

    def _economics(self, now: float) -> Economics | None:
        """Return the prices at this moment: when the cache is cold, which part a change would void, and the savings
        outside the window.
        """
        usual = self._settings.residency.economics
        expires = self.lease.expires()
        if usual is None or expires is None or self.lease.sent is None:
            return usual
        whole = self.lease.whole or self.lease.is_paused(now)
        return replace(
            usual,
            lifetime=expires - self.lease.sent if math.isfinite(usual.lifetime) else usual.lifetime,
            keeps_front=usual.keeps_front and not whole,
            aside=self.lease.saved,
            sure_from=0.0 if self.trust.renewal == "holds" else self._written.sure_from(now),
        )

    @property
    def _in_hand(self) -> float:
        """BIT that may be risked, without the savings by cache TTLs."""
        account = self._session.journal.state_at(self._session.leaf).account
        economics = self._settings.residency.economics
        return account.saved + (0.0 if economics is None else at_risk(account, economics))

    def note_usage(self, sized: SizedCall, served: CacheUsage) -> None:
        """Receive the usage reported by the provider for a request."""
        if self._works:
            cached = served.read + served.written  # a prompt below the minimum size is not cached at all
            front = self._front
            is_short = served.written_5m > 0
            long = served.written_1h if is_short else 0.0
            asking = self.lifetimes.short if is_short else self._asking
            request = Request(sized.call.at, asking, cached, self._fresh, served.written, self._rewrites, front, long)
            before, bridged = self.lease, self._was_bridged
            self.lease = cache_keepalive.lease_after_request(before, self.lifetimes, request)
            held = has_anchor_held(before, self.lifetimes, sized.call.at, served.read, front)
            self._learn(held, bridged=bridged)
            if self._written.shows_renewal(sized.call.at, served.read):
                self.trust = trust_after(self.trust, "renewal", held=True)
            ttl = self.lifetimes.short if is_short else self.lifetimes.long
            self._written = self._written.after(sized.call.at, served.read, served.written, ttl)
            self._was_bridged = False
            self._fresh, self._rewrites = 0.0, False

    def _learn(self, held: bool | None, *, bridged: bool) -> None:  # noqa: FBT001 -- a verdict, or none
        """Learn from the first request after a pause whether the provider keeps what the choice rests on."""
        if held is None or self._rewrites:
            return
        self.trust = trust_after(self.trust, "keep_alive" if bridged else "hour", held=held)
        if self.trust.hour == "fails":
            self._works, self.lease = False, CacheLease(self.lifetimes.asked)

    def keeps(self, sized: SizedCall, answered: Sequence[Block]) -> bool:  # noqa: ARG002 -- the keeper's interface
        """Return whether to keep the window alive after this answer."""
        if not (self._works and self._bridges) or self.trust.keep_alive == "fails":
            return False
        in_hand = self._in_hand
        is_over = self._is_sub and not any(block.kind == "arguments" for block in answered)
        if is_over and cache_keepalive.is_covered(self.lease, self.lifetimes, in_hand + self.reserve):
            return False
        answer = sum(block.chars for block in answered) / self._ratio
        # a keep-alive request also writes what stands after the last breakpoint
        return cache_keepalive.wants_keepalive(
            self.lease, self.lifetimes, in_hand, answer + self._uncached, self.reserve
        )

    def note_keepalive(self, sized: SizedCall, at: float, cost: float) -> None:
        """Record a keep-alive request that went out."""
        self.course.kept_alive.add(sized.call.index)
        self._was_bridged = True
        self.lease = cache_keepalive.lease_after_keepalive(self.lease, self.lifetimes, at, cost)
        # it wrote the whole prompt to the cache, also what the request showed after its last breakpoint
        self._session.note(CachedPrefixNote(self.lease.lifetime, kept=len(self.course.kept_alive)))


def _tokens_spared(hide: Hide) -> float:
    """Return the tokens that do not enter the prompt, minus the tokens of inserts."""
    previews = sum(one.block.tokens - one.tokens for one in hide.previews)
    return previews + sum(one.block.tokens - one.tokens for one in hide.rereads) - hide.notices
