"""An answer of the simulated provider before it takes a wire format."""

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
    """Thinking with the signature that binds it to its prompt; redacted: only that is shown."""

    text: str
    signature: str
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class ReplyCall:
    """A call. arguments: JSON text of an object, or the free text of a tool that takes such (`is_free`)."""

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
    """An answer. tag: hexadecimal, unique to it, part of all its ids. created: seconds since 1970.

    stop: the script's own word for why it ended, None for what follows. chunk: characters in one event of a stream.
    reports_usage: whether a stream of Chat Completions was asked for its usage. reports_writes: whether writes are in OpenAI's usage.
    applied: what the provider cleared from the prompt, None where that was not asked for. dropped: the thinking it left out.
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
        """The calls in it."""
        return tuple(block for block in self.blocks if isinstance(block, ReplyCall))

    @property
    def text(self) -> str:
        """All it says aloud."""
        return "".join(block.text for block in self.blocks if isinstance(block, ReplyText))

    def chunks(self, text: str) -> list[str]:
        """A text as the events of a stream carry it."""
        return [text[at : at + self.chunk] for at in range(0, len(text), self.chunk)]
