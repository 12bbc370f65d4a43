"""The question and the report of an operation, as plain values."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pagein.model.delegation_notes import DelegationKind
from pagein.policy.delegation.child_costs import NOTHING, CallCost
from pagein.policy.delegation.child_replies import Confidence
from pagein.policy.delegation.evidence import QuoteEvidence

Status: TypeAlias = Literal["success", "error", "timeout", "cancelled", "not_asked"]
"""How a child ended. `not_asked`: no child was begun, and `why` says the reason."""


Confirm: TypeAlias = Callable[[CallCost], bool] | Callable[[CallCost], Awaitable[bool]]
"""Asks a person whether to go on at this cost. A plain function is called in a worker thread, a coroutine function in the event loop."""


@dataclass(frozen=True, slots=True)
class Question:
    """One operation.

    kind: `query`: one child over all targets. `batch`: one child a target. `extract`: as query, and the answer is kept as an object.
    targets: ids or names of stored objects.
    model: `provider/model`; "" for the one that is set.
    find: text, or `/expression/flags`; targets without a hit are not asked. None: all are asked.
    call_id: the host's own call, "" if there is none.
    confirm: asks a person whether to go on at this cost; None if there is no person.
    """

    kind: DelegationKind
    instructions: str
    targets: tuple[str, ...]
    model: str = ""
    find: str | None = None
    call_id: str = ""
    confirm: Confirm | None = None


@dataclass(frozen=True, slots=True)
class ChildResult:
    """The answer of a child.

    targets: as they were asked for. answer: "" for a child that gave none, or whose answer is only in the store.
    evidence: quotes of the child, each with its place in the targets or marked as not found.
    object_id: the stored answer; None if there is none. artifact: the object that keeps the answer of an `extract`.
    is_partial: the answer is about some parts of a large target only, or those were not joined; `notes` say which.
    why: the reason, for every status but `success`. notes: what else a reader must know.
    """

    targets: tuple[str, ...]
    status: Status
    answer: str = ""
    confidence: Confidence = "low"
    evidence: tuple[QuoteEvidence, ...] = ()
    object_id: str | None = None
    artifact: str | None = None
    is_partial: bool = False
    call_id: str = ""
    model: str = ""
    cost: CallCost = NOTHING
    why: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What an operation did.

    results: one for each target of a batch, in the order of the targets; else one. A target that is named twice is asked about once.
    refused: why nothing was asked; None if something was.
    partial: why some targets have no answer, or an answer on some of their parts only; None if every target has a whole one, or
        was left out by `find`.
    estimated, actual: cost before and after. calls: children that were asked.
    is_cancelled: somebody cancelled it.
    unmatched: targets in which the text to find does not stand.
    """

    operation_id: str
    kind: DelegationKind
    results: tuple[ChildResult, ...] = ()
    refused: str | None = None
    partial: str | None = None
    model: str = ""
    estimated: CallCost = NOTHING
    actual: CallCost = NOTHING
    unmatched: tuple[str, ...] = ()
    is_cancelled: bool = False
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def answer(self) -> str:
        """The first answer, the only answer of `query` and `extract`; "" without an answer."""
        return next((one.answer for one in self.results if one.status == "success"), "")

    @property
    def calls(self) -> int:
        """Number of children that were asked, at every depth."""
        return self.actual.calls
