"""Google's Gemini models."""

from collections.abc import Iterable
from typing import Final

from pagein.providers.caches.cache_rules import CacheRules
from pagein.providers.prices.token_prices import Cliff, Prices
from pagein.providers.prices.vendor_models import LARGE_WINDOW, Abilities, Refused, VendorModels

CACHE: Final = CacheRules("gemini", "anywhere", ttl=300.0, hit_probability=0.9)

_PRICES = "D: Gemini caching guide, 2026-07-07; S: prices, price trackers and client tables, 2026-01 to 2026-10"
_ABILITIES: Final = "D: Gemini caching and model pages, 2026-07; F: signatures, client issues 2025-11 to 2026-10"
_LONG_PROMPT = Cliff(200_000, input=2.0, output=1.5)


def _gemini(
    name: str,
    usd: tuple[float, float],
    read: float | None = None,
    *,
    least: int = 4096,
    cliff: Cliff | None = None,
    told: str = "",
    storage: float | None = None,
) -> Prices:
    """The prices of a Gemini model, in dollars per million tokens.

    usd: input and output.
    storage: one hour in a cache that requests name; None if not found.
    read: cache reads; None if not published: then a tenth of the input price is assumed.
    """
    unknown = "; price of a read unknown" if read is None else ""
    return Prices(
        name=name,
        provider="google",
        input_usd=usd[0],
        read=0.1 if read is None else read / usd[0],
        write_5m=1.0,
        write_1h=1.0,
        output=usd[1] / usd[0],
        cache=CACHE.least(least),
        window=LARGE_WINDOW,
        cliff=cliff,
        source=f"{_PRICES}{unknown}{told}",
        storage_usd=storage,
    )


def _priced() -> Iterable[Prices]:
    yield _gemini("gemini-4-argon", (2, 10), 0.1, told="; twice as much from 2026-12-01")
    yield _gemini("gemini-3.8-flash", (0.75, 3.75), told="; twice as much from 2027-01-01")
    yield _gemini("gemini-3.7-flash", (1.5, 7.5), told="; half as much until 2027-12-31")
    yield _gemini("gemini-3.6-flash", (1.5, 7.5), told="; half as much seen on 2026-09-04")
    yield _gemini("gemini-3.5-flash", (1.5, 9), 0.15)
    yield _gemini("gemini-3.5-flash-lite", (0.3, 2.5))
    yield _gemini("gemini-3.1-pro", (2, 12), 0.2, cliff=_LONG_PROMPT)
    yield _gemini("gemini-3.1-flash-lite", (0.25, 1.5), 0.025, storage=1.0)
    yield _gemini("gemini-3-pro", (2, 12), cliff=_LONG_PROMPT)
    yield _gemini("gemini-3-flash", (0.5, 3), 0.05)
    yield _gemini("gemini-2.5-pro", (1.25, 10), 0.125, least=2048, cliff=_LONG_PROMPT, storage=4.5)
    yield _gemini("gemini-2.5-flash", (0.3, 2.5), 0.03, least=2048)
    yield _gemini("gemini-2.5-flash-lite", (0.1, 0.4), least=2048)


def _abilities() -> Iterable[Abilities]:
    for row in _PRICED:
        name = row.name
        refuses: set[Refused] = set()
        if not name.startswith("gemini-2"):
            refuses.add("unsigned calls")
        if name.startswith(("gemini-3.6", "gemini-3.7", "gemini-3.8", "gemini-4")) or name == "gemini-3.5-flash-lite":
            refuses.add("prefill")
        if name.startswith("gemini-4"):
            refuses.add("named caches")
        yield Abilities(name, frozenset(refuses), binds=False, source=_ABILITIES)


_PRICED: Final = tuple(_priced())

MODELS: Final = VendorModels((CACHE,), _PRICED, tuple(_abilities()))
