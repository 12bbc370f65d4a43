"""Models on servers of one's own: reading a prefix costs no prefill."""

import math
from typing import Final

from pagein.providers.caches.cache_rules import CacheRules
from pagein.providers.prices.token_prices import Prices
from pagein.providers.prices.vendor_models import VendorModels

CACHE: Final = CacheRules("vllm", "anywhere", min_prefix=16, ttl=math.inf, granularity=16, recomputed=1)

MODELS: Final = VendorModels(
    (CACHE,),
    (
        Prices(
            name="self-hosted",
            provider="vllm",
            input_usd=None,
            read=0.0,
            write_5m=1.0,
            write_1h=1.0,
            output=5.0,
            cache=CACHE,
            source="D: vLLM documentation; reads cost no prefill",
        ),
    ),
    aliases={
        "vllm": "self-hosted",
        "sglang": "self-hosted",
        "llama.cpp": "self-hosted",
    },
)
