"""A replacement in a text, as an edit call asks for it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextEdit:
    """One exact replacement.

    everywhere: of every occurrence, not only of a single occurrence.
    """

    old: str
    new: str
    everywhere: bool = False
