"""The names under which model calls are exported: OpenTelemetry's conventions for generative AI, and pagein's own.

The conventions are still in development. A later version of them changes this file and no other.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from pagein.gateway.pages.call_history import CallRecord
from pagein.providers.vendors import VENDORS

SERVICE: Final = "pagein"
TOKENS: Final = "gen_ai.client.token.usage"
DURATION: Final = "gen_ai.client.operation.duration"
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105 - no secret
SAVED: Final = "pagein.saved"
"""The saving of a call against the same call without pagein, in base-input-token equivalents."""
RECALLS: Final = "pagein.recalls"
TOKEN_BUCKETS: Final = tuple(4**power for power in range(14))
SECOND_BUCKETS: Final = tuple(0.01 * 2**power for power in range(14))
"""The boundaries that the conventions name."""
_OPERATION: Final = "chat"
_FAILED: Final = 400

Attribute = str | int | float | bool
"""A value of an attribute."""


def span_name(call: CallRecord) -> str:
    """Return the name of a call's span."""
    return f"{_OPERATION} {call.model}".rstrip()


def common_attributes(call: CallRecord, vendor: str) -> Mapping[str, Attribute]:
    """Return the attributes that spans and metrics have in common: their values are few."""
    provider = next((one.telemetry for one in VENDORS if one.name == vendor), vendor)
    told: dict[str, Attribute] = {"gen_ai.operation.name": _OPERATION, "gen_ai.provider.name": provider}
    if call.model:
        told["gen_ai.request.model"] = call.model
    if failure := error_type(call):
        told["error.type"] = failure
    return told


def span_attributes(call: CallRecord, vendor: str) -> Mapping[str, Attribute]:
    """Return the attributes of a call's span. No text of the conversation is among them."""
    told = dict(common_attributes(call, vendor))
    if call.session:
        told["gen_ai.conversation.id"] = call.session
    if call.status:
        told["http.response.status_code"] = call.status
    if call.usage is not None:
        told |= {
            "gen_ai.usage.input_tokens": call.usage.prompt,
            "gen_ai.usage.output_tokens": call.usage.output,
            "gen_ai.usage.cache_read.input_tokens": call.usage.read,
            "gen_ai.usage.cache_creation.input_tokens": call.usage.written,
        }
    own: dict[str, Attribute | None] = {
        "pagein.passed": call.passed,
        "pagein.epoch": call.epoch,
        "pagein.replaced": call.replaced,
        RECALLS: call.recalls,
        "pagein.added_seconds": call.added,
        "pagein.cost_bit": call.cost,
        "pagein.saved_bit": call.saved,
        "pagein.cache_shortfall.tokens": call.shortfall,
        "pagein.cache_shortfall.cause": call.cause,
    }
    return told | {name: value for name, value in own.items() if value}


def token_counts(call: CallRecord) -> Iterator[tuple[str, int]]:
    """Yield the tokens of a call by their type."""
    if call.usage is not None:
        yield "input", call.usage.prompt
        yield "output", call.usage.output


def error_type(call: CallRecord) -> str:
    """Return why a call failed for its client, "" if it did not."""
    if not call.status:
        return "client_disconnected"
    return str(call.status) if call.status >= _FAILED else ""
