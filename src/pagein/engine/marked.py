"""Marks on a request that are not its client's: at the edit frontier, and for how long the cache is asked to keep it.

Rules of this file
------------------
1. What was chosen is journaled behind the request. The same request again has the same marks, whoever sends it, whatever would be
   chosen by then.
2. A mark of ours asks for as long as the next one of the client's behind it, so that none stands in front of a longer one (M15).
   Where the client marks nothing behind it, or has no room (M14), there is none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from pagein.engine.leasing import Terms
from pagein.model.codec import decode_json
from pagein.model.entries import Body, Noted, RequestSent
from pagein.providers.caches.marks import MAX_MARKS
from pagein.providers.marking import Address, Changes
from pagein.providers.wire.lasting import anchored, shortened
from pagein.providers.wire.marked import with_marks
from pagein.providers.wire.request import Envelope, WireRequest

KIND: Final = "request.marks"
_MARK: Final = b'"cache_control"'
_MAY_CARRY: Final = ("tool_use", "tool_result")


class Chosen(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is marked otherwise than the client has it.

    frontier: the block in front of the first result that may leave next, None for no mark there. short: whether marks of an hour ask for
    five minutes. anchored: whether what the model said last is marked, where a keep-alive request left its entry.
    """

    frontier: Address | None = None
    short: bool = False
    anchored: bool = False

    def with_terms(self, terms: Terms | None) -> "Chosen":
        """The same with what the cache is asked for, None: what the client asks for."""
        if terms is None:
            return self
        return Chosen(self.frontier, terms.shortens, terms.is_behind_a_pause)

    def terms(self, terms: Terms | None) -> Terms | None:
        """These terms, asking for what was chosen here."""
        if terms is None:
            return None
        lifetimes = terms.lifetimes
        return replace(terms, asking=lifetimes.short if self.short else lifetimes.asked)


AS_THE_CLIENT: Final = Chosen()


def encoded(chosen: Chosen) -> str:
    """As it is journaled."""
    return msgspec.json.encode(chosen).decode()


def step(chosen: Chosen, body: Body) -> Chosen:
    """What was chosen for the last request, after one more entry."""
    if isinstance(body, RequestSent):
        return AS_THE_CLIENT
    if not isinstance(body, Noted) or body.kind != KIND:
        return chosen
    try:
        return msgspec.json.decode(body.data, type=Chosen)
    except msgspec.MsgspecError:  # a record of another version
        return chosen


def applied(chosen: Chosen, envelope: Envelope, items: Sequence[bytes]) -> WireRequest:
    """The request with the marks that were chosen; `changed` tells whether they are others than the client's."""
    request = WireRequest(envelope.api, b"", envelope.fields, tuple(items), (), ())
    if chosen.frontier is not None:
        request = _marked(request, chosen.frontier)
    if chosen.short:
        request = shortened(request)
    return anchored(request) if chosen.anchored else request


def _marked(request: WireRequest, place: Address) -> WireRequest:
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
    if not isinstance(mark, dict) or target is None or target.get("type") not in _MAY_CARRY:
        return request
    return with_marks(request, Changes(request.api, {place: mark}))


def _parts(raw: bytes) -> list[Mapping[str, Any]]:
    """The blocks of a message, those that are none as empty ones."""
    value = decode_json(raw)
    content = value.get("content") if isinstance(value, dict) else None
    return [one if isinstance(one, dict) else {} for one in content] if isinstance(content, list) else []
