"""Check returned thinking: rules M10, M11, T2, T6."""

from collections.abc import Iterator
from typing import Final

from pagein.providers.validity.call_pairs import Found, calls_of, of_kind
from pagein.providers.validity.request_settings import mode_of
from pagein.providers.validity.thinking_bonds import after, trail_before, words_of
from pagein.providers.validity.turns import PromptTurn, TurnPart, Turns, object_at, recent

MODIFIED: Final = (
    "{place}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
    "These blocks must remain as they were in the original response."
)
NO_THINKING: Final = (
    "messages.{message}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. "
    "When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost "
    "set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. "
    "To avoid this requirement, disable `thinking`."
)
FORCED: Final = "Thinking may not be enabled when tool_choice forces tool use."
NO_FORCE: Final = 'tool_choice: type "tool" and "any" are not supported for this model'
BOUND: Final = (
    "{place}: Invalid `signature` in `{kind}` block. The block is bound to a different conversation. Remove the block, "
    'or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)


def in_tool_loop(turns: Turns) -> PromptTurn | None:
    """The assistant turn with the calls that the last turn answers, which must be returned unchanged.

    None outside a tool loop.
    """
    if len(turns.turns) < 2 or turns.turns[-1].side != "user":  # noqa: PLR2004 -- a turn and its results
        return None
    latest = turns.turns[-2]
    return latest if calls_of(latest) and of_kind(turns.turns[-1], "result") else None


def check_modified_thinking(turns: Turns, _since: int) -> Found:
    """M10: thinking in the tool loop is unmodified.

    If it was removed entirely, nothing is left to compare, and the request is accepted.
    """
    latest = in_tool_loop(turns)
    if latest is None:
        return
    thinking = of_kind(latest, "thinking")
    known = (turns.received.thoughts.get(part.id) for part in calls_of(latest))
    original = next((one for one in known if one is not None), None)
    if not thinking or original is None or tuple(words_of(part) for part in thinking) == original:
        return
    if not _is_reused(turns, latest):
        yield thinking[0], MODIFIED.format(place=thinking[0].place)


def _is_reused(turns: Turns, latest: PromptTurn) -> bool:
    """Whether a different answer has a call with the same id, so that the known facts may belong to that answer."""
    ids = {part.id for part in calls_of(latest)}
    return any(part.id in ids for turn in turns.turns if turn is not latest for part in calls_of(turn))


def check_manual_thinking(turns: Turns, _since: int) -> Found:
    """M11: thinking on a manual budget comes first in the tool loop, and forbids a forced tool."""
    enabled = mode_of(turns.fields) == "enabled"
    latest = in_tool_loop(turns)
    if enabled and latest is not None and latest.parts[0].kind != "thinking":
        part = latest.parts[0]
        yield part, NO_THINKING.format(message=part.message, kind=part.wire.get("type"))
    if object_at(turns.fields, "tool_choice").get("type") in ("any", "tool"):
        whole = TurnPart("other", -1, 0)
        if "forced tools" in turns.target.abilities.refuses:
            yield whole, NO_FORCE
        elif enabled:
            yield whole, FORCED


def checks_prefix(turns: Turns) -> bool:
    """Whether thinking after a changed prefix is refused (T1, T4, T5)."""
    target = turns.target
    if not target.abilities.binds or not target.abilities.checks:
        return False
    asked = object_at(object_at(turns.fields, "thinking"), "block_binding").get("prefix_mismatch_behavior")
    return asked != "drop_block" and (asked is not None or target.account_is_checked)


def check_changed_prefix(turns: Turns, since: int) -> Found:
    """T2: nothing before thinking has changed."""
    for part, why in _find_unbound(turns, since):
        if why == "prefix":
            yield part, BOUND.format(place=part.place, kind=part.wire.get("type", "thinking"))


def check_missing_thinking(turns: Turns, since: int) -> Found:
    """T6: thinking is removed from the oldest on, never from between."""
    for part, why in _find_unbound(turns, since):
        if why == "thinking":
            yield part, BOUND.format(place=part.place, kind=part.wire.get("type", "thinking"))


def _find_unbound(turns: Turns, since: int) -> Iterator[tuple[TurnPart, str]]:
    """Yield thinking away from the original place, with the difference: the prefix, or the thinking before it."""
    bonds = turns.received.bonds
    if not bonds or not checks_prefix(turns):
        return
    for index, turn in recent(turns, since):
        if not any(part.id in bonds for part in of_kind(turn, "thinking")):
            continue
        trail = trail_before(turns, index)
        for part in turn.parts:
            bond = bonds.get(part.id) if part.kind == "thinking" else None
            if bond is not None and bond.before.name != trail.name:
                yield part, "prefix"
            elif bond is not None and trail.thinking and bond.before.thinking != trail.thinking:
                yield part, "thinking"
            trail = after(trail, turn, part)
