"""Pools and their window as one fold over the requests of a branch: the same branch gives the same prompt everywhere."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pagein.model.entries import MessageEntry
from pagein.model.messages import Message, ToolCall
from pagein.policy.clients.known_files import absolute_path
from pagein.policy.layouts.conversation_blocks import Count
from pagein.policy.layouts.pooled_window import (
    NO_WINDOW,
    PAGEIN,
    PooledRules,
    PooledWindow,
    WindowFacts,
    next_window,
)
from pagein.policy.pools.pool_fold import START, PoolFold, PoolWalk
from pagein.policy.tiers.frozen_order import CacheTerms


@dataclass(frozen=True, slots=True)
class PooledRequest:
    """The pools and the window at a request."""

    walk: PoolWalk = START
    window: PooledWindow = NO_WINDOW


@dataclass(frozen=True, slots=True)
class PooledFold:
    """The fold of one conversation. Pure."""

    pools: PoolFold = field(default_factory=PoolFold)
    rules: PooledRules = PAGEIN
    terms: CacheTerms = field(default_factory=CacheTerms)

    def request(
        self,
        before: PooledRequest,
        conversation: Sequence[Message],
        count: Count,
        *,
        cold: bool = False,
        prefix: float = 0.0,
    ) -> PooledRequest:
        """Return the pools and the window at the next request.

        conversation: all messages. Those of the last request come first, unchanged.
        cold: whether the provider's cache has expired.
        prefix: tokens of system prompt and tool definitions.
        """
        walk, edited = before.walk, set[str]()
        for message in conversation[before.window.messages :]:
            walk = self.pools.step(walk, MessageEntry(message))
            edited.update(self._edited(walk, message))
        facts = WindowFacts(conversation, walk.texts, count, frozenset(edited), cold, prefix)
        return PooledRequest(walk, next_window(before.window, walk.state, facts, self.rules, self.terms))

    def _edited(self, walk: PoolWalk, message: Message) -> Iterator[str]:
        """Yield the files that the calls of a message change in a way that the calls show."""
        for block in message.blocks:
            if isinstance(block, ToolCall):
                effect = walk.profile.effect_of(block)
                if effect.op in ("edit", "write"):
                    for access in effect.accesses:
                        yield self.pools.file_id(walk, absolute_path(access.path, walk.folder))
