"""The reply read from a model's answer: usage, message, completeness; with lenient reading of JSON.

Reading never affects the forwarded bytes; unknown parts are skipped.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from pagein.model.messages import Usage
from pagein.providers.wire.streams.event_stream import Event

Json: TypeAlias = Mapping[str, Any]

_DECODER: Final = msgspec.json.Decoder()
_MOST: Final = 1 << 50


@dataclass(frozen=True, slots=True)
class ModelReply:
    """An answer.

    usage: None if not reported; the sum over several turns
    message: the answer in the provider's form, as a client would send it back, or None
    finished: whether the answer is complete
    error: kind of an error reported in the answer, "" for none
    first: usage of the first turn, if recall calls led to several turns, or the model's part before it used a tool of the provider's
    further: usages of the turns behind recall calls, one by one
    miss: why the provider says that its cache was missed, in its words; "" if the client did not ask, or there is no reason
    recalls: number of answered recall calls
    shown: the messages of the answer as the client saw them, if recall tools were offered; None for all of `message`
    id: name of the answer, if the provider explains cache misses by it; that of the first turn
    """

    usage: Usage | None = None
    message: Json | None = None
    stop: str = ""
    finished: bool = False
    error: str = ""
    first: Usage | None = None
    further: tuple[Usage, ...] = ()
    miss: str = ""
    recalls: int = 0
    shown: tuple[bytes, ...] | None = None
    id: str = ""


NO_REPLY: Final = ModelReply()


class ReplyReader(Protocol):
    """Reads the events of a stream."""

    def take(self, event: Event) -> None:
        """Read an event."""

    def reply(self) -> ModelReply:
        """Return the reply read so far."""


def decoded_object(text: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a text, or None."""
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def error_kind(error: object) -> str:
    """Return the kind of an error, as the provider names it."""
    return (text_at(error, "type") or text_at(error, "code") or "error") if isinstance(error, dict) else "error"


def text_at(value: object, name: str) -> str:
    """Return the string under a name, or ""."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def count_at(value: object, name: str) -> int:
    """Return a count; providers also write whole numbers as 12.0."""
    found = value.get(name) if isinstance(value, dict) else None
    return int(found) if isinstance(found, int | float) and 0 <= found < _MOST else 0
