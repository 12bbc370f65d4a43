"""Inputs of a decision before a model call: large outputs, their cost as previews, eviction candidates."""

from pagein.engine.log.pageout import EvictionCandidate, PreviewCandidate
from pagein.engine.log.request_draft import WindowPiece, pieces_since
from pagein.engine.log.server_residents import result_of
from pagein.engine.log.state import Rules, State
from pagein.model.entries import PagedOut
from pagein.model.messages import Other, Text, ToolCall, ToolResult
from pagein.policy.economics.rewrite_cost import (
    CAUTION,
    Account,
    Moment,
    bankroll,
    economics_at_entrance,
    falls_short,
    falls_short_unreported,
    rewrite_cost,
)
from pagein.policy.economics.rewrite_cost import account_with_previews as with_previews
from pagein.policy.eviction.residency import Epoch, Residency, is_removable
from pagein.policy.privacy.exclusions import may_show_excluded
from pagein.policy.stubs.previews import Previews, is_previewed
from pagein.policy.stubs.recall_ways import EnteringTools


def warm_calls(state: State) -> frozenset[str]:
    """Return the calls whose results show recently recalled text."""
    warm = state.warm
    if not warm.tool_calls and not warm.objects:
        return frozenset()
    calls = (state.hand.calls.get(one) for one in warm.objects)
    return frozenset(warm.tool_calls) | frozenset(call for call in calls if call is not None)


def preview_candidates(state: State, rules: Rules, settings: Previews) -> list[PreviewCandidate]:
    """Return the outputs since the last request that are to enter as previews."""
    asked = state.draft.tip.piece.message.blocks if state.draft.tip is not None else ()
    calls = {block.id: block for block in asked if isinstance(block, ToolCall)}
    found: list[PreviewCandidate] = []
    for place, piece in state.draft.news:
        counts = iter(piece.tokens)
        for index, block in enumerate(piece.message.blocks):
            if not isinstance(block, ToolResult):
                continue
            tokens = next(counts, 0)
            call = calls.get(block.call_id)
            # most results are too short, and need no other question
            if call is None or len(block.text) < settings.chars or not is_removable(block, tokens, rules.residency):
                continue
            if may_show_excluded(call, rules.excluded):
                continue
            if is_previewed(call, block, settings):
                found.append(PreviewCandidate(block, block.name or call.name, tokens, (place, index)))
    return found


def account_after_previews(
    account: Account, previews: tuple[PagedOut, ...], residency: Residency, scale: float
) -> Account:
    """Return the account after large outputs entered as previews."""
    if residency.economics is None or not previews:
        return account
    return with_previews(account, residency.economics, _tokens_spared(previews), scale)


def _tokens_spared(previews: tuple[PagedOut, ...]) -> int:
    """Return the tokens that previews keep out of the window."""
    return sum(one.tokens - round(len(one.stub) * one.tokens / one.chars) for one in previews if one.chars)


def toll(
    state: State, moment: Moment, residency: Residency, big: tuple[PagedOut, ...], begins: EnteringTools | None
) -> float | None:
    """Return the extra cost of large outputs as previews, in BIT.

    None if the cost is more than may be risked, or leaves too little to be cached.

    moment: the call without the previews.
    begins: recall tools to pay for before the first eviction: the whole request is written again, with the tools.
    """
    economics = residency.economics
    if economics is None:
        return 0.0
    spared = _tokens_spared(big)
    if (
        falls_short_unreported(moment, economics, state.prefix, spared)
        if state.floor is None
        else falls_short(moment, economics, spared)
    ):
        return None
    if begins is None:
        return 0.0
    if state.floor is None:
        return None
    economics = economics_at_entrance(economics, begins.tokens)
    if _tokens_spared(big) <= economics.entrance:
        return None
    account = account_after_previews(state.account, big, residency, state.scale)
    cost = rewrite_cost(moment, economics, 0, 0) + economics.write * begins.tokens
    return cost if CAUTION * cost <= bankroll(account, economics) else None


def eviction_candidates(state: State, epoch: Epoch) -> list[EvictionCandidate]:
    """Look up the results and arguments of an epoch in the request. Arguments take the form of a result."""
    # One message earlier, for the calls of the first results.
    start = max(epoch.frontier - 1, 0)
    pieces = pieces_since(state.draft.tip, start)
    tools = _tool_names(pieces)
    found: list[EvictionCandidate] = []
    for resident in epoch.page_out:
        piece = pieces[resident.message - start]
        block = piece.message.blocks[resident.block]
        if isinstance(block, Other):
            served = result_of(piece, resident.call_id)
            if served is not None:
                text = ToolResult(served.call_id, served.text, served.tool)
                found.append(EvictionCandidate(resident, text, served.tool))
        elif isinstance(block, ToolResult):
            name = block.name or tools.get(block.call_id, "")
            found.append(EvictionCandidate(resident, block, name, block.call_id in epoch.shown_once))
        elif isinstance(block, ToolCall):
            found.append(EvictionCandidate(resident, ToolResult(block.id, block.arguments, block.name), block.name))
        elif isinstance(block, Text):
            found.append(EvictionCandidate(resident, ToolResult(resident.call_id, block.text), "user"))
    return found


def _tool_names(pieces: list[WindowPiece]) -> dict[str, str]:
    return {block.id: block.name for piece in pieces for block in piece.message.blocks if isinstance(block, ToolCall)}
