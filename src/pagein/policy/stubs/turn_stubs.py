"""Stubs for whole turns evicted from a nearly full window, and the transcript stored in the turns' place.

The transcript holds each text as it was said, under a line with its role. The stub begins with the user's words,
shortened, and explains itself. Both are functions of the evicted turns and of the object's id alone.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from pagein.model.messages import Block, Image, Message, Other, Text, Thinking, ToolCall, ToolResult
from pagein.model.server_results import stub_of
from pagein.policy.stubs.result_stubs import one_line

TURNS: Final = "pagein:turns"
STEPS: Final = "pagein:steps"
SHORTENED: Final = "pagein:text"
"""Labels of stub texts in the window: for turns, for steps of one turn, and for a long user text."""
WORDS: Final = 300
"""Maximum characters shown of the user's words in a turn."""
ALL_WORDS: Final = 6000
"""Maximum characters shown of the user's words in every turn together; the first and the newest words win."""
INSTRUCTIONS: Final = 24_000
"""Maximum characters kept of the host's words in front of the conversation."""
FRAME: Final = 700
"""Approximate characters around the user's words."""
FRAME_OF_STEPS: Final = 400
"""Approximate characters around the user's words where steps of a turn were evicted."""
# Beginnings of host texts in the user's role: a tag, or the heading under which codex quotes a project's instructions.
_BY_HOST: Final = re.compile(r"\s*(?:<[A-Za-z][\w-]*[>\s]|# AGENTS\.md )")


def is_by_host(text: Text) -> bool:
    """Return whether the host or pagein, not the user, wrote this user text."""
    return text.injected not in (None, SHORTENED) or _BY_HOST.match(text.text) is not None


def words_of(messages: Iterable[Message]) -> str:
    """Return the user's words in these messages, shortened to a line; "" for no words."""
    said = [
        block.text
        for message in messages
        if message.role == "user"
        for block in message.blocks
        if isinstance(block, Text) and not is_by_host(block)
    ]
    # examine only as much of a long text as can be shown
    text = one_line("\n".join(one[: 8 * WORDS] for one in said))
    return text if len(text) <= WORDS else text[:WORDS].rstrip() + "…"


def instructions_in(messages: Iterable[Message], room: int) -> str:
    """Return the host's words in these messages, cut to `room` characters."""
    said = [
        block.text
        for message in messages
        if message.role == "user"
        for block in message.blocks
        if isinstance(block, Text) and is_by_host(block) and not (block.injected or "").startswith("pagein:")
    ]
    return "\n".join(said)[:room]


def transcript(messages: Sequence[Message]) -> str:
    """Return the text of messages as a transcript."""
    names = {block.id: block.name for one in messages for block in one.blocks if isinstance(block, ToolCall)}
    told = (_block_words(message, block, names) for message in messages for block in message.blocks)
    return "\n\n".join(words for words in told if words)


def _block_words(message: Message, block: Block, names: dict[str, str]) -> str:
    match block:
        case Text(text=text):
            return f"--- {message.role} ---\n{text}"
        case Thinking(text=text):
            return f"--- {message.role}, thinking ---\n{text}"
        case ToolCall(id=call, name=name, arguments=arguments):
            return f"--- {message.role} calls {name} ({call}) ---\n{arguments}"
        case ToolResult(call_id=call, text=text, name=name):
            return f"--- result of {name or names.get(call, 'a tool')} ({call}) ---\n{text}"
        case Image(media_type=kind):
            return f"--- {message.role}, image ---\n[{kind}]"
        case Other(kind=kind, json=json):
            stub = stub_of(block)
            return f"--- {message.role}, {kind} ---\n{json}" if stub is None else stub[1]


def for_turns(stub: str, count: int, words: Sequence[str], instructions: str, room: int) -> str:
    """Return the text in place of finished turns, for a place in front of the next turn.

    count: number of turns. words: the user's words in each turn with any.
    room: maximum characters of these words.
    """
    turns = "One earlier turn" if count == 1 else f"{count:,} earlier turns"
    parts = ["[Earlier in this conversation the user said, shortened, oldest first:]", *_list_words(words, room)]
    if instructions:
        parts += ["[Before that the host had said:]", instructions]
    explained = (
        f"[{turns} of this conversation left this window, as it was nearly full: what the user said and what was answered and "
        "done. Nothing of it is lost, and it is not to be done again:]"
    )
    return "\n".join([*parts, explained, stub, "[The conversation goes on:]"])


def for_steps(stub: str, words: Sequence[str], room: int) -> str:
    """Return the text in place of steps of a turn, for a place after the turn's first words.

    words: the user's words in the steps. room: maximum characters of these words.
    """
    said = ["[Later the user said, shortened, oldest first:]", *_list_words(words, room), ""] if words else [""]
    return "\n".join(said) + (
        "[Earlier steps of the work on this left this window, as it was nearly full: what the assistant said, its calls and their results. "
        f"Nothing of it is lost, and it is not to be done again:]\n{stub}"
    )


def _list_words(words: Sequence[str], room: int) -> list[str]:
    """Return the user's first words, and as many of the newest as fit."""
    room -= len(words[0]) if words else 0
    newest: list[str] = []
    for one in reversed(words[1:]):
        room -= len(one)
        if room < 0:
            break
        newest.append(one)
    left = len(words) - 1 - len(newest)
    between = [f"- ({left:,} more)"] if words and left else []
    return [*(f"- {one}" for one in words[:1]), *between, *(f"- {one}" for one in reversed(newest))]


def bound_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return the user's words, bounded to the number that can ever be shown."""
    most = ALL_WORDS // 8
    return tuple(words) if len(words) <= most else (words[0], *words[-most:])
