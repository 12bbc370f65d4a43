"""An independent price model of requests: what a provider charges for the bytes of a request, from its documented prices.

It shares no code with pagein's planner, price table and cache simulator, so that it can judge them. Rules A1 to A6, A9,
M14 and M15 of docs/laws.md hold for caches with breakpoints; every other cache here holds each prefix, in steps of 128 tokens.

Money is in BIT, times in seconds. A token is a fixed number of characters of a block's JSON.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from pagein.simulator.provider_settings import CacheKind

SHORT, HOUR = 300.0, 3600.0
_LOOKBACK: Final = 20
_MARKS: Final = 4
_STEP: Final = 128


class DocumentedPrice(NamedTuple):
    """Prices of a token as multiples of an input token, and the cache.

    least: smallest cached prefix, tokens. lasts: lifetime of a cache without breakpoints; None for one with breakpoints.
    window: the most tokens that a prompt and its longest answer may have.
    """

    read: float
    write: float
    write_1h: float
    output: float
    least: int
    window: int
    lasts: float | None = None


PRICES: Final[Mapping[str, DocumentedPrice]] = {
    "claude-sonnet-4-5": DocumentedPrice(0.1, 1.25, 2.0, 5.0, 1024, 200_000),
    "claude-sonnet-4-6": DocumentedPrice(0.1, 1.25, 2.0, 5.0, 1024, 1_000_000),
    "claude-opus-4-5": DocumentedPrice(0.1, 1.25, 2.0, 5.0, 4096, 200_000),
    "claude-opus-4-6": DocumentedPrice(0.1, 1.25, 2.0, 5.0, 4096, 1_000_000),
    "claude-opus-4-7": DocumentedPrice(0.1, 1.25, 2.0, 5.0, 2048, 1_000_000),
    "claude-haiku-4-5": DocumentedPrice(0.1, 1.25, 2.0, 5.0, 4096, 200_000),
    "claude-opus-5": DocumentedPrice(0.1, 1.25, 2.0, 5.0, 512, 1_000_000),
    "gpt-5.1": DocumentedPrice(0.1, 1.0, 1.0, 8.0, 1024, 400_000, 600.0),
    "gpt-4o": DocumentedPrice(0.5, 1.0, 1.0, 4.0, 1024, 128_000, 600.0),
}
"""Published prices of models: those of Anthropic as of 2026-08-22, those of OpenAI as of 2026-11-04."""


class BilledRequest(NamedTuple):
    """The tokens of a request by their price, and the cost in BIT. written_1h is no part of written."""

    fresh: int
    read: int
    written: int
    written_1h: int
    output: int
    cost: float

    @property
    def prompt(self) -> int:
        """The tokens of the prompt."""
        return self.fresh + self.read + self.written + self.written_1h


@dataclass(slots=True)
class _Entry:
    """A cached prefix. ends: time from which on it is gone. lasts: its lifetime after each read."""

    ends: float
    lasts: float


@dataclass(slots=True)
class DocumentedCache:
    """The cache of one model.

    ratio: characters of a token.
    kind: `documented`; `unrefreshed`: an entry lives for its lifetime from its writing on, however often it is read;
        `short-hour`: an entry that was paid for an hour lives five minutes.
    """

    model: str
    ratio: float
    kind: CacheKind = "documented"
    _entries: dict[int, _Entry] = field(default_factory=dict)

    def bill(self, body: bytes, at: float, output: int, *, keeps: bool = True) -> BilledRequest:
        """Charge a request. keeps: whether its entries enter the cache.

        Raises ValueError for breakpoints that the provider would refuse.
        """
        price = PRICES[self.model]
        names, ends, marks = self._prefixes(body)
        if price.lasts is not None:
            return self._automatic(price, names, ends, at, output, keeps=keeps)
        if len(marks) > _MARKS:
            raise ValueError(f"{len(marks)} breakpoints (M14)")
        spans = [span for _, span in marks]
        if spans != sorted(spans, reverse=True):
            raise ValueError("a breakpoint of one hour behind one of five minutes (M15)")
        whole = ends[-1] if ends else 0
        hit = self._hit(names, [place for place, _ in marks], at)
        read = reached = ends[hit] if hit >= 0 else 0
        by_span = {SHORT: 0, HOUR: 0}
        written: list[tuple[int, float]] = []
        for place, span in marks:
            if place > hit and ends[place] >= price.least:
                by_span[span] += max(0, ends[place] - reached)
                reached = max(reached, ends[place])
                written.append((names[place], span))
        if keeps:
            self._remember(names[: hit + 1], written, at)
        fresh, short, hour = whole - reached, by_span[SHORT], by_span[HOUR]
        cost = fresh + price.read * read + price.write * short + price.write_1h * hour + price.output * output
        return BilledRequest(fresh, read, short, hour, output, cost)

    def _hit(self, names: list[int], marks: list[int], at: float) -> int:
        """Return the last position that is read from the cache, -1 for none."""
        for mark in reversed(marks):
            for place in range(mark, max(-1, mark - _LOOKBACK), -1):
                entry = self._entries.get(names[place])
                if entry is not None and at <= entry.ends:
                    return place
        return -1

    def _remember(self, read: list[int], written: list[tuple[int, float]], at: float) -> None:
        for name in read:
            entry = self._entries.get(name)
            if entry is not None and at <= entry.ends and self.kind != "unrefreshed":
                entry.ends = at + entry.lasts
        for name, span in written:
            lasts = SHORT if self.kind == "short-hour" else span
            self._entries[name] = _Entry(at + lasts, lasts)

    def _automatic(
        self, price: DocumentedPrice, names: list[int], ends: list[int], at: float, output: int, *, keeps: bool
    ) -> BilledRequest:
        reached = 0
        for name, end in zip(names, ends, strict=True):
            entry = self._entries.get(name)
            if entry is None or at > entry.ends:
                break
            reached = end
        read = reached // _STEP * _STEP
        read = read if read >= price.least else 0
        if keeps:
            lasts = price.lasts or 0.0
            self._entries.update((name, _Entry(at + lasts, lasts)) for name in names)
        fresh = (ends[-1] if ends else 0) - read
        return BilledRequest(fresh, read, 0, 0, output, fresh + price.read * read + price.output * output)

    def _prefixes(self, body: bytes) -> tuple[list[int], list[int], list[tuple[int, float]]]:
        """Return of each prefix of a request its name and its size in tokens, and the places and lifetimes of breakpoints."""
        told = msgspec.json.decode(body, type=_Body)
        names: list[int] = []
        ends: list[int] = []
        marks: list[tuple[int, float]] = []
        name, chars = hash(told.model), 0
        for kind, parts in (("tool", told.tools), ("system", told.system), ("", told.messages)):
            for part in parts:
                for block in _blocks(kind, bytes(part)):
                    name = hash((name, block.name))
                    chars += block.chars
                    names.append(name)
                    ends.append(round(chars / self.ratio))
                    if block.lasts:
                        marks.append((len(names) - 1, block.lasts))
        return names, ends, marks


class _Body(msgspec.Struct):
    """The parts of a prompt in the provider's order (A1)."""

    model: str
    messages: list[msgspec.Raw]
    tools: list[msgspec.Raw] = []
    system: list[msgspec.Raw] = []


class _Block(NamedTuple):
    """A block of a prompt. name: hash of what it belongs to, and of its content; lasts: lifetime at its breakpoint, 0 without one."""

    name: int
    chars: int
    lasts: float


@lru_cache(maxsize=4096)  # every request repeats the messages of the one before
def _blocks(kind: str, part: bytes) -> tuple[_Block, ...]:
    """Return the blocks of a tool, a block of the system prompt or, without a kind, a message."""
    return tuple(_read_blocks(kind, json.loads(part)))


def _read_blocks(kind: str, part: Mapping[str, Any]) -> Iterator[_Block]:
    content = part.get("content") if not kind else None
    for block in content if isinstance(content, list) else [part]:
        text = json.dumps(_unmarked(block))
        mark = block.get("cache_control")
        lasts = 0.0 if mark is None else HOUR if mark.get("ttl") == "1h" else SHORT
        yield _Block(hash((kind or part["role"], text)), len(text), lasts)


def _unmarked(value: object) -> object:
    """Return a JSON value without breakpoints."""
    if isinstance(value, dict):
        return {key: _unmarked(one) for key, one in value.items() if key != "cache_control"}
    return [*map(_unmarked, value)] if isinstance(value, list) else value
