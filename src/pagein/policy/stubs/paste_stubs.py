"""What stands for a long text that the user said, once it has left a nearly full window: its head, its tail and a handle.

A function of the text and its id alone, so that it is the same whenever it is made.
"""

from typing import Final

from pagein.errors import BadSetting
from pagein.policy.stubs.result_stubs import description

LEAST: Final = 1000
"""No shorter text is taken out this way: what stands for it would not be much shorter."""
_SHOWN: Final = 8  # a text shows so many-th of the least that may leave, at its head and at its tail each


def check_chars(chars: int) -> int:
    """The number of characters from which texts may leave, 0 for never. Raises BadSetting for one that makes no sense."""
    if chars and chars < LEAST:
        raise BadSetting(f"pasted texts may leave from {LEAST} characters on, or never (0), not from {chars}")
    return chars


def shorten_paste(object_id: str, tokens: int, text: str, chars: int) -> str:
    """The head of a text, where all of it is kept, and its tail. chars: from how many characters on texts leave."""
    part = chars // _SHOWN
    head, tail = _cut(text, part), _cut(text[::-1], part)
    left = len(text) - head - tail
    begins = text[:head] if text[head - 1] == "\n" else text[:head] + "\n"
    return (
        f"{begins}[pagein: {object_id} | user | {tokens:,} tokens | {description(text)}]\n"
        f"[{left:,} characters in the middle of this text of the user's are kept and not shown. "
        f'Use peek("{object_id}") to view them, or search to find specific content.]\n'
        f"[the end:]\n{text[len(text) - tail :]}"
    )


def _cut(text: str, most: int) -> int:
    """Characters of whole lines from the beginning, at most so many; a part of the first line where it alone is longer."""
    cut = text.rfind("\n", 0, most) + 1
    return cut if cut > most // 2 else most
