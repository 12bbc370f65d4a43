"""The tracker of tiers: from the active list of a request to the tiers after it, by ripple promotion.

Rules of this file
------------------
1. Items change in the order of the active list, then those that left it enter L3 as one batch, then the ripple runs.
2. An item that is listed as active and unchanged gains N, also if it sits in a cached tier.
3. In a ripple, items of a tier gain N once, however many items enter.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from pagein.policy.tiers.tier_rules import TierRules
from pagein.policy.tiers.tier_values import (
    BAND_OF,
    HISTORY,
    PLACEHOLDER,
    SYMBOL,
    RequestItem,
    Tier,
    TierItem,
    TierState,
    symbol_key,
)
from pagein.policy.tiers.transitions import moved


@dataclass(frozen=True, slots=True)
class Move:
    """An item went from one tier to another."""

    key: str
    before: Tier
    after: Tier


@dataclass(frozen=True, slots=True)
class TierOutcome:
    """The tiers after a request.

    moves: promotions and demotions, in their order.
    broken: tiers whose content changed.
    """

    state: TierState
    moves: tuple[Move, ...] = ()
    broken: frozenset[Tier] = frozenset()


def track(
    state: TierState,
    active: Sequence[RequestItem],
    rules: TierRules,
    *,
    modified: Collection[str] = (),
    tokens: Callable[[str], float] | None = None,
) -> TierOutcome:
    """Track a request by its active list.

    active: the items in the active list; one without a digest is skipped.
    modified: keys of items that count as changed, whatever their content. A file stands for its symbol entry too.
    tokens: the size of an item; None for promotions without regard to sizes.
    """
    changed = with_symbols(modified)
    items = dict(state.items)
    moves: list[Move] = []
    for one in active:
        if one.digest is None:
            continue
        known = items.get(one.key)
        if known is None:
            items[one.key] = TierItem(one.digest)
            continue
        is_changed = one.key in changed or is_different(known, one.digest, rules)
        aged = moved(known, "change" if is_changed else "stay")
        items[one.key] = aged if aged.digest == one.digest else replace(aged, digest=one.digest)
        if is_changed and known.tier != "active":
            moves.append(Move(one.key, known.tier, "active"))
    names = {one.key for one in active}
    left = [key for key in state.last_active if key not in names and key in items and items[key].tier == "active"]
    entering = [key for key in left if rules.leaving == "any" or items[key].n >= BAND_OF["L3"].entry_n]
    for key in left:
        if key not in entering and not key.startswith(HISTORY):
            del items[key]
    for key in entering:
        items[key] = moved(items[key], "leave")
        moves.append(Move(key, "active", "L3"))
    moves += _ripple(items, entering, rules.target_tokens if rules.anchors else 0, tokens)
    for key, item in items.items():
        if item.tier != state.tier_of_known(key):
            items[key] = replace(item, since=state.responses + 1)
    last = tuple(dict.fromkeys(one.key for one in active))
    after = replace(state, items=items, last_active=last, responses=state.responses + 1)
    broken = frozenset(tier for one in moves for tier in (one.before, one.after) if tier != "active")
    return TierOutcome(after, tuple(moves), broken)


def _ripple(
    items: dict[str, TierItem],
    entering: Sequence[str],
    target: float,
    tokens: Callable[[str], float] | None,
) -> list[Move]:
    """Let the items of each tier meet the entering items, tier by tier, until no item is promoted."""
    moves: list[Move] = []
    tier: Tier | None = "L3"
    while entering and tier is not None:
        there = set(entering)
        veterans = [key for key, item in items.items() if item.tier == tier and key not in there]
        anchored = _anchors(items, entering, veterans, target, tokens)
        above = BAND_OF[tier].above
        promoted = []
        for key in veterans:
            items[key] = moved(items[key], "anchor" if key in anchored else "meet")
            if items[key].tier != tier:
                promoted.append(key)
                moves.append(Move(key, tier, items[key].tier))
        entering, tier = promoted, above
    return moves


def _anchors(
    items: dict[str, TierItem],
    entering: Iterable[str],
    veterans: Sequence[str],
    target: float,
    tokens: Callable[[str], float] | None,
) -> set[str]:
    """The items that fill a tier to its target behind the entering items, lowest N first."""
    if not target or tokens is None:
        return set()
    filled = sum(tokens(key) for key in entering)
    anchored: set[str] = set()
    for key in sorted(veterans, key=lambda key: items[key].n):
        if filled >= target:
            break
        anchored.add(key)
        filled += tokens(key)
    return anchored


def is_different(known: TierItem, digest: str, rules: TierRules) -> bool:
    """Whether an item's content differs from its tracked content."""
    if rules.placeholder == "matches" and known.digest.startswith(PLACEHOLDER):
        return False
    return known.digest != digest


def with_symbols(modified: Iterable[str]) -> frozenset[str]:
    """The keys of modified files, with those of their symbol entries."""
    keys = tuple(modified)
    return frozenset((*keys, *(symbol_key(key) for key in keys if not key.startswith((SYMBOL, HISTORY)))))


def without_prefix(state: TierState, prefix: str) -> tuple[TierState, tuple[str, ...]]:
    """Forget every item by the beginning of its key, and return the keys. For a compacted or cleared history."""
    gone = tuple(key for key in state.items if key.startswith(prefix))
    kept = {key: item for key, item in state.items.items() if not key.startswith(prefix)}
    last = tuple(key for key in state.last_active if not key.startswith(prefix))
    order = tuple(key for key in state.order if not key.startswith(prefix))
    entries = tuple(place for place in state.entries if state.order[:place] == order[:place])
    listed = frozenset(key for key in state.listed if not key.startswith(prefix))
    return replace(state, items=kept, last_active=last, order=order, entries=entries, listed=listed), gone


def without_absent(state: TierState, given: Collection[str]) -> TierState:
    """Forget every item that is not given any more."""
    gone = [key for key in state.items if key not in given]
    if not gone:
        return state
    kept = {key: item for key, item in state.items.items() if key in given}
    last = tuple(key for key in state.last_active if key in given)
    return replace(state, items=kept, last_active=last, listed=state.listed & frozenset(given))
