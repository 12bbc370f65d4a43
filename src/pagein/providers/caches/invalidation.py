"""Invalidation of Anthropic's cache by changed settings, as three chained domains.

Tools, system and messages are hashed one after the other, and each part also by the settings that its rendering depends
on.
So a setting of the messages leaves tools and system readable, and nothing survives a change of model.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from pagein.providers.caches.cache_values import Chains


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """The settings of a request that the cache depends on.

    Each may be any hashable value that distinguishes the states.

    images: whether any block of the request is an image.
    thinking, effort: mode or budget, and effort. A change invalidates the messages; on some models everything
        (`thinking_voids_all`).
    features: beta headers and context management. The effect of a change is not documented, so it is assumed to
        invalidate everything.
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
    """The prompt before the messages.

    chain: names of the tool and system blocks. A breakpoint at the end of system has position `len(chain)`.
    tools: number of tool blocks. A breakpoint at the end of tools has this position.
    messages: the parent to extend with the first message block.
    """

    chain: tuple[int, ...]
    tools: int
    messages: int


def anthropic_domains(
    chains: Chains, settings: PromptSettings, tools: Iterable[Hashable], system: Iterable[Hashable]
) -> PromptPrefix:
    """Name the blocks before the messages under some settings."""
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
