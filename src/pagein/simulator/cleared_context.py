"""Server-side context edits for `context_management`: the provider clears old content from a prompt.

Rules of this file
------------------
1. Each request is edited independently: the client keeps sending everything, and everything is counted again.
2. The cache sees the prompt after the edits. Bindings of thinking refer to the prompt as it was sent (T7).
3. The parameters are part of the prompt's name in the cache, because the provider's documentation lists them among the
   settings that affect it. It does not say whether growing parameters that clear the same results keep the cache; here
   they do not, which is the more expensive reading.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from pagein.providers.validity.turns import object_at, objects_at, text_at
from pagein.simulator.model_call import ProviderCall

Json: TypeAlias = dict[str, Any]
Measure: TypeAlias = Callable[[ProviderCall], int]
"""Returns the prompt tokens of a call."""

CLEARED: Final = "[Old tool result content cleared]"
_TRIGGER: Final = 100_000
_KEPT_USES: Final = 3
_KEPT_THINKING: Final = 1
_THINKING: Final = ("thinking", "redacted_thinking")


@dataclass(frozen=True, slots=True)
class ClearedCall:
    """A call after the context edits, with the report for the answer.

    applied: report of each edit; None if the call asks for no edits.
    """

    asked: ProviderCall
    applied: tuple[Json, ...] | None = None


def clear_context(asked: ProviderCall, measure: Measure) -> ClearedCall:
    """Apply the requested context edits to a call."""
    edits = objects_at(object_at(asked.body, "context_management"), "edits")
    if not edits:
        return ClearedCall(asked)
    applied: list[Json] = []
    for edit in edits:
        make = _EDITS.get(str(edit.get("type")))
        made = None if make is None else make(asked, edit, measure)
        if made is not None:
            asked, told = made
            applied.append(told)
    return ClearedCall(asked, tuple(applied))


def _clear_tool_uses(
    asked: ProviderCall, edit: Mapping[str, Any], measure: Measure
) -> tuple[ProviderCall, Json] | None:
    excluded = edit.get("exclude_tools")
    excluded = excluded if isinstance(excluded, list) else []
    uses = [(one["id"], str(one.get("name"))) for one in _blocks(asked, "tool_use") if isinstance(one.get("id"), str)]
    answered = {text_at(one, "tool_use_id") for one in _blocks(asked, "tool_result") if one.get("content") != CLEARED}
    trigger = object_at(edit, "trigger")
    before = measure(asked)
    if (len(uses) if trigger.get("type") == "tool_uses" else before) <= _number(edit, "trigger", _TRIGGER):
        return None
    keep = _number(edit, "keep", _KEPT_USES)
    old = uses[: max(len(uses) - int(keep), 0)]
    gone = {name for name, tool in old if name in answered and tool not in excluded}
    if not gone:
        return None
    inputs = edit.get("clear_tool_inputs") is True

    def shorter(block: Json) -> Json:
        if block.get("type") == "tool_result" and text_at(block, "tool_use_id") in gone:
            return {**block, "content": CLEARED}
        return (
            {**block, "input": {}}
            if inputs and block.get("type") == "tool_use" and text_at(block, "id") in gone
            else block
        )

    made = _with_blocks(asked, lambda blocks: [shorter(block) for block in blocks])
    saved = before - measure(made)
    if saved < _number(edit, "clear_at_least", 0):
        return None
    return made, {"type": edit["type"], "cleared_tool_uses": len(gone), "cleared_input_tokens": saved}


def _clear_thinking(asked: ProviderCall, edit: Mapping[str, Any], measure: Measure) -> tuple[ProviderCall, Json] | None:
    if edit.get("keep") == "all":
        return None
    keep = _number(edit, "keep", _KEPT_THINKING)
    thought = [place for place, blocks in _contents(asked) if any(one.get("type") in _THINKING for one in blocks)]
    gone = set(thought[: max(len(thought) - int(keep), 0)])
    if not gone:
        return None
    messages = [
        {**one, "content": [block for block in one["content"] if block.get("type") not in _THINKING]}
        if place in gone
        else one
        for place, one in enumerate(asked.body["messages"])
    ]
    made = replace(asked, body={**asked.body, "messages": messages})
    saved = measure(asked) - measure(made)
    return made, {"type": edit["type"], "cleared_thinking_turns": len(gone), "cleared_input_tokens": saved}


_EDITS: Final[Mapping[str, Callable[[ProviderCall, Mapping[str, Any], Measure], tuple[ProviderCall, Json] | None]]] = {
    "clear_tool_uses_20250919": _clear_tool_uses,
    "clear_thinking_20251015": _clear_thinking,
}


def _number(edit: Mapping[str, Any], name: str, default: float) -> float:
    """The value of a parameter, or the default for an invalid one."""
    found = object_at(edit, name).get("value")
    return max(found, 0) if isinstance(found, int | float) else default


def _contents(asked: ProviderCall) -> Iterator[tuple[int, Sequence[Json]]]:
    """Yield the messages made of blocks: place and blocks."""
    for place, message in enumerate(asked.body["messages"]):
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list) and all(isinstance(one, dict) for one in content):
            yield place, content


def _blocks(asked: ProviderCall, kind: str) -> list[Json]:
    return [one for _, blocks in _contents(asked) for one in blocks if one.get("type") == kind]


def _with_blocks(asked: ProviderCall, change: Callable[[Sequence[Json]], list[Json]]) -> ProviderCall:
    messages = list(asked.body["messages"])
    for place, blocks in _contents(asked):
        messages[place] = {**messages[place], "content": change(blocks)}
    return replace(asked, body={**asked.body, "messages": messages})
