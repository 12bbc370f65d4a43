"""The cache's view of a model call: blocks with names and sizes, and their breakpoints."""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil
from typing import Any, Final, TypeAlias

from pagein.model.json_text import encode_json
from pagein.providers.cache_simulator import Breakpoint, CacheRequest, Chains
from pagein.providers.tokens.counters import Counter, counter_for
from pagein.providers.validity.thinking_bonds import canonical, hash_parts
from pagein.providers.validity.turns import Side, TurnPart, object_at, objects_at, text_at

IMAGE_TOKENS: Final = 1500
"""Assumed tokens of an image."""

CounterOf: TypeAlias = Callable[[str], Counter]
"""Returns the token counter of a model."""

_REMEMBERED: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class PromptBlocks:
    """The blocks of a prompt.

    chain: chain ids.
    cumulative: tokens up to and including each block.
    marks: cache breakpoints.
    newest_user, newest_tool: positions of the newest user and tool blocks.
    is_cached: whether the cache is used at all.
    stored: the number of blocks at the front that are stored under a name, and always read.
    """

    chain: Sequence[int]
    cumulative: Sequence[float]
    marks: tuple[Breakpoint, ...] = ()
    newest_user: int = 0
    newest_tool: int = 0
    is_cached: bool = True
    stored: int = 0

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
class CacheBlock:
    """A block on the way to the cache: digest, tokens, part and side."""

    name: bytes
    tokens: int
    part: TurnPart
    side: Side


class Prompts:
    """Reads the prompts of calls. Prompts read by the same instance share block names and remembered block sizes."""

    def __init__(self, counter: CounterOf = counter_for) -> None:
        self._counter = counter
        self.chains = Chains()
        self._sizes: OrderedDict[tuple[str, bytes], int] = OrderedDict()

    def tokens(self, model: str, text: str) -> int:
        """Count the tokens of a model's text."""
        return _count_tokens(self._counter(model), text, "assistant")

    def chain_ids(self, root: int, blocks: Sequence[CacheBlock]) -> list[int]:
        """The chain ids of some blocks after a prefix."""
        return list(accumulate((block.name for block in blocks), self.chains.extend, initial=root))[1:]

    def block(self, model: str, part: TurnPart, side: Side) -> CacheBlock:
        """A part of a prompt as a block for the cache."""
        name = hash_parts(side.encode(), canonical(part))
        size = self._sizes.get((model, name))
        if size is None:
            size = self._sizes[model, name] = _size(self._counter(model), part, side)
            if len(self._sizes) > _REMEMBERED:
                self._sizes.popitem(last=False)
        return CacheBlock(name, size, part, side)


def sums(blocks: Sequence[CacheBlock]) -> list[float]:
    """The tokens up to and including each block."""
    return list(accumulate(float(block.tokens) for block in blocks))


def freeze(value: object) -> bytes:
    """The JSON of a value, equal for equal values."""
    return json.dumps(value, sort_keys=True).encode()


def images_in(part: TurnPart) -> int:
    """The number of images in a result."""
    content = objects_at(part.wire, "output" if "output" in part.wire else "content") if part.kind == "result" else []
    return sum(one.get("type") in ("image", "image_url", "input_image") for one in content)


def _size(counter: Counter, part: TurnPart, side: Side) -> int:
    images = 1 if part.kind == "image" or part.wire.get("type") in ("image_url", "input_image") else images_in(part)
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
