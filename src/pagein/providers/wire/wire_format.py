"""The interface of a wire format."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pagein.model.messages import Message
from pagein.providers.wire.json_values import Json


class Render(Protocol):
    """Renders neutral messages as a request body of plain values."""

    def __call__(self, messages: Sequence[Message], model: str, *, max_tokens: int) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Format:
    """One wire format.

    items: the field that holds the messages.
    system: reads the prompts outside the messages from the decoded top-level fields.
    message: converts a decoded wire message.
    with_results: replaces the content of results in a wire message, given by block.
    with_arguments: replaces the arguments of calls in a wire message, given as JSON text by block.
    render: renders neutral messages as a request body.
    without_blocks: removes some blocks of a wire message; None for a format without blocks.
    """

    items: str
    system: Callable[[Mapping[str, object]], tuple[Message, ...]]
    message: Callable[[Json], Message]
    with_results: Callable[[bytes, Mapping[int, str]], bytes]
    with_arguments: Callable[[bytes, Mapping[int, str]], bytes]
    render: Render
    without_blocks: Callable[[bytes, Collection[int]], bytes] | None = None
