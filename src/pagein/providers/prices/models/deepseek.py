"""DeepSeek's models."""

from datetime import date
from typing import Final

from pagein.providers.caches.cache_rules import CacheRules
from pagein.providers.prices.token_prices import Peak, Prices
from pagein.providers.prices.vendor_models import LARGE_WINDOW, VendorModels

CACHE: Final = CacheRules("deepseek", "units", min_prefix=64, ttl=3600.0)

_PRICES = "D: DeepSeek pricing from 2026-10-27"
_CHINA_OFFICE_HOURS = Peak(2.0, ((1, 4), (6, 10)))


def _model(name: str, usd: tuple[float, float, float], since: date) -> Prices:
    hit, base, out = usd
    return Prices(
        name=name,
        provider="deepseek",
        input_usd=base,
        read=hit / base,
        write_5m=1.0,
        write_1h=1.0,
        output=out / base,
        cache=CACHE,
        window=LARGE_WINDOW,
        peak=_CHINA_OFFICE_HOURS,
        valid_from=since,
        source=_PRICES,
    )


MODELS: Final = VendorModels(
    (CACHE,),
    (
        _model("deepseek-v4-flash", (0.003, 0.15, 0.60), date(2026, 10, 27)),
        _model("deepseek-v4-pro", (0.022, 0.66, 1.98), date(2026, 10, 27)),
    ),
    aliases={
        "deepseek-flash": "deepseek-v4-flash",
    },
)
