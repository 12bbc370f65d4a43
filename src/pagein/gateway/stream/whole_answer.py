"""Read an answer without streaming, in any wire format."""

from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.json_values import decoded_object
from pagein.providers.wire.streams.model_reply import NO_REPLY, ModelReply, error_kind
from pagein.providers.wire.usage import parse_usage


def whole(api: Api, body: bytes) -> ModelReply:
    """Return the reply in a body without streaming."""
    value = decoded_object(body)
    if value is None:
        return NO_REPLY
    form, error = format_named(api).answers, value.get("error")
    if isinstance(error, dict):
        return ModelReply(error=error_kind(error), usage=parse_usage(value.get(form.usage_field), api))
    return form.whole(value)
