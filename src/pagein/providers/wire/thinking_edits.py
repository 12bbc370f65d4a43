"""Find and remove the thinking invalidated by a change of the prompt (T2, T6, T8, M10, M11; Messages only).

Rules of this file
------------------
1. Thinking before a change stays valid. Thinking after it must be removed, whatever its content (T2).
2. The assistant message whose calls are being answered is never touched (M10, M11). Invalid thinking in it is *stuck*:
   the change has to wait for a fresh user turn.
3. An unknown model is treated as one that binds its thinking: leaving thinking out is allowed everywhere.
4. Places do not move: a message that held only thinking gets a line that says so.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from pagein.model.messages import Message, Text
from pagein.providers.validity.body_check import view
from pagein.providers.validity.target import ANYBODY, ModelTarget
from pagein.providers.validity.thinking_bonds import after, trail_before
from pagein.providers.validity.thinking_checks import checks_prefix, in_tool_loop
from pagein.providers.validity.turns import (
    AnswerFacts,
    Api,
    PromptTurn,
    Trail,
    TurnPart,
    Turns,
    Wire,
    neutral_turns_of,
    object_at,
)
from pagein.providers.wire.json_values import THINKING_LEFT_OUT

Place: TypeAlias = tuple[int, int]
"""Message and block, from 0."""

_MESSAGES: Final[Api] = "anthropic"


@dataclass(frozen=True, slots=True)
class Stale:
    """Invalid thinking, now or after a change.

    places: places of the invalid thinking.
    stuck: whether a part of it, or the change itself, is in the message that must be returned unchanged, so that the
        change has to wait.
    """

    places: frozenset[Place] = frozenset()
    stuck: bool = False


NOTHING_STALE: Final = Stale()


def after_edit(messages: Sequence[Message], edited: Place, whom: ModelTarget = ANYBODY) -> Stale:
    """The thinking to remove if the block at `edited` is the first to change."""
    return _find_invalidated(Turns(neutral_turns_of(messages), target=whom), edited)


def after_body_edit(body: Wire, edited: Place, whom: ModelTarget | None = None) -> Stale:
    """The thinking to remove from a Messages body if `edited` is the first change.

    The place of tools and system is (-1, 0).
    """
    return _find_invalidated(view(body, _MESSAGES, whom), edited)


def stale(messages: Sequence[Message], received: AnswerFacts, whom: ModelTarget) -> Stale:
    """The thinking known to be away from the original place."""
    return _find_stale(Turns(neutral_turns_of(messages), target=whom, received=received))


def stale_in_body(body: Wire, received: AnswerFacts, whom: ModelTarget | None = None) -> Stale:
    """The thinking in a Messages body known to be away from the original place."""
    return _find_stale(view(body, _MESSAGES, whom, received))


def without(messages: Sequence[Message], places: Collection[Place]) -> list[Message]:
    """Copy messages without some blocks."""
    gone = _by_message(places)
    return [_without_blocks(one, gone[place]) if place in gone else one for place, one in enumerate(messages)]


def body_without(body: Wire, places: Collection[Place]) -> dict[str, Any]:
    """Copy a Messages body without some blocks."""
    gone = _by_message(places)
    given = body.get("messages", ())
    return {
        **body,
        "messages": [
            _body_without_blocks(one, gone[place]) if place in gone else one for place, one in enumerate(given)
        ],
    }


def _find_invalidated(turns: Turns, edited: Place) -> Stale:
    latest = in_tool_loop(turns)
    in_latest = latest is not None and any((part.message, part.block) == edited for part in latest.parts)
    places = (
        frozenset(place for place in _thinking_places(turns.turns) if place > edited)
        if _may_be_refused(turns)
        else frozenset()
    )
    return Stale(places, in_latest or _includes_any(latest, places))


def _may_be_refused(turns: Turns) -> bool:
    """Whether the provider may refuse the request because of thinking after a change."""
    if turns.target.abilities.binds is not None:
        return checks_prefix(turns)
    binding = object_at(object_at(turns.fields, "thinking"), "block_binding")
    return binding.get("prefix_mismatch_behavior") != "drop_block"


def _find_stale(turns: Turns) -> Stale:
    if not checks_prefix(turns) or not turns.received.bonds:
        return NOTHING_STALE
    places: set[Place] = set()
    kept = ""
    for index, turn in enumerate(turns.turns):
        if not any(part.kind == "thinking" for part in turn.parts):
            continue
        trail = trail_before(turns, index)
        for part in turn.parts:
            if part.kind == "thinking" and part.id:
                if _is_valid(part, turns.received, Trail(trail.name, kept)):
                    kept = part.id
                else:
                    places.add((part.message, part.block))
            trail = after(trail, turn, part)
    return Stale(frozenset(places), _includes_any(in_tool_loop(turns), places))


def _is_valid(part: TurnPart, received: AnswerFacts, trail: Trail) -> bool:
    """Whether thinking is valid after a prompt. Unknown thinking counts as valid."""
    bond = received.bonds.get(part.id)
    if bond is None:
        return True
    return bond.before.name == trail.name and trail.thinking in ("", bond.before.thinking)


def _includes_any(latest: PromptTurn | None, places: Collection[Place]) -> bool:
    return latest is not None and any((part.message, part.block) in places for part in latest.parts)


def _thinking_places(turns: Sequence[PromptTurn]) -> Iterator[Place]:
    return ((part.message, part.block) for turn in turns for part in turn.parts if part.kind == "thinking")


def _by_message(places: Collection[Place]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for message, block in places:
        found.setdefault(message, set()).add(block)
    return found


def _without_blocks(message: Message, gone: Collection[int]) -> Message:
    kept = tuple(block for place, block in enumerate(message.blocks) if place not in gone)
    return replace(message, blocks=kept or (Text(THINKING_LEFT_OUT, injected="thinking"),))


def _body_without_blocks(message: Wire, gone: Collection[int]) -> Wire:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    kept = [block for place, block in enumerate(content) if place not in gone]
    return {**message, "content": kept or [{"type": "text", "text": THINKING_LEFT_OUT}]}
