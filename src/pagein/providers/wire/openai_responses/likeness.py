"""How surely a body is an OpenAI Responses request."""

from pagein.providers.wire.json_values import Json


def likeness(body: Json) -> int:
    """Return 100 for a body with items and without messages."""
    return 100 if "input" in body and "messages" not in body else 0
