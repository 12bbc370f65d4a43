"""The table of an item's transitions between tiers. The documentation prints the table.

Rules of this file
------------------
1. Every change of an item's tier or N by the ripple is a row of `TRANSITIONS`; `moved` reads nothing else.
2. A row with `until` holds while the new N is below it. From there on the row's `beyond` holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pagein.policy.tiers.tier_values import BAND_OF, BANDS, CACHED, Tier, TierItem

Event: TypeAlias = Literal["stay", "change", "leave", "meet", "anchor"]
"""What happens to an item in a request.

stay: it is in the active list, unchanged. change: its content changed, or the caller says so. leave: it was in the active
list and is not any more. meet: others enter its tier. anchor: others enter its tier, which is filled up to it.
"""

EVENTS: Final[Mapping[Event, str]] = {
    "stay": "is listed as active, unchanged",
    "change": "changes, or is named as modified",
    "leave": "leaves the active list",
    "meet": "others enter its tier",
    "anchor": "others enter its tier, which needs it to be large enough",
}


@dataclass(frozen=True, slots=True)
class Transition:
    """The tier and the N of an item after an event.

    to: its tier from now on.
    n: its N from now on; None for one more than before.
    same: its N stays.
    until: the N from which `beyond` holds; None for no limit.
    beyond: the tier above, entered with that tier's own N; None for no limit.
    """

    to: Tier
    n: int | None = None
    same: bool = False
    until: int | None = None
    beyond: Tier | None = None


def _rows() -> Mapping[tuple[Tier, Event], Transition]:
    rows: dict[tuple[Tier, Event], Transition] = {}
    for band in BANDS:
        rows[band.tier, "stay"] = Transition(band.tier)
        rows[band.tier, "change"] = Transition("active", 0)
    rows["active", "leave"] = Transition("L3", BAND_OF["L3"].entry_n)
    for tier in CACHED:
        rows[tier, "leave"] = Transition(tier, same=True)
        rows[tier, "meet"] = Transition(tier, until=BAND_OF[tier].promotion_n, beyond=BAND_OF[tier].above)
        rows[tier, "anchor"] = Transition(tier, same=True)
    return rows


TRANSITIONS: Final = _rows()
"""The row of each tier and event that can meet."""


def moved(item: TierItem, event: Event) -> TierItem:
    """An item after an event. Its digest stays."""
    row = TRANSITIONS[item.tier, event]
    n = item.n if row.same else item.n + 1 if row.n is None else row.n
    if row.until is not None and row.beyond is not None and n >= row.until:
        return TierItem(item.digest, BAND_OF[row.beyond].entry_n, row.beyond, item.changes, item.since)
    return TierItem(item.digest, n, row.to, item.changes, item.since)
