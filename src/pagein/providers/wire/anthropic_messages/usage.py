"""Usage as Anthropic Messages reports it."""

from collections.abc import Mapping
from typing import Any

from pagein.model.messages import Usage
from pagein.providers.wire.usage_counts import count_at


def usage_from(told: Mapping[str, Any]) -> Usage:
    """Read a usage object. After a compaction, the calls made for it are counted too."""
    rounds = told.get("iterations")
    if (
        isinstance(rounds, list) and len(rounds) > 1
    ):  # with compaction, the top-level fields leave out the call made for it
        return sum((usage_from(one) for one in rounds if isinstance(one, Mapping)), Usage())
    lives = told.get("cache_creation")
    long = count_at(lives, "ephemeral_1h_input_tokens") if isinstance(lives, Mapping) else 0
    return Usage(
        fresh=count_at(told, "input_tokens"),
        read=count_at(told, "cache_read_input_tokens"),
        written=count_at(told, "cache_creation_input_tokens"),
        written_1h=long,
        output=count_at(told, "output_tokens"),
    )
