"""Read the messages of a request, and name them by content and history, to find its branch.

Rules of this file
------------------
1. The prompt prefix (leading system messages) is not part of the chain: it may change while the conversation continues.
   `Transcript.head` counts its items.
2. All output of a model in one turn is one message, in however many wire messages.
3. After a message where the journal is broken (`MessageIndex.breaks`) names differ from before, so later messages are
   recorded anew.
4. Only messages that differ, byte by byte, from a known request are decoded and named. In a new process the digests of
   their bytes are compared, and known messages are decoded when they are asked for.
5. A client that changes its first messages from call to call gets nothing from a cache, and the journal would hold
   every call of it in full. After a few such calls in a row its requests are passed through, until a request continues
   the one before.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from pagein.engine.log.gc_pause import pause_collection
from pagein.engine.log.lazy_messages import Unread
from pagein.model.entries import EntryId
from pagein.model.messages import Message, Thinking
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.request_body import Envelope, chain_name, chain_names, message_of, messages_of
from pagein.providers.wire.wire_format import WireFormat

_NONE: Final[Mapping[EntryId, int]] = MappingProxyType({})
_BRANCHES: Final = 8
_MOVED: Final = 3  # messages at the end of a request whose cache breakpoints the next request may change
_NEWS: Final = 24  # most new messages of an ordinary call
_MOST_RETOLD: Final = 4.0
_FORGOTTEN: Final = 0.9
_DIGEST: Final = 16


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

    api, format: its wire format.
    items: its wire messages.
    head: number of items in the prompt prefix.
    units: the conversation.
    raws, names: of the items.
    follows, shared: the items of the earlier request with most shared items, and their number.
    """

    api: Api
    format: WireFormat = field(repr=False, compare=False)
    items: Sequence[Item] = ()
    head: int = 0
    units: Sequence[Unit] = ()
    raws: Sequence[bytes] = ()
    names: Sequence[EntryId] = ()
    follows: Sequence[bytes] = field(default=(), repr=False, compare=False)
    shared: int = 0
    _places: dict[EntryId, int] = field(default_factory=dict, repr=False, compare=False)

    def place_of(self, name: EntryId) -> int | None:
        """Return the number of the message of this name in the conversation."""
        # shared with the earlier requests of the conversation, so it may name messages of other branches
        place = self._places.get(name, len(self.units))
        return place if place < len(self.units) and self.units[place].name == name else None

    def cut(self, count: int) -> "Transcript":
        """Return the first `count` messages of the conversation, with the prompt prefix."""
        last = self.units[count - 1] if count else None
        end = self.head if last is None else last.first + last.count
        raws, names = self.raws[:end], self.names[:end]
        return replace(self, items=self.items[:end], units=self.units[:count], raws=raws, names=names)


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
    known = before if before is not None and before.api == api else Transcript(api, format_named(api))
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
    return Transcript(api, known.format, items, head, units, raw_items, names, known.raws, same, places)


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


# --- messages that another process decoded ---


@dataclass(frozen=True, slots=True)
class KnownMessages:
    """The messages of a request that another process decoded.

    head: number of items in the prompt prefix.
    digests: digests of the items' bytes, concatenated as hexadecimal digits.
    names: names of the items; "" in the prompt prefix.
    units: first, count and thought of each `Unit`.
    """

    api: Api
    head: int
    digests: str
    names: tuple[EntryId, ...]
    units: tuple[tuple[int, int, int], ...]


def known_messages_of(script: Transcript) -> KnownMessages:
    """Return the digests and names of a decoded request."""
    digests = "".join(map(digest_of, script.raws))
    units = tuple((one.first, one.count, one.thought) for one in script.units)
    return KnownMessages(script.api, script.head, digests, tuple(script.names), units)


def match_messages(known: KnownMessages, envelope: Envelope) -> Transcript | None:
    """Return the leading messages that a request shares with the known request, not decoded.

    None if there are no shared messages.
    """
    if envelope.api != known.api:
        return None
    same = _same(known, envelope)
    if same <= known.head:
        return None
    units = [one for one in known.units if one[0] + one[1] <= same]
    same = units[-1][0] + units[-1][1] if units else 0
    if not units:
        return None
    raws, names = envelope.items[:same], known.names[:same]
    read = _reader(known.api)
    messages = [Unread.of(read, one) for one in enumerate(raws)]
    items = [Item(raw, message, name) for raw, message, name in zip(raws, messages, names, strict=True)]
    made = [
        Unit(
            names[first + count - 1],
            messages[first] if count == 1 else Unread.of(_join_parts, messages[first : first + count]),
            first,
            count,
            thought,
        )
        for first, count, thought in units
    ]
    places = {one.name: place for place, one in enumerate(made)}
    return Transcript(known.api, format_named(known.api), items, known.head, made, raws, names, _places=places)


def _same(known: KnownMessages, envelope: Envelope) -> int:
    """Return the number of equal leading items."""
    digests, width = known.digests, 2 * _DIGEST
    for place, raw in enumerate(envelope.items[: len(known.names)]):
        if not digests.startswith(digest_of(raw), place * width):
            return place
    return min(len(envelope.items), len(known.names))


def digest_of(raw: bytes) -> str:
    """Return the digest of a message's bytes."""
    return hashlib.blake2b(raw, digest_size=_DIGEST).hexdigest()


def _reader(api: Api) -> Callable[[tuple[int, bytes]], Message]:
    return lambda one: message_of(one[1], api, one[0])[1]


def _join_parts(parts: list[Message]) -> Message:
    return replace(parts[0], blocks=tuple(block for one in parts for block in one.blocks))


# --- the requests of a session ---


class RequestReader:
    """Read the requests of a session. Not thread-safe.

    known: messages that an earlier process decoded.
    breaks: messages after which the journal was broken; may grow.
    """

    def __init__(self, known: KnownMessages | None = None, breaks: Mapping[EntryId, int] | None = None) -> None:
        self._breaks = {} if breaks is None else breaks
        self._broken = sum(self._breaks.values())
        self._scripts: list[Transcript] = []
        self._known = known
        self._goes_on = False
        self._retold = 0.0

    def read(self, envelope: Envelope) -> Transcript:
        """Return the messages of a request. Raises BadInput for an unreadable message."""
        broken = sum(self._breaks.values())
        if broken != self._broken:  # a break changes the names
            self._scripts, self._known, self._broken = [], None, broken
        before, shared = self._most_alike(envelope.items)
        if before is None and self._known is not None:
            with pause_collection():
                before = match_messages(self._known, envelope)
            shared = 0 if before is None else len(before.items)
            self._known = None
            self._scripts = [] if before is None else [before]
        script = transcript(envelope.items, envelope.api, before, shared, self._breaks)
        self._goes_on = before is not None and _is_continued(shared, before)
        if before is not None and self._goes_on:
            self._scripts.remove(before)
        self._scripts = [script, *self._scripts[: _BRANCHES - 1]]
        return script

    def snapshot_values(self, last: EntryId) -> KnownMessages | None:
        """Return the digests of a recently read request, for a later process.

        Returns None for an unknown request.

        last: name of its last message.
        """
        script = next((one for one in self._scripts if one.units and one.units[-1].name == last), None)
        return None if script is None else known_messages_of(script)

    def is_retold(self, units: Sequence[Unit], known: int) -> bool:
        """Return whether the newest request rephrases its conversation, like earlier requests."""
        if len(units) - known <= _NEWS:
            self._retold *= _FORGOTTEN
            return False
        self._retold += 1 - known / len(units)
        return self._retold > _MOST_RETOLD and not self._goes_on

    def _most_alike(self, items: Sequence[bytes]) -> tuple[Transcript | None, int]:
        """Return the earlier request with most shared messages, and their number."""
        best, most = None, 0
        for one in self._scripts:
            shared = alike(items, one.raws)
            if shared > most:
                best, most = one, shared
            if shared and _is_continued(shared, one):
                break
        return best, most


def _is_continued(shared: int, before: Transcript) -> bool:
    return shared >= len(before.items) - _MOVED
