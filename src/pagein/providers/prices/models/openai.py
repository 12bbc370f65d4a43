"""OpenAI's models."""

from collections.abc import Iterable
from datetime import date
from typing import Final

from pagein.providers.caches.cache_rules import CacheRules
from pagein.providers.prices.token_prices import Cliff, Prices
from pagein.providers.prices.vendor_models import Abilities, Refused, VendorModels

CACHE: Final = CacheRules(
    "openai",
    "breakpoints",
    min_prefix=1024,
    ttl=1800.0,
    long_ttl=43_200.0,
    lookback=None,
    strict_marks=False,
    implicit_eligible="last_user_or_tool",
)
AUTOMATIC_CACHE: Final = CacheRules("openai-legacy", "anywhere", min_prefix=1024, ttl=600.0, granularity=128)

_PRICES = "D: OpenAI prompt caching guide, 2026-11-04; S: prices"
_OLDER = "D: OpenAI prompt caching guide; S: prices in published client tables"
_GPT: Final = "D: OpenAI prompt caching guide, 2026-11-04"
_GPT_CHAT: Final = "D: OpenAI prompt caching guide; F: tools with effort, client issues 2026-03 to 2026-09"
_DAY = 86_400.0
_GPT_WINDOW = 1_050_000
_LONG_PROMPT = Cliff(272_000, input=2.0, output=1.5)


def _model(name: str, usd: tuple[float, float, float], since: date) -> Prices:
    """A model from GPT-5.6 on: dollars for input, read and output.

    A write costs 1.25 times the input, a write that lasts 12 h costs 2.5 times.
    """
    base, read, out = usd
    return Prices(
        name=name,
        provider="openai",
        input_usd=base,
        read=read / base,
        write_5m=1.25,
        write_1h=2.5,
        output=out / base,
        cache=CACHE,
        window=_GPT_WINDOW,
        cliff=_LONG_PROMPT,
        valid_from=since,
        source=_PRICES,
    )


def _automatic(name: str, usd: tuple[float, float], read: float, window: int, ttl: float = 600.0) -> Prices:
    """An OpenAI model with automatic prefix caching and no fee for writes."""
    return Prices(
        name=name,
        provider="openai",
        input_usd=usd[0],
        read=read,
        write_5m=1.0,
        write_1h=1.0,
        output=usd[1] / usd[0],
        cache=AUTOMATIC_CACHE.with_ttl(ttl),
        window=window,
        cliff=_LONG_PROMPT if window == _GPT_WINDOW else None,
        source=_OLDER,
    )


def _priced() -> Iterable[Prices]:
    yield _model("gpt-6.1-sol", (2, 0.10, 10), date(2026, 9, 29))
    yield _model("gpt-6.1-terra", (1, 0.05, 5), date(2026, 10, 26))
    yield _model("gpt-6-sol", (2, 0.2, 10), date(2026, 9, 22))
    yield _model("gpt-6-luna", (0.1, 0.01, 0.5), date(2026, 9, 22))
    yield _model("gpt-5.6-sol", (5, 0.5, 30), date(2026, 7, 9))
    yield _model("gpt-5.6-terra", (2, 0.2, 12), date(2026, 7, 9))
    yield _model("gpt-5.6-luna", (0.2, 0.02, 1.2), date(2026, 7, 9))
    yield _automatic("gpt-5.5", (5, 30), 0.1, _GPT_WINDOW, ttl=_DAY)
    yield _automatic("gpt-5.4", (2.5, 15), 0.1, _GPT_WINDOW)
    yield _automatic("gpt-5.4-mini", (0.75, 4.5), 0.1, 400_000)
    yield _automatic("gpt-5.3-codex", (1.75, 14), 0.1, 400_000)
    yield _automatic("gpt-5.2", (1.75, 14), 0.1, 400_000)
    yield _automatic("gpt-5.1", (1.25, 10), 0.1, 400_000)
    yield _automatic("gpt-5", (1.25, 10), 0.1, 400_000)
    yield _automatic("gpt-5-mini", (0.25, 2), 0.1, 400_000)
    yield _automatic("gpt-4.1", (2, 8), 0.25, 1_047_576)
    yield _automatic("gpt-4o", (2.5, 10), 0.5, 128_000)


def _abilities() -> Iterable[Abilities]:
    for row in _PRICED:
        name = row.name
        refuses: set[Refused] = set() if row.cache.model == "breakpoints" else {"cache options"}
        chat = name.startswith(("gpt-5.4", "gpt-5.5", "gpt-5.6", "gpt-6"))
        if chat:
            refuses.add("tools with effort in Chat")
        yield Abilities(name, frozenset(refuses), binds=False, source=_GPT_CHAT if chat else _GPT)


_PRICED: Final = tuple(_priced())

MODELS: Final = VendorModels(
    (CACHE, AUTOMATIC_CACHE),
    _PRICED,
    tuple(_abilities()),
    {
        "gpt-5.5-codex": "gpt-5.5",
        "gpt-5.4-codex": "gpt-5.4",
        "gpt-5.3-codex-spark": "gpt-5.3-codex",
        "gpt-5.2-codex": "gpt-5.2",
        "gpt-5.1-codex": "gpt-5.1",
        "gpt-5.1-codex-max": "gpt-5.1",
        "gpt-5-codex": "gpt-5",
        "gpt-5-chat": "gpt-5",
        "gpt-5.1-codex-mini": "gpt-5-mini",
        "gpt-5.6": "gpt-5.6-sol",
    },
)
