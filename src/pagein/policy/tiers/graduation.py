"""Graduation: decide which items move from the active list into a cached tier.

Files and symbol entries leave with N of 3 or more. Messages of the history leave on a ripple, or when they are enough to
fill a cached block; never without a target.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pagein.policy.tiers.tier_rules import TierRules
from pagein.policy.tiers.tier_values import BAND_OF, RequestItem, TierState
from pagein.policy.tiers.tracker import is_different

_STABLE = BAND_OF["L3"].entry_n


@dataclass(frozen=True, slots=True)
class ActiveList:
    """The active list of a request.

    listed: the files and symbol entries in it.
    ripple: whether this set differs from the one before.
    """

    items: tuple[RequestItem, ...]
    listed: frozenset[str]
    ripple: bool


def active_list(
    state: TierState,
    items: Sequence[RequestItem],
    history: Sequence[RequestItem],
    rules: TierRules,
    modified: Collection[str] = (),
) -> ActiveList:
    """The active list of a request: what has not graduated.

    items: the selected files, and their symbol entries.
    history: all messages, oldest first.
    modified: keys of changed items, symbol entries included.
    """
    standing = [one for one in items if _stays(state, one, rules, modified)]
    listed = frozenset(one.key for one in standing)
    ripple = listed != state.listed
    gone = graduated_history(state, history, rules, ripple=ripple)
    messages = [one for one in history if one.key not in gone and state.tier(one.key) == "active"]
    return ActiveList((*standing, *messages), listed, ripple)


def _stays(state: TierState, one: RequestItem, rules: TierRules, modified: Collection[str]) -> bool:
    known = state.items.get(one.key)
    if known is None or known.n < _STABLE or one.key in modified:
        return True
    return one.digest is not None and is_different(known, one.digest, rules)


def graduated_history(
    state: TierState, history: Sequence[RequestItem], rules: TierRules, *, ripple: bool
) -> frozenset[str]:
    """The keys of messages that leave the active list."""
    if not rules.target_tokens or rules.history_place == "conversation":
        return frozenset()
    youngest = 0 if rules.history_age == "at once" else _STABLE
    active = [one for one in history if one.key in state.items and state.tier(one.key) == "active"]
    eligible = [one for one in active if state.n(one.key) >= youngest]
    if ripple:
        return frozenset(one.key for one in eligible)
    if sum(one.tokens for one in eligible) <= rules.target_tokens:
        return frozenset()
    return frozenset(eligible[place].key for place in oldest([one.tokens for one in eligible], rules.target_tokens))


def oldest(sizes: Sequence[float], keep: float) -> range:
    """The places of leaving messages, while the newest within `keep` tokens stay.

    The newest message that does not fit leaves, with all messages before it.
    """
    kept = 0.0
    for place in range(len(sizes) - 1, -1, -1):
        kept += sizes[place]
        if kept > keep:
            return range(place + 1)
    return range(0)
