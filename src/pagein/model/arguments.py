"""What stands in the arguments of a tool call."""

import json
from collections.abc import Iterator


def texts_in(arguments: str) -> Iterator[str]:
    """Every text in these arguments (JSON text), at any depth; nothing where they are no JSON. Names of fields are not among them."""
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
