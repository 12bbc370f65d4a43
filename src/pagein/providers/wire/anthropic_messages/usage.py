"""Usage as Anthropic Messages reports it."""

from collections.abc import Mapping
from typing import Any

from pagein.model.messages import Usage
from pagein.providers.wire.json_values import count_at


def usage_from(told: Mapping[str, Any]) -> Usage:
    """Read a usage object. After a compaction, the calls made for it are counted too."""
    rounds = told.get("iterations")
    if isinstance(rounds, list) and len(rounds) > 1:  # the other fields leave out the calls made for the compaction
        return sum((usage_from(one) for one in rounds if isinstance(one, Mapping)), Usage())
    return Usage(
        fresh=count_at(told, "input_tokens"),
        read=count_at(told, "cache_read_input_tokens"),
        written=count_at(told, "cache_creation_input_tokens"),
        written_1h=count_at(told.get("cache_creation"), "ephemeral_1h_input_tokens"),
        output=count_at(told, "output_tokens"),
    )
