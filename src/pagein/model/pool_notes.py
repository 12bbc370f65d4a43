"""The note about pools: the acts of a session's tools, or of a person, on the objects of its window."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pagein.model.names import ContentHash

_DIGITS: Final = 16

PoolActKind: TypeAlias = Literal["index", "list", "activate", "deactivate", "epoch"]
"""What is done.

index: the object is known from here on. list: it has a line in the metadata pool, too.
activate, deactivate: its content enters or leaves the window.
epoch: the metadata block is written anew, without an object.
"""


@dataclass(frozen=True, slots=True)
class PoolAct:
    """An act on an object. The fields behind `id` describe the object at the act; without a type, the object was not
    found.

    content: `text`, `unread` for an object of which only the name is known, or `none` for one without a text.
    version: hash of its content in the store; "" without a text.
    chars: length of the content.
    path, file_type: of files. tool, args, status: of tool calls.
    told: whether the answer to the call held the content.
    view: names and values of the fields that a person chose for its line; empty for those of the type.
    """

    act: PoolActKind
    id: str = ""
    type: str = ""
    content: Literal["text", "unread", "none"] = "unread"
    version: str = ""
    chars: int = 0
    path: str = ""
    file_type: str = ""
    nickname: str = ""
    tool: str = ""
    args: str = ""
    status: str = ""
    deleted: bool = False
    told: bool = False
    view: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PoolNote:
    """Objects entered or left a session's pools, in this order.

    trace: hash of the answer to the read that did it, to find its result in the window (`trace_of_answer`); "" for others.
    bounds: most calls, turns and activations by hand in the active content, as in `PoolRules`; None for the default limits.
    folder: the session's working folder; "" if it is unknown.
    """

    acts: tuple[PoolAct, ...] = ()
    trace: str = ""
    bounds: tuple[int, int, int] | None = None
    folder: str = ""


def trace_of_answer(text: str) -> str:
    """Return the trace of an answer, whatever blanks a host puts around it."""
    return ContentHash.of(text.strip().encode("utf-8", "surrogatepass")).hex[:_DIGITS]
