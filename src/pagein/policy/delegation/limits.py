"""Limits of delegated questions: how deep, how many, how long, how much."""

from dataclasses import dataclass
from typing import Final

from pagein.errors import BadSetting

DEEPEST: Final = 2
"""The greatest depth. Children of children seldom help, and cost a multiple in time."""


@dataclass(frozen=True, slots=True)
class DelegationLimits:
    """Limits of an operation: a call of `query`, `batch` or `extract`, with every child below.

    depth: 1: children ask no further children. 2: they may.
    calls: children of an operation, at every depth together.
    concurrency: children that are asked at the same time.
    child_seconds, operation_seconds: time for one child, and for the whole operation.
    output_tokens: output of one model call.
    turns: model calls of one child.
    usd: cost of an operation, for models with a price.
    unpriced_tokens: tokens of an operation on models without a price, prompt and output together.
    confirm_above: number of children above which a person is asked first.

    Raises BadSetting for a limit outside its range.
    """

    depth: int = 1
    calls: int = 50
    concurrency: int = 4
    child_seconds: float = 120.0
    operation_seconds: float = 600.0
    output_tokens: int = 4096
    turns: int = 5
    usd: float = 1.0
    unpriced_tokens: int = 1_000_000
    confirm_above: int = 10

    def __post_init__(self) -> None:
        if not 1 <= self.depth <= DEEPEST:
            raise BadSetting(f"child_depth must be 1 or {DEEPEST}, not {self.depth}")
        counts = {
            "child_calls": self.calls,
            "child_concurrency": self.concurrency,
            "child_tokens": self.output_tokens,
            "child_turns": self.turns,
        }
        for name, count in counts.items():
            if count < 1:
                raise BadSetting(f"{name} must be 1 or more, not {count}")
        times = {"child_seconds": self.child_seconds, "child_operation_seconds": self.operation_seconds}
        for name, seconds in times.items():
            if not 0 < seconds < float("inf"):
                raise BadSetting(f"{name} must be above 0 and finite, not {seconds}")
        if not 0 <= self.usd < float("inf"):
            raise BadSetting(f"child_usd must be 0 or more and finite, not {self.usd}")
        if min(self.unpriced_tokens, self.confirm_above) < 0:
            raise BadSetting("child_unpriced_tokens and child_confirm_above must be 0 or more")


USUAL_LIMITS: Final = DelegationLimits()


@dataclass(frozen=True, slots=True)
class DelegationSettings:
    """The settings of delegated questions.

    model: child model as `provider/model`; "" for the session's own model.
    deep_model: model of the children of children; "" for `model`.
    root_prompt, child_prompt: templates in place of the built-in ones (see `prompts`); "" for these.
    remembers: whether a question that was asked before is answered from memory.
    """

    limits: DelegationLimits = USUAL_LIMITS
    model: str = ""
    deep_model: str = ""
    root_prompt: str = ""
    child_prompt: str = ""
    remembers: bool = True

    def model_at(self, depth: int) -> str:
        """Return the configured model for children at this depth, from 1; "" for no model."""
        return (self.deep_model or self.model) if depth > 1 else self.model
