"""The bill of a session whose cache entry a policy keeps alive through pauses.

Keep-alive requests are charged in full, also after the last call of a main session: no policy can know that the user
has left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Protocol

from pagein.policy.economics.cache_keepalive import MARGIN
from pagein.providers.cache_simulator import Breakpoint, CacheRequest, CacheUsage, bill
from pagein.providers.caches.breakpoint_rules import MAX_MARKS
from pagein.providers.prices.price_lookup import Prices
from pagein.replay.policies.ledger import SYSTEM_POSITION, Ledger, Policy
from pagein.replay.prompt.billable_session import BillableSession
from pagein.replay.prompt.model_calls import Block
from pagein.replay.prompt.prompt_sizes import FIVE_MINUTES, ONE_HOUR, SizedCall


class KeepAlivePolicy(Policy, Protocol):
    """A policy that also chooses a cache TTL (`ttl`, read before each request) and decides when to keep a window alive."""

    @property
    def exposable(self) -> float:
        """Tokens at the end of the request that may have the short TTL while the rest has the long one; 0: one TTL."""
        ...

    def note_usage(self, sized: SizedCall, served: CacheUsage) -> None:
        """Receive the usage reported by the provider for a request."""
        ...

    def keeps(self, sized: SizedCall, answered: Sequence[Block]) -> bool:
        """Return whether to keep the window alive after the answer to this call."""
        ...

    def note_keepalive(self, sized: SizedCall, at: float, cost: float) -> None:
        """Receive the time and the cost of a keep-alive request sent after this call."""
        ...


@dataclass(slots=True)
class Course:
    """The choices of a policy, call by call.

    ttls: the cache TTL, for calls with another TTL than the host's own, seconds.
    exposable: tokens at the end of a call that may have the short TTL alone, for calls with both TTLs.
    kept_alive: calls after which the window was kept alive.
    notices: tokens of inserts that entered with a call.
    """

    ttls: dict[int, int] = field(default_factory=dict)
    exposable: dict[int, float] = field(default_factory=dict)
    kept_alive: set[int] = field(default_factory=set)
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
        self._anchor = 0  # position of the last entry with a TTL of one hour, 0: none
        self._left = 0  # the same position in the cache of the previous model
        self._returning = 0  # the same position in the cache of a model called again, at its first new call
        self._sent_at = 0.0
        self._model: str | None = None
        self._split = 0  # position of the last breakpoint with the long TTL, if others follow it, else 0

    def _begin(self, ordinal: int) -> None:
        super()._begin(ordinal)
        self._anchor = self._left = 0

    def _serve(self, sized: SizedCall, output: float, *, cap: float | None = None, counted: bool = True) -> CacheUsage:
        self._is_late = sized.call.at - self._sent_at > FIVE_MINUTES
        model, self._model = self._model, sized.call.model
        self._returning = 0
        if model not in (None, self._model):
            self._returning, self._left, self._anchor = self._left, self._anchor, 0
        self._split = self._place_to_split(sized)
        served = super()._serve(sized, output, cap=cap, counted=counted)
        self._sent_at = sized.call.at
        if self._split:
            self._anchor = self._split if served.written_1h else self._anchor
        elif self._keeping.ttl == ONE_HOUR:
            self._anchor = self.cached_end
        self._keeping.note_usage(sized, served)
        if counted:
            self._wait(sized)
        return served

    def _breakpoints(self, model: str | None) -> tuple[Breakpoint, ...]:
        """Return the breakpoints of the request. The prompt prefix keeps the TTL that the host asks for."""
        marks = self._breakpoints_by_policy(model)
        if self.recording.ttl != ONE_HOUR or not marks or marks[0].position != SYSTEM_POSITION:
            return marks
        return (Breakpoint(SYSTEM_POSITION, ONE_HOUR), *marks[1:])

    def _breakpoints_by_policy(self, model: str | None) -> tuple[Breakpoint, ...]:
        frontier_before = self._frontier
        marks = super()._breakpoints(model)
        if self._first_changed:
            kept = (
                place if place < self._first_changed else 0 for place in (self._anchor, self._left, self._returning)
            )
            self._anchor, self._left, self._returning = kept
        anchor = self._returning or (self._anchor if self._is_late else 0)
        if not 0 < anchor <= self.cached_end:
            return self._with_split(marks)
        # the previous end has expired, and the one-hour entry is too far in front of the other breakpoints to be found
        end = self.cached_end
        positions = {mark.position for mark in marks} - ({self._previous_end} if self._previous_end != end else set())
        positions.add(anchor)
        for gone in (frontier_before, self._first_changed - 1):  # these entries have expired as well
            if len(positions) > MAX_MARKS:
                positions.discard(gone)
        return self._with_split(tuple(Breakpoint(position, marks[-1].ttl) for position in sorted(positions)))

    def _place_to_split(self, sized: SizedCall) -> int:
        """Return the first place after the model's last answer with few enough tokens after it, 0 without one."""
        most = self._keeping.exposable
        said = said_in(sized, self.recording)
        first = self._position[said[-1][0].ordinal] if said else self._previous_end + 1
        places = range(max(first, self._previous_end + 1), len(self.window)) if most > 0 else ()
        return next((one for one in places if self.window.size - self.window.cumulative[one - 1] <= most + 1e-6), 0)

    def _with_split(self, marks: tuple[Breakpoint, ...]) -> tuple[Breakpoint, ...]:
        """Return the breakpoints with one more where the request splits; up to there all have the long TTL."""
        if not self._split:
            return marks
        positions = {mark.position for mark in marks} | {self._split}
        for gone in (self._previous_end, self._frontier):  # the look-back finds the end of the last request
            if len(positions) > MAX_MARKS and gone != self._split:
                positions.discard(gone)
        return tuple(
            Breakpoint(position, ONE_HOUR if position <= self._split else FIVE_MINUTES)
            for position in sorted(positions)
        )

    def _wait(self, sized: SizedCall) -> None:
        answer = self._answer(sized)
        at = sized.call.at + FIVE_MINUTES - MARGIN
        if sized.call.answered_at > at:  # the answer, a part of the prompt to keep, is not complete yet
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
        """Return the cost of a keep-alive request. The pictures show it with the call before it."""
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
        """Return the blocks of the answer to a call and their tokens, as in the next request; without blocks of later
        answers.
        """
        first = sized.call.blocks[1]
        blocks = self.recording.calls.blocks
        said = takewhile(lambda block: block.message is sized.call.message, islice(blocks, first, None))
        following = sized.call.index + 1
        after = self.recording.sized[following] if following < len(self.recording.sized) else None
        sizes = after.blocks if after is not None and after.call.blocks[0] == first else ()
        ratio = self.recording.chars_per_token
        return [(block, sizes[at] if at < len(sizes) else block.chars / ratio) for at, block in enumerate(said)]


def said_in(sized: SizedCall, recording: BillableSession) -> list[tuple[Block, float]]:
    """Return the blocks at the beginning of a call's news that the model wrote, and their tokens."""
    first, last = sized.call.blocks
    news = zip(recording.calls.blocks[first:last], sized.blocks, strict=True)
    return list(takewhile(lambda one: one[0].kind in ("assistant", "arguments"), news))
