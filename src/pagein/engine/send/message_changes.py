"""How a message of the window differs from the client's: texts of results, masked arguments, words, notes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pagein.engine.intake.message_chain import Unit
from pagein.engine.log.pin_state import is_ours
from pagein.engine.log.request_draft import WindowPiece
from pagein.engine.log.server_residents import stubs_in
from pagein.engine.log.turn_removal import is_apart
from pagein.errors import HostError
from pagein.model.messages import Text, ToolCall, ToolResult
from pagein.policy.eviction.argument_masks import same_but_texts
from pagein.policy.privacy.exclusions import is_withheld
from pagein.policy.stubs.turn_stubs import SHORTENED, STEPS, TURNS
from pagein.providers.wire.message_texts import MessageTexts


@dataclass(frozen=True, slots=True)
class MessageChange:
    """The differences in one message.

    texts: texts of results, by call id.
    notes: pagein's texts to append.
    thoughtless: True to remove its thinking.
    stands: messages as JSON in its place.
    answers: blocks of pagein's results to prepend.
    arguments: arguments of calls, by call id.
    words: replacements of the user's words.
    gone: True to send nothing of the message.
    servers: texts in place of results of the provider's own tools, by call id.
    uncited: True to send its texts without their citations.
    spent: True to send the hidden exchange in its place without the recalled texts.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    thoughtless: bool = False
    stands: tuple[bytes, ...] = ()
    answers: tuple[bytes, ...] = ()
    arguments: Mapping[str, str] = field(default_factory=dict)
    words: MessageTexts | None = None
    gone: bool = False
    servers: Mapping[str, str] = field(default_factory=dict)
    uncited: bool = False
    spent: bool = False


UNCHANGED: Final = MessageChange()
GONE: Final = MessageChange(gone=True)


def change_of(piece: WindowPiece, unit: Unit) -> MessageChange:
    """Return how a message of the window differs from the client's.

    Redacted content is sent as the client sent it (law 9).
    """
    ours = {block.call_id: block.text for block in unit.message.blocks if isinstance(block, ToolResult)}
    texts = {
        block.call_id: block.text
        for block in piece.message.blocks
        if isinstance(block, ToolResult)
        and block.call_id in ours
        and block.text != ours[block.call_id]
        and not is_withheld(block)
    }
    notes = tuple(
        block.text
        for block in piece.message.blocks
        if isinstance(block, Text) and block.injected and is_ours(block.injected) and not is_apart(block.injected)
    )
    said = {block.id: block.arguments for block in unit.message.blocks if isinstance(block, ToolCall)}
    arguments = {
        block.id: block.arguments
        for block in piece.message.blocks
        if isinstance(block, ToolCall) and _is_ours(block.arguments, said.get(block.id)) and not is_withheld(block)
    }
    return MessageChange(
        texts,
        notes,
        arguments=arguments,
        words=_words(piece, unit),
        servers={} if piece.source is None else stubs_in(piece.message),
        uncited=piece.uncited,
    )


def _words(piece: WindowPiece, unit: Unit) -> MessageTexts | None:
    """Return the replacements for the user's words; None if absent."""
    texts_of_ours = (block for block in piece.message.blocks if isinstance(block, Text) and block.injected)
    told = [block for block in texts_of_ours if is_apart(block.injected)]
    if not told:
        return None
    theirs = [
        place for place, block in enumerate(unit.message.blocks) if isinstance(block, Text) and block.text.strip()
    ]
    ours = [
        block
        for block in piece.message.blocks
        if isinstance(block, Text) and (block.injected == SHORTENED or not is_ours(block.injected))
    ]
    texts = {place: block.text for place, block in zip(theirs, ours, strict=False) if block.injected == SHORTENED}
    if texts and len(ours) != len(theirs):
        raise HostError("a text of the user's is not found again in its message")
    front, behind = ("".join(one.text for one in told if one.injected == kind) for kind in (TURNS, STEPS))
    return MessageTexts(texts, front, behind)


def _is_ours(arguments: str, said: str | None) -> bool:
    """Return whether pagein masked these arguments. Redacted arguments of older versions have lost their shape."""
    return said is not None and arguments != said and same_but_texts(arguments, said)


def join_changes(one: MessageChange, other: MessageChange) -> MessageChange:
    """Return both changes of a message as one."""
    texts, arguments = {**one.texts, **other.texts}, {**one.arguments, **other.arguments}
    return MessageChange(
        texts,
        (*one.notes, *other.notes),
        one.thoughtless or other.thoughtless,
        arguments=arguments,
        words=other.words or one.words,
        servers={**one.servers, **other.servers},
        uncited=one.uncited or other.uncited,
        spent=one.spent or other.spent,
    )
