"""The input and the output of a mode of `read`: the call with its guards, and the answer in front of the contract."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pagein.engine.reads.session_guards import ServedRead, ServedSearch
from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.model.documents import Document
from pagein.model.guard_notes import ReadMode
from pagein.model.read_contract import ReadPlace
from pagein.model.read_events import FileRead
from pagein.model.read_records import decode
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.guards.judgement import Cut, ReadAsk, ReadVerdict
from pagein.ports import Signal
from pagein.tools.reading.argument_matrix import ReadArguments
from pagein.tools.reading.read_problems import ReadRefusal
from pagein.tools.reading.targets import NamedFile

# Where no budget limits an answer: the limits of the host's own read.
MOST_LINES: Final = 2_000
MOST_CHARS: Final = 50 * 1024
MOST_RESULTS: Final = 200
MOST_CONTEXT: Final = 200
_LINES: Final = re.compile(r".+?:\d+-\d+ of \d+")


@dataclass(frozen=True, slots=True)
class AnswerRoom:
    """The sizes that an answer may have: lines, characters, matches, and lines around a match."""

    lines: int
    chars: int
    results: int
    context: int

    def without(self, head: str) -> int:
        """Return the characters that are left behind a text in front of the answer."""
        return max(1, self.chars - len(head))


@dataclass(frozen=True, slots=True)
class JudgedRoom:
    """The judgement of the guards, and the allowed sizes."""

    verdict: ReadVerdict
    room: AnswerRoom


@dataclass(frozen=True, slots=True)
class ReadCall:
    """A call of `read` with valid arguments."""

    session: Session
    asked: ReadArguments
    signal: Signal | None = None

    def judge(self, ask: ReadAsk) -> tuple[ReadVerdict, AnswerRoom]:
        """Return the judgement of the guards with the allowed sizes. Raises ReadRefusal for a refusal."""
        guards = self.session.guards
        verdict = guards.judge(ask)
        if verdict.refusal is not None:
            code, message = verdict.refusal.code, verdict.refusal.message
            raise ReadRefusal(code, message, verdict.next_calls, guards.stabilization(verdict))
        limits = verdict.limits
        return verdict, AnswerRoom(
            min(limits.lines or MOST_LINES, MOST_LINES),
            min(limits.chars or MOST_CHARS, MOST_CHARS),
            min(limits.results or MOST_RESULTS, MOST_RESULTS),
            min(MOST_CONTEXT if limits.context is None else limits.context, MOST_CONTEXT),
        )


@dataclass(frozen=True, slots=True)
class ModeAnswer:
    """The answer of a mode.

    result: text, images and metadata.
    served: what the guards count.
    more: fields of the mode for `meta`.
    search: the search that the read was; None if it was none. is_read: whether the guards count it as a read.
    """

    result: ReadResult
    location: ReadPlace
    verdict: ReadVerdict
    served: ServedRead
    truncated: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)
    search: ServedSearch | None = None
    is_read: bool = True


def warnings_text(verdict: ReadVerdict) -> str:
    """Return the warnings of the guards as lines in front of an answer; "" for none."""
    more = f" Related: {', '.join(verdict.alternatives)}." if verdict.alternatives else ""
    lines = [f"[pagein: {warning}{more if place == 0 else ''}]\n" for place, warning in enumerate(verdict.warnings)]
    return "".join(lines)


def head_text(verdict: ReadVerdict, place: str, room: AnswerRoom) -> str:
    """Return what stands in front of an answer: the warnings and the place, as far as half of the room takes them.

    The lines are the last to go, since nothing else tells which they are.
    """
    warnings, line = warnings_text(verdict), f"{place}\n" if place else ""
    found = _LINES.match(place)
    short = "" if found is None else f"{found[0]}\n"
    return next((text for text in (warnings + line, line, short) if len(text) <= room.chars // 2), "")


def part_of_line(document: Document, number: int, room: int, column: int = 1) -> str:
    """Return one line where more has no room, or its part around a column. The text is never taken for known."""
    line = document.lines[number - 1]
    whole = f"{line}\n\n[Line {number} of {len(document.lines)}.]"
    if len(whole) <= room:
        return whole
    notice = f"\n\n[Line {number} has {len(line)} characters and is cut.]"
    begin = max(0, column - 1 - room // 4)
    if begin:
        notice = f"\n\n[Line {number} has {len(line)} characters and is cut; shown from character {begin + 1} on.]"
    return (line[begin : begin + max(0, room - len(notice))] + notice)[:room]


@dataclass(frozen=True, slots=True)
class OpenText:
    """The current state of a text file named in a call.

    lines: its lines. known: those that the model knows already.
    """

    named: NamedFile
    document: Document
    lines: Sequence[str]
    known: Spans


def open_text(call: ReadCall, named: NamedFile, document: Document) -> OpenText:
    """Return a text file with the model's knowledge of the file."""
    found = call.session.placed.known(named.located).lines_known(document.hash)
    return OpenText(named, document, document.lines, NO_LINES if found is None else found.spans)


def served_lines(mode: ReadMode, text: OpenText, lines: Spans, result: ReadResult, cut: set[Cut]) -> ServedRead:
    """Return what the guards count of an answer with lines of a file.

    lines: what the answer stands for.
    """
    event = decode(result.details) if "readcache" in result.details else None
    sent = lines if not isinstance(event, FileRead) else event.emitted or NO_LINES
    first, last = (lines.runs[0][0], lines.runs[-1][1]) if lines else (0, 0)
    return ServedRead(
        mode,
        text.named.located.absolute,
        first,
        last,
        lines=sent.count,
        chars=len(result.text),
        new=sent.subtract(text.known).count,
        content="\n".join("\n".join(text.lines[first - 1 : last]) for first, last in lines) if event else "",
        cut=cut,
        gaps=Spans.of((first, last)).subtract(lines).runs,
    )


def served_facts(call: ReadCall, named: NamedFile, text: str, cut: Collection[Cut] = ()) -> ServedRead:
    """Return what the guards count of an answer without lines of a file."""
    return ServedRead(call.asked.mode, named.located.absolute, chars=len(text), content=text, cut=cut)
