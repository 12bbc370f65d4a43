"""Which change of a request voids which part of Anthropic's cache, as three chained domains (invalidation matrix).

Tools, system and messages are hashed one after the other, and each part also by the settings that its rendering depends on.
So a setting of the messages leaves tools and system readable, and nothing survives another model.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from pagein.providers.caches.cache_values import Chains


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """What a request says beside its blocks, as far as the cache depends on it. Any hashable value tells its states apart.

    images: whether the request has an image anywhere.
    thinking, effort: mode or budget, and effort. They void the messages; on some models everything (`thinking_voids_all`).
    features: beta headers and context management. What they void is not documented; everything is assumed.
    """

    model: str = ""
    features: Hashable = None
    web_search: Hashable = None
    citations: Hashable = None
    speed: Hashable = None
    tool_choice: Hashable = None
    parallel_tools: Hashable = None
    images: bool = False
    thinking: Hashable = None
    effort: Hashable = None
    thinking_voids_all: bool = False


@dataclass(frozen=True, slots=True)
class PromptPrefix:
    """The prompt up to the messages: `chain` names the blocks of tools and system, `tools` counts those of the tools.

    A mark at the end of tools stands at position `tools`, one at the end of system at `len(chain)`.
    messages: the parent to extend by the first message block.
    """

    chain: tuple[int, ...]
    tools: int
    messages: int


def anthropic_domains(
    chains: Chains, settings: PromptSettings, tools: Iterable[Hashable], system: Iterable[Hashable]
) -> PromptPrefix:
    """Name the blocks before the messages, under these settings."""
    mind = (settings.thinking, settings.effort)
    everywhere = mind if settings.thinking_voids_all else None
    names: list[int] = []
    tail = chains.extend(Chains.ROOT, ("tools", settings.model, settings.features, everywhere))
    for tool in tools:
        tail = chains.extend(tail, tool)
        names.append(tail)
    count = len(names)
    tail = chains.extend(tail, ("system", settings.web_search, settings.citations, settings.speed))
    for block in system:
        tail = chains.extend(tail, block)
        names.append(tail)
    tail = chains.extend(tail, ("messages", settings.tool_choice, settings.parallel_tools, settings.images, mind))
    return PromptPrefix(tuple(names), count, tail)
