"""Prices by model and date: the row of the table for a price specification."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from difflib import get_close_matches
from functools import lru_cache

from pagein.errors import BadSetting
from pagein.providers.prices.model_ids import model_name_in
from pagein.providers.prices.models import anthropic
from pagein.providers.prices.price_table import ALIASES, CATALOGUE, KINDS
from pagein.providers.prices.token_prices import Prices, charge, cost
from pagein.providers.prices.vendor_models import LARGE_WINDOW

__all__ = ["Prices", "charge", "cost", "models_with_prices", "prices"]

GENERIC = "generic:r=.1,w=1.25"
_GENERIC_KEYS = "r, w, w1h, out, min, in, window, cache"


def prices(spec: str, on: date | None = None) -> Prices:
    """The prices for a specification: `MODEL`, `MODEL@YYYY-MM-DD`, or `generic:r=.1,w=1.25`.

    on: day of the prices (a date in the specification wins); None: the newest. A day before the first known price gets
        the first price.

    Model ids are accepted as recorded by hosts. Keys of the generic form: r and w (multipliers of a read and of a short
    write), w1h (2), out (5), min (minimum prefix), in (dollars), window, cache (a kind of `KINDS`).
    Raises BadSetting with the near matches.
    """
    kind, colon, settings = spec.strip().partition(":")
    if kind == "generic":
        return _generic(spec, settings if colon else "")
    model, day = _split_date(spec)
    name = model_name_in(model, CATALOGUE)
    if name is None:
        raise _unknown_model(spec, [*CATALOGUE, *ALIASES])
    rows = CATALOGUE[name]
    day = day or on
    found = rows[-1] if day is None else next((row for row in reversed(rows) if _is_valid_on(row, day)), rows[0])
    return replace(found, window=LARGE_WINDOW) if "[1m]" in model.lower() else found


def models_with_prices() -> tuple[str, ...]:
    """The models with prices, in the order of the table."""
    return tuple(CATALOGUE)


def _is_valid_on(row: Prices, day: date) -> bool:
    return row.valid_from is None or row.valid_from <= day


@lru_cache(maxsize=256)
def newest_prices(model: str) -> Prices | None:
    """The newest prices of a model; None for a model outside the table."""
    try:
        return prices(model)
    except BadSetting:
        return None


def _split_date(spec: str) -> tuple[str, date | None]:
    model, at, day = spec.strip().rpartition("@")
    if not at or not re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}", day):
        return spec.strip(), None
    try:
        return model, date(*(int(part) for part in day.split("-")))
    except ValueError:
        raise BadSetting(f"prices {spec!r}: {day} is no date; write MODEL@YYYY-MM-DD") from None


def _unknown_model(spec: str, known: list[str]) -> BadSetting:
    near = get_close_matches(spec.lower().rpartition("/")[2].partition("@")[0], known, n=4, cutoff=0.5)
    hint = f"near: {', '.join(near)}; " if near else ""
    return BadSetting(f"no prices for {spec!r}; {hint}multipliers of your own: --prices '{GENERIC}' ({_GENERIC_KEYS})")


def _generic(spec: str, settings: str) -> Prices:
    given: dict[str, str] = {}
    for setting in filter(None, (part.strip() for part in settings.split(","))):
        key, equals, value = setting.partition("=")
        if not equals or key.strip() not in _GENERIC_KEYS.split(", ") or key.strip() in given:
            raise BadSetting(
                f"prices {spec!r}: {setting!r}; write for example {GENERIC} (keys once each: {_GENERIC_KEYS})"
            )
        given[key.strip()] = value.strip()
    rules = KINDS.get(given.pop("cache", anthropic.CACHE.name))
    if rules is None:
        raise BadSetting(f"prices {spec!r}: unknown cache; one of {', '.join(KINDS)}")
    number = _numbers(spec, given)
    least = number.get("min")
    return Prices(
        name=spec,
        provider="generic",
        input_usd=number.get("in"),
        read=number.get("r", 0.1),
        write_5m=number.get("w", 1.25 if rules.model == "breakpoints" else 1.0),
        write_1h=number.get("w1h", 2.0),
        output=number.get("out", 5.0),
        cache=rules if least is None else rules.least(int(least)),
        window=int(number.get("window", 200_000)),
        source="given",
    )


def _numbers(spec: str, given: Mapping[str, str]) -> dict[str, float]:
    number: dict[str, float] = {}
    for key, value in given.items():
        try:
            number[key] = float(value)
        except ValueError:
            raise BadSetting(f"prices {spec!r}: {key}={value!r} is no number") from None
        if not 0 <= number[key] < float("inf"):
            raise BadSetting(f"prices {spec!r}: {key}={value} must be 0 or more")
    return number
