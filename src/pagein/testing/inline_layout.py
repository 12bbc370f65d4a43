"""A layout that shows a conversation as it stands: what every other layout is compared with."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pagein.model.laid_prompts import LaidBlock, LaidPrompt, LayoutFacts
from pagein.policy.layouts.conversation_blocks import beyond_lookback, marked_places, message_blocks


@dataclass(frozen=True, slots=True)
class InlineLayout:
    """The layout of an append-only conversation, without a state."""

    name: str = "inline"

    def lay_out(self, state: None, facts: LayoutFacts) -> LaidPrompt:
        """Return the prompt of a request: the system prompt and the conversation."""
        del state
        blocks: list[LaidBlock] = list(_system(facts))
        head, previous = len(blocks) - 1, None
        for number, message in enumerate(facts.contents.conversation, 1):
            blocks.extend(message_blocks(message, facts.count))
            previous = len(blocks) - 1 if number == facts.covered else previous
        final = len(blocks) - 1
        wished = (final, beyond_lookback(previous, final), head if head >= 0 else None)
        marked = marked_places([block.tokens for block in blocks], wished, facts.min_prefix)
        for place in marked:
            blocks[place] = replace(blocks[place], mark=True)
        return LaidPrompt(tuple(blocks), len(facts.contents.conversation))


def _system(facts: LayoutFacts) -> Iterator[LaidBlock]:
    if facts.contents.system.strip():
        yield LaidBlock("system", "system", facts.contents.system, facts.count(facts.contents.system))
