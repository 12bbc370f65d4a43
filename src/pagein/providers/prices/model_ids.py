"""Model ids as recorded by hosts, and their names in the tables."""

import re
from collections.abc import Collection
from typing import Final

from pagein.providers.prices.price_table import ALIASES, CATALOGUE

_DECORATION: Final = (
    re.compile(r"\[[^\]]*\]$"),  # claude-opus-4-6[1m]
    re.compile(r"[:](?:beta|thinking|free|nitro|extended|exacto|online|batch)$"),
    re.compile(r"-v\d+(?::\d+)?$"),  # anthropic.claude-...-v1:0
    re.compile(r"[-@]\d{8}$"),  # -20251101
    re.compile(r"-\d{4}-\d{2}-\d{2}$"),  # -2025-08-07
    re.compile(r"-(?:latest|preview|fast|thinking)$"),
)
_VENDORS: Final = sorted({rows[0].provider for rows in CATALOGUE.values()})
_VENDOR: Final = re.compile(rf"^(?:[a-z]{{2,6}}\.)?(?:{'|'.join(_VENDORS)})\.")


def model_name_in(model: str, table: Collection[str]) -> str | None:
    """The name of a model in a table, or None."""
    spellings = _spellings(model)
    names = (ALIASES.get(spelling, spelling) for spelling in spellings if spelling in table or spelling in ALIASES)
    return next((name for name in names if name in table), None)


def _spellings(model: str) -> list[str]:
    """Every spelling to try for a model id: without prefixes and suffixes, with dots and with hyphens."""
    name = model.strip().lower().rpartition("/")[2]
    name = _VENDOR.sub("", name)
    found = [name]
    shorter = True
    while shorter:
        shorter = False
        for decoration in _DECORATION:
            if (bare := decoration.sub("", name)) != name:
                name, shorter = bare, True
                found.append(name)
    return [spelling for name in found for spelling in (name, name.replace(".", "-"))]
