"""Request features refused by each model, by date: facts for the validity rules.

A row holds only documented refusals. A model outside the table is not known to refuse anything, so no rule stops a
request to it. A plan for later requests must assume the strictest model (`Abilities.may_bind`).
"""

from datetime import date
from functools import lru_cache
from itertools import groupby
from typing import Final, get_args

from pagein.providers.prices.model_ids import model_name_in
from pagein.providers.prices.price_table import VENDORS
from pagein.providers.prices.vendor_models import Abilities, Refused

__all__ = ["FEATURES", "TABLE", "UNKNOWN", "Abilities", "abilities"]

UNKNOWN: Final = Abilities()
FEATURES: Final[tuple[Refused, ...]] = get_args(Refused)

TABLE: Final = {name: tuple(rows) for one in VENDORS for name, rows in groupby(one.abilities, key=lambda row: row.name)}
"""Rows of each model, oldest first."""


@lru_cache(maxsize=256)
def abilities(model: str | None, on: date | None = None) -> Abilities:
    """The documented abilities of a model on a day. UNKNOWN for a model outside the table.

    model: id as recorded by hosts.
    on: the day; None: the newest row.
    """
    name = model_name_in(model, TABLE) if model else None
    if name is None:
        return UNKNOWN
    rows = TABLE[name]
    began = (row for row in reversed(rows) if on is None or row.valid_from is None or row.valid_from <= on)
    return next(began, rows[0])
