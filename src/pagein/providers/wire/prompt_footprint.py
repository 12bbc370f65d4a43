"""The cache's view of a request, read block by block from its messages: names, sizes and breakpoints."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

from pagein.model.json_text import encode_json
from pagein.providers.caches.cache_values import LONG, SHORT
from pagein.providers.tokens.counters import Counter, Kind
from pagein.providers.validity import Api
from pagein.providers.wire.formats import SYSTEM_FIELDS, format_named
from pagein.providers.wire.json_values import Json, objects_in
from pagein.providers.wire.request_body import same_name

_FIELDS: Final = ("cache_control", "prompt_cache_breakpoint")
_IMAGE: Final = 1500.0  # assumed tokens of an image


@dataclass(frozen=True, slots=True)
class Footprint:
    """The cache's view of a block.

    name: digest of the content, without breakpoints.
    ttl: TTL of its breakpoint, 0 without a breakpoint.
    side: `user`, `tool` or a different role.
    """

    name: bytes
    tokens: float
    ttl: int
    side: str


def footprints(value: Json, api: Api, counter: Counter) -> tuple[Footprint, ...]:
    """The blocks of one message."""
    blocks = format_named(api).requests.cache_blocks(value)
    return tuple(_block(one, side, counter) for one, side in blocks)


def head_footprints(fields: Mapping[str, Any], counter: Counter) -> tuple[Footprint, ...]:
    """The blocks before the messages, as `head_blocks` has them."""
    return tuple(_block(one, "system", counter) for _, one in head_blocks(fields))


def head_blocks(fields: Mapping[str, Any]) -> list[tuple[str, Json]]:
    """The blocks before the messages, each with its kind: `tools`, then `system`.

    A deferred tool stays out of the prompt until the model finds it.

    fields: of the body, decoded.
    """
    tools, system = fields.get("tools"), next((fields[name] for name in SYSTEM_FIELDS if name in fields), None)
    if system and not isinstance(system, list):
        system = [system if isinstance(system, Mapping) else {"type": "text", "text": system}]
    offered = [one for one in objects_in(tools) if one.get("defer_loading") is not True]
    return [*(("tools", one) for one in offered), *(("system", one) for one in objects_in(system))]


def _block(block: Json, side: str, counter: Counter) -> Footprint:
    mark = next((block[name] for name in _FIELDS if isinstance(block.get(name), Mapping)), None)
    ttl = 0 if mark is None else LONG if mark.get("ttl") in ("1h", "12h") else SHORT
    name = blake2b(side.encode("utf-8", "surrogatepass") + b"\n" + same_name([dict(block)]), digest_size=16).digest()
    kind: Kind = "said" if side == "assistant" else "system" if side == "system" else "result"
    tokens = sum(_tokens(text, counter, kind) for text in _texts(block))
    return Footprint(name, tokens, ttl, side)


def _tokens(text: str | None, counter: Counter, kind: Kind) -> float:
    return _IMAGE if text is None else counter.count(text, kind)


def _texts(value: object, name: str = "") -> Iterator[str | None]:
    """Yield the texts in a block; None for an image."""
    if isinstance(value, str):
        if name not in ("type", "id", "tool_use_id", "call_id", "tool_call_id", "role", "status"):
            yield value
    elif isinstance(value, Mapping):
        if value.get("type") in ("image", "image_url", "input_image"):
            yield None
        elif name in ("input", "input_schema", "parameters", "parametersJsonSchema"):
            yield encode_json(value).decode("utf-8", "replace")
        else:
            for key, one in value.items():
                if key not in _FIELDS:
                    yield from _texts(one, key)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one, name)
