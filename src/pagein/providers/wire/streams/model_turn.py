"""Turns of a model: recall calls apart from the client's tool calls, and the messages that continue an answer.

Rules of this file
------------------
1. The provider gets back its own messages, followed by recall results. The client sees the same messages without recall calls.
2. Recall calls of an incomplete turn, or of a turn that did not stop for tool calls, are ignored: their arguments may be
   truncated.
3. The client answers its own calls. If a turn has both kinds, recall results are added beside the client's results when they
   arrive (`engine.send.recall_exchanges`).
"""

from dataclasses import dataclass, field
from typing import Final

from pagein.providers.wire.json_values import Json, parse_json, text_at

GAP: Final = "\n\n"
"""Separator between the texts of two turns, in formats whose answer has a single text for the client."""


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call of a recall tool.

    arguments: as written by the model, {} if not a JSON object
    """

    id: str
    name: str
    arguments: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OwnToolResult:
    """The result of a recall call."""

    call: OwnCall
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """A turn of the model.

    own: its recall calls
    said, shown: messages (Responses: items) as JSON, with and without recall calls
    calls_client: whether the turn also waits for the client
    spoke: whether its text must be separated from the next turn's text
    """

    own: tuple[OwnCall, ...] = ()
    said: tuple[bytes, ...] = ()
    shown: tuple[bytes, ...] = ()
    calls_client: bool = False
    spoke: bool = False

    @property
    def goes_on(self) -> bool:
        """Return whether the model waits for recall results only."""
        return bool(self.own) and not self.calls_client


def not_done(text: object) -> bool:
    """Return whether this is text that needs a separator before more text."""
    return isinstance(text, str) and bool(text) and not text[-1].isspace()


def arguments_in(call: Json) -> Json:
    """Return the arguments of a call, written as JSON text; {} for anything but an object."""
    return object_or_empty(parse_json(text_at(call, "arguments")))


def object_or_empty(value: object) -> Json:
    """Return the value if it is an object, else {}."""
    return value if isinstance(value, dict) else {}
