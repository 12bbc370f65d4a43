"""Pools and their window as one fold over the requests of a branch: the same branch gives the same prompt everywhere."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pagein.model.entries import Body, MessageEntry, RequestSent
from pagein.model.messages import Message, ToolCall, ToolResult
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
    """The pools and the window at an entry.

    edited: objects that calls since the last request changed, in a way that the calls show.
    """

    walk: PoolWalk = START
    window: PooledWindow = NO_WINDOW
    edited: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PooledFold:
    """The fold of one conversation. Pure."""

    pools: PoolFold = field(default_factory=PoolFold)
    rules: PooledRules = PAGEIN
    terms: CacheTerms = field(default_factory=CacheTerms)

    def step(self, before: PooledRequest, body: Body) -> PooledRequest:
        """Return the state after an entry other than a request."""
        walk = self.pools.step(before.walk, body)
        if isinstance(body, MessageEntry):
            edited = before.edited.difference(self._read(before.walk, body.message))
            return replace(before, walk=walk, edited=edited.union(self._edited(walk, body.message)))
        # a note can only tell what the file is now, and not that the calls made it so
        edited = frozenset(one for one in before.edited if _version(walk, one) == _version(before.walk, one))
        return replace(before, walk=walk, edited=edited)

    def request(
        self,
        before: PooledRequest,
        conversation: Sequence[Message],
        count: Count,
        *,
        texts: Mapping[str, str] | None = None,
        cold: bool = False,
        prefix: float = 0.0,
    ) -> PooledRequest:
        """Return the state at a request, after the entries of the request's messages.

        conversation: all messages. Those of the last request come first, unchanged.
        texts: the texts of contents, by version; None for those that the messages tell.
        cold: whether the provider's cache has expired.
        prefix: tokens of system prompt and tool definitions.
        """
        walk = before.walk
        new = conversation[before.window.messages :]
        facts = WindowFacts(new, walk.texts if texts is None else texts, count, before.edited, cold, prefix)
        return self.show(before, facts)

    def show(self, before: PooledRequest, facts: WindowFacts) -> PooledRequest:
        """Return the state at a request with the given facts. Facts about edits come from the state before."""
        facts = replace(facts, edited=before.edited)
        window = next_window(before.window, before.walk.state, facts, self.rules, self.terms)
        return PooledRequest(self.pools.step(before.walk, RequestSent(0, window.messages)), window)

    def _read(self, walk: PoolWalk, message: Message) -> Iterator[str]:
        """Yield the files in the results of a message. Content there may have another origin than the calls."""
        for block in message.blocks:
            call = walk.calls.get(block.call_id) if isinstance(block, ToolResult) else None
            effect = None if call is None else walk.profile.effect_of(call)
            if effect is not None and effect.op == "read":
                for access in effect.accesses:
                    yield self.pools.file_id(walk, absolute_path(access.path, walk.folder))

    def _edited(self, walk: PoolWalk, message: Message) -> Iterator[str]:
        """Yield the files whose change is visible in the calls of a message."""
        for block in message.blocks:
            if isinstance(block, ToolCall):
                effect = walk.profile.effect_of(block)
                if effect.op in ("edit", "write"):
                    for access in effect.accesses:
                        yield self.pools.file_id(walk, absolute_path(access.path, walk.folder))


def _version(walk: PoolWalk, object_id: str) -> str | None:
    one = walk.state.index.get(object_id)
    return None if one is None else one.version
