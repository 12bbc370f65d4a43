"""Results shown once: big outputs that a single request shows, after its last cache breakpoint.

Nothing after the last breakpoint is written to the cache. So an output there costs no write, and a stub can take its
place in the next request without a rewrite. The price: what stands behind the output and stays is written one call later.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pagein.policy.economics.rewrite_cost import (
    BELOW,
    CAUTION,
    Account,
    Economics,
    Moment,
    bankroll,
    is_above_cliff,
    price_factor,
)
from pagein.policy.eviction.residents import Resident

HORIZON: Final = 12
"""Assumed number of future calls that would carry the output."""
LEAST_GAIN: Final = 300.0
"""Least expected saving, in BIT."""
LEAST_IN_FRONT: Final = 5_000
"""Least tokens of the prompt in front of the output. A shorter prefix may be too small to be cached."""


@dataclass(frozen=True, slots=True)
class TailBlock:
    """A block behind the model's latest answer.

    tokens: its estimated tokens.
    resident: the output, if it may be shown once; None if the block stays.
    """

    tokens: int
    resident: Resident | None = None


@dataclass(frozen=True, slots=True)
class ResultsShownOnce:
    """The outputs that a request shows once, in the order of the window.

    saved: saving by the time of the next request, in BIT, against a request that caches its whole tail. Negative where
        more has to be written later than is spared.
    expected: the same over the assumed number of calls that would carry the outputs.
    """

    residents: tuple[Resident, ...]
    saved: float
    expected: float

    @property
    def calls(self) -> tuple[str, ...]:
        """The ids of the calls with these outputs."""
        return tuple(one.call_id for one in self.residents)


def results_shown_once(
    tail: Sequence[TailBlock], moment: Moment, economics: Economics, account: Account
) -> ResultsShownOnce | None:
    """Return the outputs in the tail to show once; None for a choice without gain or beyond the allowed risk.

    Only for a cache with entries at breakpoints: elsewhere the provider caches the tail by itself.
    """
    if not economics.at_marks or economics.uncached is not None or economics.void or economics.entrance:
        return None
    best: ResultsShownOnce | None = None
    most = LEAST_GAIN
    gain = stays = 0
    going: list[Resident] = []
    for block in reversed(tail):
        if block.resident is None:
            stays += block.tokens
            continue
        going.append(block.resident)
        gain += block.resident.gain
        stays += block.resident.stays
        value = _value(gain, stays, HORIZON, moment, economics)
        if value > most and _has_front(block.resident, moment, economics):
            found = ResultsShownOnce(tuple(reversed(going)), _value(gain, stays, 0, moment, economics), value)
            if CAUTION * -found.saved <= bankroll(account, economics):
                best, most = found, value
    return best


def _value(gain: int, stays: int, calls: int, moment: Moment, economics: Economics) -> float:
    """Return the saving in BIT after this many further calls: `gain` tokens left, `stays` tokens were written later."""
    each = economics.write - 1.0 + economics.read * calls
    surely = min(1.0, moment.scale)  # a scale above 1 may tell of tokens that do not leave with a result
    dense = max(1.0, moment.scale)
    saved = price_factor(moment, economics) * (surely * gain * each - dense * stays * (1.0 - economics.read))
    steep = economics.cliff.input if economics.cliff is not None and is_above_cliff(moment, economics, BELOW) else 1.0
    return saved if saved > 0.0 else steep * saved  # losses, but no savings, at the price above a cliff


def _has_front(first: Resident, moment: Moment, economics: Economics) -> bool:
    """Return whether enough of the prompt stands in front of an output to be cached without it."""
    return moment.floor + moment.scale * first.before >= max(LEAST_IN_FRONT, CAUTION * economics.least)
