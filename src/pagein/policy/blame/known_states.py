r"""The known past of a file, as values: states with authors, and the origin of a line.

Rules of this file
------------------
1. A line is its text without the line end. `\r` before `\n` belongs to the end, and a missing end of the last line makes
   no difference: clients show texts in different ways.
2. A state is known whole, in part (with the numbers of its lines), or not at all (only the deed is known).
3. A read proves that a text existed, not who wrote it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pagein.policy.reads.text_edit import TextEdit

Answer: TypeAlias = Literal["agent", "person", "mixed", "unknown"]
Match: TypeAlias = Literal["exact", "moved", "reformatted", "none"]
Deed: TypeAlias = Literal["read", "write", "edit", "delete", "move"]
Maker: TypeAlias = Literal["agent", "person", "unknown"]


@dataclass(frozen=True, slots=True)
class Author:
    """The proven author of a state.

    maker: `unknown` for a text that was only seen.
    session, turn: of the call that wrote the state or showed it; "" and 0 if there is none.
    """

    maker: Maker
    session: str = ""
    turn: int = 0


NOBODY: Final = Author("unknown")


@dataclass(frozen=True, slots=True)
class KnownState:
    """A file at one time.

    name: of the version, for the answer.
    at: seconds since 1970.
    lines: of the whole file, or of the parts in `spans`, one part after another; None if no text is known.
    spans: first and last line of each known part, counted from 1, in order; None for a whole text.
    edits: the replacements that an edit made, where the arguments of the call are known. One of whole lines begins with the
        end of the line before.
    """

    name: str
    at: float
    deed: Deed
    author: Author
    lines: tuple[str, ...] | None
    spans: tuple[tuple[int, int], ...] | None = None
    edits: tuple[TextEdit, ...] = ()


@dataclass(frozen=True, slots=True)
class LineOrigin:
    """The answer for one line.

    state: index of the known state that wrote the line last; for `unknown` of the state that showed it first; None if no
        known state has the line.
    match: how the line is found in the known states; `none` if it is not.
    """

    answer: Answer
    state: int | None
    match: Match


UNEXPLAINED: Final = LineOrigin("unknown", None, "none")


def lines_of(text: str) -> tuple[str, ...]:
    """Return the lines of a text, without their ends."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return tuple(line.removesuffix("\r") for line in lines) if "\r" in text else tuple(lines)


def has_letters(lines: Iterable[str], least: int) -> bool:
    """Return whether these lines have at least so many letters and digits. Reads no more lines than tell it."""
    count = 0
    for line in lines:
        count += sum(map(str.isalnum, line))
        if count >= least:
            return True
    return False
