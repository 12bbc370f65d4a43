"""`read` with mode=symbol: a definition by name, with decorators and leading comment, in any file."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from pagein.engine.reads.placed_reads import chosen_lines
from pagein.engine.reads.session_reads import ReadResult
from pagein.errors import BadInput, BadSetting
from pagein.model.read_contract import ReadPlace, target_of
from pagein.model.spans import NO_LINES, Spans
from pagein.model.symbols import AmbiguousSymbol, SymbolAnswer, SymbolText, UnknownSymbol
from pagein.policy.guards.judgement import Cut, ReadAsk, search_call
from pagein.policy.guards.relevance import EXCLUDED_FOLDERS
from pagein.policy.reads.fitting_lines import NOTICE_ROOM, count_fitting, size_of
from pagein.tools.reading.mode_answers import (
    ModeAnswer,
    OpenText,
    ReadCall,
    head_text,
    open_text,
    part_of_line,
    served_facts,
    served_lines,
)
from pagein.tools.reading.read_problems import LONGEST_NAME, ReadRefusal, next_read, short_name
from pagein.tools.reading.targets import check_state, find_target, read_text
from pagein.workspace.code_search import is_below
from pagein.workspace.symbols.languages import language_of
from pagein.workspace.target_state import root_of

_GLOB: Final = frozenset("*?[{")
_ATTEMPTS: Final = 3


def read_symbol(call: ReadCall) -> ModeAnswer:
    """Answer a call with mode=symbol. Raises ReadRefusal, AbortedOperation and HostError."""
    asked = call.asked
    found, text = _find(call)
    named, total = text.named, len(text.lines)
    first, last = _requested_lines(call, found)
    ask = ReadAsk(
        "symbol",
        asked.target,
        named.located.key,
        lines=last - first + 1,
        has_limit=asked.limit is not None,
        chars=asked.max_preview_chars,
        is_known=text.known.holds(first, last) and not asked.bypass_cache,
    )
    verdict, room = call.judge(ask)
    more: dict[str, Any] = {"total_lines": total, "resolved_symbol": _resolved(found)}
    title = f"{found.symbol.definition.kind} {found.symbol.definition.qualified}"
    if asked.tells_places_only:
        said = f"{named.shown}:{found.first}-{found.last} of {total}, {title}"
        said += f": {found.signature}" if len(said) + len(found.signature) + 2 <= room.chars else ""
        place, served = ReadPlace(named.shown, found.first, found.last), served_facts(call, named, said)
        return ModeAnswer(ReadResult(said), place, verdict, served, more=more)

    def head(end: int, begin: int = first) -> str:
        context = f", with context from line {begin}" if begin < first else ""
        return head_text(verdict, f"{named.shown}:{first}-{end} of {total}, {title}{context}", room)

    spare = room.without(head(last, 1))
    fits = min(room.lines, count_fitting(text.lines[first - 1 : last], spare - NOTICE_ROOM))
    end = first + min(last - first + 1, max(1, fits)) - 1
    cut: set[Cut] = set()
    if fits < last - first + 1:
        cut.add("lines" if fits == room.lines else "chars")
    if end < found.last:
        more["next_offset"] = end - found.first + 2
        more["next_calls"] = [next_read("symbol", found.symbol.id, offset=more["next_offset"])]
    lines = NO_LINES if fits == 0 else _with_context(found, text, Spans.of((first, end)), spare, room.lines)
    if lines:
        read = chosen_lines(
            named.located, text.document, lines, head(end, lines.runs[0][0]), room=spare, bypass=asked.bypass_cache
        )
        result = call.session.placed.show(read, call.signal)
    else:
        result = ReadResult(head(end) + part_of_line(text.document, first, spare))
    served = served_lines("symbol", text, lines, result, cut)
    return ModeAnswer(result, ReadPlace(named.shown, first, end), verdict, served, "next_offset" in more, more)


def _requested_lines(call: ReadCall, found: SymbolText) -> tuple[int, int]:
    """Return the first and last line asked for. Raises ReadRefusal for a first line behind the symbol."""
    first = found.first + (call.asked.offset or 1) - 1
    if first > found.last:
        count = found.last - found.first + 1
        why = f"Line {call.asked.offset} is behind the last of {count} lines of the symbol."
        raise ReadRefusal("OUT_OF_RANGE", why, (next_read("symbol", found.symbol.id),))
    return first, found.last if call.asked.limit is None else min(found.last, first + call.asked.limit - 1)


def _with_context(found: SymbolText, text: OpenText, lines: Spans, room: int, most: int) -> Spans:
    """Return the lines of a symbol, with imports and enclosing headers if the limit allows."""
    wide = lines.unite(Spans.lines(number for number, _ in found.context))
    return wide if wide.count <= most and size_of(text.lines, wide) <= room else lines


def _resolved(found: SymbolText) -> dict[str, Any]:
    definition = found.symbol.definition
    return {
        "id": found.symbol.id,
        "name": definition.name,
        "qualified": definition.qualified,
        "kind": definition.kind,
        "language": found.language,
        "signature": found.signature,
        "line": definition.first,
        "end_line": definition.last,
    }


def _find(call: ReadCall) -> tuple[SymbolText, OpenText]:
    """Return the definition with the file as it is now. Raises ReadRefusal."""
    path = _path(call)
    for _ in range(_ATTEMPTS):
        found = _ask(call, path)
        if isinstance(found, AmbiguousSymbol):
            readable = _readable(call, [one.id for one in found.candidates], [one.path for one in found.candidates])
            if len(readable) != 1 or found.total > len(found.candidates):
                raise _ambiguous(call, found, readable)
            found = _ask(replace(call, asked=replace(call.asked, target=readable[0])), None)
        if isinstance(found, AmbiguousSymbol):  # an id names one definition
            continue
        if isinstance(found, UnknownSymbol):
            raise _unknown(call, found, path)
        named = find_target(call.session, target_of(found.symbol.path), offset=1)
        document = read_text(call.session, named, call.signal)
        if "\n".join(document.lines[found.first - 1 : found.last]) == found.text:
            return found, open_text(call, named, document)
    raise ReadRefusal("UNREADABLE", f"The file of {short_name(call.asked.target)} changes while it is read. Try again.")


def _path(call: ReadCall) -> str | None:
    """Return the path for choosing between symbols; None for the workspace. Raises ReadRefusal for a missing file.

    The path of an existing file or folder is relative to the workspace, with a slash in front, so that it is unique.
    """
    path = call.asked.path
    if path is None:
        return None
    named = find_target(call.session, path, offset=1)
    if named.state.name == "missing" and not _GLOB.isdisjoint(path):
        return path
    if named.state.name != "folder":
        check_state(named)
        if language_of(named.shown) is None:
            raise ReadRefusal(
                "NO_GRAMMAR",
                f"Symbols of {short_name(named.shown)} cannot be found: there is no grammar for such files. Read it with mode='file'.",
                (next_read("file", named.shown),),
            )
        read_text(call.session, named, call.signal)
    return None if named.shown == "." else f"/{named.shown}"


def _ask(call: ReadCall, path: str | None) -> SymbolAnswer:
    asked = call.asked
    try:
        return call.session.placed.symbol(
            root_of(call.session.folder or "."),
            asked.target,
            path=path,
            include_context=asked.include_context,
            skipped=EXCLUDED_FOLDERS if call.session.guards.settings.folders == "refuse" else frozenset(),
            signal=call.signal,
        )
    except BadSetting as problem:
        raise ReadRefusal("NO_SYMBOLS", f"{problem}", (search_call(asked.target[:LONGEST_NAME]),)) from problem
    except BadInput as problem:
        raise ReadRefusal("INVALID_ARGS", str(problem)) from problem


def _readable(call: ReadCall, ids: Sequence[str], paths: Sequence[str]) -> list[str]:
    """Return the ids of the definitions that the policy for folders does not refuse."""
    if call.session.guards.settings.folders != "refuse":
        return list(ids)
    return [one for one, path in zip(ids, paths, strict=True) if not is_below(path, EXCLUDED_FOLDERS)]


def _ambiguous(call: ReadCall, found: AmbiguousSymbol, readable: Sequence[str]) -> ReadRefusal:
    rows = [f"- {one.path}:{one.first}-{one.last} {one.signature} (id: {one.id})" for one in found.candidates]
    left = found.total - len(rows)
    more = [f"- and {left} more"] if left else []
    message = "\n".join(
        [
            f"{short_name(call.asked.target)} names {found.total} symbols. Give 'path', or an id as 'target':",
            *rows,
            *more,
        ]
    )
    return ReadRefusal("AMBIGUOUS_SYMBOL", message, [next_read("symbol", one) for one in readable[:5]])


def _unknown(call: ReadCall, found: UnknownSymbol, path: str | None) -> ReadRefusal:
    scan, name = found.scan, short_name(call.asked.target)
    failed, path = dict(scan.failed), None if path is None else path.strip("/")
    readable = _readable(call, found.ids, [one.partition("#")[0] for one in found.ids])
    calls = [*(next_read("symbol", one) for one in readable[:3]), search_call(call.asked.target[:LONGEST_NAME])]
    if path in failed:
        why = f"{path} could not be parsed: {failed[path]}. Read it with mode='file'."
        return ReadRefusal("UNPARSABLE", why, (next_read("file", path),))
    if path is not None and path in scan.partial:
        why = f"Parts of {path} cannot be parsed, and {name} is in none of the others. Read it with mode='file', or search it."
        return ReadRefusal("UNPARSABLE", why, (next_read("file", path), search_call(call.asked.target[:LONGEST_NAME])))
    where = "the workspace" if path is None else short_name(path)
    alike = found.similar if path is None else found.ids  # with a path, the name itself may stand elsewhere
    similar = f" Similar: {', '.join(alike)}." if alike else ""
    unseen = len(failed) + len(scan.partial)
    broken = f" Files that could not be parsed, or only in part: {unseen}." if unseen else ""
    why = f"No symbol in {where} has the name {name}.{similar}{broken} Use search for other words."
    return ReadRefusal("UNKNOWN_SYMBOL", why, calls)
