"""The sum of a recording's own usage lines, counted independently of the reader, to reveal differences."""

from dataclasses import dataclass
from typing import Final

from pagein.model.messages import Usage

# No window is near this size. A larger figure is damage, and would dominate the figures of all other sessions.
MOST_TOKENS: Final = 100_000_000


def is_believable(usage: Usage) -> bool:
    """Return whether a model can produce this usage."""
    counts = (usage.fresh, usage.read, usage.written, usage.written_1h, usage.output)
    return all(0 <= count <= MOST_TOKENS for count in counts)


@dataclass(frozen=True, slots=True)
class UsageTotals:
    """The usage lines of a session: number of model calls, and prompt tokens of all calls.

    by_call: whether usage is reported call by call, not as one sum.
    """

    calls: int = 0
    prompt: int = 0
    by_call: bool = True


class UsageTally:
    """Counts usage lines by the name of their call, so that repeated lines count once. Complete at the end of the
    session.
    """

    def __init__(self) -> None:
        self._prompts: dict[object, int] = {}
        self._summed: UsageTotals | None = None

    def add(self, call: object, usage: Usage | None) -> None:
        """Add a usage line of this call; a later line replaces an earlier one."""
        if usage is not None and usage.prompt > 0 and is_believable(usage):
            self._prompts[call] = usage.prompt

    def sum_up(self, told: UsageTotals) -> None:
        """Set the sum given by the recording itself."""
        self._summed = told

    @property
    def totals(self) -> UsageTotals:
        """The usage reported so far."""
        return self._summed or UsageTotals(len(self._prompts), sum(self._prompts.values()))
