"""Stubs for long user texts: head, tail and an id in a nearly full window; only an id for a repeated text.

A stub is a function of the text, its id and the way of recall, so that it is always the same.
"""

from typing import Final

from pagein.errors import BadSetting
from pagein.policy.stubs.recall_ways import Way
from pagein.policy.stubs.result_stubs import description

LEAST: Final = 1000
"""Minimum characters of a text to be shortened: the stub of a shorter text would save little."""
_SHOWN: Final = 8  # head and tail each show this fraction of the minimum length


def check_chars(chars: int) -> int:
    """Return the minimum length of shortened texts, 0 for never. Raises BadSetting for an invalid number."""
    if chars and chars < LEAST:
        raise BadSetting(f"pasted texts may leave from {LEAST} characters on, or never (0), not from {chars}")
    return chars


def shorten_paste(object_id: str, tokens: int, text: str, chars: int, way: Way) -> str:
    """Return a text's head, a notice about the stored rest, and the tail.

    chars: minimum length of shortened texts. way: how the model recalls.
    """
    part = chars // _SHOWN
    head, tail = _cut(text, part), _cut(text[::-1], part)
    left = len(text) - head - tail
    begins = text[:head] if text[head - 1] == "\n" else text[:head] + "\n"
    return (
        f"{begins}[pagein: {object_id} | user | {tokens:,} tokens | {description(text)}]\n"
        f"[{left:,} characters in the middle of this text of the user's are kept and not shown. "
        f"{way.recall_words(object_id, ' them')}]\n"
        f"[the end:]\n{text[len(text) - tail :]}"
    )


def name_repeat(object_id: str, tokens: int, text: str, way: Way) -> str:
    """Return the stub of a text that came word for word in an earlier message. way: how the model recalls."""
    return (
        f"[pagein: {object_id} | user | {tokens:,} tokens | {description(text)}]\n"
        "[This text came word for word in an earlier message of this conversation, and is not sent a second time. "
        f"{way.recall_words(object_id, ' it')}]"
    )


def _cut(text: str, most: int) -> int:
    """Return the length of whole lines from the beginning, at most `most`; of a longer first line, a part."""
    cut = text.rfind("\n", 0, most) + 1
    return cut if cut > most // 2 else most
