"""Recognise the messages of a request by digests of their bytes, to spare a new process the decoding."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from pagein.engine.intake.message_chain import Item, Transcript, Unit
from pagein.engine.log.lazy_messages import Unread
from pagein.model.entries import EntryId
from pagein.model.messages import Message
from pagein.providers.validity import Api
from pagein.providers.wire.request_body import Envelope, message_of

_DIGEST = 16


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


def messages_of(script: Transcript) -> KnownMessages:
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
    return Transcript(known.api, items, known.head, made, raws, names, places)


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
