"""Build the request that continues an answer after recall calls. Pure functions.

Rules of this file
------------------
1. The new request begins with the bytes of the previous request, so that the provider reads them from the cache.
2. If the client sets cache breakpoints in its messages, the end gets the last breakpoint's parameters, so that the next request finds
   the whole prompt in the cache. If there are four breakpoints already, the client's last one is removed: the provider finds its prefix
   by looking back from the new breakpoint.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pagein.model.json_text import decode_json
from pagein.providers.caches.breakpoint_rules import MAX_MARKS
from pagein.providers.validity import Api
from pagein.providers.validity.breakpoint_checks import breakpoints_of
from pagein.providers.wire.body_check import turns_of
from pagein.providers.wire.breakpoint_edits import Address, Changes
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.request_body import Envelope, WireRequest, open_body
from pagein.providers.wire.spliced_breakpoints import with_marks
from pagein.providers.wire.ttl_edits import blocks_in

_MARK = b'"cache_control"'


def continue_request(body: bytes, api: Api, more: Sequence[bytes]) -> bytes:
    """Return the request with these messages appended, ending with recall results.

    Raises BadInput for an invalid body.
    """
    envelope = open_body(body, api)
    items = [*envelope.items, *more]
    return _move_breakpoint(envelope, items) if format_named(envelope.api).cache.takes_ttls else envelope.body(items)


def _move_breakpoint(envelope: Envelope, items: Sequence[bytes]) -> bytes:
    last = _last_mark(items)
    if last is None:
        return envelope.body(items)
    address, mark = last
    end = len(items) - 1
    wanted: dict[Address, Mapping[str, Any] | None] = {(end, len(blocks_in(items[end])) - 1): mark}
    value = decode_json(envelope.body(items))
    if isinstance(value, dict) and _count(value, envelope.api) >= MAX_MARKS:
        wanted[address] = None
    request = WireRequest(envelope.api, b"", envelope.fields, tuple(items), (), ())
    made = with_marks(request, Changes(envelope.api, wanted))
    return envelope.body(made.items)


def _count(body: Mapping[str, Any], api: Api) -> int:
    return len(list(breakpoints_of(turns_of(body, api)))) + isinstance(body.get("cache_control"), dict)


def _last_mark(items: Sequence[bytes]) -> tuple[Address, Mapping[str, Any]] | None:
    for place in range(len(items) - 1, -1, -1):
        if _MARK not in items[place]:
            continue
        for at, block in reversed(list(enumerate(blocks_in(items[place])))):
            if isinstance(mark := block.get("cache_control"), dict):
                return (place, at), mark
    return None
