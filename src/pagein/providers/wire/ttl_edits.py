"""Edit the TTLs of the breakpoints of a request in a format with TTLs (`CacheForm.takes_ttls`), and make the keep-alive request for a pause.

Rules of this file
------------------
1. Only breakpoints change, and the fields required for a keep-alive request. Every other byte stays, so the cache stays
   valid.
2. One hour comes before five minutes (M15), and a request has at most four breakpoints (M14).
3. A request with breakpoints inside results stays unchanged: they belong to blocks that are not blocks of the prompt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

from pagein.model.json_text import decode_json, encode_json
from pagein.providers.caches.breakpoint_rules import MAX_MARKS
from pagein.providers.validity import Api
from pagein.providers.validity.turns import padded_objects
from pagein.providers.wire.breakpoint_edits import SYSTEM, TOOLS, Address, Changes
from pagein.providers.wire.json_values import objects_in, parts_of
from pagein.providers.wire.request_body import Envelope, WireRequest, open_body
from pagein.providers.wire.spliced_breakpoints import with_marks

_MARK: Final = b'"cache_control"'
_FIELD: Final = "cache_control"
_LONG: Final = "1h"
_LONG_MARK: Final[Mapping[str, Any]] = {"type": "ephemeral", "ttl": _LONG}
_CARRIES: Final = ("tool_use", "tool_result")
_COMPACTS: Final = b'"compact_'
_NO_RESULT: Final = "..."


@dataclass(frozen=True, slots=True)
class RequestBreakpoints:
    """The breakpoints of a request in the order of the prompt.

    automatic: the top-level breakpoint of the request; None without it.
    """

    places: tuple[tuple[Address, Mapping[str, Any]], ...] = ()
    automatic: Mapping[str, Any] | None = None

    @property
    def count(self) -> int:
        """Number of used breakpoint slots."""
        return len(self.places) + (self.automatic is not None)


def marks_in(request: WireRequest) -> RequestBreakpoints | None:
    """Find the breakpoints of a request; None for breakpoints inside results, without an address."""
    found: list[tuple[Address, Mapping[str, Any]]] = []
    fields, items = request.fields, request.items
    messages = range(len(items)) if request.marked is None else sorted(request.marked)
    front = ((TOOLS, fields.get("tools", b"")), (SYSTEM, fields.get("system", b"")))
    for message, raw in chain(front, ((place, items[place]) for place in messages)):
        if _MARK not in raw:
            continue
        for block, value in enumerate(blocks_in(raw)):
            if value.get("type") == "tool_result" and any(_FIELD in one for one in objects_in(value.get("content"))):
                return None
            if isinstance(mark := value.get(_FIELD), dict):
                found.append(((message, block), mark))
    automatic = decode_json(fields[_FIELD]) if _FIELD in fields else None
    return RequestBreakpoints(tuple(found), automatic if isinstance(automatic, dict) else None)


def shorten_ttl(request: WireRequest) -> WireRequest:
    """Change every one-hour breakpoint after the prompt prefix to five minutes.

    Tools and instructions keep their hour: the next session reads their entries, and it may begin after a pause.
    """
    marks = marks_in(request)
    if marks is None:
        return request
    changed = {
        place: _without_ttl(mark) for place, mark in marks.places if place[0] > SYSTEM and mark.get("ttl") == _LONG
    }
    return _with_short_automatic(with_marks(request, Changes(request.api, changed)), marks)


def lengthen_ttl(request: WireRequest) -> WireRequest:
    """Change every five-minute breakpoint of a request to one hour."""
    marks = marks_in(request)
    if marks is None:
        return request
    changed = {place: {**mark, "ttl": _LONG} for place, mark in marks.places if mark.get("ttl") != _LONG}
    made = with_marks(request, Changes(request.api, changed))
    if marks.automatic is None or marks.automatic.get("ttl") == _LONG:
        return made
    lengthened = encode_json({**marks.automatic, "ttl": _LONG})
    return replace(made, fields={**made.fields, _FIELD: lengthened}, changed=True)


def anchor_ttl(request: WireRequest, message: int) -> WireRequest:
    """Add a breakpoint at the end of a message, the place of the last entry with a TTL of one hour.

    The new breakpoint has the TTL of the next breakpoint after it, which must exist. If four breakpoints are taken, the
    one before the last is dropped, because its entry has expired after a pause.
    """
    marks = marks_in(request)
    place = _last_markable_block(request.items, message)
    if marks is None or place is None or not marks.count or place in dict(marks.places):
        return request
    following = next((mark for at, mark in marks.places if at > place), marks.automatic)
    if following is None:
        return request
    changed: dict[Address, Mapping[str, Any] | None] = {place: following}
    if marks.count >= MAX_MARKS:
        behind = marks.places if marks.automatic is not None else marks.places[:-1]
        spare = next((one for one, _ in reversed(behind) if one[0] >= 0), None)
        if spare is None:
            return request
        changed[spare] = None
    return with_marks(request, Changes(request.api, changed))


def split_ttl(request: WireRequest, place: Address) -> WireRequest:
    """Set breakpoints up to a block to one hour, add a breakpoint there, and set later ones to five minutes.

    If four breakpoints are taken, the last one in front of the block is dropped: the look-back from the block finds its
    entry. Returns the same request if there is no such breakpoint, or none after the block.
    """
    marks = marks_in(request)
    if marks is None:
        return request
    ahead = [one for one, _ in marks.places if one < place]
    behind = {one: mark for one, mark in marks.places if one > place}
    if not behind and marks.automatic is None:
        return request
    changed: dict[Address, Mapping[str, Any] | None] = dict.fromkeys((*ahead, place), _LONG_MARK)
    changed |= {one: _without_ttl(mark) for one, mark in behind.items()}
    if marks.count >= MAX_MARKS and place not in dict(marks.places):
        if not ahead or ahead[-1][0] < 0:
            return request
        changed[ahead[-1]] = None
    return _with_short_automatic(with_marks(request, Changes(request.api, changed)), marks)


def _with_short_automatic(request: WireRequest, marks: RequestBreakpoints) -> WireRequest:
    """Change an automatic breakpoint of one hour to five minutes."""
    if marks.automatic is None or marks.automatic.get("ttl") != _LONG:
        return request
    return replace(request, fields={**request.fields, _FIELD: encode_json(_without_ttl(marks.automatic))}, changed=True)


def move_last_mark(request: WireRequest, place: Address) -> WireRequest:
    """Move the request's last breakpoint to a block, so that the cache is written up to this block and no further.

    Breakpoints after the block are dropped. Returns the same request if it has no breakpoint of its own in its last
    message, or one that the provider places by itself.
    """
    marks = marks_in(request)
    if marks is None or marks.automatic is not None or not marks.places:
        return request
    last, mark = marks.places[-1]
    if last[0] != len(request.items) - 1 or last == place:
        return request
    changed: dict[Address, Mapping[str, Any] | None] = {one: None for one, _ in marks.places if one > place}
    changed[last] = None
    return with_marks(request, Changes(request.api, {**changed, place: mark}))


def keepalive_body(body: bytes, api: Api, behind: Sequence[bytes]) -> bytes | None:
    """Make the keep-alive request for a window: the last sent `body`, then later messages under a one-hour breakpoint.

    The request asks for one token. It reads the window, whose last breakpoint stays in place with a TTL of one hour,
    and writes the rest (A6, V3).

    behind: the later messages, ending with the model's.
    Returns None if no keep-alive request is possible: no later message, no breakpoint in the window, a thinking budget
    above one token (M13), or compaction by the server. Raises BadInput for anything but a request.
    """
    envelope = open_body(body, api)
    if not _can_be_one_token(envelope):
        return None
    window = WireRequest(api, body, envelope.fields, tuple(envelope.items), (), ())
    marks = marks_in(window)
    if marks is None or not marks.count or not behind or not _is_answer(behind[-1]):
        return None
    items = [*envelope.items, *behind]
    end, said = _last_cached_block(marks, envelope.items), _last_markable_block(items, len(items) - 1)
    if end is None or said is None:
        return None
    changed: dict[Address, Mapping[str, Any] | None] = {place: None for place, _ in marks.places}
    changed |= {end: _LONG_MARK, said: _LONG_MARK}
    items.append(encode_json({"role": "user", "content": _answers(items[-1])}))
    fields = {name: raw for name, raw in envelope.fields.items() if name != _FIELD}
    fields |= {"max_tokens": b"1"} | ({"stream": b"false"} if "stream" in fields else {})
    made = with_marks(WireRequest(api, b"", fields, tuple(items), (), ()), Changes(api, changed))
    return envelope.body(made.items, made.fields)


def _can_be_one_token(envelope: Envelope) -> bool:
    thinking = decode_json(envelope.fields.get("thinking", b"null"))
    has_budget = isinstance(thinking, dict) and thinking.get("type") == "enabled"
    return not has_budget and _COMPACTS not in envelope.fields.get("context_management", b"")


def _last_cached_block(marks: RequestBreakpoints, items: Sequence[bytes]) -> Address | None:
    """The last block with a breakpoint, the end of the cached prefix."""
    if marks.automatic is None:
        return marks.places[-1][0]
    for message in range(len(items) - 1, -1, -1):
        for block, value in reversed(list(enumerate(blocks_in(items[message])))):
            if value.get("type") in (*_CARRIES, "text", "image", "document") and value.get("text") != "":
                return message, block
    return None


def takes_own_mark(block: Mapping[str, Any]) -> bool:
    """Return whether pagein puts a breakpoint of its own on a block: on a call, a result, or text that is not blank.

    The provider accepts more kinds of blocks (`BreakpointForm.may_carry`).
    """
    kind = block.get("type")
    return kind in _CARRIES or (kind == "text" and bool(str(block.get("text", "")).strip()))


def _last_markable_block(items: Sequence[bytes], message: int) -> Address | None:
    """The last block of a message that can carry a breakpoint (A9)."""
    for block, one in reversed(list(enumerate(blocks_in(items[message])))) if 0 <= message < len(items) else ():
        if takes_own_mark(one):
            return message, block
    return None


def _is_answer(item: bytes) -> bool:
    value = decode_json(item)
    return isinstance(value, dict) and value.get("role") == "assistant"


def _answers(said: bytes) -> list[dict[str, Any]]:
    """Content for the user message after a model turn: a result for each call (M1), or a short text (M9)."""
    calls = [str(one.get("id")) for one in blocks_in(said) if one.get("type") == "tool_use"]
    results: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": one, "content": _NO_RESULT} for one in calls
    ]
    return results or [{"type": "text", "text": _NO_RESULT}]


def _without_ttl(mark: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in mark.items() if name != "ttl"}


def blocks_in(raw: bytes) -> list[Mapping[str, Any]]:
    """The blocks of a message, or of a list of tools or instructions. An item without fields becomes an empty object."""
    value = decode_json(raw)
    return parts_of(value.get("content")) if isinstance(value, dict) else padded_objects(value)
