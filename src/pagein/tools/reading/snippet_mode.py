"""`read` with mode=snippet: some lines of a file, or the places of a pattern in a file or a folder.

Rules of this file
------------------
1. Lines of one file are a proven read: lines that the model sees come back as markers, and what is shown is known later.
2. Places in several files are an answer of their own kind (`folder_places`).
"""

from typing import Any

from pagein.engine.reads.session_reads import ReadResult
from pagein.model.read_contract import ReadPlace
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.guards.judgement import Cut, ReadAsk, complete
from pagein.policy.reads.fitting_lines import NOTICE_ROOM, count_fitting
from pagein.tools.reading.file_places import read_places
from pagein.tools.reading.folder_places import read_folder
from pagein.tools.reading.mode_answers import ModeAnswer, OpenText, ReadCall, head_text, open_text, served_facts
from pagein.tools.reading.read_problems import ReadRefusal, next_read
from pagein.tools.reading.shown_lines import LinesDraft, show_lines
from pagein.tools.reading.targets import find_target, read_text


def read_snippet(call: ReadCall) -> ModeAnswer:
    """Answer a call with mode=snippet. Raises ReadRefusal, AbortedOperation and HostError."""
    if call.asked.pattern is None:
        return _read_lines(call)
    named = find_target(call.session, call.asked.target, offset=1)
    return read_folder(call, named) if named.state.name == "folder" else read_places(call, named)


def _requested_lines(call: ReadCall) -> tuple[OpenText, int, int]:
    """Return the file with the first and last line asked for. Raises ReadRefusal, also for a first line behind the last."""
    first, last = call.asked.start_line, call.asked.end_line
    limit = None if first is None else (last or first) - first + 1
    named = find_target(call.session, call.asked.target, offset=first, limit=limit)
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
    return text, first, min(total, first + int(named.located.limit or 1) - 1)


def _read_lines(call: ReadCall) -> ModeAnswer:
    asked = call.asked
    text, first, last = _requested_lines(call)
    named, total = text.named, len(text.lines)
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
    is_less = (start, stop) != (max(1, first - wished), min(total, last + wished))
    cut: set[Cut] = {"context"} if is_less else set()
    verdict = complete(verdict, cut)
    if asked.tells_places_only:
        said = f"{named.shown}: lines {start}-{stop} of {total}"
        place, served = ReadPlace(named.shown, start, stop), served_facts(call, named, said, cut)
        return ModeAnswer(ReadResult(said), place, verdict, served, more={"total_lines": total})
    end = min(stop, start + room.lines - 1)
    cut |= {"lines"} if end < stop else set()

    def head(end: int) -> str:
        left = f", lines {end + 1}-{stop} left out" if end < stop else ""
        return head_text(verdict, f"{named.shown}:{start}-{end} of {total}{left}", room)

    longest = max(head(end), head(max(start, end - 1)), key=len)
    fits = count_fitting(text.lines[start - 1 : end], room.without(longest) - NOTICE_ROOM)
    if fits < end - start + 1:
        cut.add("chars")
        end = start + max(1, fits) - 1
    more: dict[str, Any] = {"total_lines": total}
    if end < stop:
        more["next_calls"] = [next_read("snippet", named.shown, start_line=end + 1, end_line=stop)]
    lines = Spans.of((start, end)) if fits else NO_LINES
    return show_lines(call, text, LinesDraft(lines, start, head(end), verdict, room, cut, more))
