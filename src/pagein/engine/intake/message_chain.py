"""A request as the messages of a branch: each named by what it says behind everything before it.

Rules of this file
------------------
1. What stands in front of the conversation (leading system messages) is no part of the chain: it may change while the
   conversation goes on. It is told apart by `Transcript.head`.
2. What a model said in one turn is one message, in however many wire messages it is told.
3. Behind a message where the journal is broken (`Places.breaks`) names are others than before, so that what is said there stands there anew.
4. Only what differs, byte by byte, from a request seen before is decoded and named anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from pagein.model.entries import EntryId
from pagein.model.messages import Message, Thinking
from pagein.providers.validity import Api
from pagein.providers.wire.message_names import chain_name
from pagein.providers.wire.request_body import Envelope, message_of

_NONE: Final[Mapping[EntryId, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Item:
    """One wire message. name: of it and all before it in the conversation; "" in the head."""

    raw: bytes
    message: Message
    name: EntryId


@dataclass(frozen=True, slots=True)
class Unit:
    """One message as the engine takes it, of `count` items from `first` on. thought: the last message up to here in which the model
    thought, counted in messages; -1 for none.
    """

    name: EntryId
    message: Message
    first: int
    count: int = 1
    thought: int = -1


@dataclass(frozen=True, slots=True)
class Transcript:
    """A request's messages. raws, names: of its items. head: how many items stand in front of the conversation. units: the conversation."""

    api: Api
    items: Sequence[Item] = ()
    head: int = 0
    units: Sequence[Unit] = ()
    raws: Sequence[bytes] = ()
    names: Sequence[EntryId] = ()
    _places: dict[EntryId, int] = field(default_factory=dict, repr=False, compare=False)

    def place_of(self, name: EntryId) -> int | None:
        """The number of the message of this name in the conversation."""
        # shared with the requests that this one goes on from, so it knows of messages that others of them hold
        place = self._places.get(name, len(self.units))
        return place if place < len(self.units) and self.units[place].name == name else None

    def cut(self, count: int) -> "Transcript":
        """The first `count` messages of the conversation, and what stands in front of it."""
        last = self.units[count - 1] if count else None
        end = self.head if last is None else last.first + last.count
        return Transcript(
            self.api, self.items[:end], self.head, self.units[:count], self.raws[:end], self.names[:end], self._places
        )


def transcript(
    raw_items: Sequence[bytes],
    api: Api,
    before: Transcript | None = None,
    shared: int | None = None,
    breaks: Mapping[EntryId, int] = _NONE,
) -> Transcript:
    """The messages of a request. before: of one that may begin alike; shared: how many of them do, None where nobody counted.
    breaks: names behind which the journal was broken, and how often.

    Raises BadInput where an item is no JSON object.
    """
    known = before if before is not None and before.api == api else Transcript(api)
    same = alike(raw_items, known.raws) if shared is None or known is not before else shared
    items = list(known.items[:same])
    for raw in raw_items[same:]:
        value, message = message_of(raw, api, len(items))
        is_head = message.role == "system" and (not items or items[-1].name == "")
        before_it = items[-1].name if items else ""
        behind = (before_it or api) + "~" * breaks.get(before_it, 0)
        items.append(Item(raw, message, "" if is_head else chain_name(behind, value)))
    head = known.head if same > known.head else next((at for at, one in enumerate(items) if one.name), len(items))
    kept = _stable_units(known.units, same) if head == known.head else ()
    names = [*known.names[:same], *(one.name for one in items[same:])]
    units, places = _group_items(items, head, kept), known._places  # noqa: SLF001 -- of its own class
    places.update((one.name, place) for place, one in enumerate(units[len(kept) :], len(kept)))
    return Transcript(api, items, head, units, raw_items, names, places)


def first_name(envelope: Envelope) -> str:
    """A name for a conversation that its client does not name: that of its first message. Raises BadInput where there is none to read."""
    for place, raw in enumerate(envelope.items):
        value, message = message_of(raw, envelope.api, place)
        if message.role != "system":
            return f"wire-{chain_name(envelope.api, value)}"
    return "wire-empty"


def alike(some: Sequence[object], others: Sequence[object]) -> int:
    """How many items two lists have in common, from the first on. Asks for the end first: there they differ, if they do."""
    high = min(len(some), len(others))
    low, step = high, 1
    while low and some[:low] != others[:low]:
        high, low, step = low - 1, max(low - step, 0), 2 * step
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if some[low:middle] == others[low:middle] else (low, middle - 1)
    return low


def _stable_units(units: Sequence[Unit], same: int) -> Sequence[Unit]:
    """The units that are made of the first `same` items, but for one of the model's at the end, which may go on."""
    end = len(units)
    while end and (units[end - 1].first + units[end - 1].count > same or units[end - 1].message.role == "assistant"):
        end -= 1
    return units[:end]


def _group_items(items: Sequence[Item], head: int, kept: Sequence[Unit]) -> list[Unit]:
    units = list(kept)
    start = units[-1].first + units[-1].count if units else head
    for place in range(start, len(items)):
        item = items[place]
        last = units[-1] if units else None
        if last is not None and last.message.role == item.message.role == "assistant":
            both = replace(last.message, blocks=(*last.message.blocks, *item.message.blocks))
            thought = len(units) - 1 if _has_thinking(item.message) else last.thought
            units[-1] = Unit(item.name, both, last.first, last.count + 1, thought)
        else:
            before = -1 if last is None else last.thought
            thought = len(units) if _has_thinking(item.message) else before
            units.append(Unit(item.name, item.message, place, 1, thought))
    return units


def _has_thinking(message: Message) -> bool:
    return any(isinstance(block, Thinking) for block in message.blocks)
