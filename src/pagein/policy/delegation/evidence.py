"""Look up the quotes of a reply in the child's targets.

Rules of this file
------------------
1. A quote is found where the text has the same characters; failing that, where only white space differs, which the report
   mentions. Anything else is *not found in the target*: a quote with words left out is no proof.
2. If a quote stands at several places, the first one counts, within the part that the child was shown if it is there.
3. Places refer to the whole original, never to a part.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pagein.model.delegation_notes import QuoteNote

_LEAST: Final = 3  # shorter quotes stand anywhere and prove nothing
_SPACE: Final = re.compile(r"\s+")
_LONGEST: Final = 20_000


@dataclass(frozen=True, slots=True)
class QuotedText:
    """The text of a child's target.

    version: of the object, from 1; None if the object has no versions.
    shown: characters of the text that the child was shown, as start and end; None for all of it.
    """

    object_id: str
    version: int | None
    text: str
    shown: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class QuoteEvidence:
    """A quote with its place.

    object_id: None if no target contains the quote; then there is no version and no place.
    first, last: lines of the quote in the whole text, from 1. start, end: its characters there.
    is_exact: False if the text has other white space than the quote.
    """

    quote: str
    object_id: str | None = None
    version: int | None = None
    first: int = 0
    last: int = 0
    start: int = 0
    end: int = 0
    is_exact: bool = True

    @property
    def note(self) -> QuoteNote:
        """The quote with its lines, as it is journaled."""
        return QuoteNote(self.quote, self.object_id or "", self.version, self.first, self.last, self.is_exact)

    @property
    def place(self) -> str:
        """The place in words: `pg-1@2, lines 3 to 4`, or that the quote was not found."""
        return self.note.place


def locate_quotes(quotes: Sequence[str], targets: Sequence[QuotedText]) -> tuple[QuoteEvidence, ...]:
    """Return each quote with its place in the targets, in the order of the quotes."""
    return tuple(_locate(quote, targets) for quote in quotes)


def _locate(quote: str, targets: Sequence[QuotedText]) -> QuoteEvidence:
    wanted = quote.strip()
    if len(wanted) < _LEAST or len(wanted) > _LONGEST:
        return QuoteEvidence(quote)
    for target in targets:
        start = _first_place(wanted, target)
        if start >= 0:
            return _evidence(quote, target, start, start + len(wanted), is_exact=True)
    loose = re.compile(r"\s+".join(map(re.escape, _SPACE.split(wanted))))
    for target in targets:
        begin, end = target.shown or (0, len(target.text))
        found = loose.search(target.text, begin, end) or loose.search(target.text)
        if found is not None:
            return _evidence(quote, target, found.start(), found.end(), is_exact=False)
    return QuoteEvidence(quote)


def _first_place(wanted: str, target: QuotedText) -> int:
    if target.shown is not None and (place := target.text.find(wanted, *target.shown)) >= 0:
        return place
    return target.text.find(wanted)


def _evidence(quote: str, target: QuotedText, start: int, end: int, *, is_exact: bool) -> QuoteEvidence:
    first = target.text.count("\n", 0, start) + 1
    last = first + target.text.count("\n", start, end)
    return QuoteEvidence(quote, target.object_id, target.version, first, last, start, end, is_exact)
