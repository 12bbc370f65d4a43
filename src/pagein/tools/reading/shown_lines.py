"""Chosen lines of a file as an answer: a proven read under a line with the place of the lines."""

from dataclasses import dataclass
from typing import Any

from pagein.engine.reads.placed_reads import chosen_lines, plain_text
from pagein.engine.reads.session_reads import ReadResult
from pagein.model.read_contract import ReadPlace
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.guards.judgement import Cut, ReadVerdict
from pagein.tools.reading.mode_answers import AnswerRoom, ModeAnswer, OpenText, ReadCall, part_of_line, served_lines


@dataclass(frozen=True, slots=True)
class LinesDraft:
    """An answer with lines of a file, before it is made.

    lines: what to show. first, column: the line of which a part around this column is shown where not even one line fits.
    """

    lines: Spans
    first: int
    head: str
    verdict: ReadVerdict
    room: AnswerRoom
    cut: set[Cut]
    more: dict[str, Any]
    column: int = 1


def show_lines(call: ReadCall, text: OpenText, draft: LinesDraft) -> ModeAnswer:
    """Show lines of a file under their place."""
    spare, lines, cut, more = draft.room.without(draft.head), draft.lines, draft.cut, draft.more
    place = ReadPlace(text.named.shown, draft.first, draft.first)
    if lines and len(plain_text(text.document, text.named.located.given, lines).text) <= spare:
        bypass = call.asked.bypass_cache
        read = chosen_lines(text.named.located, text.document, lines, draft.head, room=spare, bypass=bypass)
        result = call.session.placed.show(read, call.signal)
        place = ReadPlace(text.named.shown, lines.runs[0][0], lines.runs[-1][1])
    else:
        part = part_of_line(text.document, draft.first, spare, draft.column)
        result, cut, lines = ReadResult(draft.head + part), cut | {"chars"}, NO_LINES
    served = served_lines("snippet", text, lines, result, cut)
    return ModeAnswer(result, place, draft.verdict, served, bool(cut) or "next_offset" in more, more)
