"""That a request was answered, and what the provider said it took: a fact of the branch, journaled behind the request."""

from typing import Final

import msgspec

from pagein.model.entries import Body, NoteEntry
from pagein.model.messages import Usage

KIND: Final = "request.answered"


def encode_usage(usage: Usage) -> str:
    """As it is journaled."""
    return msgspec.json.encode(usage).decode()


def usage_in(body: Body) -> Usage | None:
    """The usage that an entry tells, None where it tells none."""
    if not isinstance(body, NoteEntry) or body.kind != KIND:
        return None
    try:
        return msgspec.json.decode(body.data, type=Usage)
    except msgspec.MsgspecError:  # a record of another version
        return None
