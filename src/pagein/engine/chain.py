"""A request as the messages of a branch: each named by what it says behind everything before it.

Rules of this file
------------------
1. What stands in front of the conversation (leading system messages) is no part of the chain: it may change while the
   conversation goes on. It is told apart by `Transcript.head`.
2. What a model said in one turn is one message, in however many wire messages it is told.
3. Only what differs, byte by byte, from a request seen before is decoded and named anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pagein.model.entries import EntryId
from pagein.model.messages import Message
from pagein.providers.validity import Api
from pagein.providers.wire.naming import chained
from pagein.providers.wire.request import Envelope, message_of


@dataclass(frozen=True, slots=True)
class Item:
    """One wire message. name: of it and all before it in the conversation; "" in the head."""

    raw: bytes
    message: Message
    name: EntryId


@dataclass(frozen=True, slots=True)
class Unit:
    """One message as the engine takes it, of `count` items from `first` on."""

    name: EntryId
    message: Message
    first: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class Transcript:
    """A request's messages. head: how many items stand in front of the conversation. units: the conversation."""

    api: Api
    items: Sequence[Item] = ()
    head: int = 0
    units: Sequence[Unit] = ()


def transcript(raw_items: Sequence[bytes], api: Api, before: Transcript | None = None) -> Transcript:
    """The messages of a request. before: of one that may begin alike. Raises BadInput where an item is no JSON object."""
    known = before if before is not None and before.api == api else Transcript(api)
    same = shared_items(raw_items, known)
    items = list(known.items[:same])
    for raw in raw_items[same:]:
        value, message = message_of(raw, api, len(items))
        is_head = message.role == "system" and (not items or items[-1].name == "")
        before_it = items[-1].name if items else ""
        items.append(Item(raw, message, "" if is_head else chained(before_it or api, value)))
    head = known.head if same > known.head else next((at for at, one in enumerate(items) if one.name), len(items))
    kept = _settled(known.units, same) if head == known.head else ()
    return Transcript(api, items, head, _grouped(items, head, kept))


def first_name(envelope: Envelope) -> str:
    """A name for a conversation that its client does not name: that of its first message. Raises BadInput where there is none to read."""
    for place, raw in enumerate(envelope.items):
        value, message = message_of(raw, envelope.api, place)
        if message.role != "system":
            return f"wire-{chained(envelope.api, value)}"
    return "wire-empty"


def shared_items(raw_items: Sequence[bytes], known: Transcript) -> int:
    """How many items a request has in common with a transcript, from the first on."""
    for place, (raw, item) in enumerate(zip(raw_items, known.items, strict=False)):
        if raw != item.raw:
            return place
    return min(len(raw_items), len(known.items))


def _settled(units: Sequence[Unit], same: int) -> Sequence[Unit]:
    """The units that are made of the first `same` items, but for one of the model's at the end, which may go on."""
    end = len(units)
    while end and (units[end - 1].first + units[end - 1].count > same or units[end - 1].message.role == "assistant"):
        end -= 1
    return units[:end]


def _grouped(items: Sequence[Item], head: int, kept: Sequence[Unit]) -> list[Unit]:
    units = list(kept)
    start = units[-1].first + units[-1].count if units else head
    for place in range(start, len(items)):
        item = items[place]
        last = units[-1] if units else None
        if last is not None and last.message.role == item.message.role == "assistant":
            both = replace(last.message, blocks=(*last.message.blocks, *item.message.blocks))
            units[-1] = Unit(item.name, both, last.first, last.count + 1)
        else:
            units.append(Unit(item.name, item.message, place))
    return units
