"""Trigrams that every text with a match of a search pattern must contain, for a search index.

The dialect is that of RE2: Perl's without constructs that cannot be matched in linear time. `grams_needed` reads a
pattern that RE2 accepted.

Rules of this file
------------------
1. A need may ask too little, never too much: a doubtful pattern needs nothing, and the text is scanned.
2. Needs are stated in folded text. `fold_text` treats each character by itself, so a part of a text is, folded, a part
   of the folded text; hence one index serves searches with and without regard to case.
3. Without regard to case a character counts only if nothing outside its own fold matches it, in this and in coming
   versions of Unicode (`_SETTLED`); other characters are left out of the need.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Final, TypeAlias

MAX_PATTERN: Final = 1000
"""Maximum characters of a pattern: linear time is no help against patterns of any size."""

MAX_LITERAL: Final = 10_000
"""Maximum characters of a literal."""

GRAM: Final = 3
_MOST_STRINGS: Final = 24
_LONGEST_STRING: Final = 200
_MOST_GRAMS: Final = 24
# ASCII, letters with a single partner in the other case since Unicode 6, and scripts without case.
_SETTLED: Final = re.compile(
    "[\x00-\x7f\xc0-\xd6\xd8-\xde\xe0-\xf6\xf8-\xfe\u0100-\u012f\u0391-\u03a1\u03a3-\u03ab\u03ac-\u03ce"
    "\u0400-\u045f\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3]"
)


def fold_text(text: str) -> str:
    """Return the text as indexed: case-folded, with a space for NUL, which ends a text for SQLite."""
    return text.casefold().replace("\0", " ")


def grams(text: str) -> frozenset[str]:
    """Return every run of three characters of a folded text."""
    return frozenset(text[start : start + GRAM] for start in range(len(text) - GRAM + 1))


# --- needs ---


@dataclass(frozen=True, slots=True)
class Gram:
    """The folded text contains these three characters."""

    text: str


@dataclass(frozen=True, slots=True)
class Every:
    """Every need holds; without needs, any text will do."""

    needs: tuple["Need", ...] = ()


@dataclass(frozen=True, slots=True)
class Some:
    """At least one need holds."""

    needs: tuple["Need", ...]


Need: TypeAlias = Gram | Every | Some
NO_NEED: Final = Every()


def meets(need: Need, text: str) -> bool:
    """Return whether a folded text meets a need: an index answers this for many texts at once."""
    if isinstance(need, Gram):
        return need.text in text
    if isinstance(need, Every):
        return all(meets(part, text) for part in need.needs)
    return any(meets(part, text) for part in need.needs)


def literal_grams(literal: str, *, ignore_case: bool = False) -> Need:
    """Return the need of every text with this literal."""
    runs = _Runs()
    for character in literal:
        runs.add(_character(character, ignore_case=ignore_case))
    return runs.need()


def grams_needed(pattern: str, *, ignore_case: bool = False) -> Need:
    """Return the need of every text with a match of this regular expression, which RE2 must accept."""
    try:
        return _PatternParser(pattern, ignore_case=ignore_case).alternatives().need()
    except (_Doubt, RecursionError):
        return NO_NEED


def every_need(needs: Iterable[Need]) -> Need:
    """Return the need of a text for several needs together."""
    flat = (part for need in needs for part in (need.needs if isinstance(need, Every) else (need,)))
    parts = tuple(dict.fromkeys(flat))
    return parts[0] if len(parts) == 1 else Every(parts)


def some_need(needs: Iterable[Need]) -> Need:
    """Return the need of a text for any of several needs."""
    parts = tuple(dict.fromkeys(needs))
    if NO_NEED in parts:
        return NO_NEED
    return parts[0] if len(parts) == 1 else Some(parts)


def _need_of_string(text: str) -> Need:
    distinct = list(dict.fromkeys(text[start : start + GRAM] for start in range(len(text) - GRAM + 1)))
    # a few, spread over the whole, select nearly as well as the full list
    step = -(-len(distinct) // _MOST_GRAMS) or 1
    return every_need(Gram(gram) for gram in distinct[::step])


# --- the possible matches of an expression ---


_Strings: TypeAlias = frozenset[str]
_EMPTY: Final[_Strings] = frozenset({""})


@dataclass(frozen=True, slots=True)
class _MatchSet:
    """The possible matches of an expression.

    strings: every folded text that it can match; None for too many. rest: further needs.
    """

    strings: _Strings | None
    rest: Need = NO_NEED

    def need(self) -> Need:
        if self.strings is None:
            return self.rest
        return every_need((self.rest, some_need(_need_of_string(text) for text in sorted(self.strings))))


_ANYTHING: Final = _MatchSet(None)
_NOTHING_WIDE: Final = _MatchSet(_EMPTY)


class _Runs:
    """A partly read concatenation: the adjacent texts so far, and the needs of earlier parts."""

    def __init__(self) -> None:
        self._run: _Strings = _EMPTY
        self._needs: list[Need] = []
        self._whole = True

    def add(self, piece: _MatchSet) -> None:
        self._needs.append(piece.rest)
        if piece.strings is None:
            self.cut()
            return
        if not _short(self._run, piece.strings):
            self.cut(piece.strings)
            return
        self._run = frozenset(left + right for left, right in product(self._run, piece.strings))

    def cut(self, start: _Strings = _EMPTY) -> None:
        """End the run; the next part follows one of `start`, not the run."""
        self._needs.append(_MatchSet(self._run).need())
        self._run = start
        self._whole = False

    def match_set(self) -> _MatchSet:
        rest = every_need(self._needs)
        return (
            _MatchSet(self._run, rest)
            if self._whole
            else _MatchSet(None, every_need((rest, _MatchSet(self._run).need())))
        )

    def need(self) -> Need:
        return self.match_set().need()


def _short(left: _Strings, right: _Strings) -> bool:
    longest = max(map(len, left)) + max(map(len, right))
    return len(left) * len(right) <= _MOST_STRINGS and longest <= _LONGEST_STRING


def _either(branches: list[_MatchSet]) -> _MatchSet:
    if len(branches) == 1:
        return branches[0]
    strings = [branch.strings for branch in branches if branch.strings is not None and branch.rest == NO_NEED]
    union: _Strings = frozenset().union(*strings)
    if len(strings) == len(branches) and len(union) <= _MOST_STRINGS:
        return _MatchSet(union)
    return _MatchSet(None, some_need(branch.need() for branch in branches))


def _character(character: str, *, ignore_case: bool) -> _MatchSet:
    if ignore_case and not _SETTLED.fullmatch(character):
        return _ANYTHING
    return _MatchSet(frozenset({fold_text(character)}))


# --- the reader of patterns ---


class _Doubt(Exception):
    """The pattern is not understood; no need is derived from it."""


_GROUP: Final = re.compile(r"\(\?(?:P?<\w+>|([imsU]*)(-[imsU]+)?([:)]))")
_COUNT: Final = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_OCTAL: Final = re.compile(r"\\(?:0[0-7]{0,2}|[1-7][0-7]{1,2})")
_HEX: Final = re.compile(r"\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})")
_PROPERTY: Final = re.compile(r"\\[pP](?:\{\^?\w+\}|.)", re.DOTALL)
_CONTROLS: Final = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_WIDE: Final = frozenset("dDsSwWC")
_NO_WIDTH: Final = frozenset("bBAz")
_SIMPLE_CLASS: Final = re.compile(r"\[([^\]\[\\^-][^\]\[\\-]*)\]")
_CLASS: Final = re.compile(r"\[\^?\]?(?:\[:\^?\w+:\]|\\[pP]\{\^?\w+\}|\\x\{[0-9A-Fa-f]+\}|\\.|[^\]\\])*\]", re.DOTALL)


class _PatternParser:
    def __init__(self, pattern: str, *, ignore_case: bool) -> None:
        self._pattern = pattern
        self._at = 0
        self._ignore_case = ignore_case

    def alternatives(self) -> _MatchSet:
        """Parse up to the end of the group or of the pattern, where flags set inside end."""
        before = self._ignore_case
        branches = [self._concatenation()]
        while self._next("|"):
            branches.append(self._concatenation())
        self._ignore_case = before
        return _either(branches)

    def _concatenation(self) -> _MatchSet:
        runs = _Runs()
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            # a repetition behind \Q...\E takes the last character only
            *before, last = self._pieces()
            for piece in before:
                runs.add(piece)
            self._add_repetition(runs, last)
        return runs.match_set()

    def _add_repetition(self, runs: _Runs, piece: _MatchSet) -> None:
        least, most = self._count()
        if least == 0:
            runs.add(_either([piece, _NOTHING_WIDE]) if most == 1 else _NOTHING_WIDE if most == 0 else _ANYTHING)
            return
        copies = min(least, _LONGEST_STRING)
        for _ in range(copies):
            runs.add(piece)
        if most != copies:
            # the next part follows one more repetition
            runs.cut(piece.strings or _EMPTY)

    def _count(self) -> tuple[int, int | None]:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._next(sign):
                self._next("?")
                return bounds
        found = _COUNT.match(self._pattern, self._at)
        if found is None:
            return 1, 1
        self._at = found.end()
        self._next("?")
        least = int(found[1])
        if found[2] is None:
            return least, least
        return least, int(found[3]) if found[3] else None

    def _pieces(self) -> list[_MatchSet]:
        character = self._pattern[self._at]
        if character == "(":
            return [self._group()]
        if character == "[":
            return [self._class()]
        if character == "\\":
            return self._escape()
        self._at += 1
        if character == ".":
            return [_ANYTHING]
        if character in "^$":
            return [_NOTHING_WIDE]
        return [self._literal(character)]

    def _group(self) -> _MatchSet:
        if not self._pattern.startswith("(?", self._at):
            self._at += 1
            return self._inside()
        found = _GROUP.match(self._pattern, self._at)
        if found is None:
            raise _Doubt
        self._at = found.end()
        before = self._ignore_case
        if found[1] and "i" in found[1]:
            self._ignore_case = True
        if found[2] and "i" in found[2]:
            self._ignore_case = False
        if found[3] == ")":  # flags from here to the end of the enclosing group
            return _NOTHING_WIDE
        inside = self._inside()
        self._ignore_case = before
        return inside

    def _inside(self) -> _MatchSet:
        found = self.alternatives()
        if not self._next(")"):
            raise _Doubt
        return found

    def _class(self) -> _MatchSet:
        simple = _SIMPLE_CLASS.match(self._pattern, self._at)
        if simple is not None:
            self._at = simple.end()
            return _either([self._literal(character) for character in dict.fromkeys(simple[1])])
        found = _CLASS.match(self._pattern, self._at)
        if found is None:
            raise _Doubt
        self._at = found.end()
        return _ANYTHING

    def _escape(self) -> list[_MatchSet]:
        if self._pattern.startswith("\\Q", self._at):
            return self._quotation()
        return [self._single_escape()]

    def _quotation(self) -> list[_MatchSet]:
        end = self._pattern.find("\\E", self._at)
        text = self._pattern[self._at + 2 : end if end >= 0 else None]
        self._at = end + 2 if end >= 0 else len(self._pattern)
        if not text:  # a repetition after it would repeat the part before it
            raise _Doubt
        return [self._literal(character) for character in text]

    def _single_escape(self) -> _MatchSet:
        for known in (_HEX, _OCTAL, _PROPERTY):
            found = known.match(self._pattern, self._at)
            if found is not None:
                self._at = found.end()
                return _ANYTHING if known is _PROPERTY else self._literal(_expand_escape(found))
        letter = self._pattern[self._at + 1 : self._at + 2]
        self._at += 2
        if letter in _WIDE:
            return _ANYTHING
        if letter in _NO_WIDTH:
            return _NOTHING_WIDE
        if letter in _CONTROLS:
            return self._literal(_CONTROLS[letter])
        if letter.isalnum() or not letter.isascii() or not letter:
            raise _Doubt
        return self._literal(letter)

    def _literal(self, character: str) -> _MatchSet:
        return _character(character, ignore_case=self._ignore_case)

    def _next(self, sign: str) -> bool:
        if not self._pattern.startswith(sign, self._at):
            return False
        self._at += len(sign)
        return True


def _expand_escape(found: re.Match[str]) -> str:
    if found.re is _HEX:
        return chr(int(found[1] or found[2], 16))
    return chr(int(found[0][1:], 8))
