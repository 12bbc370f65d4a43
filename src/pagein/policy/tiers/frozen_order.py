"""The promotion `rewritten`: cached items keep their places until something in front of them is rewritten anyway.

The provider reads its cache up to the last entry in front of the first changed block. All behind it is written again,
in whatever order. So items move only there, by their tier, the most stable first. Otherwise an item enters the cache when it has
cost more outside than its entry will (the rule of rent or buy).

Rules of this file
------------------
1. The order up to the last readable entry is never touched, nor are the tiers of its items.
2. An item that never changed may enter at once. One that changed waits until its N suffices for L3.
3. Tiers go down along the order, so an item behind L2 is not in L1.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from pagein.policy.tiers.first_tiers import TierSeed, seeded_tiers
from pagein.policy.tiers.tier_rules import TierRules
from pagein.policy.tiers.tier_values import BAND_OF, BANDS, RequestItem, Tier, TierItem, TierState, tier_for
from pagein.policy.tiers.tracker import Move, TierOutcome, is_different
from pagein.policy.tiers.transitions import moved

_RANK: Final[Mapping[Tier, int]] = {band.tier: place for place, band in enumerate(BANDS)}
_NEW_ENTRIES: Final = 2


@dataclass(frozen=True, slots=True)
class CacheTerms:
    """A provider's cache prices, and the rule to find an entry.

    read, write: prices of a token, as multiples of uncached input.
    anywhere: whether every prefix of an earlier prompt can be read, not only those with a breakpoint.
    """

    read: float = 0.1
    write: float = 1.25
    anywhere: bool = False


@dataclass(frozen=True, slots=True)
class TierSurroundings:
    """What stands around the items in a request.

    behind: tokens of the conversation behind them, which a rewrite writes again.
    cold: whether the cache holds nothing any more, so that everything is written again.
    references: references to each item, for the first request.
    deselected: cached files that the user no longer works with, unchanged. They stay as long as nothing in front of them is
        rewritten, because their text is still true, and taking them out would cost a rewrite.
    """

    behind: float = 0.0
    cold: bool = False
    references: Mapping[str, int] | None = None
    deselected: frozenset[str] = frozenset()


def place_items(
    state: TierState,
    given: Sequence[RequestItem],
    rules: TierRules,
    terms: CacheTerms,
    around: TierSurroundings,
    *,
    modified: Collection[str] = (),
) -> TierOutcome:
    """Place the items of a request, changing nothing that the cache can read.

    given: every item of the request. Others are forgotten.
    modified: keys of changed items, symbol entries included.
    """
    if not state.items:
        return _first(state, given, rules, around)
    # Items of equal N keep the order that they had: of two that changed together, the front one is the more stable.
    places = {key: place for place, key in enumerate((*state.order, *state.last_active))}
    before = sorted(given, key=lambda one: places.get(one.key, len(places)))
    items = {one.key: _aged(state.items.get(one.key), one, rules, modified) for one in before if one.digest is not None}
    sizes = {one.key: one.tokens for one in given}
    kept = _unchanged_prefix(state, items)
    if around.cold or kept < len(state.order):
        entry = (
            0 if around.cold else kept if terms.anywhere else max((e for e in state.entries if e <= kept), default=0)
        )
        behind = state.order[entry:]
        items = {key: one for key, one in items.items() if key not in around.deselected or key not in behind}
        survivors = [key for key in behind if key in items and items[key].tier != "active"]
        return _rewritten(state, items, entry, [*survivors, *_waiting(items)], sizes)
    waiting = _waiting(items)
    regret = state.regret + (1 - terms.read) * sum(sizes[key] for key in waiting) if waiting else 0.0
    price = (terms.write - terms.read) * around.behind + (terms.write - 1) * sum(sizes[key] for key in waiting)
    if waiting and regret > price:
        return _rewritten(state, items, len(state.order), waiting, sizes)
    after = TierState(
        items, _active(items, sizes), frozenset(), state.responses + 1, state.order, state.entries, regret=regret
    )
    return TierOutcome(after, _moves(state, items))


def _aged(known: TierItem | None, one: RequestItem, rules: TierRules, modified: Collection[str]) -> TierItem:
    digest = one.digest or ""
    if known is None:
        return TierItem(digest)
    is_changed = one.key in modified or is_different(known, digest, rules)
    if not is_changed and known.digest == digest:
        return moved(known, "stay")
    aged = moved(known, "change" if is_changed else "stay")
    return replace(aged, digest=digest, changes=known.changes + is_changed)


def _first(state: TierState, given: Sequence[RequestItem], rules: TierRules, around: TierSurroundings) -> TierOutcome:
    """Place all items of a first request by their references: nothing is cached yet."""
    references = around.references or {}
    known = [one for one in given if one.digest is not None]
    ranks = [TierSeed(one.key, references.get(one.key, 0), one.tokens) for one in known]
    seeded = seeded_tiers(ranks, 0.0, rules.seeding) if any(rank.references for rank in ranks) else {}
    lowest = TierItem("", BAND_OF["L3"].entry_n, "L3")
    items = {one.key: replace(seeded.get(one.key, lowest), digest=one.digest or "") for one in known}
    sizes = {one.key: one.tokens for one in given}
    return _rewritten(state, items, 0, list(items), sizes)


def _unchanged_prefix(state: TierState, items: Mapping[str, TierItem]) -> int:
    """The number of items at the front of the order that are still given and did not change."""
    changed = (place for place, key in enumerate(state.order) if key not in items or items[key].tier == "active")
    return next(changed, len(state.order))


def _waiting(items: Mapping[str, TierItem]) -> list[str]:
    """The uncached items that may enter the cache."""
    least = BAND_OF["L3"].entry_n
    return [key for key, one in items.items() if one.tier == "active" and (one.n >= least or not one.changes)]


def _rewritten(
    state: TierState, items: dict[str, TierItem], entry: int, moving: Sequence[str], sizes: Mapping[str, float]
) -> TierOutcome:
    """Put items behind the last readable entry, and choose the entries among them."""
    kept = state.order[:entry]
    placed = _sorted(moving, items, sizes)
    highest = _RANK[items[kept[-1]].tier] if kept else len(BANDS)
    for key in placed:
        wanted = tier_for(max(items[key].n, BAND_OF["L3"].entry_n))
        highest = min(highest, _RANK[wanted])
        items[key] = replace(items[key], tier=BANDS[highest].tier)
    order = (*kept, *placed)
    old = [place for place in state.entries if 0 < place <= entry]
    fronts = list(accumulate((sizes[key] for key in order), initial=0.0))
    risks = [1 / (items[key].n + 1) ** 2 for key in order]
    new = _splits(fronts, risks, entry, _NEW_ENTRIES - bool(old))
    entries = tuple(sorted({*old, *new, *([len(order)] if order else [])}))
    after = TierState(items, _active(items, sizes), frozenset(), state.responses + 1, order, entries, rewritten=True)
    moves = _moves(state, items)
    return TierOutcome(after, moves, frozenset(items[key].tier for key in placed))


def _splits(fronts: Sequence[float], risks: Sequence[float], entry: int, count: int) -> list[int]:
    """The places with the greatest savings when an item behind them changes, chosen in turn.

    fronts: tokens in front of each place. risks: how likely each item is to change, in any unit.
    """
    behind = [*reversed(list(accumulate(reversed(risks)))), 0.0]
    chosen = [entry]
    for _ in range(count):
        best, gain = 0, 0.0
        for place in range(entry + 1, len(risks)):
            before = max(one for one in chosen if one <= place)
            until = min((one for one in chosen if one > place), default=len(risks))
            spared = (behind[place] - behind[until]) * (fronts[place] - fronts[before])
            if spared > gain:
                best, gain = place, spared
        if gain:
            chosen.append(best)
    return chosen[1:]


def _active(items: Mapping[str, TierItem], sizes: Mapping[str, float]) -> tuple[str, ...]:
    """The uncached items: the next to enter stand first."""
    return tuple(_sorted([key for key, one in items.items() if one.tier == "active"], items, sizes))


def _sorted(keys: Iterable[str], items: Mapping[str, TierItem], sizes: Mapping[str, float]) -> list[str]:
    """Items by tier, and within a tier by the changes to expect for each token, the fewest first.

    A change in front voids what stands behind it. So of two items the one with fewer changes for its size goes first.
    """

    def place(key: str) -> tuple[int, float]:
        one = items[key]
        return -_RANK[tier_for(one.n)], (one.changes + 0.5) / (one.n + 1) / max(sizes[key], 1.0)

    return sorted(keys, key=place)


def _moves(state: TierState, items: Mapping[str, TierItem]) -> tuple[Move, ...]:
    pairs: list[tuple[str, Tier, Tier]] = [(key, state.tier_of_known(key), one.tier) for key, one in items.items()]
    return tuple(Move(key, before, after) for key, before, after in pairs if before != after)
