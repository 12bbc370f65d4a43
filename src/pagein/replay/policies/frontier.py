"""The first block of the prompt that pagein may change next: where the fourth cache mark stands."""

from collections.abc import Callable
from itertools import islice

from pagein.replay.policies.ledger import Ledger
from pagein.replay.prompt.prompt_changes import Removable


class Frontier:
    """Looks for the oldest result that may still leave, and only where it can have moved. smallest: tokens of what may leave.

    first: tells the first call of which anything may leave, and whether that is its arguments; None: results alone leave.
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
        """The window was rewritten, or begins anew: look from the front again."""
        self._position, self._passed = None, 0

    def position(self, ledger: Ledger) -> int:
        """Its position, 0 where there is none or no mark is spent on it."""
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
