"""Protection of old results that a recent answer depends on (law 2)."""

from dataclasses import replace

from pagein.policy.economics.rewrite_cost import Moment, account_after_rewrite, pays, rewrite_cost
from pagein.policy.eviction.residency import EpochPlan, Residency, ResidentSet


def plan_without(
    planned: EpochPlan, held: frozenset[str], standing: ResidentSet, settings: Residency, moment: Moment
) -> EpochPlan:
    """Return the plan without the results of held calls if the rest still pays, else the plan to do nothing."""
    if planned.epoch is None or held.isdisjoint(one.call_id for one in planned.epoch.page_out):
        return planned
    nothing = EpochPlan(None, planned.alone, planned.alone)
    going = tuple(one for one in planned.epoch.page_out if one.call_id not in held)
    if not going:
        return nothing
    epoch = replace(planned.epoch, frontier=min(one.message for one in going), page_out=going)
    economics = settings.economics
    if economics is None:
        enough = sum(one.tokens for one in going) >= settings.batch_tokens
        return replace(planned, epoch=epoch) if enough else nothing
    gain = epoch.gain
    whole = planned.epoch.gain
    if gain <= economics.entrance or not whole:
        return nothing
    cost = rewrite_cost(moment, economics, min(one.before for one in going), gain)
    # rent is not recorded per result; assume that every result waited equally long
    rent = moment.scale * standing.rent(economics.read) * gain / whole
    if not pays(rent, cost, moment, economics, planned.alone):
        return nothing
    return EpochPlan(epoch, account_after_rewrite(planned.alone, moment, economics, cost, gain), planned.alone)
