"""Find a provider's usage report in an answer, in each wire format."""

from collections.abc import Mapping
from typing import Any

from pagein.model.messages import Usage
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named


def usage_of(reply: Mapping[str, Any], api: Api) -> Usage | None:
    """Find the usage in a reply: a whole reply, or a stream event with usage. None without usage."""
    form = format_named(api).answers
    for holder in (reply, reply.get("message"), reply.get("response")):
        told = holder.get(form.usage_field) if isinstance(holder, Mapping) else None
        if isinstance(told, Mapping):
            return form.usage(told)
    return None


def parse_usage(told: object, api: Api) -> Usage | None:
    """Parse a provider's usage object. None for any different value."""
    return format_named(api).answers.usage(told) if isinstance(told, Mapping) else None
