"""Name the messages of a request by content and history, to find its branch.

Rules of this file
------------------
1. The prompt prefix (leading system messages) is not part of the chain: it may change while the conversation continues.
   `Transcript.head` counts its items.
2. All output of a model in one turn is one message, in however many wire messages.
3. After a message where the journal is broken (`MessageIndex.breaks`) names differ from before, so later messages are
   recorded anew.
4. Only messages that differ, byte by byte, from a known request are decoded and named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from pagein.model.entries import EntryId
from pagein.model.messages import Message, Thinking
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.message_names import chain_name, chain_names
from pagein.providers.wire.request_body import Envelope, message_of, messages_of
from pagein.providers.wire.wire_format import WireFormat

_NONE: Final[Mapping[EntryId, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Item:
    """A wire message.

    raw: its bytes.
    message: the decoded message.
    name: hash of the message and all before it in the conversation; "" in the prompt prefix.
    """

    raw: bytes
    message: Message
    name: EntryId


@dataclass(frozen=True, slots=True)
class Unit:
    """A message of the conversation, made of one or more items.

    name: name of its last item.
    first: number of its first item.
    count: number of its items.
    thought: number of the last message up to here with thinking; -1 without any.
    """

    name: EntryId
    message: Message
    first: int
    count: int = 1
    thought: int = -1


@dataclass(frozen=True, slots=True)
class Transcript:
    """The messages of a request.

    items: its wire messages.
    head: number of items in the prompt prefix.
    units: the conversation.
    raws, names: of the items.
    """

    api: Api
    items: Sequence[Item] = ()
    head: int = 0
    units: Sequence[Unit] = ()
    raws: Sequence[bytes] = ()
    names: Sequence[EntryId] = ()
    _places: dict[EntryId, int] = field(default_factory=dict, repr=False, compare=False)

    @property
    def format(self) -> WireFormat:
        """The wire format of the request."""
        return format_named(self.api)

    def place_of(self, name: EntryId) -> int | None:
        """Return the number of the message of this name in the conversation."""
        # shared with the earlier requests of the conversation, so it may name messages of other branches
        place = self._places.get(name, len(self.units))
        return place if place < len(self.units) and self.units[place].name == name else None

    def cut(self, count: int) -> "Transcript":
        """Return the first `count` messages of the conversation, with the prompt prefix."""
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
    """Return the messages of a request. Raises BadInput if an item is not a JSON object.

    before: an earlier request that may begin alike.
    shared: number of items shared with it; None to count them here.
    breaks: names of messages after which the journal was broken, with the number of breaks.
    """
    known = before if before is not None and before.api == api else Transcript(api)
    same = alike(raw_items, known.raws) if shared is None or known is not before else shared
    items = list(known.items[:same])
    news = messages_of(raw_items[same:], api, same)
    before_it = items[-1].name if items else ""
    heads = 0 if before_it else next((at for at, (_, one) in enumerate(news) if one.role != "system"), len(news))
    added = ["" for _ in range(heads)] + chain_names(api, before_it, [value for value, _ in news[heads:]], breaks)
    items += map(Item, raw_items[same:], (message for _, message in news), added)
    head = known.head if same > known.head else next((at for at, one in enumerate(items) if one.name), len(items))
    kept = _stable_units(known.units, same) if head == known.head else ()
    names = [*known.names[:same], *(one.name for one in items[same:])]
    units, places = _group_items(items, head, kept), known._places  # noqa: SLF001 -- its own class
    places.update((one.name, place) for place, one in enumerate(units[len(kept) :], len(kept)))
    return Transcript(api, items, head, units, raw_items, names, places)


def first_name(envelope: Envelope) -> str:
    """Return a name for an unnamed conversation, from its first message. Raises BadInput for an unreadable message."""
    for place, raw in enumerate(envelope.items):
        value, message = message_of(raw, envelope.api, place)
        if message.role != "system":
            return f"wire-{chain_name(envelope.api, value)}"
    return "wire-empty"


def alike(some: Sequence[object], others: Sequence[object]) -> int:
    """Return the number of leading items that two lists share.

    Compares the end first, because lists usually differ there.
    """
    high = min(len(some), len(others))
    low, step = high, 1
    while low and some[:low] != others[:low]:
        high, low, step = low - 1, max(low - step, 0), 2 * step
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if some[low:middle] == others[low:middle] else (low, middle - 1)
    return low


def _stable_units(units: Sequence[Unit], same: int) -> Sequence[Unit]:
    """Return the units within the first `same` items, except a final assistant unit, which may continue."""
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
