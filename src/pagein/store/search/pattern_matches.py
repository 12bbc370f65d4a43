"""Match a pattern against stored texts.

Rules of this file
------------------
1. A text is searched as displayed: invalid UTF-8 counts as U+FFFD. The index is built from the same text.
2. The engine is RE2, with time linear in the text, on bytes. It prints nothing and captures no groups.
3. Each line with the beginning of a match yields a single match.
"""

from collections.abc import Generator, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from pagein.errors import BadInput
from pagein.model.search_query import Match, Search
from pagein.policy.recall.pattern_refusals import refusal
from pagein.policy.recall.patterns import MAX_LITERAL, MAX_PATTERN, Need, grams_needed, literal_grams

if TYPE_CHECKING:
    import re2

_AROUND: Final = 160
_ENOUGH: Final = 4 * 2 * _AROUND + 4
"""Bytes to decode of a long line; always more than the displayed characters."""
_PASSED: Final = 16
_ELLIPSIS: Final = "\u2026"


def text_of(content: bytes) -> str:
    """Return the searchable text of stored bytes."""
    return content.decode("utf-8", "replace")


def _searchable(content: bytes) -> bytes:
    if content.isascii():
        return content
    try:
        content.decode()
    except UnicodeDecodeError:
        return text_of(content).encode()
    return content


class Matcher:
    """A compiled pattern for use by any thread. Raises BadInput for an invalid pattern, naming the construct."""

    def __init__(self, search: Search) -> None:
        _check(search)
        self._context = search.context
        self._most = search.per_version
        self._compiled = _compile(search)
        take = grams_needed if search.regex else literal_grams
        self.need: Need = take(search.pattern, ignore_case=search.ignore_case)

    def matches(self, content: bytes, most: int | None = None) -> list[Match]:
        """Return the first `most` matches in a text, in line order."""
        data = _searchable(content)
        if self._compiled.search(data) is None:
            return []
        wanted = min((one for one in (most, self._most) if one is not None), default=None)
        place = _MatchPlace(data, self._context)
        return [place.match(start, end) for start, end in islice(self._lines(data), wanted)]

    def found_in(self, content: bytes) -> bool:
        """Return whether the text has a match."""
        return bool(self.matches(content, 1))

    def _lines(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield the first match of every line with the beginning of a match."""
        position: int | None = 0
        while position is not None and position < len(data):
            position = yield from self._lines_from(data, position)

    def _lines_from(self, data: bytes, position: int) -> Generator[tuple[int, int], None, int | None]:
        """Yield the matches from a line on.

        On a line with very many matches, stop early and return the position to continue from.
        """
        passed = 0
        for found in self._compiled.finditer(data, position):
            start, end = found.span()
            if start < position:
                passed += 1
                if passed > _PASSED:
                    return position
                continue
            if start == len(data) and data.endswith(b"\n"):
                return None  # there is no line after the last line feed
            yield start, end
            position = _line_end(data, start) + 1
            if position >= len(data):
                return None
            passed = 0
        return None


class _MatchPlace:
    """A counter of lines and characters that continues from the last match, to handle many matches in a single pass."""

    def __init__(self, data: bytes, context: int) -> None:
        self._data, self._context = data, context
        # most text is ASCII: there a byte is a character, and the text is decoded once for every excerpt
        self._text = data.decode() if data.isascii() else None
        self._at = 0
        self._line = 1
        self._chars = 0

    def match(self, start: int, end: int) -> Match:
        data = self._data
        self._line += data.count(b"\n", self._at, start)
        first = data.rfind(b"\n", 0, start) + 1
        last = _line_end(data, start)
        if self._text is None:
            self._chars += len(_decode_text(data[self._at : start]))
            column = len(_decode_text(data[first:start])) + 1
        else:
            self._chars, column = start, start - first + 1
        self._at = start
        return Match(
            self._line,
            column,
            self._chars,
            self._head(start, end),
            self._near(first, start, last),
            self._before(first) if self._context else (),
            self._after(last) if self._context else (),
        )

    def _excerpt(self, start: int, end: int) -> str:
        return _decode_text(self._data[start:end]) if self._text is None else self._text[start:end]

    def _head(self, start: int, end: int) -> str:
        text = self._excerpt(start, min(end, start + _ENOUGH))
        return text if len(text) <= 2 * _AROUND else text[: 2 * _AROUND] + _ELLIPSIS

    def _near(self, first: int, start: int, last: int) -> str:
        """Return a line, shortened around the beginning of a match."""
        if last - first <= 2 * _AROUND:
            return self._excerpt(first, last)
        left, right = (
            self._excerpt(max(first, start - _ENOUGH), start),
            self._excerpt(start, min(last, start + _ENOUGH)),
        )
        if len(left) + len(right) <= 2 * _AROUND:
            return left + right
        return (_ELLIPSIS + left[-_AROUND:] if len(left) > _AROUND else left) + (
            right[:_AROUND] + _ELLIPSIS if len(right) > _AROUND else right
        )

    def _before(self, first: int) -> tuple[str, ...]:
        found: list[str] = []
        while first > 0 and len(found) < self._context:
            start = self._data.rfind(b"\n", 0, first - 1) + 1
            found.append(self._head(start, first - 1))
            first = start
        return tuple(found[::-1])

    def _after(self, last: int) -> tuple[str, ...]:
        found: list[str] = []
        while last + 1 < len(self._data) and len(found) < self._context:
            end = _line_end(self._data, last + 1)
            found.append(self._head(last + 1, end))
            last = end
        return tuple(found)


def _line_end(data: bytes, start: int) -> int:
    end = data.find(b"\n", start)
    return len(data) if end < 0 else end


def _decode_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _check(search: Search) -> None:
    if not search.pattern:
        raise BadInput("the pattern is empty; give a text to search for")
    longest = MAX_PATTERN if search.regex else MAX_LITERAL
    if len(search.pattern) > longest:
        what = "regular expression" if search.regex else "text to look for"
        raise BadInput(f"the {what} has {len(search.pattern)} characters; at most {longest} are taken")


def _compile(search: Search) -> "re2._Regexp":
    import re2

    options: Any = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.case_sensitive = not search.ignore_case
    options.literal = not search.regex
    try:
        pattern = search.pattern.encode()
        compiled = re2.compile(pattern, options)
        # match by lines, as people expect; compiled a second time because an unbalanced bracket could change the meaning of the prefix
        return re2.compile(b"(?m)" + pattern, options) if search.regex else compiled
    except UnicodeEncodeError as problem:
        raise BadInput("the pattern holds half of a surrogate pair, which no text that is searched holds") from problem
    except re2.error as problem:
        [said] = problem.args
        words = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        raise BadInput(refusal(search.pattern, words)) from problem
