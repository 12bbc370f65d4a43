"""The frontier: the first block of the prompt that pagein may change next, in front of the fourth cache breakpoint."""

from collections.abc import Callable
from itertools import islice

from pagein.replay.policies.ledger import Ledger
from pagein.replay.prompt.prompt_changes import Removable


class Frontier:
    """Finds the oldest result that may still be evicted, and searches again only after a possible move.

    smallest: minimum size of a result that may be evicted, tokens.
    first: returns the first call with something to evict, and whether this is its arguments; None: only results are
    evicted.
    """

    def __init__(
        self, smallest: float, *, marked: bool = True, first: Callable[[], tuple[str, bool] | None] | None = None
    ) -> None:
        self._smallest = smallest
        self._marked = marked
        self._first = first
        self._position: int | None = None
        self._passed = 0

    def reset(self) -> None:
        """Search again from the beginning, after a rewrite or at the start of a new window."""
        self._position, self._passed = None, 0

    def position(self, ledger: Ledger) -> int:
        """Return the position of the frontier; 0 without a frontier, or if no breakpoint is spent on it."""
        if not self._marked:
            return 0
        if self._position is None and self._first is not None:
            self._position = _frontier_place(self._first(), ledger)
        elif self._position is None:
            for one in islice(ledger.resident, self._passed, None):
                if self._may_leave(one, ledger):
                    self._position = one.position
                    break
                self._passed += 1
        return self._position or 0

    def _may_leave(self, one: Removable, ledger: Ledger) -> bool:
        block = ledger.recording.calls.blocks[one.holder]
        return one.tokens >= self._smallest and not block.is_error


def _frontier_place(first: tuple[str, bool] | None, ledger: Ledger) -> int | None:
    if first is None:
        return None
    call, is_arguments = first
    if is_arguments:
        return ledger.arguments[call].position if call in ledger.arguments else None
    return next((one.position for one in ledger.resident if one.call_id == call), None)
