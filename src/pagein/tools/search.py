"""The tool `search`: find a text in the evicted results, in everything stored, or in the files of the workspace."""

import time
from typing import Final

from pagein.engine.reads.session_guards import ServedSearch
from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.recall.object_search import Hits, Lookup
from pagein.engine.recall.recall_resources import Bounds
from pagein.engine.session import Session
from pagein.errors import CallerError, HostError
from pagein.model.search_query import CONTENT, ObjectMatch, Search
from pagein.policy.guards.judgement import NextCall, search_call
from pagein.policy.reads.baseline import byte_length
from pagein.policy.stubs.match_texts import heading_text, match_text
from pagein.tools.calls import ArgumentReader, Call, Offer, refusal_result, schema
from pagein.tools.code_search import search_code
from pagein.tools.moments import moment

_TRUNCATED: Final = "[Search results truncated. Use scope to narrow search.]"
# Bytes reserved below the matches for notes about them.
_ROOM: Final = 4 * 1024
_MOST: Final = 1_000_000
_TYPES: Final = ("stored", "code")
_SEARCHED: Final = frozenset({CONTENT, "args", "turns"})
"""Fields of stored versions: metadata repeats them, and would be most of an answer."""
FILTERS: Final = ("session", "agent", "since", "until", "type", "path", "chat")
"""Arguments that restrict a search of everything stored."""


def _search(session: Session, call: Call) -> ReadResult:
    given = ArgumentReader("search", call.arguments)
    pattern = given.text("query" if given.has("query") and not given.has("pattern") else "pattern")
    if not given.is_one_of("search_type", _TYPES):
        return given.problem() or refusal_result(f"'search_type' must be one of: {', '.join(_TYPES)}")
    if call.arguments.get("search_type") == "code":
        return given.problem() or search_code(session, given, pattern, call)
    return _search_stored(session, given, pattern, call)


def _search_stored(session: Session, given: ArgumentReader, pattern: str, call: Call) -> ReadResult:
    scope, skip, limit = given.texts("scope"), given.whole("skip", 0), given.whole("limit", _MOST)
    problem = given.problem()
    if problem is not None:
        return problem
    is_filtered = any(map(given.has, FILTERS))
    try:
        stored = _stored(given, pattern) if is_filtered or given.yes("everything") else None
        problem = given.problem()
        if problem is not None:
            return problem
        lookup = Lookup(pattern, scope, max(0, skip), stored, own=not is_filtered)
        found = session.recalls.search(lookup, call_id=call.id, signal=call.signal)
    except (CallerError, HostError) as why:
        return refusal_result(str(why))
    bounds = session.recalls.bounds
    fitting = _count_fitting(found.hits, bounds)
    shown = min(fitting, max(1, limit))
    more = found.more or shown < len(found.hits)
    return ReadResult(
        _text(found, shown, lookup.skip + shown if more else None, bounds),
        {
            "matches": [
                {"id": hit.object_id, "offset": hit.offset, "length": len(hit.matched), **_hit_details(hit)}
                for hit in found.hits[:shown]
            ],
            "next": {"skip": lookup.skip + shown} if more else None,
            "unsearched": [{"id": name, "why": why} for name, why in found.unsearched],
            "meta": {"stabilization": _note(session, call, pattern, found, is_cut=fitting < len(found.hits))},
        },
        failure=found.failure,
    )


def _note(session: Session, call: Call, pattern: str, found: Hits, *, is_cut: bool) -> dict[str, object]:
    """Count the search. Returns `meta.stabilization`."""
    paths = [hit.hit.where.path for hit in found.hits if hit.hit is not None and hit.hit.where.path is not None]
    scope = call.arguments.get("path")
    served = ServedSearch(
        pattern,
        [*dict.fromkeys(paths)],
        len(found.hits),
        scope=scope if isinstance(scope, str) else "",
        degraded=is_cut,
        next_calls=(_peek_call(found.hits[0]),) if found.hits else (search_call(pattern),),
    )
    return session.guards.stabilization(session.guards.note_search(served))


def _peek_call(match: ObjectMatch) -> NextCall:
    """Return the call that shows a match with the text around it."""
    place: dict[str, object] = {"id": match.object_id, "offset": match.offset}
    if match.hit is not None:
        turn = None if match.hit.place is None else match.hit.place.turn
        place = {"id": match.object_id, **({"line": match.hit.match.line} if turn is None else {"turns": str(turn)})}
    return {"tool": "peek", "arguments": place}


def _stored(given: ArgumentReader, pattern: str) -> Search:
    """Return the search of everything stored. Raises BadSetting for a wrong time."""
    names = {name: given.text(name) for name in FILTERS if given.has(name)}
    now = time.time()  # noqa: TID251 - `2h` is counted from the call
    since, until = (moment(names[name], now) if names.get(name) else None for name in ("since", "until"))
    return Search(
        pattern=pattern,
        fields=_SEARCHED,
        types=frozenset([names["type"]] if "type" in names else []),
        session=names.get("session"),
        agent=names.get("agent"),
        path=names.get("path"),
        chat=names.get("chat"),
        since=since,
        until=until,
    )


def _hit_details(match: ObjectMatch) -> dict[str, object]:
    """Return the place of a match in a stored version."""
    hit = match.hit
    if hit is None:
        return {}
    where, place = hit.where, hit.place
    return {
        "type": where.type,
        "field": hit.field,
        "line": hit.match.line,
        "path": where.path,
        "session": where.session,
        "chat": where.chat,
        "turn": None if place is None else place.turn,
        "step": None if place is None else place.step,
        "at": where.at,
    }


def _text(found: Hits, shown: int, following: int | None, bounds: Bounds) -> str:
    lines = [heading_text(shown), *map(match_text, found.hits[:shown])]
    lines += _beside(found, bounds)
    if following is not None:
        lines += [_TRUNCATED, f"[Use skip={following} to continue.]"]
    return "\n".join(lines)


def _beside(found: Hits, bounds: Bounds) -> list[str]:
    """Return the notes below the matches."""
    lines = []
    for name, why in found.unsearched[:10]:
        lines.append(f"**{name}**: {why}")
    if len(found.unsearched) > 10:  # noqa: PLR2004  as many as were named
        lines.append(f"(+{len(found.unsearched) - 10} more that could not be searched)")
    if found.looked_into < found.of and not found.more:
        milliseconds = round(bounds.seconds * 1000)
        lines.append(
            f"[Regex timed out after {milliseconds}ms: {found.looked_into} of {found.of} objects searched. "
            "Use scope to narrow search.]"
        )
    if found.notice is not None:
        lines.append(f"[Searched for the text itself, not for an expression: {found.notice}.]")
    return lines


def _count_fitting(hits: tuple[ObjectMatch, ...], bounds: Bounds) -> int:
    """Return the number of matches to show: at least one, otherwise as many as fit."""
    size = lines = 0
    for count, hit in enumerate(hits):
        line = match_text(hit)
        size, lines = size + byte_length(line) + 1, lines + line.count("\n") + 1
        if count and (size > bounds.caps.bytes - _ROOM or lines > bounds.caps.lines):
            return count
    return len(hits)


SEARCH: Final = Offer(
    "search",
    "Find a text in the objects that were taken out of your context: a literal text, or a regular expression written "
    "/expression/flags. Each match comes with the object's id and its offset, for peek, and with the text around it.",
    schema(
        ("pattern",),
        pattern={"type": "string", "description": "What to look for: a text, or /expression/ with the flags i, m, s."},
        scope={
            "type": "array",
            "items": {"type": "string"},
            "description": "Ids of the objects to search; all if left out.",
        },
        skip={"type": "number", "description": "How many matches to pass over, to go on with an earlier search."},
        everything={
            "type": "boolean",
            "description": "Search also all that is stored: what was said, done, read and written in every session. Such a "
            "match comes with id@version and turn, for peek.",
        },
        session={"type": "string", "description": "Everything of this session: its name, or how the name begins."},
        agent={"type": "string", "description": "Everything of the sessions of this agent, such as claude-code."},
        since={
            "type": "string",
            "description": "Everything from this time on: 2026-11-21, 2026-11-21T10:00, or 3d ago.",
        },
        until={"type": "string", "description": "Everything up to this time."},
        type={"type": "string", "description": "Everything of this kind: user, chat, toolcall, file, note."},
        path={"type": "string", "description": "Every version of files at this path, in this folder, or by a glob."},
        search_type={
            "type": "string",
            "enum": [*_TYPES],
            "description": "stored: what pagein stored (the default). code: the files of the workspace as they are now, line by "
            "line, the likeliest file first; takes only pattern, path and limit.",
        },
        limit={"type": "number", "description": "How many matches to show at most."},
        chat={"type": "string", "description": "Everything of the chat with this id, one branch of a session."},
    ),
    _search,
    legacy="rlm_search",
)
