"""The call tree: running operations of this process, the state of each child, and cancellation.

Rules of this file
------------------
1. What is shown is a snapshot of plain values. Any thread may take one, and any thread may cancel.
2. A running call is always in the tree. Of the finished calls of an operation only the newest are, so that ten thousand calls
   cost the memory of a hundred.
3. An operation that has ended leaves the tree; the last few are kept as they ended, to be looked at. Cancelling one does nothing.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from pagein.model.delegation_notes import DelegationKind
from pagein.policy.delegation.child_costs import NOTHING, CallCost

CallStatus: TypeAlias = Literal["running", "success", "error", "timeout", "cancelled"]
_KEPT: Final = 100
_SHOWN: Final = 200
_ENDED: Final = 8

Watch: TypeAlias = Callable[["OperationView"], None]
"""Called with the operation after each change, in the thread that changed it. Must be fast, and must not raise."""


@dataclass(frozen=True, slots=True)
class CallNode:
    """A call of a child.

    parent: call of the child that asked; None for the first children of an operation.
    depth: from 1. question: the instructions, shortened. doing: its present step, in words.
    began: seconds of a monotonic clock. seconds: duration, None while it runs.
    """

    call_id: str
    parent: str | None
    depth: int
    model: str
    question: str
    targets: tuple[str, ...]
    began: float
    status: CallStatus = "running"
    doing: str = ""
    seconds: float | None = None
    cost: CallCost = NOTHING


@dataclass(frozen=True, slots=True)
class OperationView:
    """An operation as it is now.

    total: targets to ask about. done: number of finished targets. failed: number of finished targets without an answer.
    calls: running and newest finished calls, in the order in which they began.
    """

    operation_id: str
    kind: DelegationKind
    question: str
    total: int
    estimated: CallCost
    actual: CallCost = NOTHING
    done: int = 0
    failed: int = 0
    calls: tuple[CallNode, ...] = ()

    def below(self, parent: str | None) -> Iterator[CallNode]:
        """Yield the children of a call. None: the top-level calls, and calls below a call that has been dropped."""
        known = {one.call_id for one in self.calls}
        for one in self.calls:
            if one.parent == parent or (parent is None and one.parent not in known):
                yield one


@dataclass(slots=True)
class _Operation:
    view: OperationView
    cancel: Callable[[], None]
    watch: Watch | None
    running: dict[str, CallNode] = field(default_factory=dict)
    finished: dict[str, CallNode] = field(default_factory=dict)


class CallTree:
    """The running operations of a process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._operations: dict[str, _Operation] = {}
        self._ended: deque[OperationView] = deque(maxlen=_ENDED)

    @contextmanager
    def operation(self, view: OperationView, cancel: Callable[[], None], watch: Watch | None = None) -> Iterator[None]:
        """Keep an operation in the tree during the block. cancel: ends it; may be called from any thread."""
        with self._lock:
            self._operations[view.operation_id] = _Operation(view, cancel, watch)
        try:
            yield
        finally:
            with self._lock:
                self._ended.append(_view(self._operations.pop(view.operation_id)))

    def plan(self, operation_id: str, total: int, estimated: CallCost) -> None:
        """Note how many targets an operation asks about, and what that may cost."""
        self._change(
            operation_id, lambda one: setattr(one, "view", replace(one.view, total=total, estimated=estimated))
        )

    def begin_call(self, operation_id: str, node: CallNode) -> None:
        """Add a call."""
        self._change(operation_id, lambda one: one.running.__setitem__(node.call_id, node))

    def tell(self, operation_id: str, call_id: str, doing: str) -> None:
        """Note what a call does now."""

        def change(one: _Operation) -> None:
            if call_id in one.running:
                one.running[call_id] = replace(one.running[call_id], doing=doing)

        self._change(operation_id, change)

    def end_call(self, operation_id: str, node: CallNode) -> None:
        """Note the end of a call."""

        def change(one: _Operation) -> None:
            one.running.pop(node.call_id, None)
            one.finished[node.call_id] = node
            if len(one.finished) > _KEPT:
                del one.finished[next(iter(one.finished))]

        self._change(operation_id, change)

    def add_cost(self, operation_id: str, cost: CallCost) -> None:
        """Add to what an operation has cost."""
        self._change(operation_id, lambda one: setattr(one, "view", replace(one.view, actual=one.view.actual + cost)))

    def end_target(self, operation_id: str, *, answered: bool) -> None:
        """Count a target whose turn is over."""

        def change(one: _Operation) -> None:
            view = one.view
            one.view = replace(view, done=view.done + 1, failed=view.failed + (not answered))

        self._change(operation_id, change)

    def operations(self) -> tuple[OperationView, ...]:
        """Return the running operations, oldest first."""
        with self._lock:
            return tuple(_view(one) for one in self._operations.values())

    def ended(self) -> tuple[OperationView, ...]:
        """Return the last operations that have ended, oldest first."""
        with self._lock:
            return tuple(self._ended)

    def cancel(self, operation_id: str) -> bool:
        """Cancel an operation. Returns whether it was running."""
        with self._lock:
            found = self._operations.get(operation_id)
        if found is not None:
            found.cancel()
        return found is not None

    def cancel_all(self) -> int:
        """Cancel every operation. Returns their number."""
        with self._lock:
            found = tuple(self._operations.values())
        for one in found:
            one.cancel()
        return len(found)

    def _change(self, operation_id: str, change: Callable[[_Operation], None]) -> None:
        with self._lock:
            found = self._operations.get(operation_id)
            if found is None:
                return
            change(found)
            watch, view = found.watch, _view(found) if found.watch is not None else None
        if watch is not None and view is not None:
            watch(view)


def _view(one: _Operation) -> OperationView:
    calls = sorted((*one.finished.values(), *one.running.values()), key=lambda node: node.began)
    return replace(one.view, calls=tuple(calls[-_SHOWN:]))


PROCESS_CALLS: Final = CallTree()
"""The tree of this process."""
