"""The cache's view of a model call: blocks with names and sizes, and their breakpoints."""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import ceil
from typing import Any, Final, TypeAlias

from pagein.model.json_text import encode_json
from pagein.providers.cache_simulator import LONG, SHORT, Breakpoint, CacheRequest, Chains
from pagein.providers.caches.breakpoint_rules import BreakpointRefusal, with_automatic
from pagein.providers.caches.invalidation import PromptSettings, anthropic_domains
from pagein.providers.prices.token_prices import Prices
from pagein.providers.tokens.counters import Counter, counter_for
from pagein.providers.validity.breakpoint_checks import marks_of
from pagein.providers.validity.thinking_bonds import canonical, hash_parts
from pagein.providers.validity.turns import PromptTurn, Side, TurnPart, Turns, object_at, objects_at, text_at
from pagein.providers.wire.body_check import turns_of
from pagein.simulator.model_call import Body, ProviderCall

IMAGE_TOKENS: Final = 1500
"""Assumed tokens of an image."""

CounterOf: TypeAlias = Callable[[str], Counter]
"""Returns the token counter of a model."""

_REMEMBERED: Final = 1 << 16
_CACHED: Final = ("tool", "text", "image", "call", "result")
_ALSO_CACHED: Final = ("document", "search_result")
_OPENAI_SETTINGS: Final = (
    "parallel_tool_calls",
    "text",
    "reasoning",
    "reasoning_effort",
    "verbosity",
    "response_format",
)


@dataclass(frozen=True, slots=True)
class PromptBlocks:
    """The blocks of a prompt.

    chain: chain ids.
    cumulative: tokens up to and including each block.
    marks: cache breakpoints.
    newest_user, newest_tool: positions of the newest user and tool blocks.
    is_cached: whether the cache is used at all.
    """

    chain: Sequence[int]
    cumulative: Sequence[float]
    marks: tuple[Breakpoint, ...] = ()
    newest_user: int = 0
    newest_tool: int = 0
    is_cached: bool = True

    @property
    def tokens(self) -> int:
        """The total of prompt tokens."""
        return int(self.cumulative[-1]) if self.cumulative else 0

    def request(self, at: float, answered_at: float, output: float) -> CacheRequest:
        """The input of the cache simulator for a call."""
        return CacheRequest(
            at,
            self.chain,
            self.cumulative,
            self.marks,
            output,
            answered_at,
            newest_user=self.newest_user,
            newest_tool=self.newest_tool,
        )


@dataclass(frozen=True, slots=True)
class _Block:
    """A block on the way to the cache: digest, tokens, part and side."""

    name: bytes
    tokens: int
    part: TurnPart
    side: Side


class Prompts:
    """Reads the prompts of calls. Prompts read by the same instance share block names and remembered block sizes."""

    def __init__(self, counter: CounterOf = counter_for) -> None:
        self._counter = counter
        self._chains = Chains()
        self._sizes: OrderedDict[tuple[str, bytes], int] = OrderedDict()

    def read(self, asked: ProviderCall, prices: Prices) -> PromptBlocks:
        """The prompt of a call to a model with given prices."""
        return self._anthropic(asked, prices) if asked.api == "anthropic" else self._openai(asked)

    def tokens(self, model: str, text: str) -> int:
        """Count the tokens of a model's text."""
        return _count_tokens(self._counter(model), text, "assistant")

    def _anthropic(self, asked: ProviderCall, prices: Prices) -> PromptBlocks:
        turns = turns_of(asked.body, "anthropic")
        head = [self._block(asked.model, part, "system") for part in turns.head]
        kept = _without_old_thinking(turns) if prices.strips_thinking else turns.turns
        body = [self._block(asked.model, part, turn.side) for turn in kept for part in turn.parts]
        tools = [block.name for block in head if block.part.kind == "tool"]
        system = [block.name for block in head if block.part.kind != "tool"]
        named = anthropic_domains(self._chains, _settings(asked, turns), tools, system)
        blocks = [*head, *body]
        chain = [*named.chain, *self._chain_ids(named.messages, body)]
        return PromptBlocks(chain, _sums(blocks), _marks(turns, blocks, asked.body))

    def _openai(self, asked: ProviderCall) -> PromptBlocks:
        turns = turns_of(asked.body, asked.api)
        tools = [TurnPart("tool", -1, place, source=tool) for place, tool in enumerate(objects_at(asked.body, "tools"))]
        told = text_at(asked.body, "instructions")
        given = asked.body.get("input")
        bare = [TurnPart("text", 0, 0, text=given)] if isinstance(given, str) else []
        head = [*tools, *([TurnPart("text", -1, 0, text=told)] if told else [])]
        blocks = [self._block(asked.model, part, "system") for part in head]
        blocks += [self._block(asked.model, part, "user") for part in bare]
        blocks += [self._block(asked.model, part, turn.side) for turn in turns.turns for part in turn.parts]
        chain = self._chain_ids(self._chains.extend(Chains.ROOT, _openai_settings(asked.body)), blocks)
        long = object_at(asked.body, "prompt_cache_options").get("ttl") == "12h"
        marks = tuple(
            Breakpoint(place, LONG if long else SHORT) for place, one in enumerate(blocks, 1) if one.part.mark
        )
        places = list(enumerate(blocks, 1))
        user = max((place for place, one in places if _is_users(one, asked.body)), default=0)
        tool = max((place for place, one in places if one.part.kind == "result"), default=0)
        prompt = PromptBlocks(chain, _sums(blocks), marks, user, tool)
        if object_at(asked.body, "prompt_cache_options").get("mode") != "explicit":
            return prompt
        # only the client's own breakpoints count: the provider's coincides with the last of them
        last = max((mark.position for mark in marks), default=0)
        return replace(prompt, newest_user=last, newest_tool=0, is_cached=bool(marks))

    def _chain_ids(self, root: int, blocks: Sequence[_Block]) -> list[int]:
        return list(accumulate((block.name for block in blocks), self._chains.extend, initial=root))[1:]

    def _block(self, model: str, part: TurnPart, side: Side) -> _Block:
        name = hash_parts(side.encode(), canonical(part))
        size = self._sizes.get((model, name))
        if size is None:
            size = self._sizes[model, name] = _size(self._counter(model), part, side)
            if len(self._sizes) > _REMEMBERED:
                self._sizes.popitem(last=False)
        return _Block(name, size, part, side)


def _sums(blocks: Sequence[_Block]) -> list[float]:
    return list(accumulate(float(block.tokens) for block in blocks))


def _settings(asked: ProviderCall, turns: Turns) -> PromptSettings:
    body = asked.body
    thinking = {k: v for k, v in object_at(body, "thinking").items() if k != "block_binding"}
    choice = object_at(body, "tool_choice")
    parts = [part for turn in turns.turns for part in turn.parts]
    return PromptSettings(
        model=asked.model,
        features=(tuple(sorted(asked.betas)), _freeze(body.get("context_management"))),
        speed=_freeze(body.get("speed")),
        tool_choice=_freeze({k: v for k, v in choice.items() if k != "disable_parallel_tool_use"}),
        parallel_tools=choice.get("disable_parallel_tool_use") is True,
        images=any(part.kind == "image" or _images_in(part) for part in parts),
        thinking=_freeze(thinking),
        effort=_freeze(object_at(body, "output_config").get("effort")),
    )


def _openai_settings(body: Body) -> tuple[Any, ...]:
    """The settings that distinguish prompts with the same blocks (O7, O10)."""
    names = (*_OPENAI_SETTINGS, "context_management", "prompt_cache_key")
    return ("openai", body.get("model"), *(_freeze(body.get(name)) for name in names))


def _freeze(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _images_in(part: TurnPart) -> int:
    content = objects_at(part.wire, "output" if "output" in part.wire else "content") if part.kind == "result" else []
    return sum(one.get("type") in ("image", "image_url", "input_image") for one in content)


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


def _marks(turns: Turns, blocks: Sequence[_Block], body: Body) -> tuple[Breakpoint, ...]:
    places = {id(block.part): place for place, block in enumerate(blocks, 1)}
    found = {places[id(part)]: _seconds(ttl) for part, ttl in marks_of(turns) if id(part) in places}
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


def _is_users(block: _Block, body: Body) -> bool:
    part = block.part
    if part.message < 0 or part.kind == "result" or block.side != "user":
        return False
    given = body.get("messages") or body.get("input")
    message = given[part.message] if isinstance(given, list) and part.message < len(given) else {}
    return not isinstance(message, Mapping) or message.get("role") in (None, "user")


def _size(counter: Counter, part: TurnPart, side: Side) -> int:
    images = 1 if part.kind == "image" or part.wire.get("type") in ("image_url", "input_image") else _images_in(part)
    return images * IMAGE_TOKENS + sum(_count_tokens(counter, text, side) for text in _texts(part))


def _count_tokens(counter: Counter, text: str, side: Side) -> int:
    kinds: Mapping[Side, Any] = {"assistant": "said", "system": "system", "user": "result"}
    return ceil(counter.count(text, kinds[side])) if text else 0


def _texts(part: TurnPart) -> Iterator[str]:
    """Yield the texts in a block."""
    wire = part.wire
    match part.kind:
        case "text":
            yield part.text
        case "thinking":
            yield text_at(wire, "thinking") or "".join(text_at(one, "text") for one in objects_at(wire, "summary"))
        case "call":
            function = object_at(wire, "function") or wire
            yield text_at(function, "name")
            said = function.get("input", function.get("arguments"))
            yield said if isinstance(said, str) else encode_json(said).decode()
        case "result":
            content = wire.get("content", wire.get("output"))
            yield (
                content
                if isinstance(content, str)
                else "".join(text_at(one, "text") for one in objects_at({"content": content}, "content"))
            )
        case "image":
            return
        case _:
            bare = {name: value for name, value in wire.items() if name not in ("cache_control", "image_url")}
            yield encode_json(bare).decode() if bare else part.text
