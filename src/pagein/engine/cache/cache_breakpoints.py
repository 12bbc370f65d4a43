"""Marks on a request that are not its client's: where an epoch reads and leaves entries, and for how long the cache is asked to keep it.

Rules of this file
------------------
1. What was chosen is journaled behind the request. The same request again has the same marks, whoever sends it, whatever would be
   chosen by then.
2. A mark of ours asks for as long as the next one of the client's behind it, so that none stands in front of a longer one (M15).
   Where the client marks nothing behind it, or has no room (M14), there is none.
3. A mark is added only to a request that is written anew: one for which an epoch opened, or of which the cache holds nothing, if its bytes
   are not its client's already. In others it would leave no entry, for what stands in front of their news is read (A2); so they stay as they are.
4. An epoch reads up to its first change, where a mark stands behind an entry that lives (A3): one of a mark of ours, or in what was said
   since, one of an end of a request. The mark to read comes before the mark at the frontier, which pays at the next epoch.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import msgspec

from pagein.engine.cache.cache_ttl import CacheTerms
from pagein.model.codec import decode_json, encode_json
from pagein.model.entries import Body, CompactionEntry, EpochEntry, NoteEntry, PagedOut, RequestSent, Restoration
from pagein.providers.caches.breakpoint_rules import MAX_MARKS
from pagein.providers.wire.breakpoint_edits import Address, Changes
from pagein.providers.wire.request_body import Envelope, WireRequest
from pagein.providers.wire.spliced_breakpoints import with_marks
from pagein.providers.wire.ttl_edits import anchor_ttl, shorten_ttl

KIND: Final = "request.marks"
_MARK: Final = b'"cache_control"'
_MAY_CARRY: Final = ("tool_use", "tool_result")

Half: TypeAlias = tuple[str, bool]
"""A call, and whether its arguments are meant, or else its result."""


class BreakpointChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is marked otherwise than the client has it.

    frontier: the block in front of the first result that may leave next, None for no mark there. short: whether marks of an hour ask for
    five minutes. anchor: the message that is marked because an entry that lives for an hour ends with it, None for none.
    reads: the block up to which, or from which back, there is something to read, None for no mark there. messages: how many it has.
    """

    frontier: Address | None = None
    short: bool = False
    anchor: int | None = None
    reads: Address | None = None
    messages: int = 0

    def with_terms(self, terms: CacheTerms | None) -> "BreakpointChoice":
        """The same with what the cache is asked for, None: what the client asks for."""
        if terms is None:
            return self
        return msgspec.structs.replace(self, short=terms.shortens, anchor=terms.anchor)

    def terms(self, terms: CacheTerms | None) -> CacheTerms | None:
        """These terms, asking for what was chosen here."""
        if terms is None:
            return None
        lifetimes = terms.lifetimes
        return replace(terms, asking=lifetimes.short if self.short else lifetimes.asked)


@dataclass(frozen=True, slots=True)
class OwnEntries:
    """Where marks of ours left entries in the last request of a branch that had any. messages: how many it had."""

    places: tuple[Address, ...] = ()
    messages: int = 0


@dataclass(frozen=True, slots=True)
class BreakpointSettings:
    """What is set for marks. adds: whether ours stand beside the client's. arguments: whether texts in those of calls may be masked."""

    adds: bool = True
    arguments: bool = False


@dataclass(frozen=True, slots=True)
class Anew:
    """What of a request is written anew. opened: the epoch that begins with it, None for none. is_unread: whether the cache holds nothing of it."""

    opened: EpochEntry | None = None
    is_unread: bool = False


WITH_MARKS: Final = BreakpointSettings()
AS_THE_CLIENT: Final = BreakpointChoice()
NOTHING_LEFT: Final = OwnEntries()


def encode_choice(chosen: BreakpointChoice) -> str:
    """As it is journaled."""
    return msgspec.json.encode(chosen).decode()


def step(chosen: BreakpointChoice, body: Body) -> BreakpointChoice:
    """What was chosen for the last request, after one more entry."""
    if isinstance(body, RequestSent):
        return AS_THE_CLIENT
    return _choice_in(body) or chosen


def entries_after(left: OwnEntries, body: Body) -> OwnEntries:
    """Where marks of ours left entries on a branch, after one more entry."""
    if isinstance(body, CompactionEntry):
        return NOTHING_LEFT
    chosen = _choice_in(body)
    places = () if chosen is None else tuple(one for one in (chosen.reads, chosen.frontier) if one is not None)
    return OwnEntries(places, chosen.messages) if chosen is not None and places else left


def _choice_in(body: Body) -> BreakpointChoice | None:
    if not isinstance(body, NoteEntry) or body.kind != KIND:
        return None
    try:
        return msgspec.json.decode(body.data, type=BreakpointChoice)
    except msgspec.MsgspecError:  # a record of another version
        return None


def first_changes(opened: EpochEntry) -> list[Half]:
    """What an epoch changes in the first message that it changes."""
    changed: tuple[PagedOut | Restoration, ...] = (*opened.paged, *opened.restored)
    return [(one.call_id, one.part == "arguments") for one in changed if one.message == opened.frontier]


def chosen_for(
    items: Sequence[bytes], changed: Collection[Half], first: Half | None, left: OwnEntries
) -> BreakpointChoice:
    """The marks to add to a Messages request that is written anew.

    changed: what an epoch changes in its first message, nothing where no entry lives. first: what may leave next, None for nothing.
    left: where marks of ours left entries.
    """
    frontier = _in_front(items, _place(items, () if first is None else (first,)))
    place = _place(items, changed)
    reads = _in_front(items, place)
    # what the last epoch wrote anew has no entries but those of its marks
    if place is not None and place[0] < left.messages:
        old = max((one for one in left.places if one < place), default=None)
        reads = reads if old in (None, frontier) else old
    reads = None if reads == frontier else reads
    return AS_THE_CLIENT if frontier is reads is None else BreakpointChoice(frontier, reads=reads, messages=len(items))


def choice_that_fits(chosen: BreakpointChoice, envelope: Envelope, items: Sequence[bytes]) -> BreakpointChoice:
    """Of these marks of ours those that the client's leave room for: no other leaves an entry."""
    request = WireRequest(envelope.api, b"", envelope.fields, tuple(items), (), ())
    reading = request if chosen.reads is None else _add_breakpoint(request, chosen.reads)
    leaving = reading if chosen.frontier is None else _add_breakpoint(reading, chosen.frontier)
    reads = None if reading is request else chosen.reads
    frontier = None if leaving is reading else chosen.frontier
    return (
        AS_THE_CLIENT if reads is frontier is None else msgspec.structs.replace(chosen, reads=reads, frontier=frontier)
    )


def _place(items: Sequence[bytes], halves: Collection[Half]) -> Address | None:
    """The first of these in a request."""
    names = [encode_json(call) for call, _ in halves]
    for item, raw in enumerate(items):
        for block, one in enumerate(_parts(raw)) if any(name in raw for name in names) else ():
            if (one.get("id"), True) in halves or (one.get("tool_use_id"), False) in halves:
                return item, block
    return None


def _in_front(items: Sequence[bytes], place: Address | None) -> Address | None:
    """The last block in front of this one that a mark of ours may stand on, in its message or the one before; None for none."""
    if place is None:
        return None
    item, block = place
    for at, parts in ((item, _parts(items[item])[:block]), (item - 1, _parts(items[item - 1]) if item else [])):
        found = next((back for back in range(len(parts) - 1, -1, -1) if _may_carry(parts[back])), None)
        if found is not None:
            return at, found
    return None


def _may_carry(block: Mapping[str, Any]) -> bool:
    kind = block.get("type")
    return kind in _MAY_CARRY or (kind == "text" and bool(str(block.get("text", "")).strip()))


def apply_breakpoints(chosen: BreakpointChoice, envelope: Envelope, items: Sequence[bytes]) -> WireRequest:
    """The request with the marks that were chosen; `changed` tells whether they are others than the client's."""
    request = WireRequest(envelope.api, b"", envelope.fields, tuple(items), (), ())
    for place in (chosen.reads, chosen.frontier):
        if place is not None:
            request = _add_breakpoint(request, place)
    if chosen.short:
        request = shorten_ttl(request)
    return request if chosen.anchor is None else anchor_ttl(request, chosen.anchor)


def _add_breakpoint(request: WireRequest, place: Address) -> WireRequest:
    item, block = place
    items = request.items
    if not 0 <= item < len(items) or _MARK in items[item]:
        return request
    holding = [(at, raw) for at, raw in enumerate(items) if _MARK in raw]
    count = sum(raw.count(_MARK) for raw in (*(raw for _, raw in holding), *request.fields.values()))
    behind = next((raw for at, raw in holding if at > item), None)
    if behind is None or not 0 < count < MAX_MARKS:
        return request
    mark = next((part["cache_control"] for part in _parts(behind) if "cache_control" in part), None)
    target = dict(enumerate(_parts(items[item]))).get(block)
    if not isinstance(mark, dict) or target is None or not _may_carry(target):
        return request
    return with_marks(request, Changes(request.api, {place: mark}))


def _parts(raw: bytes) -> list[Mapping[str, Any]]:
    """The blocks of a message, those that are none as empty ones."""
    value = decode_json(raw)
    content = value.get("content") if isinstance(value, dict) else None
    return [one if isinstance(one, dict) else {} for one in content] if isinstance(content, list) else []
