"""Choose cache breakpoints beside the client's, for an epoch's first change and for the frontier, with their cache TTL.

Rules of this file
------------------
1. The choice is journaled after the request. A retry of the request has the same breakpoints in every process, even if
   the choice would differ by then.
2. An added breakpoint has the cache TTL of the client's next breakpoint after it, so that none precedes one with a
   longer TTL (M15). Without a later breakpoint of the client, or without room (M14), none is added. The breakpoint to
   read takes the place of the client's next one, which would read nothing, unless that is the last.
3. Breakpoints are added only to requests that write the prompt anew: an epoch was opened, or the cache holds nothing of
   the prompt, and pagein changed the bytes already. In other requests an added breakpoint would write nothing, because
   their prefix is already cached (A2).
4. An epoch reads the cache up to its first change, if a breakpoint is after a live entry there (A3): an entry of an
   added breakpoint or, in newer messages, of a request's end. The breakpoint to read comes before the one at the
   frontier, which pays at the next epoch.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from pagein.engine.cache.cache_ttl import TtlTerms
from pagein.model.entries import Body, CompactionEntry, EpochEntry, NoteEntry, PagedOut, RequestSent, Restoration
from pagein.model.journal_notes import BreakpointChoice
from pagein.model.json_text import decode_json, encode_json
from pagein.providers.caches.breakpoint_rules import MAX_MARKS
from pagein.providers.wire.breakpoint_edits import Address, Changes
from pagein.providers.wire.request_body import WireRequest
from pagein.providers.wire.spliced_breakpoints import with_marks
from pagein.providers.wire.ttl_edits import (
    anchor_ttl,
    lengthen_ttl,
    marks_in,
    move_last_mark,
    shorten_ttl,
    split_ttl,
    takes_own_mark,
)

_FIELD: Final = "cache_control"
_MARK: Final = b'"cache_control"'

Half: TypeAlias = tuple[str, bool]
"""A call id, and True for its arguments, False for its result."""


@dataclass(frozen=True, slots=True)
class OwnEntries:
    """Cache entries of added breakpoints in the last request of a branch with any.

    places: addresses of the breakpoints.
    messages: number of messages in the request.
    """

    places: tuple[Address, ...] = ()
    messages: int = 0


@dataclass(frozen=True, slots=True)
class BreakpointSettings:
    """Settings for cache breakpoints.

    adds: True to add breakpoints beside the client's.
    arguments: True if texts in arguments of calls may be masked.
    """

    adds: bool = True
    arguments: bool = False


@dataclass(frozen=True, slots=True)
class Anew:
    """The part of a request that is written anew.

    opened: the epoch that begins with it; None if absent.
    is_unread: True if the cache holds nothing of it.
    """

    opened: EpochEntry | None = None
    is_unread: bool = False


WITH_MARKS: Final = BreakpointSettings()
AS_THE_CLIENT: Final = BreakpointChoice()
NOTHING_LEFT: Final = OwnEntries()


def with_terms(chosen: BreakpointChoice, terms: TtlTerms) -> BreakpointChoice:
    """Return a choice with the TTL of these cache terms."""
    return replace(chosen, short=terms.shortens, long=terms.lengthens, anchor=terms.anchor)


def terms_of(chosen: BreakpointChoice, terms: TtlTerms | None) -> TtlTerms | None:
    """Return cache terms with the TTL of a choice."""
    if terms is None:
        return None
    lifetimes = terms.lifetimes
    if chosen.split is not None:
        return terms.split_at(chosen.split[0])
    asking = lifetimes.short if chosen.short else lifetimes.long if chosen.long else lifetimes.asked
    return replace(terms, asking=asking)


def place_to_split(request: WireRequest, share: float) -> Address | None:
    """Return the first block behind which the short TTL may begin; None without one, or without room for its breakpoint.

    The model's last answer comes first, then the blocks of the client's message behind it.

    share: the most that may stand after the block, as a share of that message.
    """
    items, last = request.items, len(request.items) - 1
    if last < 1 or share <= 0 or b'"assistant"' not in items[last - 1]:
        return None
    parts = _parts(items[last])
    sizes = [len(encode_json(one)) for one in parts]
    places = [(last, block) for block in range(len(parts) - 1) if takes_own_mark(parts[block])]
    said = _in_front(items, (last, 0))
    fitting = (one for one in places if sum(sizes[one[1] + 1 :]) <= share * sum(sizes))
    place = said if share >= 1 and said is not None and said[0] == last - 1 else next(fitting, None)
    return None if place is None or split_ttl(request, place) is request else place


def step(chosen: BreakpointChoice, body: Body) -> BreakpointChoice:
    """Return the choice for the last request, after a further entry."""
    match body:
        case RequestSent():
            return AS_THE_CLIENT
        case NoteEntry(note=BreakpointChoice() as made):
            return made
        case _:
            return chosen


def entries_after(left: OwnEntries, body: Body) -> OwnEntries:
    """Return the cache entries of added breakpoints on a branch, after a further entry."""
    match body:
        case CompactionEntry():
            return NOTHING_LEFT
        case NoteEntry(note=BreakpointChoice() as chosen):
            places = tuple(one for one in (chosen.reads, chosen.frontier) if one is not None)
            # a request that was not written anew leaves the entries of others in place
            return OwnEntries(places, chosen.messages) if places and chosen.messages else left
        case _:
            return left


def first_changes(opened: EpochEntry) -> list[Half]:
    """Return the results and arguments in the first message that an epoch changes."""
    changed: tuple[PagedOut | Restoration, ...] = (*opened.paged, *opened.restored)
    return [(one.call_id, one.part == "arguments") for one in changed if one.message == opened.frontier]


def chosen_for(
    items: Sequence[bytes], changed: Collection[Half], first: Half | None, left: OwnEntries
) -> BreakpointChoice:
    """Choose the breakpoints to add to a Messages request that is written anew.

    changed: changes of an epoch in its first changed message; empty without a live cache entry.
    first: the next result that may be evicted; None if absent.
    left: cache entries of added breakpoints.
    """
    frontier = _in_front(items, _place(items, () if first is None else (first,)))
    place = _place(items, changed)
    reads = _in_front(items, place)
    # a part that the last epoch wrote anew has only the entries of added breakpoints
    if place is not None and place[0] < left.messages:
        old = max((one for one in left.places if one < place), default=None)
        reads = reads if old in (None, frontier) else old
    reads = None if reads == frontier else reads
    return AS_THE_CLIENT if frontier is reads is None else BreakpointChoice(frontier, reads=reads, messages=len(items))


def read_up_to(items: Sequence[bytes], changed: Collection[Half]) -> BreakpointChoice:
    """Choose a breakpoint at the end of the cached part of the request before, in front of the changes.

    With many parallel calls the client's breakpoints may be too far behind it (A3).
    """
    reads = _in_front(items, _place(items, changed))
    return AS_THE_CLIENT if reads is None else BreakpointChoice(reads=reads)


def place_in_front(items: Sequence[bytes], call_id: str) -> Address | None:
    """Return the last block in front of a result near the end of a request that can carry a breakpoint; None if absent."""
    name = encode_json(call_id)
    for item in range(len(items) - 1, -1, -1):
        if name in items[item]:
            for block, one in enumerate(_parts(items[item])):
                if one.get("tool_use_id") == call_id:
                    return _in_front(items, (item, block))
    return None


def choice_that_fits(chosen: BreakpointChoice, request: WireRequest) -> BreakpointChoice:
    """Drop the breakpoints for which the client's leave no room."""
    reading = request if chosen.reads is None else _add_breakpoint(request, chosen.reads, reads=True)
    leaving = reading if chosen.frontier is None else _add_breakpoint(reading, chosen.frontier)
    reads = None if reading is request else chosen.reads
    frontier = None if leaving is reading else chosen.frontier
    return AS_THE_CLIENT if reads is frontier is None else replace(chosen, reads=reads, frontier=frontier)


def _place(items: Sequence[bytes], halves: Collection[Half]) -> Address | None:
    """Return the address of the first of these results or arguments in a request.

    What may be evicted is near the end, so the search begins there. It ends with the last one found: no id stands twice.
    """
    left = {half: encode_json(half[0]) for half in halves}
    first: Address | None = None
    for item in range(len(items) - 1, -1, -1) if left else ():
        raw = items[item]
        if not any(name in raw for name in left.values()):
            continue
        for block, one in reversed(list(enumerate(_parts(raw)))):
            found = [half for half in left if half in ((one.get("id"), True), (one.get("tool_use_id"), False))]
            first = (item, block) if found else first
            for half in found:
                del left[half]
        if not left:
            break
    return first


def _in_front(items: Sequence[bytes], place: Address | None) -> Address | None:
    """Return the last block before an address that can carry a breakpoint.

    Searches its message and the message before; None if absent.
    """
    if place is None:
        return None
    item, block = place
    for at, parts in ((item, _parts(items[item])[:block]), (item - 1, _parts(items[item - 1]) if item else [])):
        found = next((back for back in range(len(parts) - 1, -1, -1) if takes_own_mark(parts[back])), None)
        if found is not None:
            return at, found
    return None


def apply_breakpoints(chosen: BreakpointChoice, request: WireRequest) -> tuple[WireRequest, BreakpointChoice]:
    """Return the request with the chosen breakpoints, and the choice, without its tail if no breakpoint could move
    there.

    `changed` of the request is True if its breakpoints differ from the client's.
    """
    if chosen.reads is not None:
        request = _add_breakpoint(request, chosen.reads, reads=True)
    if chosen.frontier is not None:
        request = _add_breakpoint(request, chosen.frontier)
    if chosen.short:
        request = shorten_ttl(request)
    if chosen.long:
        request = lengthen_ttl(request)
    if chosen.split is not None:
        request = split_ttl(request, chosen.split)
    request = request if chosen.anchor is None else anchor_ttl(request, chosen.anchor)
    moved = request if chosen.tail is None else move_last_mark(request, chosen.tail)
    return moved, chosen if moved is not request else replace(chosen, tail=None)


def _add_breakpoint(request: WireRequest, place: Address, *, reads: bool = False) -> WireRequest:
    """Return the request with a breakpoint at a block, with the TTL of the next one; the same request without room.

    reads: True for the breakpoint that reads the cache. It takes the place of the next one, unless that is the last.
    """
    item, block = place
    if not 0 <= item < len(request.items) or (_MARK in request.items[item] and not reads):
        return request
    marks = marks_in(request)
    behind = [] if marks is None else [one for one in marks.places if one[0] > place]
    target = dict(enumerate(_parts(request.items[item]))).get(block)
    if marks is None or not behind or target is None or _FIELD in target or not takes_own_mark(target):
        return request
    following, mark = behind[0]
    changed: dict[Address, Mapping[str, Any] | None] = {place: mark}
    if marks.count >= MAX_MARKS:
        if not reads or (len(behind) == 1 and marks.automatic is None):
            return request
        changed[following] = None
    return with_marks(request, Changes(request.api, changed))


def _parts(raw: bytes) -> list[Mapping[str, Any]]:
    """Return the blocks of a message. A block that is no object becomes an empty one."""
    value = decode_json(raw)
    content = value.get("content") if isinstance(value, dict) else None
    return [one if isinstance(one, dict) else {} for one in content] if isinstance(content, list) else []
