"""The first tiers of items, from the number of references to each. No item starts in L0: L0 must be earned."""

from collections.abc import Sequence
from dataclasses import dataclass

from pagein.policy.tiers.tier_rules import Seeding
from pagein.policy.tiers.tier_values import BAND_OF, PLACEHOLDER, Tier, TierItem

_FIFTH, _HALF = 5, 2


@dataclass(frozen=True, slots=True)
class TierSeed:
    """An item before its first request.

    references: how often other files refer to it.
    tokens: its size; 0 if unknown.
    """

    key: str
    references: int
    tokens: float = 0.0


def seeded_tiers(items: Sequence[TierSeed], target: float = 0.0, seeding: Seeding = "count") -> dict[str, TierItem]:
    """Place items by their references, the most referenced first.

    target: size of a tier in tokens; L1 is filled to it, then L2, and L3 takes the rest. 0: by shares of 20, 30 and 50 %.
    seeding: whether these are shares of the items or of their tokens.

    The digests are placeholders: nobody has measured the content.
    """
    ranked = sorted(items, key=lambda one: -one.references)
    tiers = _filled(ranked, target) if target else _shared(ranked, seeding)
    return {
        one.key: TierItem(PLACEHOLDER + one.key, BAND_OF[tier].entry_n, tier)
        for one, tier in zip(ranked, tiers, strict=True)
    }


def _filled(ranked: Sequence[TierSeed], target: float) -> list[Tier]:
    tiers: list[Tier] = []
    levels: list[Tier] = ["L1", "L2", "L3"]
    filled = 0.0
    for one in ranked:
        if levels[0] != "L3" and filled >= target:
            del levels[0]
            filled = 0.0
        tiers.append(levels[0])
        filled += one.tokens
    return tiers


def _shared(ranked: Sequence[TierSeed], seeding: Seeding) -> list[Tier]:
    if seeding == "count" or not any(one.tokens for one in ranked):
        total = len(ranked)
        return ["L1" if place < total // _FIFTH else "L2" if place < total // _HALF else "L3" for place in range(total)]
    total_tokens = sum(one.tokens for one in ranked)
    tiers: list[Tier] = []
    before = 0.0
    for one in ranked:
        share = before / total_tokens
        tiers.append("L1" if share < 1 / _FIFTH else "L2" if share < 1 / _HALF else "L3")
        before += one.tokens
    return tiers
