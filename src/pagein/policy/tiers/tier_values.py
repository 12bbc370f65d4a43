"""The values of stability tiers: tiers, tracked items, and the knowledge of them after a request.

An item is a file, the symbol entry of a file, a page from the web, or a message of the history. Its N counts the
requests since it last changed. Items with a high N are cached in front of the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

Tier: TypeAlias = Literal["active", "L3", "L2", "L1", "L0"]
"""A tier, from the least stable (`active`, not cached) to the most stable (`L0`)."""

SYMBOL: Final = "symbol:"
HISTORY: Final = "history:"
URL: Final = "url:"
"""The beginnings of the keys of items that are no files. The key of a file is its path."""
PLACEHOLDER: Final = "heuristic:"
"""The beginning of a digest that stands for content that nobody has measured yet."""


@dataclass(frozen=True, slots=True)
class TierBand:
    """A tier's thresholds.

    entry_n: the N of an item that enters the tier.
    promotion_n: the N at which an item goes on to the tier above; None for the last tier.
    above: the tier above; None for the last tier.
    """

    tier: Tier
    entry_n: int
    promotion_n: int | None
    above: Tier | None


BANDS: Final = (
    TierBand("active", 0, 3, "L3"),
    TierBand("L3", 3, 6, "L2"),
    TierBand("L2", 6, 9, "L1"),
    TierBand("L1", 9, 12, "L0"),
    TierBand("L0", 12, None, None),
)
"""The tiers from the least to the most stable."""
BAND_OF: Final[Mapping[Tier, TierBand]] = {band.tier: band for band in BANDS}
CACHED: Final[tuple[Tier, ...]] = ("L0", "L1", "L2", "L3")
"""The cached tiers in the order of the prompt."""


@dataclass(frozen=True, slots=True)
class TierItem:
    """A tracked item.

    digest: identifies its content.
    n: requests since it last changed, as its tier counts them.
    changes: how often it changed, for the promotion `rewritten`.
    since: the number of the request in which it entered its tier.
    """

    digest: str
    n: int = 0
    tier: Tier = "active"
    changes: int = 0
    since: int = 0


@dataclass(frozen=True, slots=True)
class RequestItem:
    """An item in a request.

    digest: identifies its content; None for content that could not be read.
    tokens: size of its text.
    """

    key: str
    digest: str | None
    tokens: float = 0.0


@dataclass(frozen=True, slots=True)
class TierState:
    """The knowledge of every item after a request. Replaced as a whole, never changed.

    items: the tracked items, by key, in the order of their first appearance.
    last_active: keys of the active list of the last request, history included.
    listed: the files and symbols among them, to recognise a ripple; empty after a restart.
    responses: number of requests so far.
    order: keys of the cached items in the order of the prompt, for the promotion `rewritten`.
    entries: places in this order, as numbers of items in front, where the provider has a cache entry.
    rewritten: whether this order changed with the last request, so that what stands behind is written again.
    regret: the price so far of items that wait outside the cache, in tokens of uncached input.
    """

    items: Mapping[str, TierItem] = field(default_factory=dict)
    last_active: tuple[str, ...] = ()
    listed: frozenset[str] = frozenset()
    responses: int = 0
    order: tuple[str, ...] = ()
    entries: tuple[int, ...] = ()
    rewritten: bool = False
    regret: float = 0.0

    def tier(self, key: str) -> Tier:
        """The tier of an item. An unknown symbol counts as L3, any other unknown item as active."""
        known = self.items.get(key)
        return known.tier if known is not None else "L3" if key.startswith(SYMBOL) else "active"

    def tier_of_known(self, key: str) -> Tier:
        """The tier of an item; an unknown one of any kind counts as active."""
        known = self.items.get(key)
        return "active" if known is None else known.tier

    def n(self, key: str) -> int:
        """The N of an item; 0 for an unknown one."""
        known = self.items.get(key)
        return known.n if known is not None else 0

    def by_tier(self) -> dict[Tier, list[str]]:
        """The keys of each tier, by N from the highest, equal ones in the order of appearance."""
        found: dict[Tier, list[str]] = {band.tier: [] for band in BANDS}
        for key in sorted(self.items, key=lambda key: -self.items[key].n):
            found[self.items[key].tier].append(key)
        return found


START: Final = TierState()


def tier_for(n: int) -> Tier:
    """The highest tier that an N suffices for."""
    return next(band.tier for band in reversed(BANDS) if n >= band.entry_n)


def symbol_key(path: str) -> str:
    """The key of a file's symbol entry."""
    return SYMBOL + path
