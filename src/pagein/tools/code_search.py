"""The tool `search` on the files of the workspace: `search_type="code"`."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

from pagein.engine.reads.session_guards import ServedSearch
from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.errors import CallerError, HostError
from pagein.model.code_search import CodeHit, CodeQuery, CodeResults
from pagein.model.read_caps import ReadCaps
from pagein.policy.guards.aggregation import candidate_id
from pagein.policy.guards.judgement import NextCall, read_call, search_call
from pagein.policy.guards.relevance import EXCLUDED_FOLDERS
from pagein.policy.reads.baseline import byte_length
from pagein.policy.recall.file_matches import words_of
from pagein.tools.calls import ArgumentReader, Call, refusal_result
from pagein.workspace.code_search import is_below

STORED_ONLY: Final = ("scope", "skip", "everything", "session", "agent", "since", "until", "type", "chat")
"""Arguments that search_type="code" does not take."""
LIMIT: Final = 50
_MOST: Final = 1_000
_PER_FILE: Final = 10
"""Most hits shown of one file in a search of all files."""
_NEXT_CALLS: Final = 5
_AROUND: Final = 10
"""Lines before and after a hit in the read that is proposed for it."""
_ROOM: Final = 4 * 1024
"""Bytes reserved for the lines about what is not shown."""
_NAMED: Final = 10
_LONGEST: Final = 200
"""Characters of a pattern in a proposed call."""


def search_code(session: Session, given: ArgumentReader, pattern: str, call: Call) -> ReadResult:
    """Answer a search of the workspace's files, and count it."""
    wrong = next((name for name in STORED_ONLY if given.has(name)), None)
    if wrong is not None:
        return _invalid(f"{wrong} is only valid for search_type='stored'. Remove it or switch search_type.")
    path = given.text("path") if given.has("path") else None
    limit = given.whole("limit", LIMIT)
    problem = given.problem()
    if problem is not None:
        return problem
    if not 1 <= limit <= _MOST:
        return _invalid(f"'limit' must be from 1 to {_MOST}")
    if session.folder is None:
        return refusal_result("This session has no workspace to search.")
    query = query_of(pattern, path, limit, session.recalls.bounds.seconds, skips=session.guards.settings.folders)
    try:
        found = session.recalls.search_code(session.folder, query, call.signal)
    except (CallerError, HostError) as why:
        return refusal_result(str(why))
    text, shown = results_text(found, session.recalls.bounds.caps)
    served = ServedSearch(
        pattern,
        [one.key for one in (*found.files, *found.named)],
        found.total + len(found.named),
        "code",
        path or "",
        degraded=shown < len(found.hits) or any(hit.is_shortened for hit in found.hits),
        next_calls=next_calls(pattern, found, query.skipped),
    )
    verdict = session.guards.note_search(served)
    details = results_values(pattern, found, shown)
    return ReadResult(text, {**details, "meta": {"stabilization": session.guards.stabilization(verdict)}})


def query_of(pattern: str, path: str | None, limit: int, seconds: float, *, skips: str = "refuse") -> CodeQuery:
    """Return the search of a workspace's files.

    skips: the policy for files in excluded folders (see `policy.guards.limits`); `refuse` leaves them out.
    """
    skipped = EXCLUDED_FOLDERS if skips == "refuse" else frozenset[str]()
    return CodeQuery(pattern, path, limit, limit if path else _PER_FILE, seconds, skipped=skipped)


def results_values(pattern: str, found: CodeResults, shown: int) -> dict[str, Any]:
    """Return what a search found as plain values.

    shown: number of hits to return.

    Shape: `{"hits": [...], "files": [...], "total", "engine", "named": [...], "searched", "not_text", "unsearched": [...],
    "ignored", "partial", "notice"}`.
    """
    return {
        "hits": [
            {
                "candidate_id": candidate_id(pattern, hit.path, index),
                "path": hit.path,
                "line": hit.first,
                "end_line": hit.last,
                "column": hit.column,
                "text": hit.text,
            }
            for index, hit in enumerate(found.hits[:shown])
        ],
        "files": [{"path": one.path, "hits": one.hits, "lines": one.lines} for one in found.files],
        "total": found.total,
        "engine": found.engine,
        "named": [one.path for one in found.named],
        "searched": found.searched,
        "not_text": found.not_text,
        "unsearched": [{"path": path, "why": why} for path, why in found.unsearched],
        "ignored": found.ignored,
        "partial": found.is_partial,
        "notice": found.notice,
    }


def results_text(found: CodeResults, caps: ReadCaps) -> tuple[str, int]:
    """Return the hits as text, and the number of hits shown: at least one, otherwise as many as fit."""
    looked_at = f"{found.searched} files, by {found.engine}"
    if not found.hits:
        return "\n".join([f"No matches found in {looked_at}.", *_notes(found, 0)]), 0
    lines = [f"Found {found.total} hits in {len(found.files)} of {looked_at}:"]
    size, shown = byte_length(lines[0]), 0
    for hit, line in _lines(found):
        size += byte_length(line) + 1
        if shown and (size > caps.bytes - _ROOM or len(lines) >= caps.lines):
            break
        lines.append(line)
        shown += hit
    return "\n".join([*lines, *_notes(found, shown)]), shown


def next_calls(pattern: str, found: CodeResults, refused: frozenset[str] = frozenset()) -> tuple[NextCall, ...]:
    """Return calls of `read` for the best places; without any, a search for less.

    refused: names of folders whose files `read` refuses.
    """
    if not found.hits and found.named:
        return tuple(read_call(one.path) for one in found.named[:_NEXT_CALLS] if not is_below(one.path, refused))
    if not found.hits:
        words = sorted(words_of(pattern), key=lambda word: (-len(word), word))
        if len(words) > 1:
            return (search_call(words[0][:_LONGEST]),)
        return ({"tool": "search", "arguments": {"pattern": pattern[:_LONGEST], "everything": True}},)
    firsts = [next(hits) for path, hits in groupby(found.hits, key=lambda hit: hit.path) if not is_below(path, refused)]
    return tuple(_read_around(hit) for hit in firsts[:_NEXT_CALLS])


def _read_around(hit: CodeHit) -> NextCall:
    return read_call(hit.path, max(1, hit.first - _AROUND), max(1, min(hit.total, hit.last + _AROUND)))


def _lines(found: CodeResults) -> Iterator[tuple[bool, str]]:
    """Yield the lines of the answer, and whether each is a hit."""
    counts = {one.path: one.hits for one in found.files}
    for path, hits in groupby(found.hits, key=lambda hit: hit.path):
        yield False, f"\n{path} ({counts[path]})"
        for hit in hits:
            yield True, f"  {hit.first}: {hit.text}"


def _notes(found: CodeResults, shown: int) -> list[str]:
    """Return the lines below the hits."""
    lines = []
    if found.named:
        lines.append(f"[Files with this in their path: {', '.join(one.path for one in found.named)}.]")
    if shown < found.total:
        lines.append(f"[Showing {shown} of {found.total} hits. Use path to narrow the search, or limit for more.]")
    if not found.searched and found.ignored:
        lines.append(f"[Git ignores all {found.ignored} files and folders here. A file named by path is searched.]")
    if found.not_text and not found.hits:
        lines.append(f"[Not searched, because they are no text in UTF-8: {found.not_text} files.]")
    if found.is_partial:
        lines.append("[Not all files were searched: the time or the bytes of a search ran out. Use path to narrow it.]")
    lines += [f"{path}: {why}" for path, why in found.unsearched[:_NAMED]]
    if found.notice is not None:
        lines.append(f"[Searched for the text itself, not for an expression: {found.notice}.]")
    return lines


def _invalid(message: str) -> ReadResult:
    error = {"code": "INVALID_ARGS", "message": message, "next_calls": []}
    return ReadResult(message, {"ok": False, "error": error}, is_error=True)
