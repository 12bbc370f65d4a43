"""`read` with mode=snippet: some lines of a file, or the places of a pattern in a file or a folder.

Rules of this file
------------------
1. Lines of one file are a proven read: lines that the model sees come back as markers, and what is shown is known later.
2. Places in several files are one answer about several files, which no marker can speak of: it is shown as text, and is
   not taken for known. Its next calls read the places.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, Final

from pagein.engine.reads.placed_reads import chosen_lines, plain_text
from pagein.engine.reads.session_guards import ServedRead
from pagein.engine.reads.session_reads import ReadResult
from pagein.errors import BadInput
from pagein.model.code_search import CodeHit, CodeQuery, CodeResults
from pagein.model.documents import Document
from pagein.model.read_contract import ReadPlace, target_of
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
_FURTHER_ROOM: Final = 40  # characters of the words that tell how to go on


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
    matches = _count(len(places), "match", "matches")

    def where() -> str:
        number = f"{len(chosen)} of {matches}" if len(chosen) < len(places) else matches
        further = _further(start + len(chosen), len(places))
        return (
            f"{named.shown}:{lines.runs[0][0]}-{lines.runs[-1][1]} of {total}, {number}: {_lines_of(chosen)}{further}"
        )

    if not asked.tells_places_only:
        wished = lines, len(chosen)
        lines, chosen = _fitting_windows(text.document, chosen, context, room.lines, room.chars - room.chars // 4)
        spare = room.without(head_text(verdict, where(), room))
        if size_of(text.lines, lines) > spare:  # a long path, or a small room
            lines, chosen = _fitting_windows(text.document, chosen, context, room.lines, spare - _FURTHER_ROOM)
        if (lines, len(chosen)) != wished:
            cut.add("chars")
    more["hits"] = _hits(chosen)
    if start + len(chosen) < len(places):
        more["next_offset"] = start + len(chosen) + 1
    if asked.tells_places_only:
        said = where()
        if len(said) > room.chars:  # the lines are in `hits`
            said = said.removesuffix(f": {_lines_of(chosen)}{_further(start + len(chosen), len(places))}")
        place, served = ReadPlace(named.shown, chosen[0].first, chosen[-1].last), served_facts(call, named, said)
        return ModeAnswer(ReadResult(said), place, verdict, served, "next_offset" in more, more)
    head = head_text(verdict, where(), room)
    return _show(call, text, Draft(lines, chosen[0].first, head, verdict, room, cut, more))


def _cut_by_room(call: ReadCall, room: Room, *, is_more: bool) -> set[Cut]:
    """Return what the budget shortens before anything is measured: lines around the places, and their number."""
    asked = call.asked
    cut: set[Cut] = {"context"} if room.context < (asked.context_lines or 0) else set()
    if is_more and (asked.limit is None or asked.limit > room.results):
        cut.add("results")
    return cut


def _fitting_windows(
    document: Document, places: Sequence[LineMatch], context: int, most: int, room: int
) -> tuple[Spans, Sequence[LineMatch]]:
    """Return the lines around as many places as fit, and these places; at least the first line of the first.

    most: lines to show. room: characters for them, without what stands in front.
    """
    every, chosen = document.lines, places
    while True:
        lines = Spans.of(*(run for one in chosen for run in _window(one, context, len(every))))
        if lines.count <= most and size_of(every, lines) <= room:
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
        raise _nothing(call, pattern, named.shown, found.total, _unsearched(found))
    context = min(asked.context_lines or 0, room.context)
    hits = found.hits[start : start + count]
    rows = _rows(call, hits, context)
    longest = head_text(verdict, _places_head(found, start, 10**6), room)
    fits = count_fitting([row.text for row in rows], room.without(longest))
    shown = hits[: sum(row.hits for row in rows[: max(1, fits)])]
    head = head_text(verdict, _places_head(found, start, len(shown)), room)
    cut = _cut_by_room(call, room, is_more=start + count < found.total)
    cut |= {"chars"} if fits < len(rows) else set()
    text = head + ("\n".join(row.text for row in rows[:fits]) if fits else rows[0].text[: room.without(head)])
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


def _places_head(found: CodeResults, start: int, count: int) -> str:
    """Return the first line of an answer with these places: how many there are, which are shown, and how to go on."""
    in_files = f"in {_count(len(found.files), 'file', 'files')}"
    last = min(start + count, found.total)
    is_all = start == 0 and last == found.total
    which = _count(found.total, "match", "matches") if is_all else f"matches {start + 1}-{last} of {found.total}"
    time = ", and time was up" if found.is_partial else ""
    return f"{which} {in_files}{time}{_further(last, found.total)}"


@dataclass(frozen=True, slots=True)
class Row:
    """A piece of an answer about several files, and the number of places in it."""

    text: str
    hits: int = 1


def _rows(call: ReadCall, hits: Sequence[CodeHit], context: int) -> list[Row]:
    """Return a piece for each place; with lines around them, one for all places of a file whose lines touch."""
    if call.asked.tells_places_only:
        return [Row(f"{hit.path}:{hit.first}") for hit in hits]
    if context == 0:
        return [Row(f"{hit.path}:{hit.first}: {hit.text}") for hit in hits]
    return [row for path, near in groupby(hits, key=lambda hit: hit.path) for row in _pieces(call, path, near, context)]


def _pieces(call: ReadCall, path: str, hits: Iterable[CodeHit], context: int) -> Iterator[Row]:
    found = list(hits)
    try:
        document = read_text(call.session, find_target(call.session, target_of(path), offset=1), call.signal)
        total = len(document.lines)
    except ReadRefusal:
        total = 0
    if found[-1].last > total:  # it changed since it was searched
        yield from (Row(f"{path}:{hit.first}: {hit.text}") for hit in found)
        return
    for first, last in Spans.of(*(run for hit in found for run in _window(_match(hit), context, total))):
        inside = sum(first <= hit.first <= last for hit in found)
        yield Row("\n".join([f"{path}:{first}-{last}", *document.lines[first - 1 : last]]), inside)


def _match(hit: CodeHit) -> LineMatch:
    return LineMatch(hit.first, hit.last, hit.column, hit.text)


# --- all of them ---


def _pattern(written: str) -> Pattern:
    try:
        return parse_pattern(written)
    except BadInput as problem:
        raise ReadRefusal("INVALID_ARGS", f"'pattern' cannot be used: {problem}") from problem


def _nothing(call: ReadCall, pattern: Pattern, shown: str, matches: int, unsearched: str = "") -> ReadRefusal:
    """Return the refusal of a search without a place.

    shown: the file or folder. unsearched: what was not looked at, so that *empty* is not *failed*.
    """
    where = "the workspace" if shown == "." else shown
    written = (call.asked.pattern or "")[:80]
    if matches:
        again = next_read("snippet", shown, pattern=call.asked.pattern)
        return ReadRefusal(
            "OUT_OF_RANGE", f"Match {call.asked.offset} is behind the last of {matches} matches.", (again,)
        )
    notice = "" if pattern.notice is None else f" It was taken as a literal text: {pattern.notice}."
    is_cut_by_lines = pattern.expression is not None and "\\n" in written
    by_line = (
        " An expression is matched line by line: take a literal text for several lines." if is_cut_by_lines else ""
    )
    return ReadRefusal(
        "NO_RESULTS",
        f"Nothing in {where} matches {written!r}.{notice}{by_line}{unsearched} Try a shorter text, an expression, or search.",
        (search_call(written),),
    )


def _unsearched(found: CodeResults) -> str:
    if not found.searched and found.ignored:
        return f" Git ignores all {found.ignored} files and folders there; a file is searched if it is the target."
    time = " Time was up before all files were searched." if found.is_partial else ""
    left = len(found.unsearched)
    files = (
        f" {_count(left, 'file was', 'files were')} not searched, such as {': '.join(found.unsearched[0])}."
        if left
        else ""
    )
    return time + files


def _further(shown: int, total: int) -> str:
    return f". Use offset={shown + 1} for more" if shown < total else ""


def _lines_of(places: Sequence[LineMatch]) -> str:
    named = ", ".join(str(one.first) for one in places[:_MOST_NAMED])
    more = f" and {len(places) - _MOST_NAMED} more" if len(places) > _MOST_NAMED else ""
    return f"line {named}" if len(places) == 1 else f"lines {named}{more}"


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _hits(places: Sequence[LineMatch]) -> list[dict[str, int]]:
    return [{"line": one.first, "end_line": one.last, "column": one.column} for one in places]
