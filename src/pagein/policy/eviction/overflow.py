"""Rewrites independent of price: a person's order, and a nearly full window.

Rules of this file
------------------
1. An *ordered* epoch evicts every result that is old enough; nothing waits for its rent.
2. *Overflow* begins where a conservative estimate passes a share of the window (`Valve.share`), if the bankroll covers
   the rewrite. Past a second share (`Valve.limit`) it begins whatever the rewrite costs, because the provider may
   refuse the next request. Age and recent recalls count for nothing then: results are evicted oldest first, down to a
   lower share, so that the next overflow is far off. The last group and pinned results stay. Where results are not
   enough, failed outputs are evicted too, then long user texts, then whole turns (`engine.window.full_window`).
3. Only where that is not enough the client's own compaction is let through (`engine.window.eviction`).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from pagein.errors import BadSetting
from pagein.model.entries import UNCACHED
from pagein.policy.economics.rewrite_cost import (
    CAUTION,
    Account,
    Moment,
    account_after_call,
    account_after_rewrite,
    bankroll,
    readable_tokens,
    rewrite_cost,
)
from pagein.policy.eviction.residency import Epoch, EpochPlan, Residency, Resident, ResidentSet
from pagein.policy.stubs.paste_stubs import check_chars

ORDERED: Final = "the user's word"
FULL: Final = "window nearly full"
RESTORED: Final = "restored"


@dataclass(frozen=True, slots=True)
class Valve:
    """Settings of overflow, in shares of the window.

    share: where overflow begins if the bankroll covers the rewrite; 0: never.
    low: share down to which results are evicted.
    limit: where overflow begins whatever the rewrite costs; the larger of `share` and `limit` counts.
    window: tokens that the model's window holds; None: from the table of models, and no overflow for an unlisted model.
    pastes: characters from which a long user text may leave where results are not enough; 0: never.
    """

    share: float = 0.9
    low: float = 0.6
    window: int | None = None
    pastes: int = 4000
    limit: float = 0.97

    def __post_init__(self) -> None:
        if not 0 <= self.low <= 1 or not 0 <= self.share <= 1 or (self.share and self.low > self.share):
            raise BadSetting(f"a valve opens at a share of 0 to 1 and empties to less, not {self.share} and {self.low}")
        if not 0 <= self.limit <= 1:
            raise BadSetting(f"valve_limit is a share of the window from 0 to 1, not {self.limit}")
        if self.window is not None and self.window < 1:
            raise BadSetting(f"window must be 1 token or more, not {self.window}")
        check_chars(self.pastes)


SAFE: Final = Valve()
NO_VALVE: Final = Valve(share=0.0, low=0.0)


@dataclass(frozen=True, slots=True)
class ReturningResult:
    """A result that returns to the window.

    message: index of its message. before: tokens in front of that message. tokens: size of the result.
    """

    message: int
    before: int
    tokens: int


def is_at_limit(valve: Valve, window: int | None, tokens: float) -> bool:
    """Return whether this many tokens exceed the share for overflow at any cost."""
    return bool(window and valve.share) and tokens > max(valve.share, valve.limit) * (window or 0)


def is_covered(planned: EpochPlan, settings: Residency) -> bool:
    """Return whether the bankroll covers the rewrite of this plan; True if no prices are known."""
    economics, alone = settings.economics, planned.alone
    if economics is None:
        return True
    return CAUTION * max(0.0, alone.saved - planned.account.saved) <= bankroll(alone, economics)


def user_plan(
    standing: ResidentSet, settings: Residency, moment: Moment, account: Account, held: Collection[str] = ()
) -> EpochPlan:
    """Plan a person's order to evict every old enough result, except the results of held calls."""
    candidates = [one for one in chain(standing.old(), standing.ripe()) if one.call_id not in held]
    return plan_of(candidates, settings, moment, account, ORDERED)


def overflow_plan(
    kinds: Iterable[Iterable[Resident]],
    settings: Residency,
    moment: Moment,
    account: Account,
    *,
    most: float,
    newest: int,
    held: Collection[str] = (),
) -> EpochPlan:
    """Plan the eviction of the first candidates until `most` estimated tokens are gone.

    kinds: candidates, one kind after another, oldest first in each.
    newest: index of the upcoming call; results that it would show for the first time stay.
    held: calls with results that stay all the same.
    """
    going: list[Resident] = []
    spared = 0
    for kind in kinds:
        for one in kind:
            if spared >= most and going and one.born != going[-1].born:
                break
            if one.born < newest and one.call_id not in held and one.gain > 0:
                going.append(one)
                spared += one.gain
        if spared >= most:
            break
    return plan_of(going, settings, moment, account, FULL)


def plan_of(
    candidates: Iterable[Resident], settings: Residency, moment: Moment, account: Account, reason: str
) -> EpochPlan:
    """Plan the eviction of exactly these candidates; without any, the plan to do nothing."""
    going = tuple(sorted(candidates, key=lambda one: (one.message, one.block)))
    alone = account if settings.economics is None else account_after_call(account, moment, settings.economics)
    if not going:
        return EpochPlan(None, alone, alone)
    return _charge_plan(EpochPlan(Epoch(going[0].message, going, reason), alone, alone), settings, moment)


def with_returns(
    planned: EpochPlan, settings: Residency, moment: Moment, coming: Sequence[ReturningResult], reason: str
) -> EpochPlan:
    """Add results that return to the window, one or more, to the same rewrite.

    reason: reason of an epoch that nothing else asks for.
    """
    epoch = planned.epoch or Epoch(coming[0].message, (), reason)
    epoch = replace(epoch, reason=reason) if epoch.reason in UNCACHED else epoch
    first = min(epoch.frontier, *(one.message for one in coming))
    whole = replace(planned, epoch=replace(epoch, frontier=first), is_short=False)
    return _charge_plan(whole, settings, moment, coming)


def _charge_plan(
    planned: EpochPlan, settings: Residency, moment: Moment, coming: Sequence[ReturningResult] = ()
) -> EpochPlan:
    economics = settings.economics
    if economics is None or planned.epoch is None:
        return planned
    going = planned.epoch.page_out
    gain = planned.epoch.gain - sum(one.tokens for one in coming)
    first = min([one.before for one in going] + [one.before for one in coming])
    before = readable_tokens(planned.alone, economics, first)
    if economics.at_marks and not before:  # no entry ends at the prompt prefix: its last part may be written again too
        economics = replace(economics, keeps_front=False)
    cost = rewrite_cost(moment, economics, before, gain)
    return replace(planned, account=account_after_rewrite(planned.alone, moment, economics, cost, gain))
