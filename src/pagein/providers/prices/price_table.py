"""The price table, from the tables of the vendors. This is the one list of them: a new vendor is a module in `models/` and a row here."""

from itertools import groupby
from typing import Final

from pagein.providers.caches.cache_rules import NO_CACHE
from pagein.providers.prices.models import anthropic, deepseek, google, openai, self_hosted

VENDORS: Final = (anthropic.MODELS, openai.MODELS, deepseek.MODELS, google.MODELS, self_hosted.MODELS)

CATALOGUE: Final = {
    name: tuple(rows) for one in VENDORS for name, rows in groupby(one.prices, key=lambda row: row.name)
}
"""Rows of each model, oldest first."""

ALIASES: Final = {other: name for one in VENDORS for other, name in one.aliases.items()}
"""Alternative ids of models in the table, as recorded by hosts."""

KINDS: Final = {rules.name: rules for rules in (*(cache for one in VENDORS for cache in one.caches), NO_CACHE)}
"""The kinds of cache by their name in a price specification."""
