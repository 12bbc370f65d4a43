"""The reply read from a model's answer: usage, message, completeness.

Reading never affects the forwarded bytes; unknown parts are skipped.
"""

from dataclasses import dataclass
from typing import Final, Protocol

from pagein.model.messages import Usage
from pagein.providers.wire.json_values import Json, text_at
from pagein.providers.wire.streams.event_stream import Event


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


def error_kind(error: object) -> str:
    """Return the kind of an error, as the provider names it."""
    return text_at(error, "type") or text_at(error, "code") or "error"
