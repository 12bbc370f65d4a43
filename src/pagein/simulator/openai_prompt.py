"""The cache's view of a prompt in the formats of OpenAI."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from pagein.providers.cache_simulator import LONG, SHORT, Breakpoint, CacheRules, Chains
from pagein.providers.prices.token_prices import Prices
from pagein.providers.validity.turns import TurnPart, object_at, objects_at, text_at
from pagein.providers.wire.body_check import turns_of
from pagein.simulator.model_call import Body, ProviderCall
from pagein.simulator.prompt_blocks import CacheBlock, PromptBlocks, Prompts, freeze, sums

_DAY: Final = 86_400.0
_OPENAI_SETTINGS: Final = (
    "parallel_tool_calls",
    "text",
    "reasoning",
    "reasoning_effort",
    "verbosity",
    "response_format",
)


def prompt_of(prompts: Prompts, asked: ProviderCall, _prices: Prices) -> PromptBlocks:
    """Read the prompt of a call."""
    turns = turns_of(asked.body, asked.api)
    tools = [TurnPart("tool", -1, place, source=tool) for place, tool in enumerate(objects_at(asked.body, "tools"))]
    told = text_at(asked.body, "instructions")
    given = asked.body.get("input")
    bare = [TurnPart("text", 0, 0, text=given)] if isinstance(given, str) else []
    head = [*tools, *([TurnPart("text", -1, 0, text=told)] if told else [])]
    blocks = [prompts.block(asked.model, part, "system") for part in head]
    blocks += [prompts.block(asked.model, part, "user") for part in bare]
    blocks += [prompts.block(asked.model, part, turn.side) for turn in turns.turns for part in turn.parts]
    chain = prompts.chain_ids(prompts.chains.extend(Chains.ROOT, _openai_settings(asked.body)), blocks)
    long = object_at(asked.body, "prompt_cache_options").get("ttl") == "12h"
    marks = tuple(Breakpoint(place, LONG if long else SHORT) for place, one in enumerate(blocks, 1) if one.part.mark)
    places = list(enumerate(blocks, 1))
    user = max((place for place, one in places if _is_users(one, asked.body)), default=0)
    tool = max((place for place, one in places if one.part.kind == "result"), default=0)
    prompt = PromptBlocks(chain, sums(blocks), marks, user, tool)
    if object_at(asked.body, "prompt_cache_options").get("mode") != "explicit":
        return prompt
    # only the client's own breakpoints count: the provider's coincides with the last of them
    last = max((mark.position for mark in marks), default=0)
    return replace(prompt, newest_user=last, newest_tool=0, is_cached=bool(marks))


def retention_rules(asked: ProviderCall, rules: CacheRules) -> CacheRules:
    """The rules of the cache with the retention that a call asks for."""
    is_long = asked.body.get("prompt_cache_retention") == "24h" and rules.ttl < _DAY
    return rules.with_ttl(_DAY) if is_long else rules


def field_error(name: str, *, is_missing: bool) -> str:
    """The words about a missing field, or a field of the wrong type."""
    if is_missing:
        return "you must provide a model parameter" if name == "model" else f"Missing required parameter: '{name}'."
    return f"Invalid type for '{name}'."


def _openai_settings(body: Body) -> tuple[Any, ...]:
    """The settings that distinguish prompts with the same blocks (O7, O10)."""
    names = (*_OPENAI_SETTINGS, "context_management", "prompt_cache_key")
    return ("openai", body.get("model"), *(freeze(body.get(name)) for name in names))


def _is_users(block: CacheBlock, body: Body) -> bool:
    part = block.part
    if part.message < 0 or part.kind == "result" or block.side != "user":
        return False
    given = body.get("messages") or body.get("input")
    message = given[part.message] if isinstance(given, list) and part.message < len(given) else {}
    return not isinstance(message, Mapping) or message.get("role") in (None, "user")
