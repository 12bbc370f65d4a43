"""Read the texts in the arguments of a tool call."""

import json
from collections.abc import Iterator


def texts_in(arguments: str) -> Iterator[str]:
    """Yield every string in the arguments of a call, at any depth.

    arguments: JSON text. Nothing is yielded if it cannot be parsed. Field names are not yielded.
    """
    try:
        waiting: list[object] = [json.loads(arguments)]
    except (ValueError, RecursionError):
        return
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case dict() as inner:
                waiting.extend(inner.values())
            case list() as inner:
                waiting.extend(inner)
            case _:
                pass


def field_names(arguments: str) -> frozenset[str]:
    """Return the names of the arguments of a call; empty for a text without a JSON object."""
    try:
        found: object = json.loads(arguments)
    except (ValueError, RecursionError):
        return frozenset()
    return frozenset(found) if isinstance(found, dict) else frozenset()
