"""Texts with a difference in layout only: blanks, line breaks, quotes, commas before a closing bracket.

A formatter changes layout; it writes nothing. `spaceless` is what git's `-w` ignores, `plain_form` ignores more.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final

_COMMAS: Final = re.compile(r",(?=[)\]}])|[,;]$")
_REMEMBERED: Final = 8192
_QUOTES: Final = str.maketrans("'`", '""')


@lru_cache(maxsize=_REMEMBERED)  # the same lines return in version after version
def spaceless(line: str) -> str:
    """Return a line without any blanks."""
    return "".join(line.split())


@lru_cache(maxsize=_REMEMBERED)
def plain_form(line: str) -> str:
    """Return a line without blanks, with a single kind of quotes and without commas at the end of a list."""
    return _COMMAS.sub("", _signs(line))


def joined_sources(old: Sequence[str], new: Sequence[str]) -> list[range] | None:
    """Return for each new line the old lines joined in the new line; None if the texts differ in more than layout.

    Line breaks may stand elsewhere. A blank line is made of nothing.
    """
    before, after = [_signs(line) for line in old], [_signs(line) for line in new]
    whole = _COMMAS.sub("", "".join(before))
    if not whole or whole != _COMMAS.sub("", "".join(after)):
        return None
    return list(_overlaps([_width(line) for line in before], [_width(line) for line in after]))


@lru_cache(maxsize=_REMEMBERED)
def _signs(line: str) -> str:
    return spaceless(line).translate(_QUOTES)


def _width(line: str) -> int:
    return len(line) - line.count(",")  # the commas of both texts differ


def _overlaps(old: Sequence[int], new: Sequence[int]) -> Iterator[range]:
    ends = list(accumulate(old))
    start = i = 0
    for width in new:
        stop = start + width
        while i < len(ends) and ends[i] <= start:
            i += 1
        k = i
        while k < len(ends) and ends[k] < stop:
            k += 1
        yield range(i, min(k + 1, len(ends))) if width else range(0)
        start = stop
