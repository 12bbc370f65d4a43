"""The provider's own reasons for cache misses, for calls with `diagnostics`.

A call with this field leaves a fingerprint under the id of its answer. A later call names that id, and is told in which part its
prompt first differs. The comparison knows nothing of the cache itself: an entry that expired shows no difference.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pagein.providers.validity.turns import object_at
from pagein.providers.wire.body_check import turns_of
from pagein.simulator.anthropic_messages.prompt import head_and_body, settings_of
from pagein.simulator.model_call import ProviderCall
from pagein.simulator.prompt_blocks import CacheBlock, Prompts

FIELD: Final = "diagnostics"
_KEPT: Final = 4096


@dataclass(frozen=True, slots=True)
class _Fingerprint:
    """The parts of a prompt. A part has the names and the tokens of its blocks."""

    model: str
    tools: Sequence[tuple[bytes, int]]
    system: Sequence[tuple[bytes, int]]
    settings: object
    messages: Sequence[tuple[bytes, int]]

    @property
    def tokens(self) -> int:
        return sum(tokens for part in (self.tools, self.system, self.messages) for _, tokens in part)


class CallFingerprints:
    """Fingerprints of answered calls, and the differences between them."""

    def __init__(self, prompts: Prompts) -> None:
        self._prompts = prompts
        self._kept: OrderedDict[str, _Fingerprint] = OrderedDict()

    def diagnose(self, asked: ProviderCall, tag: str) -> Mapping[str, Any]:
        """Return the fields of the answer about a cache miss, and keep the call's fingerprint; nothing for a call without the field.

        tag: names the answer.
        """
        if asked.body.get(FIELD) is None:
            return {}
        now = self._fingerprint(asked)
        name = object_at(asked.body, FIELD).get("previous_message_id")
        before = self._kept.get(str(name))
        self._kept[f"msg_{tag}"] = now
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        if name is None:
            return {FIELD: None}
        reason = {"type": "previous_message_not_found"} if before is None else _difference(before, now)
        return {FIELD: None if reason is None else {"cache_miss_reason": reason}}

    def _fingerprint(self, asked: ProviderCall) -> _Fingerprint:
        turns = turns_of(asked.body, asked.api)
        head, body = head_and_body(self._prompts, asked, turns)
        tools = [block for block in head if block.part.kind == "tool"]
        system = [block for block in head if block.part.kind != "tool"]
        return _Fingerprint(asked.model, _part(tools), _part(system), settings_of(asked, turns), _part(body))


def _part(blocks: Sequence[CacheBlock]) -> Sequence[tuple[bytes, int]]:
    return [(block.name, block.tokens) for block in blocks]


def _difference(before: _Fingerprint, now: _Fingerprint) -> dict[str, Any] | None:
    """Return the first difference; None for a prompt that only extends the one before."""
    if before.model != now.model:
        return {"type": "model_changed", "cache_missed_input_tokens": before.tokens}
    left = before.tokens
    for kind, old, new in (("tools", before.tools, now.tools), ("system", before.system, now.system)):
        if old != new:
            return {"type": f"{kind}_changed", "cache_missed_input_tokens": left - _shared(old, new)}
        left -= sum(tokens for _, tokens in old)
    if before.settings != now.settings:
        return {"type": "unavailable"}
    missed = left - _shared(before.messages, now.messages)
    return {"type": "messages_changed", "cache_missed_input_tokens": missed} if missed else None


def _shared(old: Sequence[tuple[bytes, int]], new: Sequence[tuple[bytes, int]]) -> int:
    """Return the tokens of the blocks that two parts begin with."""
    total = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        total += one[1]
    return total
