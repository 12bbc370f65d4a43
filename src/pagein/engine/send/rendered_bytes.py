"""A rendered request, and its check against the provider's rules. The check costs as much as is new; tools and
instructions are parsed once.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from pagein.engine.send.call import PendingCall
from pagein.engine.send.message_changes import MessageChange
from pagein.errors import HostError
from pagein.model.json_text import decode_json
from pagein.providers.validity import Api
from pagein.providers.wire import check_body, format_named
from pagein.providers.wire.formats import SYSTEM_FIELDS
from pagein.providers.wire.request_body import Envelope, WireRequest
from pagein.providers.wire.ttl_edits import blocks_in

_CHECKED_WHOLE: Final = 64 << 10
_SAID_BEFORE: Final = "what was said before"
_MARK: Final = "cache_control"
_MARKED: Final = b'"cache_control"'
_LASTING: Final = ("tools", *SYSTEM_FIELDS)


@dataclass(frozen=True, slots=True)
class Bytes:
    """A request to send.

    body: its bytes.
    items: its messages.
    fields: the other fields of the body; None if unknown.
    replaced: number of replaced results.
    used: number of messages in the rendering.
    why: reasons of a fallback; "" without one.
    news: first item that is new or that a new item depends on, in the sent messages and in the client's.
    rewritten: True if an epoch was opened for it.
    remarked: True if its cache breakpoints differ from the client's.
    changes: differences from the client's messages, without hidden recall exchanges.
    is_last: False if the conversation's rendering could not be sent.
    marked: numbers of the messages that may hold a cache breakpoint; None for any.
    """

    body: bytes
    items: Sequence[bytes] = ()
    fields: Mapping[str, bytes] | None = None
    replaced: int = 0
    used: int = 0
    why: str = ""
    news: tuple[int, int] = (0, 0)
    rewritten: bool = False
    remarked: bool = False
    changes: Mapping[int, MessageChange] = field(default_factory=dict)
    is_last: bool = True
    marked: Collection[int] | None = None

    def request(self, envelope: Envelope) -> WireRequest:
        """Return the request with the fields of an envelope."""
        return WireRequest(envelope.api, b"", envelope.fields, tuple(self.items), (), (), marked=self.marked)


def check_bytes(call: PendingCall, made: Bytes, *, decided: bool) -> None:
    """Raise HostError if a provider would refuse this request but not the client's own. Costs as much as is new.

    decided: True if a decision changed the request; a small request is then checked as a whole.
    """
    whole = decided and len(made.body) <= _CHECKED_WHOLE
    fields = call.envelope.fields if made.fields is None else made.fields
    ours, theirs = (0, 0) if whole else made.news
    sent = _BodyPart(call.script.api, fields, made.items, ours, made.remarked, made.marked)
    broken = sent.breaks(len(made.body))
    if broken:
        said = _BodyPart(call.script.api, call.theirs.fields, call.theirs.items, theirs, made.remarked)
        broken -= said.breaks(len(call.original))
    if broken:
        raise HostError(f"the rendered request would be refused by {', '.join(sorted(broken))}")


@dataclass(frozen=True, slots=True)
class _BodyPart:
    """The end of a request, as a body to check.

    start: number of the first message to check.
    marks: True to check cache breakpoints of earlier messages too.
    marked: numbers of the messages that may hold one; None for any.
    """

    api: Api
    fields: Mapping[str, bytes]
    items: Sequence[bytes]
    start: int
    marks: bool
    marked: Collection[int] | None = None

    def breaks(self, size: int) -> set[str]:
        """Return the rules of the provider that this part breaks.

        size: bytes of the whole request.
        """
        return {one.rule for one in check_body(self._values(), self.api, size=size)}

    def _values(self) -> dict[str, Any]:
        body = {
            name: _parse_cached(bytes(raw)) if name in _LASTING else decode_json(raw)
            for name, raw in self.fields.items()
        }
        said = [
            one if isinstance(one := decode_json(raw), dict) else self._filler(one) for raw in self.items[self.start :]
        ]
        return {**body, format_named(self.api).requests.items: [*self._in_front(), *said]}

    def _in_front(self) -> list[dict[str, Any]]:
        if not self.start:
            return []
        if not self.marks:
            return [self._filler(_SAID_BEFORE)]
        blocks: list[dict[str, Any]] = [{"type": "text", "text": _SAID_BEFORE}]
        places = range(self.start) if self.marked is None else sorted(self.marked)
        for raw in [self.items[at] for at in places if at < self.start and _MARKED in self.items[at]]:
            blocks += [{**blocks[0], _MARK: mark} for mark in _marks(raw)]
        return [{"role": "user", "content": blocks}]

    def _filler(self, said: object) -> dict[str, Any]:
        """Return a message of the user: a bare string of the client, or the filler for earlier messages."""
        return format_named(self.api).requests.user_message(str(said))


@lru_cache(maxsize=16)
def _parse_cached(raw: bytes) -> object:
    """Parse tools and prompts, which are large and the same from call to call."""
    return decode_json(raw)


def _marks(raw: bytes) -> Iterator[object]:
    """Yield the cache breakpoints in a message in order, with the breakpoints inside results."""
    for block in blocks_in(raw):
        inner = block.get("content")
        yield from (
            (one[_MARK] for one in inner if isinstance(one, dict) and _MARK in one) if isinstance(inner, list) else ()
        )
        if _MARK in block:
            yield block[_MARK]
