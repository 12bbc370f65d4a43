"""The prompt of a session as the provider got it: its parts in order, with sizes and cache breakpoints. Pure.

Rules of this file
------------------
1. Everything is read from the bytes that went out, never from what was meant to go out.
2. Each token is in exactly one part: tools, system, then the blocks of each message. Their sum is pagein's estimate; what the provider
   counted stands beside it, and is never spread over the parts.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypedDict

from pagein.model.json_text import decode_json
from pagein.model.messages import Block, Image, Message, Text, Thinking, ToolCall, ToolResult
from pagein.providers.tokens.counters import Counter, ratio_counter
from pagein.providers.validity import Api
from pagein.providers.wire.formats import SYSTEM_FIELDS
from pagein.providers.wire.prompt_footprint import Footprint, footprints, head_blocks, head_footprints
from pagein.providers.wire.request_body import Envelope, message_of, open_body

_TITLE: Final = 100


class PartView(TypedDict):
    """A part of a prompt.

    place: number of its message, from 0; -1 in front of the messages.
    block: number of the block in its message.
    kind: `tools`, `system`, `user`, `assistant`, `thinking`, `arguments`, `results`, `images` or `other`.
    call: id of the tool call that it belongs to; "" for none.
    tokens: estimated.
    breakpoint: seconds for which the prompt up to its end is to be cached; 0 without a breakpoint.
    """

    place: int
    block: int
    kind: str
    title: str
    call: str
    tokens: int
    breakpoint: int


class PromptView(TypedDict):
    """The last prompt of a session.

    at: when it went out. bytes: size of its body.
    tokens: sum of the parts. counted: what the provider counted; None without an answer yet.
    automatic: the body asks for a breakpoint at its end by itself.
    """

    at: float
    model: str
    bytes: int
    tokens: int
    counted: int | None
    automatic: bool
    parts: list[PartView]


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """A request that went out.

    counted: tokens of the prompt by the provider's usage; None if unknown.
    """

    body: bytes
    api: Api
    model: str
    at: float
    counted: int | None = None


def picture_of(sent: SentPrompt) -> PromptView:
    """Return the picture of a prompt. Raises BadInput for a body that is no request."""
    envelope, counter = open_body(sent.body, sent.api), ratio_counter(sent.model)
    parts = [*_front(envelope, counter), *_messages(envelope, counter)]
    return PromptView(
        at=sent.at,
        model=sent.model,
        bytes=len(sent.body),
        tokens=sum(one["tokens"] for one in parts),
        counted=sent.counted,
        automatic="cache_control" in envelope.fields,
        parts=parts,
    )


def text_of(sent: SentPrompt, place: int, block: int) -> str:
    """Return the text of a part as the model was shown it; "" if there is none at this place. Raises BadInput."""
    envelope = open_body(sent.body, sent.api)
    if place < 0:
        front = head_blocks(_head_fields(envelope))
        return _pretty(front[block][1]) if 0 <= block < len(front) else ""
    if place >= len(envelope.items):
        return ""
    _, message = message_of(envelope.items[place], sent.api, place)
    return _shown(message.blocks[block]) if 0 <= block < len(message.blocks) else ""


def _head_fields(envelope: Envelope) -> dict[str, Any]:
    names = (one for one in ("tools", *SYSTEM_FIELDS) if one in envelope.fields)
    return {name: decode_json(envelope.fields[name]) for name in names}


def _front(envelope: Envelope, counter: Counter) -> Iterator[PartView]:
    fields = _head_fields(envelope)
    blocks = zip(head_blocks(fields), head_footprints(fields, counter), strict=True)
    for number, ((kind, value), one) in enumerate(blocks):
        title = _tool_name(value) if kind == "tools" else _pretty(value)
        yield _part(-1, number, kind, title, "", one.tokens, (one,))


def _messages(envelope: Envelope, counter: Counter) -> Iterator[PartView]:
    names: dict[str, str] = {}
    for place, item in enumerate(envelope.items):
        value, message = message_of(item, envelope.api, place)
        prints = footprints(value, envelope.api, counter)
        blocks = message.blocks
        names |= {one.id: one.name for one in blocks if isinstance(one, ToolCall)}
        if len(prints) == len(blocks):
            for number, (block, one) in enumerate(zip(blocks, prints, strict=True)):
                yield _block_part(place, number, message, block, names, one.tokens, (one,))
            continue
        # the format has no block of its own for each part, so the message's tokens are shared by length
        total, length = sum(one.tokens for one in prints), sum(len(_shown(block)) for block in blocks) or 1
        for number, block in enumerate(blocks):
            last = number == len(blocks) - 1
            yield _block_part(
                place, number, message, block, names, total * len(_shown(block)) / length, prints if last else ()
            )


def _block_part(
    place: int,
    number: int,
    message: Message,
    block: Block,
    names: Mapping[str, str],
    tokens: float,
    prints: tuple[Footprint, ...],
) -> PartView:
    kind, call, title = "other", "", _shown(block)
    match block:
        case Text():
            kind = message.role if message.role in ("user", "assistant", "system") else "other"
        case Thinking():
            kind = "thinking"
        case ToolCall():
            kind, call, title = "arguments", block.id, f"{block.name} {block.arguments}"
        case ToolResult():
            kind, call = "results", block.call_id
            title = f"{block.name or names.get(block.call_id, '')} {block.text}".strip()
        case Image():
            kind, title = "images", block.media_type
        case _:
            pass
    return _part(place, number, kind, title, call, tokens, prints)


def _part(
    place: int, block: int, kind: str, title: str, call: str, tokens: float, prints: tuple[Footprint, ...]
) -> PartView:
    return PartView(
        place=place,
        block=block,
        kind=kind,
        title=" ".join(title[: 4 * _TITLE].split())[:_TITLE],
        call=call,
        tokens=round(tokens),
        breakpoint=max((one.ttl for one in prints), default=0),
    )


def _tool_name(value: Mapping[str, Any]) -> str:
    inner = value.get("function")
    return str(
        value.get("name") or (inner.get("name") if isinstance(inner, Mapping) else "") or value.get("type") or ""
    )


def _pretty(value: Mapping[str, Any]) -> str:
    if isinstance(value.get("text"), str) and "input_schema" not in value:
        return str(value["text"])
    return json.dumps(value, indent=1, ensure_ascii=False)


def _shown(block: Block) -> str:
    match block:
        case Text() | Thinking() | ToolResult():
            return block.text
        case ToolCall():
            return block.arguments
        case Image():
            return f"an image ({block.media_type}, {block.size:,} characters)"
        case _:
            return block.json
