"""Estimate the tokens of a session's prompts, from the usage that the provider reports and from the recall tools in them."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import Final

from pagein.engine.log.request_draft import size
from pagein.engine.log.state import State
from pagein.model.journal_notes import OfferedTool
from pagein.model.json_text import encode_json
from pagein.model.messages import Usage
from pagein.policy.stubs.recall_ways import tokens_of

_LEAST_SCALE: Final = 0.7
_MOST_SCALE: Final = 2.0
_LIGHTEST: Final = 0.5
"""Least scale of a whole prompt: text of 5.7 characters a token, where 2.85 are assumed."""


def with_usage(state: State, usage: Usage | None) -> State:
    """Return the state with the size of the prompt prefix, the scale of the messages, and the places of cache entries.

    usage: of the last request; None if unknown.

    The first report gives the size of the prompt prefix; where it is low, prefix and messages are equally light. A later
    report too small for it proves lighter text or tokens that left unseen, so it is measured again. Where the provider
    wrote all messages anew, whatever the reason, the cache has no entry between them from before: an entry in front of
    the first resident is there only if this request had a breakpoint there.
    """
    prompt, sent = (0, 0) if usage is None else (usage.prompt, size(state.sent))
    if usage is None or prompt <= 0 or sent <= 0:
        return state
    if usage.written and (usage.read < (state.floor or 0.0) or state.account.anew == sent):
        first = state.standing.first_of_all(sent)
        found = first if state.has_frontier or first == sent else 0
        state = replace(state, account=replace(state.account, anew=sent, found=found))
    if state.floor is None or prompt < state.floor + _LEAST_SCALE * sent:
        scale = min(max(prompt / (state.prefix + sent), _LIGHTEST), 1.0)
        return replace(state, floor=max(0.0, prompt - scale * sent), scale=scale)
    return replace(state, scale=min((prompt - state.floor) / sent, _MOST_SCALE))


def with_tools(state: State, tools: Sequence[OfferedTool]) -> State:
    """Return the state with these recall tools, which are tokens that the window would not hold without pagein."""
    offered = ceil(tokens_of(sum(len(one.name) + len(one.description) + len(encode_json(one.schema)) for one in tools)))
    account = replace(state.account, absent=state.account.absent + state.offered - offered)
    return replace(state, account=account, offered=offered)
