"""Journal fact: a request was answered, with the usage that the provider reported."""

from typing import Final

import msgspec

from pagein.model.entries import Body, NoteEntry
from pagein.model.messages import Usage

KIND: Final = "request.answered"


def encode_usage(usage: Usage) -> str:
    """Encode usage for the journal."""
    return msgspec.json.encode(usage).decode()


def usage_in(body: Body) -> Usage | None:
    """Return the usage in an entry, or None."""
    if not isinstance(body, NoteEntry) or body.kind != KIND:
        return None
    try:
        return msgspec.json.decode(body.data, type=Usage)
    except msgspec.MsgspecError:  # written by another version
        return None
