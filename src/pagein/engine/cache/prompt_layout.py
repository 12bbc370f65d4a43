"""The layout of a request for a prompt cache: blocks in order, with names, sizes and breakpoints.

Rules of this file
------------------
1. The part shared with an earlier layout is copied from there; only the rest is read.
2. Sizes use the model's own ratio, so a layout of another model is not reused.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pagein.engine.intake.message_chain import alike
from pagein.model.journal_notes import PrefixDigests
from pagein.model.json_text import decode_json
from pagein.providers.cache_simulator import Breakpoint, CacheRequest, Chains
from pagein.providers.tokens.counters import Counter, ratio_counter
from pagein.providers.validity import Api
from pagein.providers.wire.formats import SYSTEM_FIELDS
from pagein.providers.wire.prompt_footprint import Footprint, footprints, head_footprints
from pagein.providers.wire.request_body import message_of

IN_FRONT: Final = ("tools", *SYSTEM_FIELDS, "cache_control")
"""Fields that a prompt cache reads before the messages, or that set a breakpoint for the whole body."""


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request as it was sent.

    fields: bytes of the fields before the messages.
    items: bytes of the messages.
    theirs: names of the client's messages.
    head: digests of the prompt prefix.
    at: time in seconds since 1970.
    """

    api: Api
    fields: Mapping[str, bytes]
    items: Sequence[bytes]
    theirs: Sequence[str]
    head: PrefixDigests
    at: float


@dataclass(frozen=True, slots=True)
class LayoutPoint:
    """Counts up to the end of a message, or of the prompt prefix.

    blocks: number of blocks.
    marks: number of breakpoints.
    user, tool: last block of a user and of a tool, counted from 1; 0 without one.
    size: bytes of the messages.
    """

    blocks: int = 0
    marks: int = 0
    user: int = 0
    tool: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class Laid:
    """The layout of a request.

    front: blocks of the prompt prefix.
    said: blocks of each message.
    reaches: counts after the prefix, then after each message.
    root: the hash chain after the prefix.
    chain, cumulative: as in `CacheRequest`.
    """

    sent: SentRequest
    front: Sequence[Footprint]
    said: Sequence[tuple[Footprint, ...]]
    reaches: Sequence[LayoutPoint]
    root: int
    chain: Sequence[int]
    cumulative: Sequence[float]
    marks: Sequence[Breakpoint]

    @property
    def prompt(self) -> float:
        """Estimated tokens of the prompt."""
        return self.cumulative[-1] if self.cumulative else 0.0

    @property
    def size(self) -> int:
        """Bytes of the messages."""
        return self.reaches[-1].size

    def cache_request(self) -> CacheRequest:
        """Return the request for the cache simulator."""
        marks, end = tuple(self.marks), self.reaches[-1]
        if "cache_control" in self.sent.fields and self.chain:
            marks = tuple({mark.position: mark for mark in (*marks, Breakpoint(len(self.chain)))}.values())
        return CacheRequest(
            self.sent.at, self.chain, self.cumulative, marks, newest_user=end.user, newest_tool=end.tool
        )

    def names(self, place: int) -> list[bytes]:
        """Return the names of a message's blocks, which ignore breakpoints."""
        return [block.name for block in self.said[place]]


class Layouts:
    """Compute the layouts of a session's requests. Not thread-safe."""

    def __init__(self) -> None:
        self._chains = Chains()

    def laid(self, sent: SentRequest, before: Laid | None = None) -> Laid:
        """Return the layout of a request.

        before: an earlier layout that may begin alike.
        """
        if before is not None and (before.sent.api, before.sent.head.model) != (sent.api, sent.head.model):
            before = None
        counter = ratio_counter(sent.head.model)
        same = 0 if before is None else alike(sent.items, before.sent.items)
        said = [] if before is None else list(before.said[:same])
        for place in range(same, len(sent.items)):
            value, _ = message_of(sent.items[place], sent.api, place)
            said.append(footprints(value, sent.api, counter))
        if before is not None and sent.fields == before.sent.fields and _is_same_front(sent.head, before.sent.head):
            return _gone_on(self._chains, sent, before, said, same)
        front = _front(sent, before, counter)
        return self._begin(sent, front, said)

    def _begin(self, sent: SentRequest, front: Sequence[Footprint], said: Sequence[tuple[Footprint, ...]]) -> Laid:
        """Lay out a request with known blocks, without an earlier layout."""
        growing = _LayoutBuilder(self._chains, self._chains.extend(Chains.ROOT, (sent.head.model, sent.head.headers)))
        growing.grow(front, 0)
        growing.name = self._chains.extend(growing.name, ("settings", sent.head.settings))
        root = growing.name
        return _finish_layout(growing, sent, front, said, root)


class _LayoutBuilder:
    """A layout in the making.

    name: the hash chain so far.
    """

    def __init__(self, chains: Chains, name: int, before: Laid | None = None, same: int = 0) -> None:
        reach = LayoutPoint() if before is None else before.reaches[same]
        self._chains = chains
        self.name = name
        self.reaches = [] if before is None else list(before.reaches[: same + 1])
        self.chain = [] if before is None else list(before.chain[: reach.blocks])
        self.cumulative = [] if before is None else list(before.cumulative[: reach.blocks])
        self.marks = [] if before is None else list(before.marks[: reach.marks])

    def grow(self, blocks: Iterable[Footprint], size: int) -> None:
        """Append the blocks of a message with this many bytes."""
        last = self.reaches[-1] if self.reaches else LayoutPoint()
        user, tool = last.user, last.tool
        for block in blocks:
            self.name = self._chains.extend(self.name, block.name)
            self.chain.append(self.name)
            self.cumulative.append((self.cumulative[-1] if self.cumulative else 0.0) + block.tokens)
            at = len(self.chain)
            if block.ttl:
                self.marks.append(Breakpoint(at, block.ttl))
            user, tool = at if block.side == "user" else user, at if block.side == "tool" else tool
        self.reaches.append(LayoutPoint(len(self.chain), len(self.marks), user, tool, last.size + size))


def _gone_on(chains: Chains, sent: SentRequest, before: Laid, said: Sequence[tuple[Footprint, ...]], same: int) -> Laid:
    """Lay out a request that repeats the prompt prefix and the first messages of an earlier request."""
    blocks, in_front = before.reaches[same].blocks, before.reaches[0].blocks
    growing = _LayoutBuilder(chains, before.chain[blocks - 1] if blocks > in_front else before.root, before, same)
    return _finish_layout(growing, sent, before.front, said, before.root)


def _finish_layout(
    growing: _LayoutBuilder,
    sent: SentRequest,
    front: Sequence[Footprint],
    said: Sequence[tuple[Footprint, ...]],
    root: int,
) -> Laid:
    for place in range(len(growing.reaches) - 1, len(said)):
        growing.grow(said[place], len(sent.items[place]))
    return Laid(sent, front, said, growing.reaches, root, growing.chain, growing.cumulative, growing.marks)


def _is_same_front(one: PrefixDigests, other: PrefixDigests) -> bool:
    return (one.model, one.headers, one.settings) == (other.model, other.headers, other.settings)


def _front(sent: SentRequest, before: Laid | None, counter: Counter) -> Sequence[Footprint]:
    if before is not None and sent.fields == before.sent.fields:
        return before.front
    return head_footprints({name: decode_json(raw) for name, raw in sent.fields.items()}, counter)
