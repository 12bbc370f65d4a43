"""How a policy fares in single sessions: median, quartiles, best and worst. A sum hides all but the longest sessions."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median, quantiles
from typing import Final

from pagein.model.bill import Figures, Spread

EQUAL: Final = 0.0005
"""Costs that differ by less than this share count as equal."""
_WITH_QUARTILES: Final = 2


def spreads(sessions: Iterable[Mapping[str, Figures]], baseline: str) -> dict[str, Spread]:
    """Return the spread of each policy over sessions, against the baseline. Sessions without the baseline are left out."""
    shares: dict[str, list[float]] = {}
    for session in sessions:
        base = session[baseline]["cost"] if baseline in session else 0.0
        for name, row in session.items():
            if base > 0:
                shares.setdefault(name, []).append(row["cost"] / base)
    return {name: _spread(some) for name, some in shares.items()}


def _spread(shares: Sequence[float]) -> Spread:
    low, high = shares[0], shares[0]
    if len(shares) >= _WITH_QUARTILES:
        low, _, high = quantiles(shares, n=4, method="inclusive")
    return Spread(
        sessions=len(shares),
        median=round(median(shares), 4),
        low=round(low, 4),
        high=round(high, 4),
        best=round(min(shares), 4),
        worst=round(max(shares), 4),
        cheaper=sum(share < 1 - EQUAL for share in shares),
        dearer=sum(share > 1 + EQUAL for share in shares),
    )
