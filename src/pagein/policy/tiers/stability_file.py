"""The stability file of the seed design: its JSON, from and to a state.

`{"response_count": 3, "last_active_items": [...], "items": {key: {"content_hash", "n_value", "tier"}}}`
"""

import json
from dataclasses import replace
from typing import Any, get_args

from pagein.policy.tiers.tier_values import START, Tier, TierItem, TierState

_TIERS = frozenset(get_args(Tier))


def encode_stability(state: TierState) -> str:
    """The text of the file."""
    items = {key: {"content_hash": one.digest, "n_value": one.n, "tier": one.tier} for key, one in state.items.items()}
    record = {"response_count": state.responses, "last_active_items": list(state.last_active), "items": items}
    return json.dumps(record, indent=2)


def decode_stability(text: str) -> TierState:
    """The state in a file. A damaged file gives an empty state; names of older versions are understood.

    The set of listed files is empty, so that the first request counts as a ripple.
    """
    try:
        record = json.loads(text)
        items = {str(key): _item(value) for key, value in record.get("items", {}).items()}
        last = tuple(str(key) for key in record.get("last_active_items", ()))
        return replace(START, items=items, last_active=last, responses=int(record.get("response_count", 0)))
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError):
        return START


def _item(value: dict[str, Any]) -> TierItem:
    tier = value.get("tier", value.get("current_tier", "active"))
    n = int(value.get("n_value", value.get("stable_count", 0)))
    if tier not in _TIERS or n < 0:
        raise ValueError(tier)
    return TierItem(str(value["content_hash"]), n, tier)
