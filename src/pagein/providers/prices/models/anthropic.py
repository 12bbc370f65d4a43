"""Claude models."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from typing import Final

from pagein.providers.caches.cache_rules import UNKNOWN_MINIMUM, CacheRules
from pagein.providers.prices.token_prices import Cliff, Prices
from pagein.providers.prices.vendor_models import LARGE_WINDOW, Abilities, Refused, VendorModels

CACHE: Final = CacheRules("anthropic", "breakpoints")

_PRICES = "D: Anthropic documentation as of 2026-08-22"
_MODEL_PAGES = "D: Anthropic model pages, 2026-10; S: dates and cache reads, change logs of price trackers"
_LATER = "S: SDK documentation and pull requests, 2026-09 to 2026-11"


def _claude(name: str, usd: tuple[float, float] | None, least: int, *, source: str = _PRICES) -> Prices:
    """A Claude model: dollars for input and output (None: not published), minimum prefix."""
    return Prices(
        name=f"claude-{name}",
        provider="anthropic",
        input_usd=usd[0] if usd else None,
        read=0.1,
        write_5m=1.25,
        write_1h=2.0,
        output=usd[1] / usd[0] if usd else 5.0,
        cache=CACHE.least(least),
        window=LARGE_WINDOW,
        source=source,
    )


def _small(name: str, usd: tuple[float, float] | None, least: int, *, strips: bool = True) -> Prices:
    """A Claude model with the smaller window. Every small model except Opus 4.5 strips earlier thinking."""
    return replace(_claude(name, usd, least), window=200_000, strips_thinking=strips)


def _bound(
    name: str, usd: tuple[float, float], read: float, since: date | None, least: int = UNKNOWN_MINIMUM
) -> Prices:
    """A Claude model that binds thinking to the prefix."""
    row = _claude(name, usd, least, source=_MODEL_PAGES if name.endswith("5-5") else _LATER)
    return replace(row, read=read, valid_from=since, binds_thinking=True)


def _priced() -> Iterable[Prices]:
    yield _bound("fable-5-2", (8, 40), 0.025, date(2026, 10, 1))
    yield _bound("mythos-5-2", (8, 40), 0.025, date(2026, 10, 1))
    yield _bound("fable-5-1", (10, 50), 0.025, date(2026, 9, 1), 512)
    yield _bound("mythos-5-1", (10, 50), 0.025, date(2026, 9, 1), 512)
    yield _claude("fable-5", (10, 50), 512)
    yield _claude("mythos-5", (10, 50), 512)
    yield _bound("opus-5-5", (4, 20), 0.05, date(2026, 9, 22))
    yield _claude("opus-5", (5, 25), 512)
    yield _bound("sonnet-5-5", (2, 10), 0.1, date(2026, 9, 28))
    yield _bound("sonnet-5-5", (2, 10), 0.05, date(2026, 10, 7))
    yield _claude("sonnet-5", (2, 10), 1024)
    yield replace(_bound("haiku-5-5", (0.1, 0.5), 0.1, date(2026, 10, 7)), cliff=Cliff(100_000, 5.0, 5.0))
    yield _claude("opus-4-8", (5, 25), 1024)
    yield _claude("opus-4-7", (5, 25), 2048)
    yield _claude("opus-4-6", (5, 25), 4096)
    yield _claude("sonnet-4-6", (3, 15), 1024)
    yield _small("opus-4-5", (5, 25), 4096, strips=False)
    yield _small("sonnet-4-5", (3, 15), 1024)
    yield _small("haiku-4-5", (1, 5), 4096)
    yield _small("opus-4-1", (15, 75), 1024)
    yield _small("opus-4", (15, 75), 1024)
    yield _small("sonnet-4", (3, 15), 1024)
    yield _small("haiku-3-5", None, 2048)
    yield _claude("mythos-preview", None, 2048)


_TO_4_5: Final[frozenset[Refused]] = frozenset({"thinking.adaptive", "system messages"})
_4_6: Final[frozenset[Refused]] = frozenset({"prefill", "system messages"})
_4_7: Final[frozenset[Refused]] = frozenset({"prefill", "system messages", "thinking.enabled", "sampling"})
_4_8: Final = _4_7 - {"system messages"}
_ALWAYS: Final[frozenset[Refused]] = _4_8 | {"thinking.disabled"}
_BOUND: Final[frozenset[Refused]] = _ALWAYS | {"forced tools"}

_DOCS: Final = "D: Anthropic thinking, prefill and sampling pages, 2026-10"
_BINDING: Final = "D: Anthropic preserved-thinking and model pages, 2026-10"
_SEEN: Final = "D: as above; F: both samplers at once, client issues 2025-08 to 2026-05"


def _able(
    names: str, refuses: frozenset[Refused], *, unasked: bool | None = None, source: str = _DOCS
) -> Iterable[Abilities]:
    for name in names.split():
        full = f"claude-{name}"
        row = _NEWEST[full]
        carries = not row.strips_thinking
        yield Abilities(
            full,
            refuses,
            row.binds_thinking,
            thinks_unasked=unasked,
            carries_thinking=carries,
            searches_tools="tool search" not in refuses,
            source=source,
        )


def _abilities() -> Iterable[Abilities]:
    yield from _able("haiku-3-5", _TO_4_5 | {"thinking.enabled", "tool search"}, unasked=False)
    yield from _able("opus-4 sonnet-4 haiku-4-5", _TO_4_5, unasked=False)
    yield from _able("opus-4-1 opus-4-5 sonnet-4-5", _TO_4_5 | {"two samplers"}, unasked=False, source=_SEEN)
    yield from _able("opus-4-6", _4_6, unasked=False)
    yield from _able("sonnet-4-6", _4_6 | {"two samplers"}, unasked=False, source=_SEEN)
    yield from _able("mythos-preview", frozenset({"prefill", "sampling", "thinking.disabled"}))
    yield from _able("opus-4-7", _4_7, unasked=False)
    yield from _able("opus-4-8", _4_8, unasked=False)
    for one in _able("sonnet-5", _4_8 | {"system messages"}, unasked=True):
        yield one
        # The documentation of August says no; client libraries have said yes since this day. So it is no longer known
        # to be refused.
        yield replace(
            one, refuses=_4_8, valid_from=date(2026, 10, 20), source=f"{_DOCS}; S: client libraries, 2026-10-20"
        )
    yield from _able("opus-5", _4_8 | {"no thinking at high effort"}, unasked=True)
    yield from _able("fable-5 mythos-5", _ALWAYS, unasked=True)
    # The response of Haiku 5.5 to disabled thinking was not found.
    yield from _able("haiku-5-5", _BOUND - {"thinking.disabled"}, unasked=True, source=_BINDING)
    yield from _able("opus-5-5 sonnet-5-5 fable-5-1 fable-5-2 mythos-5-2", _BOUND, unasked=True, source=_BINDING)
    for one in _able("mythos-5-1", _BOUND, unasked=True, source=_BINDING):
        yield replace(one, checks=False)


_PRICED: Final = tuple(_priced())
_NEWEST: Final = {row.name: row for row in _PRICED}

MODELS: Final = VendorModels(
    (CACHE,),
    _PRICED,
    tuple(_abilities()),
    {
        "claude-3-5-haiku": "claude-haiku-3-5",
        "claude-opus-4-0": "claude-opus-4",
        "claude-sonnet-4-0": "claude-sonnet-4",
    },
)
