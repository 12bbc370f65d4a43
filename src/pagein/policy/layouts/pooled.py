"""The pooled layout: the metadata pool, the conversation with references for results, the active contents.

Rules of this file
------------------
1. Contents and news stand behind the last message of a request, never between a call and its result.
2. A result with its object in the index is a reference. Any other stands as it is.
3. The final breakpoint is in front of whatever the next request does not repeat.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from pagein.model.laid_prompts import LaidBlock, LaidPrompt, LayoutFacts
from pagein.model.messages import Message, ToolResult
from pagein.policy.layouts.conversation_blocks import beyond_lookback, marked_places, message_blocks
from pagein.policy.layouts.pool_lines import LEGEND, content_text, reference_line
from pagein.policy.layouts.pooled_window import PAGEIN, PooledRules, PooledWindow, ShownContent


@dataclass(frozen=True, slots=True)
class PooledLayout:
    """The layout of pools, by the choices of a preset.

    holders: the objects with the texts of results, by the id of the call, where that is not the call itself.
    """

    rules: PooledRules = PAGEIN
    name: str = "pooled"
    holders: Mapping[str, str] = field(default_factory=dict)

    def lay_out(self, state: PooledWindow, facts: LayoutFacts) -> LaidPrompt:
        """Return the prompt of a request."""
        blocks = list(self._head(state, facts))
        head, previous, frontier = len(blocks) - 1, None, None
        contents = _by_place(state)
        # a rebuild reads the cache up to its first change; the next one will begin at the first content
        change = state.rebuilt if state.rebuilt is not None else min(contents, default=None)
        final = head
        for number, message in enumerate(facts.contents.conversation, 1):
            blocks.extend(self.message(message, state, facts))
            if (news := state.news.get(str(number))) is not None:
                blocks.append(LaidBlock("user", "news", news, facts.count(news)))
            if number == change:
                frontier = len(blocks) - 1
            final = len(blocks) - 1
            for one in contents.get(number, ()):
                text = content_text(one.id, facts.contents.objects[one.id, one.version])
                blocks.append(LaidBlock("user", "active", text, facts.count(text)))
            if self.rules.content == "kept":
                final = len(blocks) - 1
            if number == change and state.rebuilt is not None:
                frontier = len(blocks) - 1
            previous = final if number == facts.covered else previous
        wished = (final, frontier, beyond_lookback(previous, final), head if head >= 0 else None)
        wished = tuple(place for place in wished if place is not None and place <= final)
        for place in marked_places([block.tokens for block in blocks], wished, facts.min_prefix):
            blocks[place] = replace(blocks[place], mark=True)
        return LaidPrompt(tuple(blocks), len(facts.contents.conversation))

    def message(self, message: Message, state: PooledWindow, facts: LayoutFacts) -> Iterator[LaidBlock]:
        """Yield the blocks of a message, with references for results."""

        def reference(result: ToolResult) -> str | None:
            holder = self.holders.get(result.call_id, result.call_id)
            if holder not in state.pools.index or result.images or len(result.text) < self.rules.whole_below:
                return None
            return reference_line(result.call_id, result.name, failed=result.is_error, object_id=holder)

        return message_blocks(message, facts.count, reference)

    def _head(self, state: PooledWindow, facts: LayoutFacts) -> Iterator[LaidBlock]:
        text = "\n\n".join(part for part in (facts.contents.system, LEGEND) if part.strip())
        yield LaidBlock("system", "system", text, facts.count(text))
        if state.metadata:
            yield LaidBlock("user", "metadata", state.metadata, facts.count(state.metadata))


def _by_place(state: PooledWindow) -> dict[int, list[ShownContent]]:
    """Return the contents by the number of messages in front of them."""
    places: dict[int, list[ShownContent]] = {}
    for one in state.shown:
        places.setdefault(one.behind, []).append(one)
    return places
