"""Read a provider's usage report in each wire format."""

from collections.abc import Mapping
from typing import Any, Final

from pagein.model.messages import Usage
from pagein.providers.validity.rules import Api

_MOST: Final = 1 << 50  # a larger number is not a token count


def usage_of(reply: Mapping[str, Any], api: Api) -> Usage | None:
    """Find the usage in a reply: a whole reply, or a stream event with usage. None without usage."""
    for holder in (reply, reply.get("message"), reply.get("response")):
        told = holder.get("usage") if isinstance(holder, Mapping) else None
        if isinstance(told, Mapping):
            return parse_usage(told, api)
    return None


def parse_usage(told: object, api: Api) -> Usage | None:
    """Parse a provider's usage object. None for any different value."""
    if not isinstance(told, Mapping):
        return None
    return _anthropic(told) if api == "anthropic" else _openai(told)


def _anthropic(told: Mapping[str, Any]) -> Usage:
    rounds = told.get("iterations")
    if (
        isinstance(rounds, list) and len(rounds) > 1
    ):  # with compaction, the top-level fields leave out the call made for it
        return sum((_anthropic(one) for one in rounds if isinstance(one, Mapping)), Usage())
    lives = told.get("cache_creation")
    long = _count(lives, "ephemeral_1h_input_tokens") if isinstance(lives, Mapping) else 0
    return Usage(
        fresh=_count(told, "input_tokens"),
        read=_count(told, "cache_read_input_tokens"),
        written=_count(told, "cache_creation_input_tokens"),
        written_1h=long,
        output=_count(told, "output_tokens"),
    )


def _openai(told: Mapping[str, Any]) -> Usage:
    prompt = _count(told, "prompt_tokens") or _count(told, "input_tokens")
    details = told.get("prompt_tokens_details") or told.get("input_tokens_details")
    details = details if isinstance(details, Mapping) else {}
    read = _count(details, "cached_tokens") or _count(told, "prompt_cache_hit_tokens")
    written = _count(details, "cache_write_tokens")
    output = _count(told, "completion_tokens") or _count(told, "output_tokens")
    return Usage(fresh=max(0, prompt - read - written), read=read, written=written, output=output)


def _count(told: Mapping[str, Any], name: str) -> int:
    value = told.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MOST:
        return 0
    return int(value)
