"""What a wire format is to us."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pagein.model.messages import Message
from pagein.providers.wire.json_values import Json


class Render(Protocol):
    """Neutral messages as a request body of plain values."""

    def __call__(self, messages: Sequence[Message], model: str, *, max_tokens: int) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Format:
    """One wire format.

    items: the field that holds the messages. system: the prompts outside of them, given the decoded top-level fields. message: one
    wire message, decoded. with_results: a wire message with the content of results replaced, given by block. with_arguments: the same
    with arguments of calls, given as JSON text by block. without_blocks: a wire message without some of its blocks, None where messages are not made of blocks.
    """

    items: str
    system: Callable[[Mapping[str, object]], tuple[Message, ...]]
    message: Callable[[Json], Message]
    with_results: Callable[[bytes, Mapping[int, str]], bytes]
    with_arguments: Callable[[bytes, Mapping[int, str]], bytes]
    render: Render
    without_blocks: Callable[[bytes, Collection[int]], bytes] | None = None
