"""The odds that an edit will quote a read of a file later: a small logistic model in whole numbers.

Rules of this file
------------------
1. A term is a whole number that the fold of a session keeps, or four times a logarithm to base 2, rounded down: so every
   machine computes the same.
2. The coefficients are whole thousandths of a logit, in `quote_odds_figures`. `scripts/train_reads.py` writes that module
   from recorded sessions. If its terms are not those of this version there are no odds, and the other rows of the
   residency table decide alone.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import lru_cache
from typing import Any, Final

from pagein.policy.eviction.quote_odds_figures import FIGURES
from pagein.policy.eviction.session_work import SessionWork

MILLION: Final = 1_000_000
_MOST_REASONS: Final = 3
_LEAST_LOGIT, _MOST_LOGIT = -16_000, 16_000
_DOCUMENT: Final = re.compile(r"\.(md|mdx|rst|txt|adoc|json|ya?ml|toml|lock|ini|cfg|conf|env|mod|sum)$|(^|/)docs?/")
_EXACT: Final = Context(prec=20, rounding=ROUND_HALF_EVEN, traps=[])
"""A context of our own: that of a thread may be changed by the program that pagein runs in."""


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """What is known of a read before a call.

    call_id: its call. path: its file. tokens: size. idle: calls since the last access to its file.
    since_edit: calls since the last edit of any file; since the beginning, where nothing was edited.
    older: whether a person has spoken since. covered: whether a later read in the window shows the same lines.
    whole: whether it shows the whole file. work: what the session has done.
    """

    call_id: str
    path: str
    tokens: int
    idle: int
    since_edit: int
    older: bool
    covered: bool
    whole: bool
    work: SessionWork


@dataclass(frozen=True, slots=True)
class OddsTerm:
    """A term of the model.

    value: the term. says: it in words, with its count in place of {}. count: that number.
    says_not: the words for a term of 0, where they differ.
    """

    value: Callable[[ReadCounts], int]
    says: str
    says_not: str = ""
    count: Callable[[ReadCounts], int] = lambda _: 0


def _steps(count: int) -> int:
    """Return four times the logarithm to base 2 of a count and one, rounded down."""
    return ((max(count, 0) + 1) ** 4).bit_length() - 1


def is_document(path: str) -> bool:
    """Return whether a path is that of a text for people, or of a configuration."""
    return _DOCUMENT.search(path.lower()) is not None


def shown_later(reads: Sequence[tuple[int, int]]) -> list[bool]:
    """Return for each read of a file, given by its first and its last line, whether a later read shows the same lines."""
    found, firsts, lasts = list[bool](), list[int](), list[int]()  # the outermost ranges so far, ascending by both ends
    for first, last in reversed(reads):
        at = bisect_right(firsts, first)
        found.append(at > 0 and lasts[at - 1] >= last)
        if not found[-1]:
            inside = slice(bisect_left(firsts, first), bisect_right(lasts, last))
            firsts[inside], lasts[inside] = [first], [last]
    return found[::-1]


TERMS: Final[Mapping[str, OddsTerm]] = {
    "size": OddsTerm(lambda read: _steps(read.tokens), "{:,} tokens", count=lambda read: read.tokens),
    "older": OddsTerm(
        lambda read: read.older, "a person has spoken since the read", "no person has spoken since the read"
    ),
    "accesses": OddsTerm(
        lambda read: _steps(read.work.accesses),
        "{} accesses to files in the session",
        count=lambda read: read.work.accesses,
    ),
    "covered": OddsTerm(
        lambda read: read.covered, "a later read shows the same lines", "no later read shows the same lines"
    ),
    "whole": OddsTerm(lambda read: read.whole, "it shows the whole file", "it shows a part of the file"),
    "document": OddsTerm(
        lambda read: is_document(read.path), "it shows a document or a configuration", "it shows source code"
    ),
    "task reads": OddsTerm(
        lambda read: read.work.kind == "reading", "the person asked to read", "the person asked for more than to read"
    ),
    "since edit": OddsTerm(
        lambda read: _steps(read.since_edit), "{} calls without an edit", count=lambda read: read.since_edit
    ),
    "idle, no edits": OddsTerm(
        lambda read: 0 if read.work.edits else _steps(read.idle),
        "nothing was edited, and the file was last touched {} calls ago",
        "files were edited",
        count=lambda read: 0 if read.work.edits else read.idle,
    ),
}
"""The terms by name, as in the file."""


@dataclass(frozen=True, slots=True)
class QuoteOdds:
    """The model.

    intercept, coefficients: thousandths of a logit, the latter by term. means: the usual value of each term.
    """

    intercept: int
    coefficients: tuple[tuple[str, int], ...]
    means: tuple[int, ...]

    def per_million(self, read: ReadCounts) -> int:
        """Return the chance in millionths that an edit quotes the read later."""
        return chance(self.intercept + sum(each * TERMS[name].value(read) for name, each in self.coefficients))

    def reasons_of_unlikely(self, reads: Iterable[ReadCounts], quotes: int) -> dict[str, str]:
        """Return, by call, why fewer than this number of quotes are expected for each million tokens of a read."""
        return {read.call_id: self.reasons(read) for read in reads if self.per_million(read) < quotes * read.tokens}

    def reasons(self, read: ReadCounts) -> str:
        """Return the terms that lower the chance most against a usual read, in words."""
        found = [
            (each * (TERMS[name].value(read) - mean), name)
            for (name, each), mean in zip(self.coefficients, self.means, strict=True)
        ]
        lowest = sorted(one for one in found if one[0] < 0)[:_MOST_REASONS]
        return ", ".join(_words(TERMS[name], read) for _, name in lowest)


def _words(term: OddsTerm, read: ReadCounts) -> str:
    if not term.value(read) and term.says_not:
        return term.says_not
    return term.says.format(term.count(read))


@lru_cache(maxsize=4096)
def chance(logit: int) -> int:
    """Return the probability in millionths for thousandths of a logit. Decimals are the same on every machine."""
    thousandths = Decimal(min(max(logit, _LEAST_LOGIT), _MOST_LOGIT))
    odds = _EXACT.exp(_EXACT.divide(thousandths, Decimal(1000)))
    return round(_EXACT.divide(_EXACT.multiply(odds, Decimal(MILLION)), _EXACT.add(odds, Decimal(1))))


def odds_from(figures: Mapping[str, Any]) -> QuoteOdds:
    """Return the model of these figures. Raises ValueError, KeyError or TypeError for other figures."""
    terms = figures["terms"]
    unknown = [name for name in terms if name not in TERMS]
    if unknown:
        raise KeyError(unknown[0])
    return QuoteOdds(
        int(figures["intercept"]),
        tuple((name, int(row["coefficient"])) for name, row in terms.items()),
        tuple(int(row["mean"]) for row in terms.values()),
    )


def packaged_odds(figures: Mapping[str, Any] = FIGURES) -> QuoteOdds | None:
    """Return the model of this version; None for the figures of another model."""
    try:
        return odds_from(figures)
    except (ValueError, KeyError, TypeError):
        return None
