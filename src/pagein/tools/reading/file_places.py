"""The places of a pattern in one file: the lines around them, as a proven read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from pagein.engine.reads.session_reads import ReadResult
from pagein.model.documents import Document
from pagein.model.read_contract import ReadPlace
from pagein.model.spans import Spans
from pagein.policy.guards.judgement import ReadAsk, ReadVerdict, complete, search_call
from pagein.policy.reads.fitting_lines import size_of
from pagein.policy.recall.line_search import LineMatch, match_lines
from pagein.policy.recall.pattern_search import Pattern
from pagein.tools.reading.mode_answers import (
    MOST_RESULTS,
    AnswerRoom,
    ModeAnswer,
    OpenText,
    ReadCall,
    head_text,
    open_text,
    served_facts,
)
from pagein.tools.reading.pattern_words import (
    behind_the_last,
    count_of,
    further_places,
    nothing_found,
    pattern_of,
    results_cut,
)
from pagein.tools.reading.shown_lines import LinesDraft, show_lines
from pagein.tools.reading.targets import NamedFile, read_text

_CONTEXT: Final = 2
_MOST_PLACES: Final = 1_000
_MOST_NAMED: Final = 50
_FURTHER_ROOM: Final = 40  # characters of the words that tell how to go on


@dataclass(frozen=True, slots=True)
class Places:
    """The matches of a pattern in a file, and the first matches of the answer.

    every: all of them, up to a bound. start: number of places in front of the answer. chosen: the places of the answer.
    lines: the lines to show for them.
    """

    every: Sequence[LineMatch]
    start: int
    chosen: Sequence[LineMatch]
    lines: Spans

    @property
    def end(self) -> int:
        """Number of places up to the last one of the answer."""
        return self.start + len(self.chosen)

    def title(self, shown: str, total: int, *, is_short: bool = False) -> str:
        """Return the line that tells the place of the answer.

        shown, total: path and number of lines of the file. is_short: leave out the lines of the places.
        """
        number = count_of(len(self.every), "match", "matches")
        if len(self.every) == _MOST_PLACES:
            number = f"the first {number}"
        if len(self.chosen) < len(self.every):
            number = f"{len(self.chosen)} of {number}"
        begin = f"{shown}:{self.lines.runs[0][0]}-{self.lines.runs[-1][1]} of {total}, {number}"
        return begin if is_short else f"{begin}: {_lines_of(self.chosen)}{further_places(self.end, len(self.every))}"


def read_places(call: ReadCall, named: NamedFile) -> ModeAnswer:
    """Answer a call with a pattern and a file. Raises ReadRefusal and AbortedOperation."""
    asked = call.asked
    text = open_text(call, named, read_text(call.session, named, call.signal))
    pattern = pattern_of(call)
    every, start = _matches(call, text, pattern), (asked.offset or 1) - 1
    wished = _CONTEXT if asked.context_lines is None else asked.context_lines
    total = len(text.lines)
    rest = _windows(every[start : start + (asked.limit or MOST_RESULTS)], wished, total)
    ask = ReadAsk(
        "snippet",
        asked.target,
        named.located.key,
        chars=asked.max_preview_chars,
        results=asked.limit,
        context=asked.context_lines,
        is_known=not asked.bypass_cache and all(text.known.holds(*run) for run in rest),
    )
    verdict, room = call.judge(ask)
    context = min(wished, room.context)
    chosen = every[start : start + min(asked.limit or room.results, room.results)]
    found = Places(every, start, chosen, _windows(chosen, context, total))
    cut = results_cut(call, room, is_more=found.end < len(every))
    if found.lines != _windows(chosen, wished, total):
        cut.add("context")
    verdict = complete(verdict, cut)
    if not asked.tells_places_only:
        fitting = _fitting(text, found, context, room, verdict)
        if fitting != found:
            found = fitting
            cut.add("chars")
    more = _details(text, found, pattern)
    title = found.title(named.shown, total)
    if asked.tells_places_only:
        said = title if len(title) <= room.chars else found.title(named.shown, total, is_short=True)
        place = ReadPlace(named.shown, found.chosen[0].first, found.chosen[-1].last)
        served = served_facts(call, named, said, cut)
        return ModeAnswer(ReadResult(said), place, verdict, served, "next_offset" in more, more)
    head = head_text(verdict, title, room)
    first, column = found.chosen[0].first, found.chosen[0].column
    return show_lines(call, text, LinesDraft(found.lines, first, head, verdict, room, cut, more, column))


def _matches(call: ReadCall, text: OpenText, pattern: Pattern) -> Sequence[LineMatch]:
    """Return the first matches in the file. Raises ReadRefusal without any, and for an offset behind the last."""
    found = list(islice(match_lines(pattern, text.document.text), _MOST_PLACES))
    if not found:
        raise nothing_found(call, pattern, text.named.shown, search_call((call.asked.pattern or "")[:80]))
    if (call.asked.offset or 1) > len(found):
        raise behind_the_last(call, text.named.shown, len(found))
    return found


def _details(text: OpenText, found: Places, pattern: Pattern) -> dict[str, Any]:
    """Return the fields of the answer for `meta`."""
    shown = text.named.shown
    hits = [{"file": shown, "line": one.first, "end_line": one.last, "column": one.column} for one in found.chosen]
    return {
        "total_lines": len(text.lines),
        "matches": len(found.every),
        **({} if pattern.notice is None else {"notice": pattern.notice}),
        "hits": hits,
        **({"next_offset": found.end + 1} if found.end < len(found.every) else {}),
    }


def _fitting(text: OpenText, found: Places, context: int, room: AnswerRoom, verdict: ReadVerdict) -> Places:
    """Return as many of the places as fit under their title."""
    shown, total = text.named.shown, len(text.lines)
    fitting = _fitting_windows(text.document, found, context, room.lines, room.chars - room.chars // 4)
    spare = room.without(head_text(verdict, fitting.title(shown, total), room))
    if size_of(text.lines, fitting.lines) > spare:  # a long path, or a small room
        return _fitting_windows(text.document, fitting, context, room.lines, spare - _FURTHER_ROOM)
    return fitting


def _fitting_windows(document: Document, places: Places, context: int, most: int, room: int) -> Places:
    """Return as many of the places as fit; at least the first line of the first.

    most: lines to show. room: characters for the lines, without the text in front of them.
    """
    every, chosen = document.lines, places.chosen
    while True:
        lines = _windows(chosen, context, len(every))
        if lines.count <= most and size_of(every, lines) <= room:
            return replace(places, chosen=chosen, lines=lines)
        if len(chosen) > 1:
            chosen = chosen[: len(chosen) - max(1, len(chosen) // 8)]
        elif context:
            context //= 2
        else:
            return replace(places, chosen=chosen, lines=Spans.of((chosen[0].first, chosen[0].first)))


def _windows(places: Sequence[LineMatch], context: int, total: int) -> Spans:
    return Spans.of(*((max(1, one.first - context), min(total, one.last + context)) for one in places))


def _lines_of(places: Sequence[LineMatch]) -> str:
    named = ", ".join(str(one.first) for one in places[:_MOST_NAMED])
    more = f" and {len(places) - _MOST_NAMED} more" if len(places) > _MOST_NAMED else ""
    return f"line {named}" if len(places) == 1 else f"lines {named}{more}"
