"""How surely a body is a Gemini request."""

from pagein.providers.wire.json_values import Json


def likeness(body: Json) -> int:
    """Return 110 for a body with contents and without messages or input."""
    return 110 if "contents" in body and "messages" not in body and "input" not in body else 0
