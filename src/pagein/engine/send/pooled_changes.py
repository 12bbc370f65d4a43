"""Compute how a window of the pooled layout differs from the client's messages.

Rules of this file
------------------
1. A result differs by its reference. News and contents stand after the last message of the request that first had them.
   The legend and the metadata block stand in front of the user's first words.
2. Only what is new since the request before, or what an epoch moves, is computed.
"""

from collections.abc import Sequence
from dataclasses import replace

from pagein.engine.intake.message_chain import Unit
from pagein.engine.send.message_changes import UNCHANGED, MessageChange
from pagein.engine.send.sent_changes import (
    NOTHING_RENDERED,
    RenderedWindow,
    SentWindow,
    changes_kept,
    without_thinking,
)
from pagein.errors import HostError
from pagein.model.messages import Text, ToolResult
from pagein.policy.layouts.pooled_branch import PooledBranch
from pagein.providers.wire.message_texts import MessageTexts


def render_pooled(
    branch: PooledBranch, sent: SentWindow, units: Sequence[Unit], before: RenderedWindow
) -> RenderedWindow:
    """Return the differences of the window at a request from the client's messages.

    branch: the window. sent: the request. units: the client's messages by then. before: the request before.

    Raises HostError if a text would stand after a message of the model.
    """
    window, said = branch.window, len(units)
    rewritten = window.rebuilt is not None or before is NOTHING_RENDERED
    since = min(before.said, said) if window.rebuilt is None else min(max(window.rebuilt - 1, 0), before.said, said)
    changes = changes_kept(before.changes, since) if before.top >= since else dict(before.changes)
    first, front = _first_words(units), branch.front
    if first is not None and front and changes.get(first, UNCHANGED).words != _front(front):
        since = min(since, first)
    for place in {*range(since, said), *(() if first is None or first < since else (first,))}:
        one = _change(branch, units[place], place + 1)
        if place == first and front:
            one = replace(one, words=_front(front))
        if changes.get(place, UNCHANGED).thoughtless:
            one = replace(one, thoughtless=True)
        changes.pop(place, None)
        if one != UNCHANGED:
            changes[place] = one
    low, kept = since, replace(sent, rewritten=rewritten)
    if sent.binds:
        for place in without_thinking(kept, units, since, before.said, changes):
            changes[place] = replace(changes.get(place, UNCHANGED), thoughtless=True)
            low = min(low, place)
    replaced = sum(len(one.texts) for one in changes.values())
    return RenderedWindow(sent.tip, changes, rewritten, low, max(changes, default=-1), replaced, said)


def _front(text: str) -> MessageTexts:
    return MessageTexts({}, text, "")


def _first_words(units: Sequence[Unit]) -> int | None:
    """Return the number of the message with the user's first words; None without any."""
    for place, unit in enumerate(units):
        if unit.message.role == "user" and any(
            isinstance(one, Text) and one.text.strip() for one in unit.message.blocks
        ):
            return place
    return None


def _change(branch: PooledBranch, unit: Unit, number: int) -> MessageChange:
    behind = branch.told_behind(number)
    texts = {
        block.call_id: reference
        for block in unit.message.blocks
        if isinstance(block, ToolResult) and (reference := branch.window.reference(number, block)) is not None
    }
    if behind and unit.message.role not in ("user", "tool"):
        raise HostError(f"the contents behind message {number} would stand behind words of the model")
    return MessageChange(texts, behind) if texts or behind else UNCHANGED
