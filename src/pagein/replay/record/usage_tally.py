"""What a recording's own usage lines add up to, counted beside what a reader makes of them, so that a difference is told."""

from dataclasses import dataclass
from typing import Final

from pagein.model.messages import Usage

# No window is near this size. A recording that says so is damaged, and its figures would drown those of all others.
MOST_TOKENS: Final = 100_000_000


def is_believable(usage: Usage) -> bool:
    """Whether a model can have had this usage."""
    counts = (usage.fresh, usage.read, usage.written, usage.written_1h, usage.output)
    return all(0 <= count <= MOST_TOKENS for count in counts)


@dataclass(frozen=True, slots=True)
class UsageTotals:
    """The usage lines of a session: of how many model calls they tell, and the prompt tokens of all of them.

    by_call: whether they tell it call by call, rather than as one sum.
    """

    calls: int = 0
    prompt: int = 0
    by_call: bool = True


class UsageTally:
    """Counts usage lines by the name of their call, so that a line that is repeated counts once. Full when its session is read."""

    def __init__(self) -> None:
        self._prompts: dict[object, int] = {}
        self._summed: UsageTotals | None = None

    def add(self, call: object, usage: Usage | None) -> None:
        """A usage line of this call; a later one takes the place of an earlier one."""
        if usage is not None and usage.prompt > 0 and is_believable(usage):
            self._prompts[call] = usage.prompt

    def sum_up(self, told: UsageTotals) -> None:
        """The recording gives the sum itself."""
        self._summed = told

    @property
    def told(self) -> UsageTotals:
        """What was told of usage so far."""
        return self._summed or UsageTotals(len(self._prompts), sum(self._prompts.values()))
