"""Remove whole turns from a full window, with a text in their place.

Rules of this file
------------------
1. The text for finished turns is put in front of the user's next words, in that message. The text for steps of a turn
   is put after the words that began the turn. So the roles alternate as before.
2. A message carries one text of either kind. The new text also covers turns that were removed before and were next to
   it.
3. System messages stay.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from pagein.engine.log.request_draft import Absent, WindowPiece
from pagein.model.entries import TurnsLeft
from pagein.model.messages import Block, Message, Text
from pagein.policy.clients.client_prompts import user_words
from pagein.policy.stubs.turn_stubs import SHORTENED, STEPS, TURNS

_APART: Final = (TURNS, STEPS, SHORTENED)


def is_spoken(message: Message) -> bool:
    """Return whether the message holds words of a person, not only text of the client."""
    return message.role == "user" and any(
        isinstance(block, Text) and block.injected in (None, SHORTENED) and block.text for block in message.blocks
    )


def words_said(message: Message) -> str | None:
    """Return a person's words in the message, "" for words no longer known; None for a message without a person's
    words.

    A client may add a text of its own to every message with results, or a notice that a task ended: these texts are no person's
    words.
    """
    if not is_spoken(message):
        return None
    is_known = any(isinstance(block, Text) and block.injected is None for block in message.blocks)
    words = user_words(message)
    return None if is_known and not words else words


def is_apart(injected: str | None) -> bool:
    """Return whether a label marks a text in place of removed content, not a text appended to a message."""
    return injected in _APART


def without(pieces: Sequence[WindowPiece], turns: Iterable[TurnsLeft]) -> list[WindowPiece]:
    """Return the pieces of a window without these turns."""
    stays: list[WindowPiece | None] = list(pieces)
    for left in turns:
        gone = [place for place in places_of(left) if pieces[place].message.role != "system"]
        told = [*_numbers(pieces[place] for place in gone)]
        for place in gone:
            stays[place] = None
        carrier = stays[left.message]
        if carrier is not None:
            stays[left.message] = _with(carrier, left, told)
    return [one for one in stays if one is not None]


def places_of(left: TurnsLeft) -> list[int]:
    """Return the numbers of the messages in the removed range, including system messages."""
    return [place for first, last in left.places for place in range(first, last + 1)]


def beside(piece: WindowPiece, left_are_steps: bool) -> Absent | None:  # noqa: FBT001 -- the kind
    """Return the removal of this kind that the message already reports."""
    return next((one for one in piece.absent if one.left.are_steps == left_are_steps), None)


def _with(piece: WindowPiece, left: TurnsLeft, said: Sequence[tuple[int, int]]) -> WindowPiece:
    known = beside(piece, left.are_steps)
    kind = STEPS if left.are_steps else TURNS
    rest = tuple(block for block in piece.message.blocks if not (isinstance(block, Text) and block.injected == kind))
    text = Text(left.text, injected=kind)
    blocks: tuple[Block, ...] = (*rest, text) if left.are_steps else (text, *rest)
    absent = Absent(left, _join_runs([*said, *(() if known is None else known.said)]))
    others = tuple(one for one in piece.absent if one is not known)
    weight = piece.weight + left.weight - (0 if known is None else known.left.weight)
    return replace(piece, message=replace(piece.message, blocks=blocks), absent=(*others, absent), weight=weight)


def _numbers(pieces: Iterable[WindowPiece]) -> Iterable[tuple[int, int]]:
    """Yield the numbers of messages, and of earlier removals reported in them."""
    for piece in pieces:
        yield piece.said, piece.said
        for one in piece.absent:
            yield from one.said


def _join_runs(runs: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Join runs that touch."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(runs):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return tuple(found)
