"""An answer of the simulated provider before conversion to a wire format."""

import json
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pagein.model.messages import Usage


@dataclass(frozen=True, slots=True)
class ReplyText:
    """Text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReplyThought:
    """Thinking with the signature that binds it to the prompt. Redacted thinking shows only the signature."""

    text: str
    signature: str
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class ReplyCall:
    """A tool call.

    arguments: JSON text of an object, or the free text for a custom tool (`is_free`).
    """

    id: str
    name: str
    arguments: str
    namespace: str | None = None
    is_free: bool = False

    @property
    def input(self) -> Any:  # noqa: ANN401 - plain JSON of any shape
        """The arguments as an object."""
        return {"input": self.arguments} if self.is_free else json.loads(self.arguments)


Spoken: TypeAlias = ReplyText | ReplyThought | ReplyCall


@dataclass(frozen=True, slots=True)
class SimulatedReply:
    """An answer of the provider.

    tag: hexadecimal, unique to the answer, part of every id in it.
    created: seconds since 1970.
    reasoning: tokens of the thinking.
    stop: the script's own stop reason; None for the natural one.
    chunk: characters in one event of a stream.
    reports_usage: whether the client asked for usage in a Chat stream.
    reports_writes: whether OpenAI's usage includes cache writes.
    applied: report of the context edits; None if the client asked for none.
    dropped: the thinking that the provider dropped.
    """

    tag: str
    model: str
    created: int
    blocks: tuple[Spoken, ...]
    usage: Usage = field(default_factory=Usage)
    reasoning: int = 0
    stop: str | None = None
    chunk: int = 20
    reports_usage: bool = True
    reports_writes: bool = False
    applied: tuple[dict[str, Any], ...] | None = None
    dropped: tuple[dict[str, Any], ...] = ()

    @property
    def calls(self) -> tuple[ReplyCall, ...]:
        """The tool calls in the answer."""
        return tuple(block for block in self.blocks if isinstance(block, ReplyCall))

    @property
    def text(self) -> str:
        """The text of the answer."""
        return "".join(block.text for block in self.blocks if isinstance(block, ReplyText))

    def chunks(self, text: str) -> list[str]:
        """Split a text into the chunks of a stream."""
        return [text[at : at + self.chunk] for at in range(0, len(text), self.chunk)]
