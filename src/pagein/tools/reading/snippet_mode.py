"""`read` with mode=snippet: some lines of a file, or the places of a pattern in a file or a folder.

Rules of this file
------------------
1. Lines of one file are a proven read: lines that the model sees come back as markers, and what is shown is known later.
2. Places in several files are one answer about several files, which no marker can speak of: it is shown as text, and is
   not taken for known. Its next calls read the places.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from pagein.engine.reads.placed_reads import chosen_lines, plain_text
from pagein.engine.reads.session_guards import ServedRead
from pagein.engine.reads.session_reads import ReadResult
from pagein.errors import BadInput
from pagein.model.code_search import CodeHit, CodeQuery, CodeResults
from pagein.model.documents import Document
from pagein.model.read_contract import ReadPlace
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.guards.judgement import Cut, ReadAsk, Verdict, read_call, search_call
from pagein.policy.guards.relevance import EXCLUDED_FOLDERS
from pagein.policy.reads.fitting_lines import NOTICE_ROOM, count_fitting, size_of
from pagein.policy.recall.line_search import LineMatch, match_lines
from pagein.policy.recall.pattern_search import Pattern, parse_pattern
from pagein.tools.reading.mode_answers import (
    ModeAnswer,
    OpenText,
    ReadCall,
    Room,
    head_text,
    open_text,
    part_of_line,
    served_facts,
    served_lines,
)
from pagein.tools.reading.read_problems import ReadRefusal, next_read
from pagein.tools.reading.targets import NamedFile, find_target, read_text

_CONTEXT: Final = 2
_MOST_PLACES: Final = 1_000
_MOST_NEXT: Final = 5
_MOST_NAMED: Final = 50


def read_snippet(call: ReadCall) -> ModeAnswer:
    """Answer a call with mode=snippet. Raises ReadRefusal, Aborted and HostError."""
    if call.asked.pattern is None:
        return _read_lines(call)
    named = find_target(call.session, call.asked.target, offset=1)
    return _read_folder(call, named) if named.state.name == "folder" else _read_places(call, named)


# --- lines by their numbers ---


def _read_lines(call: ReadCall) -> ModeAnswer:
    asked = call.asked
    first, last = asked.start_line, asked.end_line
    limit = None if first is None else (last or first) - first + 1
    named = find_target(call.session, asked.target, offset=first, limit=limit)
    if named.located.offset is None:
        raise ReadRefusal(
            "INVALID_ARGS", "mode='snippet' needs 'start_line' or 'pattern'. Add one, or switch to mode='file'."
        )
    text = open_text(call, named, read_text(call.session, named, call.signal))
    total = len(text.lines)
    first = int(named.located.offset)
    if first > total:
        raise ReadRefusal(
            "OUT_OF_RANGE",
            f"Line {first} is beyond end of file ({total} lines total)",
            (next_read("file", named.shown, offset=max(1, total - 49)),),
        )
    last = min(total, first + int(named.located.limit or 1) - 1)
    wished = asked.context_lines or 0
    is_known = text.known.holds(max(1, first - wished), min(total, last + wished))
    ask = ReadAsk(
        "snippet",
        asked.target,
        named.located.key,
        lines=last - first + 1,
        has_limit=True,
        chars=asked.max_preview_chars,
        context=asked.context_lines,
        is_known=is_known and not asked.bypass_cache,
    )
    verdict, room = call.judge(ask)
    context = min(wished, room.context)
    start, stop = max(1, first - context), min(total, last + context)
    cut: set[Cut] = {"context"} if context < wished else set()
    if asked.tells_places_only:
        said = f"{named.shown}: lines {start}-{stop} of {total}"
        place, served = ReadPlace(named.shown, start, stop), served_facts(call, named, said)
        return ModeAnswer(ReadResult(said), place, verdict, served, more={"total_lines": total})
    end = min(stop, start + room.lines - 1)
    cut |= {"lines"} if end < stop else set()
    spare = room.without(head_text(verdict, f"{named.shown}:{start}-{end} of {total}", room))
    fits = count_fitting(text.lines[start - 1 : end], spare - NOTICE_ROOM)
    if fits < end - start + 1:
        cut.add("chars")
        end = start + max(1, fits) - 1
    head = head_text(verdict, f"{named.shown}:{start}-{end} of {total}", room)
    lines = Spans.of((start, end)) if fits else NO_LINES
    return _show(call, text, Draft(lines, start, head, verdict, room, cut, {"total_lines": total}))


# --- the places of a pattern in a file ---


def _read_places(call: ReadCall, named: NamedFile) -> ModeAnswer:
    asked = call.asked
    text = open_text(call, named, read_text(call.session, named, call.signal))
    pattern = _pattern(asked.pattern or "")
    places = list(islice(match_lines(pattern, text.document.text), _MOST_PLACES))
    start = (asked.offset or 1) - 1
    if start >= len(places):
        raise _nothing(call, pattern, named.shown, len(places))
    ask = ReadAsk(
        "snippet",
        asked.target,
        named.located.key,
        chars=asked.max_preview_chars,
        results=asked.limit,
        context=asked.context_lines,
    )
    verdict, room = call.judge(ask)
    context = min(_CONTEXT if asked.context_lines is None else asked.context_lines, room.context)
    chosen: Sequence[LineMatch] = places[start : start + min(asked.limit or room.results, room.results)]
    cut = _cut_by_room(call, room, is_more=start + len(chosen) < len(places))
    total = len(text.lines)
    more: dict[str, Any] = {"total_lines": total, "matches": len(places)}
    if pattern.notice is not None:
        more["notice"] = pattern.notice
    lines = Spans.of(*(run for one in chosen for run in _window(one, context, total)))
    if not asked.tells_places_only:
        before = len(chosen)
        lines, chosen = _fitting_windows(text.document, chosen, context, room)
        if len(chosen) < before or lines != Spans.of(*(run for one in chosen for run in _window(one, context, total))):
            cut.add("chars")
    more["hits"] = _hits(chosen)
    if start + len(chosen) < len(places):
        more["next_offset"] = start + len(chosen) + 1
    matches = _count(len(places), "match", "matches")
    number = f"{len(chosen)} of {matches}" if len(chosen) < len(places) else matches
    where = f"{named.shown}:{lines.runs[0][0]}-{lines.runs[-1][1]} of {total}, {number}: {_lines_of(chosen)}"
    if asked.tells_places_only:
        place, served = ReadPlace(named.shown, chosen[0].first, chosen[-1].last), served_facts(call, named, where)
        return ModeAnswer(ReadResult(where), place, verdict, served, "next_offset" in more, more)
    return _show(call, text, Draft(lines, chosen[0].first, head_text(verdict, where, room), verdict, room, cut, more))


def _cut_by_room(call: ReadCall, room: Room, *, is_more: bool) -> set[Cut]:
    """Return what the budget shortens before anything is measured: lines around the places, and their number."""
    asked = call.asked
    cut: set[Cut] = {"context"} if room.context < (asked.context_lines or 0) else set()
    if is_more and (asked.limit is None or asked.limit > room.results):
        cut.add("results")
    return cut


def _fitting_windows(
    document: Document, places: Sequence[LineMatch], context: int, room: Room
) -> tuple[Spans, Sequence[LineMatch]]:
    """Return the lines around as many places as fit, and these places; at least the first line of the first."""
    every, chosen = document.lines, places
    spare = room.chars - room.chars // 4  # the rest is for what stands in front
    while True:
        lines = Spans.of(*(run for one in chosen for run in _window(one, context, len(every))))
        if lines.count <= room.lines and size_of(every, lines) <= spare:
            return lines, chosen
        if len(chosen) > 1:
            chosen = chosen[: len(chosen) - max(1, len(chosen) // 8)]
        elif context:
            context //= 2
        else:
            return Spans.of((chosen[0].first, chosen[0].first)), chosen


def _window(place: LineMatch, context: int, total: int) -> Iterator[tuple[int, int]]:
    yield max(1, place.first - context), min(total, place.last + context)


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer with lines of a file, before it is made.

    lines: what to show. first: the line whose beginning is shown where not even one line fits.
    """

    lines: Spans
    first: int
    head: str
    verdict: Verdict
    room: Room
    cut: set[Cut]
    more: dict[str, Any]


def _show(call: ReadCall, text: OpenText, draft: Draft) -> ModeAnswer:
    """Show lines of a file under their place."""
    spare, lines, cut, more = draft.room.without(draft.head), draft.lines, draft.cut, draft.more
    place = ReadPlace(text.named.shown, draft.first, draft.first)
    if lines and len(plain_text(text.document, text.named.located.given, lines).text) <= spare:
        bypass = call.asked.bypass_cache
        read = chosen_lines(text.named.located, text.document, lines, draft.head, room=spare, bypass=bypass)
        result = call.session.placed.show(read, call.signal)
        place = ReadPlace(text.named.shown, lines.runs[0][0], lines.runs[-1][1])
    else:
        part = part_of_line(text.document, draft.first, spare)
        result, cut, lines = ReadResult(draft.head + part), cut | {"chars"}, NO_LINES
    served = served_lines("snippet", text, lines, result, cut)
    return ModeAnswer(result, place, draft.verdict, served, bool(cut) or "next_offset" in more, more)


# --- the places of a pattern in a folder ---


def _read_folder(call: ReadCall, named: NamedFile) -> ModeAnswer:
    asked = call.asked
    pattern = _pattern(asked.pattern or "")
    if not EXCLUDED_FOLDERS.isdisjoint(named.shown.split("/")) and call.session.guards.settings.folders == "refuse":
        raise ReadRefusal("EXCLUDED_FOLDER", f"{named.shown} is in an excluded folder. Search another folder.")
    ask = ReadAsk(
        "snippet", asked.target, chars=asked.max_preview_chars, results=asked.limit, context=asked.context_lines
    )
    verdict, room = call.judge(ask)
    count, start = min(asked.limit or room.results, room.results), (asked.offset or 1) - 1
    found = _search(call, named, count + start)
    if not found.hits[start:]:
        raise _nothing(call, pattern, "the workspace" if named.shown == "." else named.shown, found.total)
    context = min(asked.context_lines or 0, room.context)
    hits = found.hits[start : start + count]
    rows = [_row(call, hit, context, is_bare=asked.tells_places_only) for hit in hits]
    number = f"{_count(found.total, 'match', 'matches')} in {_count(len(found.files), 'file', 'files')}"
    head = head_text(verdict, f"{number}{', and time was up' if found.is_partial else ''}", room)
    fits = count_fitting(rows, room.without(head))
    cut = _cut_by_room(call, room, is_more=start + count < found.total)
    cut |= {"chars"} if fits < len(rows) else set()
    text = head + ("\n".join(rows[:fits]) if fits else rows[0][: room.without(head)])
    shown = hits[: max(1, fits)]
    more: dict[str, Any] = {
        "matches": found.total,
        "engine": found.engine,
        "hits": [{"file": hit.path, "line": hit.first, "end_line": hit.last, "column": hit.column} for hit in shown],
        "next_calls": [
            read_call(hit.path, max(1, hit.first - 10), min(hit.total, hit.last + 10)) for hit in shown[:_MOST_NEXT]
        ],
    }
    if found.notice is not None:
        more["notice"] = found.notice
    if start + len(shown) < found.total:
        more["next_offset"] = start + len(shown) + 1
    served = ServedRead(
        "snippet", lines=text.count("\n") + 1 - head.count("\n"), chars=len(text), content=text, cut=cut
    )
    place = ReadPlace(named.shown)
    return ModeAnswer(ReadResult(text), place, verdict, served, "next_offset" in more or found.is_partial, more)


def _search(call: ReadCall, named: NamedFile, count: int) -> CodeResults:
    folder = call.session.folder or "."
    path = None if named.shown == "." else named.shown
    skipped = EXCLUDED_FOLDERS if call.session.guards.settings.folders == "refuse" else frozenset[str]()
    query = CodeQuery(call.asked.pattern or "", path, limit=count, per_file=count, skipped=skipped)
    try:
        return call.session.recalls.search_code(folder, query, call.signal)
    except BadInput as problem:
        raise ReadRefusal("INVALID_ARGS", str(problem)) from problem


def _row(call: ReadCall, hit: CodeHit, context: int, *, is_bare: bool) -> str:
    if is_bare:
        return f"{hit.path}:{hit.first}"
    if context == 0:
        return f"{hit.path}:{hit.first}: {hit.text}"
    try:
        document = read_text(call.session, find_target(call.session, hit.path, offset=1), call.signal)
    except ReadRefusal:  # it changed since it was searched
        return f"{hit.path}:{hit.first}: {hit.text}"
    first, last = next(_window(LineMatch(hit.first, hit.last, 1, ""), context, len(document.lines)))
    return "\n".join([f"{hit.path}:{first}-{last}", *document.lines[first - 1 : last]])


# --- all of them ---


def _pattern(written: str) -> Pattern:
    try:
        return parse_pattern(written)
    except BadInput as problem:
        raise ReadRefusal("INVALID_ARGS", f"'pattern' cannot be used: {problem}") from problem


def _nothing(call: ReadCall, pattern: Pattern, where: str, matches: int) -> ReadRefusal:
    written = (call.asked.pattern or "")[:80]
    if matches:
        return ReadRefusal("OUT_OF_RANGE", f"Match {call.asked.offset} is behind the last of {matches} matches.")
    notice = "" if pattern.notice is None else f" It was taken as a literal text: {pattern.notice}."
    return ReadRefusal(
        "NO_RESULTS",
        f"Nothing in {where} matches {written!r}.{notice} Try a shorter text, an expression, or search.",
        (search_call(written),),
    )


def _lines_of(places: Sequence[LineMatch]) -> str:
    named = ", ".join(str(one.first) for one in places[:_MOST_NAMED])
    more = f" and {len(places) - _MOST_NAMED} more" if len(places) > _MOST_NAMED else ""
    return f"line {named}" if len(places) == 1 else f"lines {named}{more}"


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _hits(places: Sequence[LineMatch]) -> list[dict[str, int]]:
    return [{"line": one.first, "end_line": one.last, "column": one.column} for one in places]
