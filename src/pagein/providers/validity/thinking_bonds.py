"""Bonds of thinking to the prompt: names of prompts, and the facts learned from each request and answer.

Rules of this file
------------------
1. A name stands for the whole prompt up to a point: tools, system, and every block except thinking, with its side.
2. Not part of a name: cache breakpoints (T3), the order of tools (its effect is unknown, T10), and deferred tools.
3. Names of wire blocks and of host-neutral blocks are never compared with each other.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import blake2b
from typing import Any, Final

import msgspec

from pagein.model.messages import Message
from pagein.providers.validity.turns import (
    AnswerFacts,
    Bond,
    PromptTurn,
    Trail,
    TurnPart,
    Turns,
    Wire,
    neutral_turns_of,
    objects_at,
)

_SIZE: Final = 16
_MARKS: Final = ("cache_control", "prompt_cache_breakpoint")
_TEXT_FIELDS: Final = frozenset({"type", "text", *_MARKS})


def with_messages(received: AnswerFacts, messages: Sequence[Message]) -> AnswerFacts:
    """The facts known after host-neutral messages, with the answer as the last. Leading system messages are left out."""
    return learn_turns(received, Turns(neutral_turns_of(messages)))


def trail_before(turns: Turns, index: int) -> Trail:
    """The prompt before a turn. Only the part changed since the last call is computed."""
    start = index
    while start and turns.turns[start - 1].trail is None:
        start -= 1
    trail = turns.turns[start - 1].trail if start else None
    trail = trail or Trail(_head(turns))
    for turn in turns.turns[start:index]:
        for part in turn.parts:
            trail = after(trail, turn, part)
        turn.trail = trail
    return trail


def after(trail: Trail, turn: PromptTurn, part: TurnPart) -> Trail:
    """The prompt extended by one part."""
    if part.kind == "thinking":
        return Trail(trail.name, part.id or trail.thinking)
    return Trail(hash_parts(trail.name, turn.side.encode(), canonical(part)), trail.thinking)


def words_of(part: TurnPart) -> bytes:
    """A digest of a block's content."""
    return hash_parts(canonical(part))


def learn_turns(received: AnswerFacts, turns: Turns) -> AnswerFacts:
    """The facts known after an accepted request, given as turns, with the answer as the last."""
    bonds, thoughts = dict(received.bonds), dict(received.thoughts)
    for index, turn in enumerate(turns.turns):
        thinking = [part for part in turn.parts if part.kind == "thinking"]
        digests = tuple(words_of(part) for part in thinking)
        for part in turn.parts:
            if part.kind == "call":
                thoughts.setdefault(part.id, digests)
        if all(part.id in bonds for part in thinking):
            continue
        trail = trail_before(turns, index)
        for part in turn.parts:
            if part.kind == "thinking" and part.id:
                bonds.setdefault(part.id, Bond(trail, words_of(part)))
            trail = after(trail, turn, part)
    known = replace(received, bonds=bonds, thoughts=thoughts)
    return _with_items(known, objects_at(turns.fields, "input"))


def _with_items(received: AnswerFacts, items: Sequence[Wire]) -> AnswerFacts:
    """Add the reasoning items of a Responses request, with the following items."""
    if not items:
        return received
    reasoning, followers = dict(received.reasoning), dict(received.followers)
    pending = ""
    for item in items:
        name = item.get("id")
        if item.get("type") == "reasoning":
            pending = name if isinstance(name, str) else ""
        elif pending:
            if isinstance(name, str) and name:
                reasoning.setdefault(name, pending)
                followers.setdefault(pending, name)
            pending = ""
    return replace(received, reasoning=reasoning, followers=followers)


def _head(turns: Turns) -> bytes:
    tools = sorted(
        canonical(part) for part in turns.head if part.kind == "tool" and part.wire.get("defer_loading") is not True
    )
    return hash_parts(*tools, *(canonical(part) for part in turns.head if part.kind != "tool"))


def hash_parts(*parts: bytes) -> bytes:
    """A digest of some parts in this order."""
    name = blake2b(digest_size=_SIZE)
    for part in parts:
        name.update(len(part).to_bytes(8, "big"))
        name.update(part)
    return name.digest()


def canonical(part: TurnPart) -> bytes:
    """The content of a block as bytes, without breakpoints. A string and a text block with the same text are equal."""
    source = part.source
    if source is None or (isinstance(source, Mapping) and part.kind == "text" and _TEXT_FIELDS.issuperset(source)):
        return b"text" + part.text.encode("utf-8", "surrogatepass")
    return _encode_value(
        _without_breakpoints(source) if isinstance(source, Mapping) else [type(source).__name__, asdict(source)]
    )


def _without_breakpoints(block: Wire) -> Wire:
    """The block without cache breakpoints, also inside a result."""
    bare = {name: value for name, value in block.items() if name not in _MARKS}
    content = bare.get("content")
    if isinstance(content, list):
        bare["content"] = [
            {name: value for name, value in one.items() if name not in _MARKS} if isinstance(one, Mapping) else one
            for one in content
        ]
    return bare


def _encode_value(value: Any) -> bytes:  # noqa: ANN401 -- plain values of any shape
    try:
        return msgspec.json.encode(value, order="sorted")
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
