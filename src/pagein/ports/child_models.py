"""Interface to the models that answer delegated questions: a request, an answer, and the call in between."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pagein.model.messages import Block, Message, Text, ToolCall, Usage


@dataclass(frozen=True, slots=True)
class ChildTool:
    """A tool that a child may call.

    schema: JSON schema of the arguments.
    """

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PrefixMark:
    """A cache mark in a request of a child.

    blocks: the marked prefix is the tools, the system text, and this many blocks of the first message. 0 for tools and system text alone.
    ttl: lifetime of the cache entry, for providers that have a choice.
    """

    blocks: int = 0
    ttl: Literal["5m", "1h"] = "5m"


@dataclass(frozen=True, slots=True)
class ChildRequest:
    """A request to a child model.

    model: `provider/model`, or a name that the adapter itself understands; "" for the adapter's default model.
    messages: the conversation, user first. Each tool call of an assistant message is answered in the next message.
    max_output: output limit in tokens.
    schema: JSON schema of the answer, None for free text. Adapters of providers with structured output pass it on; the others
    ignore it.
    marks: cache marks, for providers that need them; the others ignore them.
    stream: whether to use a streaming call and to collect it, after a plain call was found to be unsupported.
    """

    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ChildTool, ...] = ()
    max_output: int = 4096
    schema: Mapping[str, Any] | None = None
    marks: tuple[PrefixMark, ...] = ()
    stream: bool = False


@dataclass(frozen=True, slots=True)
class ChildAnswer:
    """The answer to a request of a child.

    blocks: text, tool calls and reasoning in the model's order; they go back unchanged when the conversation continues.
    usage: tokens as reported by the provider; None if it reported none.
    stop: why the model stopped. `other` includes refusals.
    model: the name of the model that answered, as told by the provider; it selects the price.
    """

    blocks: tuple[Block, ...]
    usage: Usage | None
    stop: Literal["end", "tools", "length", "other"]
    model: str

    @property
    def text(self) -> str:
        """The whole text of the answer, without reasoning."""
        return "".join(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the answer, in order."""
        return tuple(block for block in self.blocks if isinstance(block, ToolCall))


class ChildModel(Protocol):
    """A connection to child models.

    One event loop uses it, with several calls at once. It makes each call once: retries, limits and time-outs are the caller's.
    When the task of a call is cancelled, its connection is closed before the cancellation returns.
    """

    @property
    def default_model(self) -> str:
        """The default model for answers, as `provider/model`; "" for no model."""
        ...

    def knows(self, model: str, /) -> bool:
        """Return whether this name may be called. Makes no network call: True for a name that only the provider can judge."""
        ...

    async def complete(self, request: ChildRequest, /) -> ChildAnswer:
        """Call the model once and return the whole answer.

        Raises RefusedKey, UnknownModel, OverloadedProvider, BrokenConnection, UnsupportedCall, RefusedRequest (all of them are ChildModelError).
        """
        ...

    async def close(self) -> None:
        """Close all connections. Calls in progress have ended before. May be called twice."""
        ...
