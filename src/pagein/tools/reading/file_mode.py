"""`read` with mode=file: the text of a file, with markers and diffs for what the model was shown before."""

from pagein.engine.reads.session_guards import ServedRead
from pagein.engine.reads.session_reads import ReadResult, picture
from pagein.model.documents import Document
from pagein.model.read_caps import DEFAULT_CAPS, ReadCaps
from pagein.model.read_contract import ReadPlace
from pagein.model.spans import Spans
from pagein.policy.guards.judgement import Cut, ReadAsk, ReadVerdict
from pagein.policy.reads.baseline import Baseline, baseline
from pagein.policy.reads.fitting_lines import NOTICE_ROOM, count_fitting
from pagein.policy.reads.read_request import RangeRead
from pagein.tools.reading.mode_answers import (
    ModeAnswer,
    ReadCall,
    head_text,
    open_text,
    part_of_line,
    served_facts,
    served_lines,
)
from pagein.tools.reading.read_problems import ReadRefusal, next_read
from pagein.tools.reading.targets import NamedFile, find_target, read_any


def read_file(call: ReadCall) -> ModeAnswer:
    """Answer a call with mode=file. Raises ReadRefusal, AbortedOperation and HostError."""
    asked = call.asked
    named = find_target(call.session, asked.target, offset=asked.offset, limit=asked.limit)
    document = read_any(call.session, named, call.signal)
    if document.media_type is not None:
        return _picture(call, named, document)
    first, last = requested_lines(named, document)
    text = open_text(call, named, document)
    ask = ReadAsk(
        "file",
        asked.target,
        named.located.key,
        lines=last - first + 1,
        has_limit=named.located.limit is not None,
        chars=asked.max_preview_chars,
        is_known=text.known.holds(first, last) and not asked.bypass_cache,
    )
    verdict, room = call.judge(ask)
    total = len(text.lines)
    more = {"total_lines": total, "bytes": len(document.content)}
    if asked.tells_places_only:
        said = f"{named.shown}: lines {first}-{last} of {total}, {len(document.content)} bytes"
        result, served = ReadResult(said), served_facts(call, named, said)
        return _answer(named, (first, last), verdict, result, served, more)
    head = head_text(verdict, "", room)
    shown = shorten_lines(document, named.located.given, (first, last), room.lines, room.without(head))
    if shown.shown == 0 and text.lines[first - 1]:
        result = ReadResult(head + part_of_line(document, first, room.without(head)))
    else:
        spare, bypass = room.without(head), asked.bypass_cache
        read = RangeRead(named.located, document, shown, first, last, bypass, head, room=spare)
        result = call.session.placed.show(read, call.signal)
    cut: set[Cut] = set()
    if shown.last < last and _is_text(result):
        cut = {"lines"} if shown.shown == room.lines else {"chars"}
    served = served_lines("file", text, Spans.of((first, shown.last)), result, cut)
    end = max(first, shown.last) if cut else last
    return _answer(named, (first, end), verdict, result, served, more)


def _answer(
    named: NamedFile,
    lines: tuple[int, int],
    verdict: ReadVerdict,
    result: ReadResult,
    served: ServedRead,
    more: dict[str, int],
) -> ModeAnswer:
    """Return the answer about some lines, with the place to go on. A limit of the caller leaves a rest as a budget does."""
    first, end = lines
    has_rest = end < more["total_lines"]
    if has_rest:
        more["next_offset"] = end + 1
    return ModeAnswer(result, ReadPlace(named.shown, first, end), verdict, served, has_rest or bool(served.cut), more)


def requested_lines(named: NamedFile, document: Document) -> tuple[int, int]:
    """Return the first and last line asked for, clamped to the file. Raises ReadRefusal for a first line behind it."""
    total = len(document.lines)
    first = int(named.located.offset or 1)
    if first > total:
        raise ReadRefusal(
            "OUT_OF_RANGE",
            f"Offset {first} is beyond end of file ({total} lines total)",
            (next_read("file", named.shown, offset=max(1, total - 49)),),
        )
    count = named.located.limit
    return first, total if count is None else min(total, first + int(count) - 1)


def shorten_lines(document: Document, given: str, lines: tuple[int, int], most: int, room: int) -> Baseline:
    """Return the text of lines of a file, cut to a number of lines and of characters, with the host's notices."""
    first, last = lines
    every = document.lines
    # one more than may be shown, but not a large file's rest
    wanted = every.begun(first - 1, min(last, first + most), room)
    fits = len(wanted)
    if fits > most or last < len(every) or count_fitting(wanted, room) < fits:
        fits = min(most, count_fitting(wanted[:most], room - NOTICE_ROOM))
    if fits == 0:
        return Baseline("", "", first, 0, len(every))
    limit = None if last == len(every) else last - first + 1
    caps = ReadCaps(fits, max(DEFAULT_CAPS.bytes, 4 * room))
    return baseline(document.lines, given, offset=first, limit=limit, caps=caps)


def _is_text(result: ReadResult) -> bool:
    """Return whether an answer shows text of the file, rather than a marker or a diff."""
    record = result.details.get("readcache")
    return not isinstance(record, dict) or record.get("mode") in ("full", "baseline_fallback", "partly_known")


def _picture(call: ReadCall, named: NamedFile, document: Document) -> ModeAnswer:
    verdict, _ = call.judge(ReadAsk("file", call.asked.target, named.located.key))
    result = picture(document)
    served = served_facts(call, named, result.text)
    more = {"media_type": document.media_type, "bytes": len(document.content)}
    return ModeAnswer(result, ReadPlace(named.shown), verdict, served, more=more)
