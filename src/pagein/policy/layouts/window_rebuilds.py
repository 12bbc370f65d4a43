"""Rebuilds of the pooled window: find the first content from which a rewrite of the rest of the prompt pays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pagein.policy.tiers.frozen_order import CacheTerms

_AHEAD: Final = 1.5
"""How far beyond the present funds a breakpoint is set for a rebuild to come."""
_RECALLED: Final = 0.1
"""Share of the contents that the model wants back: each costs a request."""


@dataclass(frozen=True, slots=True)
class ShownContent:
    """A content in the window.

    version: the version that is shown.
    present: the version to which the edits in the calls behind it lead.
    behind: number of messages in front of it.
    front: tokens of conversation, news and contents in front of it.
    owed: what its tokens have cost since it was last active, in uncached input tokens.
    is_live: whether it is the present content of an active object.
    """

    id: str
    version: str
    present: str
    behind: int
    front: float
    tokens: float
    owed: float = 0.0
    is_live: bool = True


def first_to_leave(
    standing: Sequence[ShownContent],
    talk: float,
    readable: float,
    funds: float,
    terms: CacheTerms,
    floor: int = 0,
) -> tuple[int, float, int]:
    """Return the place of the first content of the best rebuild, what the rebuild costs, and where the next one is likely.

    A place is the number of contents if there is no such rebuild. A rebuild pays when the contents that leave have cost as
    much since they left the active set as writing all behind the first of them again. An object never leaves by its newest
    content alone: an earlier one that stays would be taken for it.

    readable: tokens in front of the breakpoint that was set for a rebuild. funds: what a rebuild may cost at most.
    floor: messages at the beginning that must stay as they were sent.
    """
    whole = talk + sum(one.tokens for one in standing)
    first, cost, likely = len(standing), 0.0, len(standing)
    oldest = {one.id: place for place, one in reversed(list(enumerate(standing)))}
    least, met = len(standing), set[str]()
    most, hope = 0.0, float("-inf")
    owed, gone, left = 0.0, 0.0, 0
    for place in range(len(standing) - 1, -1, -1):
        one = standing[place]
        if one.behind < floor:
            break
        if one.id not in met and not one.is_live:
            least = min(least, oldest[one.id])
        met.add(one.id)
        if one.is_live:
            continue
        owed, gone, left = owed + one.owed, gone + one.tokens, left + 1
        if place > least:
            continue
        reads = one.front if terms.anywhere else readable if readable <= one.front else 0.0
        recalls = _RECALLED * left * terms.read * (whole - gone)
        rewrite = (terms.write - terms.read) * (whole - reads - gone)
        if owed - rewrite - recalls > most and rewrite <= funds:
            first, most, cost = place, owed - rewrite - recalls, rewrite
        rewrite = (terms.write - terms.read) * (whole - one.front - gone)  # with a breakpoint in front of it
        if likely == len(standing) or (owed - rewrite - recalls > hope and rewrite <= _AHEAD * funds):
            likely, hope = place, owed - rewrite - recalls
    return first, cost, likely
