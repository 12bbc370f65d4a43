"""Stored objects as resources of the protocol, by the address `pagein://object/ID`.

The list of resources is empty, and its bytes are the same at each start: a store has many thousand objects, and `search` finds
the right ones. The template tells a client how to address each.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from pagein.errors import BadInput

_PARTS: Final = ("turns", "line", "lines", "offset", "length")
_WHOLE: Final = frozenset(_PARTS) - {"turns"}
TEMPLATES: Final[tuple[Mapping[str, Any], ...]] = (
    {
        "uriTemplate": f"pagein://object/{{id}}{{?{','.join(_PARTS)}}}",
        "name": "object",
        "description": (
            "A stored object, exactly as it was: by the id of a search match or of a stub, id@3 for version 3. A long one comes in parts; "
            "the last line of a part says with which offset or line to go on."
        ),
        "mimeType": "text/plain",
    },
)
"""The templates of the protocol's `resources/templates/list`."""


def peek_arguments(uri: str) -> dict[str, object]:
    """Return the arguments of `peek` for a resource. Raises BadInput for an address of another form."""
    try:
        found = urlsplit(uri)
    except ValueError as problem:  # such as a host in half a pair of brackets
        raise BadInput(f"{uri!r} is no resource of pagein's; they are pagein://object/ID") from problem
    name = unquote(found.path.removeprefix("/"))
    if found.scheme != "pagein" or found.netloc != "object" or not name:
        raise BadInput(f"{uri!r} is no resource of pagein's; they are pagein://object/ID")
    told: dict[str, object] = {"id": name}
    for part, values in parse_qs(found.query, keep_blank_values=True).items():
        if part not in _PARTS:
            raise BadInput(f"{uri!r}: there is no part {part!r}; the parts are {', '.join(_PARTS)}")
        value = values[-1]
        if part in _WHOLE and not (value.isascii() and value.isdigit() and len(value) < 16):  # noqa: PLR2004
            raise BadInput(f"{uri!r}: {part} must be a whole number")
        told[part] = int(value) if part in _WHOLE else value
    return told
