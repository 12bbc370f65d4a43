"""An answer of the simulated provider before conversion to a wire format."""

import json
from collections.abc import Mapping
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


@dataclass(frozen=True, slots=True)
class ReplySearch:
    """A search for deferred tools, which the provider answers itself.

    name: of the tool that searches.
    query: a regular expression.
    """

    id: str
    name: str
    query: str


@dataclass(frozen=True, slots=True)
class FoundTools:
    """The result of a search for deferred tools.

    id: of the search.
    """

    id: str
    names: tuple[str, ...]


Spoken: TypeAlias = ReplyText | ReplyThought | ReplyCall | ReplySearch | FoundTools


@dataclass(frozen=True, slots=True)
class SimulatedReply:
    """An answer of the provider.

    tag: hexadecimal, unique to the answer, part of every id in it.
    created: seconds since 1970.
    first: the usage of the model's first part, if it searched for tools; `usage` is the sum.
    reasoning: tokens of the thinking.
    stop: the script's own stop reason; None for the natural one.
    chunk: characters in one event of a stream.
    reports_usage: whether the client asked for usage in a Chat stream.
    reports_writes: whether OpenAI's usage includes cache writes.
    applied: report of the context edits; None if the client asked for none.
    dropped: the thinking that the provider dropped.
    diagnosis: further fields of the answer, about a cache miss.
    """

    tag: str
    model: str
    created: int
    blocks: tuple[Spoken, ...]
    usage: Usage = field(default_factory=Usage)
    first: Usage | None = None
    reasoning: int = 0
    stop: str | None = None
    chunk: int = 20
    reports_usage: bool = True
    reports_writes: bool = False
    applied: tuple[dict[str, Any], ...] | None = None
    dropped: tuple[dict[str, Any], ...] = ()
    diagnosis: Mapping[str, Any] = field(default_factory=dict)

    @property
    def calls(self) -> tuple[ReplyCall, ...]:
        """The tool calls in the answer."""
        return tuple(block for block in self.blocks if isinstance(block, ReplyCall))

    @property
    def searches(self) -> int:
        """The number of searches for deferred tools."""
        return sum(isinstance(block, ReplySearch) for block in self.blocks)

    @property
    def text(self) -> str:
        """The text of the answer."""
        return "".join(block.text for block in self.blocks if isinstance(block, ReplyText))

    def chunks(self, text: str) -> list[str]:
        """Split a text into the chunks of a stream."""
        return [text[at : at + self.chunk] for at in range(0, len(text), self.chunk)]
