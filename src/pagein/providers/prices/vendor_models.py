"""The contract of the tables in `models/`: prices, abilities, names and caches of a vendor's models.

Prices: dollars are per million tokens. Without a documented minimum prefix, the largest known minimum is assumed.
Promotional prices are left out, and so are batch and fast modes, which multiply on top.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal, TypeAlias

from pagein.providers.caches.cache_rules import CacheRules
from pagein.providers.prices.token_prices import Prices

LARGE_WINDOW = 1_000_000

Refused: TypeAlias = Literal[
    "prefill",
    "thinking.enabled",
    "thinking.adaptive",
    "thinking.disabled",
    "no thinking at high effort",
    "forced tools",
    "sampling",
    "two samplers",
    "system messages",
    "tools with effort in Chat",
    "cache options",
    "unsigned calls",
    "named caches",
    "tool search",
]
"""A feature that some model answers with an error, in the words of the generated page."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """The abilities of a model from a date on.

    refuses: features that the model is documented to refuse.
    binds: whether its thinking is bound to the prompt before it (T1); None: not known.
    checks: whether a broken binding is refused (T4); if not, the thinking is silently dropped or kept.
    thinks_unasked: whether the model thinks if the request does not say; None: not known.
    carries_thinking: whether the model is known to see its thinking of finished turns again, as long as it is sent.
    searches_tools: whether the provider is known to find deferred tools for it.
    source: D: the vendor's documentation; S: secondary; F: reported by users.
    """

    name: str = ""
    refuses: frozenset[Refused] = frozenset()
    binds: bool | None = None
    checks: bool = True
    thinks_unasked: bool | None = None
    carries_thinking: bool = False
    searches_tools: bool = False
    valid_from: date | None = None
    source: str = ""

    @property
    def may_bind(self) -> bool:
        """Whether a change of the prompt must treat thinking as bound to the prefix."""
        return self.binds is not False


@dataclass(frozen=True, slots=True)
class VendorModels:
    """What is known of a vendor's models.

    caches: the kinds of their caches.
    prices: one row per model and first day of a price; the rows of a model stand together, oldest first.
    abilities: what they refuse, in rows of the same order.
    aliases: other ids of models, as recorded by hosts, with the id in the table.
    """

    caches: tuple[CacheRules, ...]
    prices: tuple[Prices, ...]
    abilities: tuple[Abilities, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
