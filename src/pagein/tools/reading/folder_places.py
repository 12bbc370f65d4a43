"""The places of a pattern in the files of a folder.

Rules of this file
------------------
1. Places alone count as a search, and are shown even if the read budget is spent, because a narrowing search restores the
   budget. Places with lines around them also count as a read.
2. An answer about one file is a proven read of that file. An answer about several files is plain text, and its lines do not
   count as known: a marker leaves the window with the answers that showed its lines, and an answer records this for one file
   only. The suggested next calls read the places.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final

from pagein.engine.reads.session_guards import ServedRead, ServedSearch
from pagein.engine.reads.session_reads import ReadResult
from pagein.errors import BadInput
from pagein.model.code_search import CodeHit, CodeQuery, CodeResults
from pagein.model.read_contract import ReadPlace, target_of
from pagein.model.spans import Spans
from pagein.policy.guards.judgement import ReadAsk, complete, read_call
from pagein.policy.guards.relevance import EXCLUDED_FOLDERS
from pagein.policy.reads.fitting_lines import count_fitting
from pagein.tools.code_search import next_calls
from pagein.tools.reading.file_places import read_places
from pagein.tools.reading.mode_answers import JudgedRoom, ModeAnswer, ReadCall, head_text
from pagein.tools.reading.pattern_words import (
    behind_the_last,
    count_of,
    further_places,
    nothing_found,
    pattern_of,
    results_cut,
)
from pagein.tools.reading.read_problems import ReadRefusal, short_name
from pagein.tools.reading.targets import NamedFile, find_target, read_text

_MOST_NEXT: Final = 5


def read_folder(call: ReadCall, named: NamedFile) -> ModeAnswer:
    """Answer a call with a pattern and a folder. Raises ReadRefusal and AbortedOperation."""
    asked = call.asked
    pattern = pattern_of(call)
    if not EXCLUDED_FOLDERS.isdisjoint(named.shown.split("/")) and call.session.guards.settings.folders == "refuse":
        why = f"{short_name(named.shown)} is in an excluded folder. Search another folder."
        raise ReadRefusal("EXCLUDED_FOLDER", why)
    has_lines = bool(asked.context_lines) and not asked.tells_places_only
    ask = ReadAsk(
        "snippet",
        asked.target,
        chars=asked.max_preview_chars,
        results=asked.limit,
        context=asked.context_lines,
        is_search=not has_lines,
    )
    verdict, room = call.judge(ask)
    count, start = min(asked.limit or room.results, room.results), (asked.offset or 1) - 1
    found = _search(call, named, count + start)
    if not found.total:
        raise nothing_found(call, pattern, named.shown, next_calls(asked.pattern or "", found)[0], _unsearched(found))
    if start >= found.total:
        raise behind_the_last(call, named.shown, found.total)
    search = _served_search(call, named, found)
    if has_lines and len(found.files) == 1 and not found.is_partial:
        alone = find_target(call.session, target_of(found.files[0].path), offset=1)
        answer = read_places(call, alone)
        return replace(answer, more={**answer.more, "engine": found.engine}, search=search)
    page = PlacesPage(found, start, found.hits[start : start + count])
    return replace(_answer(call, named, page, JudgedRoom(verdict, room)), search=search, is_read=has_lines)


@dataclass(frozen=True, slots=True)
class PlacesPage:
    """The hits of a search, and the places for an answer, from number `start` on, counted from 0."""

    found: CodeResults
    start: int
    hits: Sequence[CodeHit]

    @property
    def end(self) -> int:
        """Number of places up to the last one of the page."""
        return self.start + len(self.hits)

    def title(self, count: int) -> str:
        """Return the first line of an answer with so many places: how many there are, and how to go on."""
        total = self.found.total
        last = min(self.start + count, total)
        is_all = self.start == 0 and last == total
        which = count_of(total, "match", "matches") if is_all else f"matches {self.start + 1}-{last} of {total}"
        time = ", and time was up" if self.found.is_partial else ""
        files = count_of(len(self.found.files), "file", "files")
        return f"{which} in {files}{time}{further_places(last, total)}"


def _answer(call: ReadCall, named: NamedFile, page: PlacesPage, judged: JudgedRoom) -> ModeAnswer:
    asked, room, found = call.asked, judged.room, page.found
    wished = asked.context_lines or 0
    context = min(wished, room.context)
    cut = results_cut(call, room, is_more=page.end < found.total)
    if _has_more_lines(page.hits, context, wished):
        cut.add("context")
    verdict = complete(judged.verdict, cut)
    rows = _rows(call, page.hits, context)
    fits = count_fitting([row.text for row in rows], room.chars)
    while True:  # the title names the places that fit under it
        shown = page.hits[: sum(row.hits for row in rows[: max(1, fits)])]
        head = head_text(verdict, page.title(len(shown)), room)
        text = head + "\n".join(row.text for row in rows[:fits])
        if not fits or len(text) <= room.chars:
            break
        fits -= 1
    if fits < len(rows):
        cut.add("chars")
    if not fits:
        text = head + rows[0].text[: room.without(head)]
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
    if page.start + len(shown) < found.total:
        more["next_offset"] = page.start + len(shown) + 1
    lines = text.count("\n") + 1 - head.count("\n")
    served = ServedRead("snippet", lines=lines, chars=len(text), content=text, cut=cut)
    is_more = "next_offset" in more or found.is_partial
    return ModeAnswer(ReadResult(text), ReadPlace(named.shown), verdict, served, is_more, more)


def _search(call: ReadCall, named: NamedFile, count: int) -> CodeResults:
    folder = call.session.folder or "."
    path = None if named.shown == "." else named.shown
    skipped = EXCLUDED_FOLDERS if call.session.guards.settings.folders == "refuse" else frozenset[str]()
    query = CodeQuery(call.asked.pattern or "", path, limit=count, per_file=count, skipped=skipped)
    try:
        return call.session.recalls.search_code(folder, query, call.signal)
    except BadInput as problem:
        raise ReadRefusal("INVALID_ARGS", str(problem)) from problem


def _served_search(call: ReadCall, named: NamedFile, found: CodeResults) -> ServedSearch:
    """Return the guards' measure of the search, the same as for the tool `search`."""
    scope = "" if named.shown == "." else named.shown
    pattern = call.asked.pattern or ""
    return ServedSearch(
        pattern, [one.key for one in found.files], found.total, "code", scope, next_calls=next_calls(pattern, found)
    )


def _has_more_lines(hits: Iterable[CodeHit], context: int, wished: int) -> bool:
    """Return whether a smaller number of lines around the places leaves lines out."""
    return any(
        (max(1, hit.first - context), min(hit.total, hit.last + context))
        != (max(1, hit.first - wished), min(hit.total, hit.last + wished))
        for hit in hits
    )


@dataclass(frozen=True, slots=True)
class Row:
    """A piece of an answer about several files, and the number of places in it."""

    text: str
    hits: int = 1


def _rows(call: ReadCall, hits: Sequence[CodeHit], context: int) -> list[Row]:
    """Return a piece per match; with context lines, a joint piece for adjacent matches of a file."""
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
    for first, last in Spans.of(*((max(1, hit.first - context), min(total, hit.last + context)) for hit in found)):
        inside = sum(first <= hit.first <= last for hit in found)
        yield Row("\n".join([f"{path}:{first}-{last}", *document.lines[first - 1 : last]]), inside)


def _unsearched(found: CodeResults) -> str:
    if not found.searched and found.ignored:
        return f" Git ignores all {found.ignored} files and folders there; a file is searched if it is the target."
    time = " Time was up before all files were searched." if found.is_partial else ""
    left, no_text = len(found.unsearched), found.not_text
    files = (
        f" {count_of(left, 'file was', 'files were')} not searched, such as {': '.join(found.unsearched[0])}."
        if left
        else ""
    )
    others = f" {count_of(no_text, 'file has', 'files have')} no text in UTF-8." if no_text else ""
    return time + files + others
