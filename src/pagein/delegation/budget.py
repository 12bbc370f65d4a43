"""The budget of an operation, shared by the children of every depth.

Rules of this file
------------------
1. A child is counted once, when it is admitted. A child that then could not be called is no longer counted.
2. Before each call to a model, its highest possible cost is reserved. After the call, its real cost replaces the reservation. A
   call without reported usage is charged the reserved cost, never zero.
3. Used from one event loop, so nothing here locks.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pagein.policy.delegation.child_costs import NOTHING, CallCost
from pagein.policy.delegation.limits import DelegationLimits


@dataclass(frozen=True, slots=True)
class BudgetSpent:
    """Nothing more is admitted. why: which limit, and how to raise it."""

    why: str


class Budget:
    """What an operation may still use.

    began: seconds of the clock at its begin. clock: monotonic, in seconds.
    """

    def __init__(self, limits: DelegationLimits, began: float, clock: Callable[[], float]) -> None:
        self.limits = limits
        self._deadline = began + limits.operation_seconds
        self._clock = clock
        self._reserved = NOTHING
        self.spent = NOTHING
        self.full: str | None = None

    @property
    def seconds_left(self) -> float:
        """Seconds until the operation ends."""
        return max(0.0, self._deadline - self._clock())

    @property
    def child_seconds(self) -> float:
        """The time limit of a child that begins now, seconds."""
        return min(self.limits.child_seconds, self.seconds_left)

    def admit_child(self) -> BudgetSpent | None:
        """Count a child. Returns the reason if no child may begin any more."""
        if self.spent.calls >= self.limits.calls:
            return self._is_full(f"the operation may ask {self.limits.calls} children (`child_calls`)")
        self.spent += CallCost(1)
        return None

    def withdraw_child(self) -> None:
        """Count an admitted child no more: none of its calls was made."""
        self.spent += CallCost(-1)

    def reserve(self, cost: CallCost) -> BudgetSpent | None:
        """Set money and tokens aside for a call to a model. Returns the reason if they do not suffice."""
        after = self.spent + self._reserved + cost
        if cost.usd is not None and (after.usd or 0.0) > self.limits.usd:
            spent = (self.spent + self._reserved).usd or 0.0
            return self._is_full(
                f"the next call may cost ${cost.usd:.4f}, and of ${self.limits.usd:.2f} (`child_usd`) ${spent:.4f} are spent or "
                "set aside"
            )
        if cost.unpriced and after.unpriced > self.limits.unpriced_tokens:
            return self._is_full(
                f"the next call may use {cost.unpriced:,} tokens of a model without a price, and of "
                f"{self.limits.unpriced_tokens:,} (`child_unpriced_tokens`) "
                f"{(self.spent + self._reserved).unpriced:,} are used or set aside"
            )
        self._reserved += cost
        return None

    def settle(self, reserved: CallCost, actual: CallCost) -> None:
        """Put the real cost of a call in the place of what was reserved for it."""
        held = self._reserved
        left = None if held.usd is None else max(0.0, held.usd - (reserved.usd or 0.0))
        self._reserved = CallCost(
            0, left, held.prompt - reserved.prompt, held.output - reserved.output, held.unpriced - reserved.unpriced
        )
        self.spent += actual

    def _is_full(self, why: str) -> BudgetSpent:
        self.full = self.full or why
        return BudgetSpent(why)
