"""How surely a body is an OpenAI Chat Completions request."""

from typing import Final

from pagein.providers.wire.json_values import Json, objects_in

_ROLES: Final = frozenset({"system", "developer", "tool", "function"})


def likeness(body: Json) -> int:
    """Return 80 for tools or roles of this format alone, 30 otherwise: other providers speak it too."""
    if any("function" in tool for tool in objects_in(body.get("tools"))):
        return 80
    return 80 if any(one.get("role") in _ROLES for one in objects_in(body.get("messages"))) else 30
