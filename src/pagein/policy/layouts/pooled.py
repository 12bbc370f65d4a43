"""The pooled layout: the metadata pool, the conversation with references for results, the active contents.

Rules of this file
------------------
1. Contents and news stand after the last message of a request, never between a call and its result.
2. The final breakpoint is in front of whatever the next request does not repeat.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from pagein.model.laid_prompts import LaidBlock, LaidPrompt, LayoutFacts
from pagein.policy.layouts.conversation_blocks import beyond_lookback, marked_places, message_blocks
from pagein.policy.layouts.pool_lines import LEGEND, content_text
from pagein.policy.layouts.pooled_window import PAGEIN, PooledRules, PooledWindow
from pagein.policy.layouts.window_rebuilds import ShownContent


@dataclass(frozen=True, slots=True)
class PooledLayout:
    """The layout of pools, by the choices of a preset."""

    rules: PooledRules = PAGEIN
    name: str = "pooled"

    def lay_out(self, state: PooledWindow, facts: LayoutFacts) -> LaidPrompt:
        """Return the prompt of a request."""
        blocks = list(self._head(state, facts))
        head = final = len(blocks) - 1
        contents = _by_place(state)
        previous, frontier = None, None
        # a rebuild reads the cache up to its first change
        change = state.frontier if state.rebuilt is None else state.rebuilt
        for number, message in enumerate(facts.contents.conversation, 1):
            blocks.extend(message_blocks(message, facts.count, partial(state.reference, number)))
            if (news := state.news.get(str(number))) is not None:
                blocks.append(LaidBlock("user", "news", news, facts.count(news)))
            final = len(blocks) - 1
            blocks.extend(_content(one, facts) for one in contents.get(number, ()))
            if number == change:
                frontier = final if state.rebuilt is None else len(blocks) - 1
            if self.rules.content == "kept":
                final = len(blocks) - 1
            if number == facts.covered and (state.rebuilt is None or number < state.rebuilt):
                previous = final
        wished = (final, frontier, beyond_lookback(previous, final), head)
        usable = (place for place in wished if place is not None and place <= final)
        for place in marked_places([block.tokens for block in blocks], usable, facts.min_prefix):
            blocks[place] = replace(blocks[place], mark=True)
        return LaidPrompt(tuple(blocks), len(facts.contents.conversation))

    def _head(self, state: PooledWindow, facts: LayoutFacts) -> Iterator[LaidBlock]:
        text = "\n\n".join(part for part in (facts.contents.system, LEGEND) if part.strip())
        yield LaidBlock("system", "system", text, facts.count(text))
        if state.metadata:
            yield LaidBlock("user", "metadata", state.metadata, facts.count(state.metadata))


def _content(one: ShownContent, facts: LayoutFacts) -> LaidBlock:
    text = content_text(one.id, facts.contents.objects[one.version])
    return LaidBlock("user", "active", text, facts.count(text))


def _by_place(state: PooledWindow) -> dict[int, list[ShownContent]]:
    """Return the contents by the number of messages in front of them."""
    places: dict[int, list[ShownContent]] = {}
    for one in state.shown:
        places.setdefault(one.behind, []).append(one)
    return places
