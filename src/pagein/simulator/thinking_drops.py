"""Thinking that the provider silently drops (T1, T5).

It was made by a different model, or after a prefix that changed since, if the request asks for the drop.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pagein.simulator.model_call import ProviderCall


@dataclass(frozen=True, slots=True)
class ThinkingDrop:
    """A block of thinking hidden from the model: place, and the broken bond."""

    message: int
    block: int
    reason: Literal["prefix_mismatch", "model_binding_mismatch"]

    def as_json(self) -> dict[str, Any]:
        """The report of the drop in the answer."""
        return {
            "type": "thinking_dropped",
            "path": f"messages.{self.message}.content.{self.block}",
            "reason": self.reason,
        }


def without(asked: ProviderCall, dropped: Sequence[ThinkingDrop]) -> ProviderCall:
    """Remove the dropped thinking from a call."""
    if not dropped:
        return asked
    places = {(one.message, one.block) for one in dropped}
    messages = [
        _without(message, {block for place, block in places if place == index})
        for index, message in enumerate(asked.body["messages"])
    ]
    return replace(asked, body={**asked.body, "messages": messages})


def _without(message: dict[str, Any], gone: Collection[int]) -> dict[str, Any]:
    if not gone:
        return message
    return {**message, "content": [one for place, one in enumerate(message["content"]) if place not in gone]}
