"""Mask very large arguments on entry, before any request shows the text.

The model wrote them in its last answer, and no request has carried them yet. So no cache holds them, and their masks need
no rewrite. A keep-alive or an unmodified request in between may have cached them: then they stay, and leave by the table.
"""

from collections.abc import Collection
from dataclasses import replace

from pagein.engine.log import argument_masks
from pagein.engine.log.argument_masks import CallMessage, successful_calls
from pagein.engine.log.request_draft import pieces_since, shared_length
from pagein.engine.log.state import State
from pagein.model.entries import MASKED_ON_ENTRY
from pagein.model.messages import ToolCall
from pagein.policy.economics.rewrite_cost import HELD_BACK, Moment, certain_part, price_factor
from pagein.policy.eviction.residency import Epoch, EpochPlan, Residency
from pagein.policy.eviction.residents import Resident


def masked_on_entry(
    state: State, residency: Residency, stays: Collection[str], excluded: tuple[str, ...]
) -> tuple[Resident, ...]:
    """Return the arguments in the model's last answer that are masked on entry.

    stays: calls whose arguments stay in any case. excluded: name patterns of files whose content is never stored.
    """
    rules, asking = residency.arguments, CallMessage.of(state.draft.tip)
    if rules is None or rules.on_entry is None or asking is None or (rules.guarded and not state.guarded):
        return ()
    least = rules.on_entry
    big = [
        one.id
        for one in asking.piece.message.blocks
        if isinstance(one, ToolCall) and len(one.arguments) >= least and one.id not in stays
    ]
    if not big or state.hand.off or shared_length(state.sent, state.draft.tip) > asking.place:
        return ()
    news = pieces_since(state.draft.ready.tip, asking.place + 1)
    answered = {call: born for piece in news for call, born in successful_calls(piece) if call in big}
    found = argument_masks.residents(asking, answered, state.hand, rules, excluded)
    return tuple(one for one in found if one.form == "texts")


def with_masked_on_entry(
    planned: EpochPlan, entering: tuple[Resident, ...], residency: Residency, moment: Moment
) -> EpochPlan:
    """Add arguments masked on entry to a plan. No cache ever holds the text, which saves the write and the reads."""
    economics = residency.economics
    if not entering:
        return planned
    going = () if planned.epoch is None else planned.epoch.page_out
    gone = {one.place for one in going}
    page_out = tuple(sorted((*(one for one in entering if one.place not in gone), *going), key=lambda one: one.place))
    places = frozenset(one.place for one in entering)
    epoch = planned.epoch or Epoch(0, reason=MASKED_ON_ENTRY)
    epoch = replace(epoch, frontier=page_out[0].message, page_out=page_out, entering=places)
    gain, account = sum(one.gain for one in entering), planned.account
    if economics is not None:
        spared = HELD_BACK * price_factor(moment, economics) * economics.write * certain_part(moment.scale) * gain
        account = replace(account, saved=account.saved + spared, absent=account.absent + gain)
    return replace(planned, epoch=epoch, account=account)
