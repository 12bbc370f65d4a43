"""pagein with lifetimes and keep-alive requests of its own, as a policy of the replay (`policy.keepalive`).

What the policy must know beyond the window, sizes and what was written, the provider's usage tells it at work; here the ledger does.
Keep-alive requests are charged in full, also behind the last call of a main session: nobody knows that the user has left. A
sub-agent is kept alive while a tool runs and never behind its end.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from pagein.engine.engine import Settings
from pagein.engine.requests import Gate, Prepared
from pagein.policy import keepalive
from pagein.policy.economics import Economics
from pagein.policy.keepalive import MARGIN, Lease, Lifetimes, Request
from pagein.providers.cache import CacheRequest, Mark, Served, bill
from pagein.providers.prices import Prices
from pagein.replay.calls import Block
from pagein.replay.growth import FIVE_MINUTES, ONE_HOUR, Sized
from pagein.replay.layers import KEPT_ALIVE
from pagein.replay.ledger import Hide, Ledger
from pagein.replay.paging import USUAL, OpenEngine, Paging
from pagein.replay.recording import Recording


class KeptPaging(Paging):
    """The engine at work, and the cache's lifetimes chosen beside it."""

    def __init__(
        self,
        recording: Recording,
        open_engine: OpenEngine,
        prices: Prices,
        name: str = KEPT_ALIVE,
        usual: Settings = USUAL,
    ) -> None:
        super().__init__(recording, open_engine, prices, name, usual)
        rules = prices.cache
        self._works = rules.model == "breakpoints"  # elsewhere nobody is asked for a lifetime
        self.lifetimes = Lifetimes(
            float(recording.ttl), prices.read, prices.write_5m, prices.write_1h, rules.ttl, rules.long_ttl
        )
        self.lease = Lease(self.lifetimes.asked)
        self._asking = self.lifetimes.asked
        self._fresh, self._rewrites = 0.0, False
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
        written = self._fresh if before.alive(sized.call.at) else max(0.0, size - floor)
        self._asking = keepalive.chosen(before, self.lifetimes, size, written, self._saved)
        hide = super().decide(sized, ledger)
        self._fresh = max(0.0, self._fresh - sum(one.block.tokens - one.tokens for one in hide.previews))
        self._rewrites = bool(hide.stubs)
        return hide

    def _advanced(self, sized: Sized) -> Prepared:
        return self._session.advance(sized.call.at, Gate(economics=self._economics(sized.call.at)))

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
            lifetime=expires - self.lease.sent,
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

    def keeps(self, answered: Sequence[Block]) -> bool:
        """Whether the window is to be kept alive behind this answer."""
        if not self._works or (self._is_sub and not any(block.kind == "arguments" for block in answered)):
            return False
        return keepalive.keeps(self.lease, self.lifetimes, self._saved)


class KeptLedger(Ledger):
    """The bill of a session that may be kept alive through its pauses."""

    def __init__(
        self, recording: Recording, policy: KeptPaging, prices: Prices, *, stress: bool = True, trace: bool = False
    ) -> None:
        super().__init__(recording, policy, prices, stress=stress, trace=trace)
        self._keeping = policy
        self._anchor = 0  # position of the entry that a keep-alive request left, 0: none
        self._sent_at = 0.0

    def _begin(self, ordinal: int) -> None:
        super()._begin(ordinal)
        self._anchor = 0

    def _serve(self, sized: Sized, output: float, *, cap: float | None = None, counted: bool = True) -> Served:
        self._is_late = sized.call.at - self._sent_at > FIVE_MINUTES
        served = super()._serve(sized, output, cap=cap, counted=counted)
        self._sent_at = sized.call.at
        self._keeping.served(sized, served, self.window.size)
        if counted:
            self._wait(sized)
        return served

    def _marks(self) -> tuple[Mark, ...]:
        marks = super()._marks()
        if self._first_changed and self._anchor >= self._first_changed:
            self._anchor = 0
        if not 0 < self._anchor <= len(self.window) or not self._is_late:
            return marks
        # the previous end is gone by now, and what was kept alive stands too far in front of the others to be found
        end = len(self.window)
        positions = {mark.position for mark in marks} - ({self._previous_end} if self._previous_end != end else set())
        return tuple(Mark(position, marks[-1].ttl) for position in sorted(positions | {self._anchor}))

    def _wait(self, sized: Sized) -> None:
        answer = self._answer(sized)
        if not answer or not self._keeping.keeps([block for block, _ in answer]):
            return
        at = sized.call.at + FIVE_MINUTES - MARGIN
        following = sized.call.index + 1
        if following < len(self.recording.sized) and self.recording.sized[following].call.at <= at:
            return
        chain, cumulative = list(self.window.chain), list(self.window.cumulative)
        for block, tokens in answer:
            chain.append(self.window.after(chain[-1], ("b", block.ordinal)))
            cumulative.append(cumulative[-1] + tokens)
        self._anchor = len(chain)
        marks = tuple(Mark(position, ONE_HOUR) for position in sorted({1, len(self.window), self._anchor}))
        request = CacheRequest(
            at=at, chain=chain, cumulative=cumulative, marks=marks, output=1.0, answered_at=at, read_cap=None, warm=0.0
        )
        cost = bill(self._simulator.serve(request), self.prices, at)
        self.tally.cost += cost
        self.tally.keep_alives += 1
        self.tally.keep_alive_cost += cost
        self._keeping.lease = keepalive.kept(self._keeping.lease, self._keeping.lifetimes, at, cost)

    def _answer(self, sized: Sized) -> list[tuple[Block, float]]:
        """The blocks of the answer to a call, as the next request will hold them, with their tokens."""
        first = sized.call.blocks[1]
        blocks = self.recording.calls.blocks
        said = takewhile(
            lambda block: block.kind in ("assistant", "arguments"), (blocks[at] for at in range(first, len(blocks)))
        )
        following = sized.call.index + 1
        sizes = self.recording.sized[following].blocks if following < len(self.recording.sized) else ()
        ratio = self.recording.chars_per_token
        return [(block, sizes[at] if at < len(sizes) else block.chars / ratio) for at, block in enumerate(said)]
