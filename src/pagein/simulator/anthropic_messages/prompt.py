"""The cache's view of an Anthropic Messages prompt."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pagein.providers.cache_simulator import LONG, SHORT, Breakpoint
from pagein.providers.caches.breakpoint_rules import BreakpointRefusal, with_automatic
from pagein.providers.caches.invalidation import PromptSettings, anthropic_domains
from pagein.providers.prices.token_prices import Prices
from pagein.providers.validity.breakpoint_checks import breakpoints_of
from pagein.providers.validity.call_pairs import referenced_tools
from pagein.providers.validity.request_settings import is_search_tool
from pagein.providers.validity.thinking_bonds import hash_parts
from pagein.providers.validity.turns import PromptTurn, Side, TurnPart, Turns, object_at
from pagein.providers.wire.body_check import turns_of
from pagein.simulator.model_call import Body, ProviderCall
from pagein.simulator.prompt_blocks import CacheBlock, PromptBlocks, Prompts, freeze, images_in, sums
from pagein.simulator.tool_search import SEARCH_TOOL_TOKENS, deferred_tools

_CACHED: Final = ("tool", "text", "image", "call", "result")
_ALSO_CACHED: Final = ("document", "search_result")


def prompt_of(prompts: Prompts, asked: ProviderCall, prices: Prices) -> PromptBlocks:
    """Read the prompt of a call to a model with given prices."""
    turns = turns_of(asked.body, asked.api)
    head, body = head_and_body(prompts, asked, turns, strips_thinking=prices.strips_thinking)
    tools = [block.name for block in head if block.part.kind == "tool"]
    system = [block.name for block in head if block.part.kind != "tool"]
    named = anthropic_domains(prompts.chains, settings_of(asked, turns), tools, system)
    blocks = [*head, *body]
    chain = [*named.chain, *prompts.chain_ids(named.messages, body)]
    return PromptBlocks(chain, sums(blocks), _breakpoints(turns, blocks, asked.body))


def head_and_body(
    prompts: Prompts, asked: ProviderCall, turns: Turns, *, strips_thinking: bool = False
) -> tuple[list[CacheBlock], list[CacheBlock]]:
    """The blocks of tools and system prompt, and those of the messages.

    strips_thinking: the model does not see old thinking.
    """
    seen = [part for part in turns.head if part.wire.get("defer_loading") is not True]
    kept = _without_old_thinking(turns) if strips_thinking else turns.turns
    body = [_block(prompts, asked, part, turn.side) for turn in kept for part in turn.parts]
    return [_head_block(prompts, asked.model, part) for part in seen], body


def _head_block(prompts: Prompts, model: str, part: TurnPart) -> CacheBlock:
    block = prompts.block(model, part, "system")
    return replace(block, tokens=SEARCH_TOOL_TOKENS) if is_search_tool(part.wire) else block


def _block(prompts: Prompts, asked: ProviderCall, part: TurnPart, side: Side) -> CacheBlock:
    """A block of a message. A search result is read with the definitions of the tools that it refers to."""
    block = prompts.block(asked.model, part, side)
    names = list(referenced_tools(part))
    if not names:
        return block
    tools = deferred_tools(asked.body)
    found = [TurnPart("tool", -1, -1, source=tools[name]) for name in names if name in tools]
    definitions = [prompts.block(asked.model, one, "system") for one in found]
    name = hash_parts(block.name, *(one.name for one in definitions))
    return replace(block, name=name, tokens=block.tokens + sum(one.tokens for one in definitions))


def settings_of(asked: ProviderCall, turns: Turns) -> PromptSettings:
    """The settings of a call on which the cache depends."""
    body = asked.body
    thinking = {k: v for k, v in object_at(body, "thinking").items() if k != "block_binding"}
    choice = object_at(body, "tool_choice")
    parts = [part for turn in turns.turns for part in turn.parts]
    return PromptSettings(
        model=asked.model,
        features=(tuple(sorted(asked.betas)), freeze(body.get("context_management"))),
        speed=freeze(body.get("speed")),
        tool_choice=freeze({k: v for k, v in choice.items() if k != "disable_parallel_tool_use"}),
        parallel_tools=choice.get("disable_parallel_tool_use") is True,
        images=any(part.kind == "image" or images_in(part) for part in parts),
        thinking=freeze(thinking),
        effort=freeze(object_at(body, "output_config").get("effort")),
    )


def _without_old_thinking(turns: Turns) -> list[PromptTurn]:
    """The turns without the thinking before the user's last message, for models that drop old thinking."""
    fresh = [
        place
        for place, turn in enumerate(turns.turns)
        if turn.side == "user" and not any(part.kind == "result" for part in turn.parts)
    ]
    last = fresh[-1] if fresh else 0
    return [
        replace(turn, parts=[part for part in turn.parts if part.kind != "thinking"]) if place < last else turn
        for place, turn in enumerate(turns.turns)
    ]


def _breakpoints(turns: Turns, blocks: Sequence[CacheBlock], body: Body) -> tuple[Breakpoint, ...]:
    places = {id(block.part): place for place, block in enumerate(blocks, 1)}
    found = {places[id(part)]: _seconds(ttl) for part, ttl in breakpoints_of(turns) if id(part) in places}
    marks = tuple(Breakpoint(place, ttl) for place, ttl in found.items())
    automatic = object_at(body, "cache_control")
    if not automatic:
        return marks
    last = next((place for place in range(len(blocks), 0, -1) if _may_carry(blocks[place - 1].part)), 0)
    placed = with_automatic(marks, last, _seconds(str(automatic.get("ttl") or "5m")))
    return marks if isinstance(placed, BreakpointRefusal) else placed


def _seconds(ttl: str) -> int:
    return LONG if ttl == "1h" else SHORT


def _may_carry(part: TurnPart) -> bool:
    if part.kind == "text" and not part.text.strip():
        return False
    if part.kind == "other":
        return part.wire.get("type") in _ALSO_CACHED
    return part.kind in _CACHED and part.wire.get("defer_loading") is not True
