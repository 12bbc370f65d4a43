"""`read` with mode=snippet: some lines of a file, or the places of a pattern in a file or a folder.

Rules of this file
------------------
1. Lines of one file are a proven read: lines that the model sees come back as markers, and what is shown is known later.
2. Places in several files are one answer about several files, which no marker can speak of: it is shown as text, and is
   not taken for known. Its next calls read the places.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from pagein.engine.reads.placed_reads import chosen_lines
from pagein.engine.reads.session_guards import ServedRead
from pagein.engine.reads.session_reads import ReadResult
from pagein.errors import BadInput
from pagein.model.code_search import CodeHit, CodeQuery, CodeResults
from pagein.model.documents import Document
from pagein.model.read_contract import ReadPlace
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.guards.judgement import Cut, ReadAsk, Verdict, read_call, search_call
from pagein.policy.guards.relevance import EXCLUDED_FOLDERS
from pagein.policy.reads.fitting_lines import NOTICE_ROOM, count_fitting, size_of, windows
from pagein.policy.recall.line_search import LineMatch, match_lines
from pagein.policy.recall.pattern_search import Pattern, parse_pattern
from pagein.tools.reading.mode_answers import (
    ModeAnswer,
    ReadCall,
    Room,
    head_text,
    known_before,
    part_of_line,
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
    document = read_text(call.session, named, call.signal)
    every = document.lines
    first = int(named.located.offset)
    if first > len(every):
        raise ReadRefusal(
            "OUT_OF_RANGE",
            f"Line {first} is beyond end of file ({len(every)} lines total)",
            (next_read("file", named.shown, offset=max(1, len(every) - 49)),),
        )
    last = min(len(every), first + int(named.located.limit or 1) - 1)
    before = known_before(call, named, document)
    wide = windows((first, last), asked.context_lines or 0, len(every)).unite(Spans.of((first, last)))
    is_known = before.contains(wide) and not asked.bypass_cache
    ask = ReadAsk(
        "snippet",
        asked.target,
        named.located.key,
        lines=last - first + 1,
        has_limit=True,
        chars=asked.max_preview_chars,
        context=asked.context_lines,
        is_known=is_known,
    )
    verdict, room = call.judge(ask)
    context = min(asked.context_lines or 0, room.context)
    start, stop = max(1, first - context), min(len(every), last + context)
    cut: set[Cut] = {"context"} if context < (asked.context_lines or 0) else set()
    end = min(stop, start + room.lines - 1)
    cut |= {"lines"} if end < stop else set()
    more = {"total_lines": len(every)}
    if asked.tells_places_only:
        return _places_only(call, named, (start, stop), verdict, more)
    head = head_text(verdict, f"{named.shown}:{start}-{end} of {len(every)}", room)
    fits = count_fitting(every[start - 1 : end], room.without(head) - NOTICE_ROOM)
    if fits < end - start + 1:
        cut |= {"chars"}
        head = head_text(verdict, f"{named.shown}:{start}-{start + max(1, fits) - 1} of {len(every)}", room)
    return _show(call, named, document, Spans.of((start, start + fits - 1)), head, verdict, room, before, cut, more, start)


# --- the places of a pattern in a file ---


def _read_places(call: ReadCall, named: NamedFile) -> ModeAnswer:
    asked = call.asked
    document = read_text(call.session, named, call.signal)
    pattern = _pattern(asked.pattern or "")
    places = list(islice(match_lines(pattern, document.text), _MOST_PLACES))
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
    wished = _CONTEXT if asked.context_lines is None else asked.context_lines
    context = min(wished, room.context)
    count = min(asked.limit or room.results, room.results)
    chosen = places[start : start + count]
    cut: set[Cut] = {"context"} if context < (asked.context_lines or 0) else set()
    if start + count < len(places) and count == room.results and asked.limit != room.results:
        cut.add("results")
    more: dict[str, Any] = {"total_lines": len(document.lines), "matches": len(places), "notice": pattern.notice}
    if asked.tells_places_only:
        more["hits"] = _hits(chosen)
        text = f"{named.shown}: {_lines_of(chosen)}"
        served = ServedRead("snippet", named.located.absolute, chars=len(text))
        place = ReadPlace(named.shown, chosen[0].first, chosen[-1].last)
        return ModeAnswer(ReadResult(text), place, verdict, served, len(chosen) < len(places), more)
    lines, chosen, is_smaller = _fitting_windows(document, chosen, context, room)
    cut |= {"chars"} if is_smaller else set()
    more["hits"] = _hits(chosen)
    if start + len(chosen) < len(places):
        more["next_offset"] = start + len(chosen) + 1
    number = f"{len(chosen)} of {len(places)} matches" if len(chosen) < len(places) else f"{len(places)} matches"
    where = f"{named.shown}:{lines.runs[0][0]}-{lines.runs[-1][1]} of {len(document.lines)}"
    head = head_text(verdict, f"{where}, {number}: {_lines_of(chosen)}", room)
    before = known_before(call, named, document)
    made = _show(call, named, document, lines, head, verdict, room, before, cut, more, chosen[0].first)
    return made


def _fitting_windows(
    document: Document, places: Sequence[LineMatch], context: int, room: Room
) -> tuple[Spans, Sequence[LineMatch], bool]:
    """Return the lines around as many places as fit, these places, and whether something was cut for their size."""
    every, chosen = document.lines, list(places)
    spare = room.chars - room.chars // 4  # the rest is for what stands in front
    while True:
        lines = Spans.of(*(run for one in chosen for run in _window(one, context, len(every))))
        if lines.count <= room.lines and size_of(every, lines) <= spare:
            return lines, chosen, len(chosen) < len(places)
        if len(chosen) > 1:
            chosen = chosen[: max(1, len(chosen) - max(1, len(chosen) // 8))]
        elif context:
            context //= 2
        else:
            return Spans.of((chosen[0].first, chosen[0].first)), chosen, True


def _window(place: LineMatch, context: int, total: int) -> Iterator[tuple[int, int]]:
    yield max(1, place.first - context), min(total, place.last + context)


def _show(  # noqa: PLR0913 - the facts of an answer
    call: ReadCall,
    named: NamedFile,
    document: Document,
    lines: Spans,
    head: str,
    verdict: Verdict,
    room: Room,
    before: Spans,
    cut: set[Cut],
    more: dict[str, Any],
    first: int,
) -> ModeAnswer:
    """Show lines of a file under their place; the beginning of the first line, if not even that fits."""
    spare = room.without(head)
    if not lines or size_of(document.lines, lines) - NOTICE_ROOM > spare:
        result, cut = ReadResult(head + part_of_line(document, first, spare)), cut | {"chars"}
        place, lines = ReadPlace(named.shown, first, first), NO_LINES
    else:
        bypass = call.asked.bypass_cache
        read = chosen_lines(named.located, document, lines, head, room=spare, bypass=bypass)
        result = call.session.placed.show(read, call.signal)
        place = ReadPlace(named.shown, lines.runs[0][0], lines.runs[-1][1])
    served = served_lines("snippet", named, document, lines, result, before, cut)
    is_truncated = bool(cut) or "next_offset" in more
    return ModeAnswer(result, place, verdict, served, is_truncated, {k: v for k, v in more.items() if v is not None})


def _places_only(
    call: ReadCall, named: NamedFile, lines: tuple[int, int], verdict: Verdict, more: dict[str, Any]
) -> ModeAnswer:
    text = f"{named.shown}: lines {lines[0]}-{lines[1]} of {more['total_lines']}"
    served = ServedRead(call.asked.mode, named.located.absolute, chars=len(text))
    return ModeAnswer(ReadResult(text), ReadPlace(named.shown, *lines), verdict, served, more=more)


# --- the places of a pattern in a folder ---


def _read_folder(call: ReadCall, named: NamedFile) -> ModeAnswer:
    asked = call.asked
    pattern = _pattern(asked.pattern or "")
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
    number = f"{found.total} matches in {len(found.files)} files"
    head = head_text(verdict, f"{number}{', and time was up' if found.is_partial else ''}", room)
    fits = count_fitting(rows, room.without(head))
    cut: set[Cut] = {"context"} if context < (asked.context_lines or 0) else set()
    if start + count < found.total and count == room.results and asked.limit != room.results:
        cut.add("results")
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
    served = ServedRead("snippet", lines=text.count("\n") + 1 - head.count("\n"), chars=len(text), content=text, cut=cut)
    place = ReadPlace(named.shown)
    return ModeAnswer(ReadResult(text), place, verdict, served, "next_offset" in more or found.is_partial, more)


def _search(call: ReadCall, named: NamedFile, count: int) -> CodeResults:
    folder = call.session.folder or "."
    path = None if named.shown == "." else named.shown
    query = CodeQuery(call.asked.pattern or "", path, limit=count, per_file=count, skipped=EXCLUDED_FOLDERS)
    try:
        return call.session.recalls.search_code(folder, query, call.signal)
    except BadInput as problem:
        raise ReadRefusal("INVALID_ARGS", str(problem)) from problem


def _row(call: ReadCall, hit: CodeHit, context: int, *, is_bare: bool) -> str:
    if is_bare:
        return f"{hit.path}:{hit.first}"
    if context == 0:
        return f"{hit.path}:{hit.first}: {hit.text}"
    document = read_text(call.session, find_target(call.session, hit.path, offset=1), call.signal)
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


def _hits(places: Sequence[LineMatch]) -> list[dict[str, int]]:
    return [{"line": one.first, "end_line": one.last, "column": one.column} for one in places]
