"""Places in a search from which it goes on: the `next` of a page."""

from dataclasses import dataclass
from typing import Final

from pagein.errors import BadInput

_LONGEST_POSITION: Final = 60
_LAST_PLACE: Final = 2**62


@dataclass(frozen=True, slots=True)
class PagePosition:
    """Beginning of a page: a place of a shelf, and the number of hits to skip there."""

    shelf: str
    place: int
    skip: int = 0

    def __str__(self) -> str:
        return f"{self.shelf}{self.place}.{self.skip}"


def position_in(text: str | None) -> PagePosition | None:
    """Return the beginning of a page, from the `next` of the page before. Raises BadInput."""
    if text is None:
        return None
    place, _, skip = text[1:].partition(".")
    digits = place + skip
    if not (
        text[:1].isalpha()
        and place
        and skip
        and digits.isdecimal()
        and digits.isascii()
        and len(text) <= _LONGEST_POSITION
        and max(int(place), int(skip)) < _LAST_PLACE
    ):
        raise BadInput(f"not the `next` of a page: {text[:40]!r}; give it as the page before ended with it")
    return PagePosition(text[0], int(place), int(skip))
