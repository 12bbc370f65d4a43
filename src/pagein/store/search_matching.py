"""Matching a pattern against stored texts.

Rules of this file
------------------
1. A text is searched as it would be shown: bytes that are no UTF-8 count as U+FFFD. The index is made of the same text.
2. The engine is RE2, in time linear in the text, on bytes. It prints nothing and remembers no groups.
3. A match is told once per line in which one begins.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pagein.errors import BadInput
from pagein.model.search import Match, Search
from pagein.policy.patterns import MAX_LITERAL, MAX_PATTERN, Need, needed, needed_by_literal, refusal

if TYPE_CHECKING:
    import re2

_AROUND: Final = 160
_ENOUGH: Final = 4 * 2 * _AROUND + 4
"""Bytes that hold more characters than are shown: of a line of megabytes no more than this is decoded."""
_ELLIPSIS: Final = "\u2026"


def text_of(content: bytes) -> str:
    """The text that stored bytes are searched as."""
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
    """A pattern, ready to be matched from any thread. Raises BadInput for one that is refused, naming the construct."""

    def __init__(self, search: Search) -> None:
        _check(search)
        self._context = search.context
        self._most = search.per_version
        self._compiled = _compiled(search)
        take = needed if search.regex else needed_by_literal
        self.need: Need = take(search.pattern, ignore_case=search.ignore_case)

    def matches(self, content: bytes) -> Iterator[Match]:
        """The matches in a text, in the order of their lines."""
        data = _searchable(content)
        found = self._lines(data)
        first = next(found, None)
        if first is None:
            return
        place = _Place(data)
        yield place.match(*first, self._context)
        for count, (start, end) in enumerate(found, start=2):
            if self._most is not None and count > self._most:
                return
            yield place.match(start, end, self._context)

    def found_in(self, content: bytes) -> bool:
        """Whether there is a match at all."""
        return next(self._lines(_searchable(content)), None) is not None

    def _lines(self, data: bytes) -> Iterator[tuple[int, int]]:
        position = 0
        while position < len(data):
            found = self._compiled.search(data, position)
            if found is None:
                return
            start, end = found.span()
            if start == len(data) and data.endswith(b"\n"):
                return  # nothing stands behind the last line feed
            yield start, end
            line_end = data.find(b"\n", start)
            if line_end < 0:
                return
            position = line_end + 1


class _Place:
    """Counts lines and characters on from the last match, so that many matches cost one pass."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._ascii = data.isascii()
        self._at = 0
        self._line = 1
        self._chars = 0

    def match(self, start: int, end: int, context: int) -> Match:
        self._line += self._data.count(b"\n", self._at, start)
        self._chars += self._length(self._at, start)
        self._at = start
        first = self._data.rfind(b"\n", 0, start) + 1
        last = _line_end(self._data, start)
        return Match(
            line=self._line,
            column=self._length(first, start) + 1,
            offset=self._chars,
            matched=_head(self._data, start, end),
            text=_near(
                _shown(self._data[max(first, start - _ENOUGH) : start]), _shown(self._data[start:last][:_ENOUGH])
            ),
            before=tuple(self._before(first, context)),
            after=tuple(self._after(last, context)),
        )

    def _length(self, start: int, end: int) -> int:
        return end - start if self._ascii else len(_shown(self._data[start:end]))

    def _before(self, first: int, lines: int) -> list[str]:
        found: list[str] = []
        while first > 0 and len(found) < lines:
            start = self._data.rfind(b"\n", 0, first - 1) + 1
            found.append(_head(self._data, start, first - 1))
            first = start
        return found[::-1]

    def _after(self, last: int, lines: int) -> list[str]:
        found: list[str] = []
        while last + 1 < len(self._data) and len(found) < lines:
            end = _line_end(self._data, last + 1)
            found.append(_head(self._data, last + 1, end))
            last = end
        return found


def _line_end(data: bytes, start: int) -> int:
    end = data.find(b"\n", start)
    return len(data) if end < 0 else end


def _shown(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _head(data: bytes, start: int, end: int) -> str:
    text = _shown(data[start : min(end, start + _ENOUGH)])
    return text if len(text) <= 2 * _AROUND else text[: 2 * _AROUND] + _ELLIPSIS


def _near(left: str, right: str) -> str:
    """A line, given in two parts, or what of it is near the cut."""
    if len(left) + len(right) <= 2 * _AROUND:
        return left + right
    return (_ELLIPSIS + left[-_AROUND:] if len(left) > _AROUND else left) + (
        right[:_AROUND] + _ELLIPSIS if len(right) > _AROUND else right
    )


def _check(search: Search) -> None:
    if not search.pattern:
        raise BadInput("the pattern is empty")
    longest = MAX_PATTERN if search.regex else MAX_LITERAL
    if len(search.pattern) > longest:
        what = "regular expression" if search.regex else "text to look for"
        raise BadInput(f"the {what} has {len(search.pattern)} characters; at most {longest} are taken")


def _compiled(search: Search) -> "re2._Regexp":
    import re2

    options: Any = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.case_sensitive = not search.ignore_case
    options.literal = not search.regex
    try:
        pattern = search.pattern.encode()
        compiled = re2.compile(pattern, options)
        # by lines, as people mean it; asked for after the pattern proved whole, lest a loose bracket change its meaning
        return re2.compile(b"(?m)" + pattern, options) if search.regex else compiled
    except UnicodeEncodeError as problem:
        raise BadInput("the pattern holds half of a surrogate pair, which no text that is searched holds") from problem
    except re2.error as problem:
        [said] = problem.args
        words = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        raise BadInput(refusal(search.pattern, words)) from problem
