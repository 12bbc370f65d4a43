"""Convert tallies to the figures of the bill, and sum them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from pagein.model.bill import Figures
from pagein.providers.prices.price_lookup import Prices
from pagein.replay.policies.tally import Tally

_COUNTED = (
    "faults",
    "recall_cost",
    "stress_recalls",
    "rereads",
    "keep_alives",
    "keep_alive_cost",
    "quotes_visible",
    "quotes_lost",
    "quotes_total",
    "stubs",
    "epochs",
)
_PROVED = ("refused", "unrecoverable_bytes")


def figures(tally: Tally, prices: Prices, *, counted: bool = True, proved: bool = False) -> Figures:
    """Return a tally as reported. counted: with needs and quotes. proved: with rendered requests and stored bytes."""
    row: dict[str, object] = {
        "cost": round(tally.cost, 1),
        "usd": None if prices.input_usd is None else round(tally.cost * prices.input_usd / 1e6, 6),
        "read": round(tally.read),
        "written": round(tally.written),
        "fresh": round(tally.fresh),
        "output": round(tally.output),
        "prompt_tokens": round(tally.read) + round(tally.written) + round(tally.fresh),
        "floor_tokens": round(tally.floor),
        "calls": tally.calls,
        "layout": "inline",
    }
    for name in _COUNTED:
        row[name] = getattr(tally, name) if counted else None
    for name in _PROVED:
        row[name] = getattr(tally, name) if proved else None
    if counted:
        row["recall_cost"] = round(tally.recall_cost, 1)
        row["keep_alive_cost"] = round(tally.keep_alive_cost, 1)
    return cast("Figures", row)


def total(rows: Sequence[Figures]) -> Figures:
    """Return the sum of figures; None for a figure without a value."""
    summed: dict[str, object] = {"layout": rows[0]["layout"]}
    for name in Figures.__annotations__:
        if name == "layout":
            continue
        values = [cast("Mapping[str, float | None]", row)[name] for row in rows]
        known = [value for value in values if value is not None]
        summed[name] = round(sum(known), 6) if known else None
    return cast("Figures", summed)


def by_policy(sessions: Iterable[Mapping[str, Figures]]) -> dict[str, Figures]:
    """Return sums per policy, in the order of the first session."""
    rows: dict[str, list[Figures]] = {}
    for session in sessions:
        for name, row in session.items():
            rows.setdefault(name, []).append(row)
    return {name: total(some) for name, some in rows.items()}


def mean_ratios(groups: Mapping[str, Mapping[str, Figures]], baseline: str) -> dict[str, float]:
    """Return, per policy, the unweighted mean over groups of its cost relative to the baseline's."""
    ratios: dict[str, list[float]] = {}
    for rows in groups.values():
        against = rows[baseline]["cost"] if baseline in rows else 0.0
        for name, row in rows.items():
            if against > 0:
                ratios.setdefault(name, []).append(row["cost"] / against)
    return {name: round(sum(some) / len(some), 4) for name, some in ratios.items()}
