"""Turns and steps that leave a nearly full window: the transcript in the store, and the text in their place."""

from collections.abc import Iterable, Iterator, Sequence

from pagein.engine.log.pageout import Pager, text_name
from pagein.engine.log.pin_state import is_ours
from pagein.engine.log.request_draft import Absent, WindowPiece
from pagein.engine.log.turn_removal import beside
from pagein.engine.window.full_window import Room, TurnRemoval, first_answer
from pagein.model.entries import TurnsLeft
from pagein.model.messages import Message, Text, ToolCall
from pagein.policy.stubs import turn_stubs as policy
from pagein.policy.stubs.recall_ways import Way
from pagein.policy.stubs.result_stubs import stub


def store_turns(
    session: str, pieces: Sequence[WindowPiece], going: TurnRemoval, room: Room, pager: Pager, way: Way
) -> TurnsLeft:
    """Store turns or steps, and return the record with the text in their place. Raises StoreError.

    pieces: the window after the other evictions. way: how the model recalls.
    """
    gone = [pieces[place] for place in going.places if pieces[place].message.role != "system"]
    carrier = pieces[going.carrier]
    known = beside(carrier, not going.turns)
    messages = [one.message for one in gone]
    before = [one.left for piece in gone for one in piece.absent] + ([] if known is None else [known.left])
    text = policy.transcript(messages)
    if known is not None:  # the stored text also names the turns removed before
        text = "\n\n".join([known.left.text, text] if known.left.are_steps else [text, known.left.text])
    tokens = sum(one.weight for one in gone)
    calls = tuple(block.id for one in messages for block in one.blocks if isinstance(block, ToolCall))
    stored = pager.keep_said(session, text_name(text), text, tokens)
    said = policy.bound_words(_words(gone, known))
    turns = going.turns + sum(one.turns for one in before) if going.turns else 0
    instructions = next((one.instructions for one in before if one.instructions), "") if going.turns else ""
    if going.turns and not instructions:
        first = first_answer(pieces)
        front = (pieces[place].message for place in going.places if place < first)
        instructions = policy.instructions_in(front, room.instructions)
    left = f"{turns:,} turns" if turns else "steps of a turn"
    about = stub(stored.id, "conversation", tokens, f"{left}, {len(text):,} characters", way)
    told = (
        policy.for_turns(about, turns, said, instructions, room.words)
        if turns
        else policy.for_steps(about, said, room.words)
    )
    return TurnsLeft(
        object_id=str(stored.id),
        content=stored.content,
        tokens=tokens,
        chars=len(text),
        text=told,
        weight=round(len(told) * room.each),
        message=going.carrier,
        places=going.runs,
        calls=calls,
        turns=turns,
        words=said,
        instructions=instructions,
        names=tuple(_names(messages)),
    )


def _words(gone: Sequence[WindowPiece], known: Absent | None) -> list[str]:
    """Return the user's words in these messages and in earlier removals, in order."""
    found: list[str] = []
    for piece in gone:
        found += (one for absent in piece.absent for one in absent.left.words if not absent.left.are_steps)
        said = policy.words_of([piece.message])
        found += [said] if said else []
        found += (one for absent in piece.absent for one in absent.left.words if absent.left.are_steps)
    if known is None:
        return found
    return [*known.left.words, *found] if known.left.are_steps else [*found, *known.left.words]


def _names(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the names of pagein's texts after these messages."""
    for message in messages:
        for block in message.blocks:
            if isinstance(block, Text) and is_ours(block.injected) and block.injected:
                yield from block.injected.split()[1:]
