"""Search patterns as a model writes them, and their matches in a recalled text.

`/expression/flags` is a regular expression with the flags i, m and s (g, u and y are accepted and change nothing);
anything else is a literal text, and so is an unusable expression, with a notice. The engine is RE2: time is linear in
the text, whatever the expression.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pagein.errors import BadInput
from pagein.policy.recall.pattern_refusals import refusal
from pagein.policy.recall.patterns import MAX_LITERAL, MAX_PATTERN

AROUND: Final = 100
"""Characters shown before and after a match."""
LONGEST_MATCH: Final = 400
"""Maximum characters shown of a match."""

_EXPRESSION: Final = re.compile(r"/(.+)/([a-z]*)", re.DOTALL)
_FLAGS: Final = frozenset("gimsuy")
_MEANT: Final = "ims"
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class PatternMatch:
    """A match.

    offset: place in the text, in characters. matched: its text. context: the match with the text around it.
    """

    offset: int
    matched: str
    context: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed pattern.

    expression: a regular expression of RE2; None for a literal.
    notice: why an expression is taken literally.
    """

    literal: str
    expression: str | None = None
    notice: str | None = None

    def matches(self, text: str) -> Iterator[PatternMatch]:
        """Yield the matches in order, without overlap, including matches of zero width."""
        places = self._literally(text) if self.expression is None else self._by_expression(text)
        for start, end in places:
            yield PatternMatch(start, text[start:end], _context(text, start, end))

    def _literally(self, text: str) -> Iterator[tuple[int, int]]:
        width = len(self.literal)
        start = text.find(self.literal)
        while start >= 0:
            yield start, start + width
            start = text.find(self.literal, start + width)

    def _by_expression(self, text: str) -> Iterator[tuple[int, int]]:
        # half a surrogate pair counts as one character that no pattern names
        data = _SURROGATES.sub("\ufffd", text).encode()
        compiled = _compile(self.expression or "")
        plain = len(data) == len(text)
        at = passed = chars = 0
        while (match := compiled.search(data, at)) is not None:
            start, end = match.span()
            if is_inside_character(data, start):
                at = start + 1
                continue
            if not plain:
                chars, passed = chars + len(data[passed:start].decode()), start
            first = start if plain else chars
            yield first, first + (end - start if plain else len(data[start:end].decode()))
            at = end if end > start else _next_character(data, end)
            if at > len(data):
                return


def parse_pattern(pattern: str) -> Pattern:
    """Parse a pattern. Raises BadInput for an empty or too long pattern."""
    if not pattern:
        raise BadInput("the pattern is empty; give a text to search for")
    if len(pattern) > MAX_LITERAL:
        raise BadInput(f"the pattern has {len(pattern)} characters; at most {MAX_LITERAL} are taken")
    parts = _EXPRESSION.fullmatch(pattern)
    if parts is None or not _are_flags(parts[2]):
        return Pattern(pattern)
    if len(parts[1]) > MAX_PATTERN:
        return Pattern(pattern, notice=f"the expression has more than {MAX_PATTERN} characters")
    flags = "".join(flag for flag in _MEANT if flag in parts[2])
    problem = _problem(parts[1])
    if problem is not None:
        return Pattern(pattern, notice=problem)
    return Pattern(pattern, f"(?{flags})(?:{parts[1]})" if flags else parts[1])


def _are_flags(text: str) -> bool:
    return _FLAGS.issuperset(text) and len(set(text)) == len(text)


def _problem(expression: str) -> str | None:
    import re2

    try:
        _compile(expression)
    except UnicodeEncodeError:
        return "the expression holds half of a surrogate pair"
    except re2.error as problem:
        [said] = problem.args
        return refusal(expression, said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said))
    return None


def _compile(expression: str) -> Any:  # noqa: ANN401  re2 ships no types
    import re2

    options: Any = re2.Options()
    options.log_errors = False
    options.never_capture = True
    return re2.compile(expression.encode(), options)


def is_inside_character(data: bytes, at: int) -> bool:
    """Return whether a place is between two bytes of one character, where RE2 finds matches of zero width."""
    return at < len(data) and data[at] & 0xC0 == 0x80  # noqa: PLR2004  the bytes of a character after its first


def _next_character(data: bytes, at: int) -> int:
    at += 1
    while is_inside_character(data, at):
        at += 1
    return at


def _context(text: str, start: int, end: int) -> str:
    left = end - start - LONGEST_MATCH
    matched = text[start:end] if left <= 0 else f"{text[start : start + LONGEST_MATCH]}[{left} more chars of the match]"
    return text[max(0, start - AROUND) : start] + matched + text[end : end + AROUND]
