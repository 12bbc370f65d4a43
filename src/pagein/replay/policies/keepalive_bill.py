"""The bill of a session that a policy keeps alive through its pauses.

Keep-alive requests are charged in full, also behind the last call of a main session: nobody knows that the user has left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Protocol

from pagein.policy.economics.cache_keepalive import MARGIN
from pagein.providers.cache_simulator import Breakpoint, CacheRequest, CacheUsage, bill
from pagein.providers.caches.breakpoint_rules import MAX_MARKS
from pagein.providers.prices.price_lookup import Prices
from pagein.replay.policies.ledger import Ledger, Policy
from pagein.replay.prompt.model_calls import Block
from pagein.replay.prompt.prompt_sizes import FIVE_MINUTES, ONE_HOUR, SizedCall
from pagein.replay.prompt.recording import BillableSession


class KeepAlivePolicy(Policy, Protocol):
    """A policy that also chooses lifetimes (`ttl`, asked before each request) and says when to keep a window alive."""

    def note_usage(self, sized: SizedCall, served: CacheUsage) -> None:
        """Told what the provider says of a request."""
        ...

    def keeps(self, sized: SizedCall, answered: Sequence[Block]) -> bool:
        """Whether the window is to be kept alive behind the answer to this call."""
        ...

    def note_keepalive(self, sized: SizedCall, at: float, cost: float) -> None:
        """Told that a keep-alive request went out behind this call, when, and what it cost."""
        ...


@dataclass(slots=True)
class Course:
    """What was chosen, call by call. asked: the lifetime, where it was not the host's own; kept: calls behind which the window was kept alive.

    notices: tokens of texts of ours that entered with a call.
    """

    asked: dict[int, int] = field(default_factory=dict)
    kept: set[int] = field(default_factory=set)
    notices: dict[int, float] = field(default_factory=dict)


class KeptLedger(Ledger):
    """The bill of a session that may be kept alive through its pauses."""

    def __init__(
        self,
        recording: BillableSession,
        policy: KeepAlivePolicy,
        prices: Prices,
        *,
        stress: bool = True,
        trace: bool = False,
    ) -> None:
        super().__init__(recording, policy, prices, stress=stress, trace=trace)
        self._keeping = policy
        self._anchor = 0  # position of the last entry that lives for an hour, 0: none
        self._left = 0  # the same in the cache of the model that was asked before this one
        self._returning = 0  # the same in the cache of a model that is asked again, at the first call after the other
        self._sent_at = 0.0
        self._model: str | None = None

    def _begin(self, ordinal: int) -> None:
        super()._begin(ordinal)
        self._anchor = self._left = 0

    def _serve(self, sized: SizedCall, output: float, *, cap: float | None = None, counted: bool = True) -> CacheUsage:
        self._is_late = sized.call.at - self._sent_at > FIVE_MINUTES
        model, self._model = self._model, sized.call.model
        self._returning = 0
        if model not in (None, self._model):
            self._returning, self._left, self._anchor = self._left, self._anchor, 0
        served = super()._serve(sized, output, cap=cap, counted=counted)
        self._sent_at = sized.call.at
        if self._keeping.ttl == ONE_HOUR:
            self._anchor = len(self.window)
        self._keeping.note_usage(sized, served)
        if counted:
            self._wait(sized)
        return served

    def _marks(self) -> tuple[Breakpoint, ...]:
        frontier_before = self._frontier
        marks = super()._marks()
        if self._first_changed:
            kept = (
                place if place < self._first_changed else 0 for place in (self._anchor, self._left, self._returning)
            )
            self._anchor, self._left, self._returning = kept
        anchor = self._returning or (self._anchor if self._is_late else 0)
        if not 0 < anchor <= len(self.window):
            return marks
        # the previous end is gone by now, and what lives for an hour stands too far in front of the others to be found
        end = len(self.window)
        positions = {mark.position for mark in marks} - ({self._previous_end} if self._previous_end != end else set())
        positions.add(anchor)
        for gone in (frontier_before, self._first_changed - 1):  # what stood there is gone by now as well
            if len(positions) > MAX_MARKS:
                positions.discard(gone)
        return tuple(Breakpoint(position, marks[-1].ttl) for position in sorted(positions))

    def _wait(self, sized: SizedCall) -> None:
        answer = self._answer(sized)
        at = sized.call.at + FIVE_MINUTES - MARGIN
        if sized.call.answered_at > at:  # nobody knows yet what is to be kept
            return
        if not answer or not self._keeping.keeps(sized, [block for block, _ in answer]):
            return
        following = sized.call.index + 1
        if following < len(self.recording.sized) and self.recording.sized[following].call.at <= at:
            return
        chain, cumulative = list(self.window.chain), list(self.window.cumulative)
        for block, tokens in answer:
            chain.append(self.window.after(chain[-1], ("b", block.ordinal)))
            cumulative.append(cumulative[-1] + tokens)
        self._anchor = len(chain)
        marks = tuple(Breakpoint(position, ONE_HOUR) for position in sorted({1, len(self.window), self._anchor}))
        request = CacheRequest(
            at=at, chain=chain, cumulative=cumulative, marks=marks, output=1.0, answered_at=at, read_cap=None, warm=0.0
        )
        served = self._simulator.serve(request)
        self._keeping.note_keepalive(sized, at, self._charge(served, at))

    def _charge(self, served: CacheUsage, at: float) -> float:
        """What a keep-alive request costs. In the pictures it stands with the call that it follows."""
        cost, tally = bill(served, self.prices, at), self.tally
        tally.cost += cost
        tally.read += served.read
        tally.written += served.written
        tally.fresh += served.fresh
        tally.output += served.output
        tally.floor += self.recording.floor[0]
        tally.keep_alives += 1
        tally.keep_alive_cost += cost
        if self.trace is not None:
            self.trace.read[-1] += served.read
            self.trace.written[-1] += served.written
            self.trace.fresh[-1] += served.fresh
            self.trace.cost[-1] += cost
        return cost

    def _answer(self, sized: SizedCall) -> list[tuple[Block, float]]:
        """The blocks of the answer to a call, as the next request will hold them, with their tokens; none of a later answer."""
        first = sized.call.blocks[1]
        blocks = self.recording.calls.blocks
        said = takewhile(lambda block: block.message is sized.call.message, islice(blocks, first, None))
        following = sized.call.index + 1
        after = self.recording.sized[following] if following < len(self.recording.sized) else None
        sizes = after.blocks if after is not None and after.call.blocks[0] == first else ()
        ratio = self.recording.chars_per_token
        return [(block, sizes[at] if at < len(sizes) else block.chars / ratio) for at, block in enumerate(said)]
