"""A request body: messages, decoded and named, and the bytes to send.

Rules of this file
------------------
1. An unchanged body is sent as the very bytes that came in.
2. An unchanged message keeps its bytes. A message with a replaced result keeps every byte outside that content,
   including unknown fields and key order; only white space between fields and blocks is lost.
3. A body that no provider could read is a BadInput. A strange but readable body is passed on.
4. A repeated message has the same name, even in a different notation. Not part of a name: cache breakpoints, because
   clients move them from call to call, and fields with their default value (`null`, `is_error: false`,
   `type: message`). A string content has the name of a content with one block of that text: clients switch between the
   two. The order of fields counts inside arguments, where providers keep it, and nowhere else.
5. A name in a chain also stands for everything said before. After a message where the journal was broken names differ
   from before: its name counts with one `~` for each break.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

from pagein.errors import BadInput, HostError
from pagein.model.json_text import (
    array_items,
    array_of,
    decode_each,
    decode_json,
    encode_each,
    encode_json,
    object_fields,
    object_of,
    object_with,
)
from pagein.model.messages import Message, Text, ToolResult
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.json_values import Json
from pagein.providers.wire.message_texts import MessageTexts
from pagein.providers.wire.wire_format import RequestForm

_SIZE: Final = 16
_MARKS: Final = frozenset({"cache_control", "prompt_cache_breakpoint"})
# Not a set: the type of a block may be any value, also an unhashable one.
_TEXTS: Final = ("text", "input_text", "output_text")
_CONTENTS: Final = frozenset({"content", "output"})
_DEFAULTS: Final[Mapping[str, object]] = {"is_error": False, "type": "message"}


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A decoded request body.

    original: the bytes as they came in.
    fields: the top-level fields as their bytes, in order.
    items: the messages as their bytes.
    messages: the decoded messages, one for each item.
    system: prompts outside the messages.
    changed: whether the request differs from `original`.
    marked: numbers of the messages that may hold a cache breakpoint; None for any.
    """

    api: Api
    original: bytes
    fields: Mapping[str, bytes]
    items: tuple[bytes, ...]
    messages: tuple[Message, ...]
    system: tuple[Message, ...]
    changed: bool = False
    marked: Collection[int] | None = None

    def with_results(self, texts: Mapping[tuple[int, int], str]) -> "WireRequest":
        """Replace the content of some tool results.

        texts: new contents by message and block.
        Raises HostError for a place without a tool result.
        """
        by_message: dict[int, dict[int, str]] = {}
        for (message, block), text in texts.items():
            if not isinstance(_block_at(self.messages, message, block), ToolResult):
                raise HostError(
                    f"block {block} of message {message} is not a tool result; its content cannot be replaced"
                )
            by_message.setdefault(message, {})[block] = text
        wire = format_named(self.api).requests
        return self._with({place: wire.with_results(self.items[place], change) for place, change in by_message.items()})

    def _with(self, changes: Mapping[int, bytes]) -> "WireRequest":
        """Replace some messages of the request."""
        if not changes:
            return self
        items, messages = list(self.items), list(self.messages)
        for place, item in changes.items():
            items[place] = item
            messages[place] = _message(format_named(self.api).requests, item, place)
        return replace(self, items=tuple(items), messages=tuple(messages), changed=True)

    def body(self) -> bytes:
        """The bytes to send."""
        if not self.changed:
            return self.original
        key = format_named(self.api).requests.items
        return object_of({**self.fields, key: array_of(self.items)})


@dataclass(frozen=True, slots=True)
class Envelope:
    """A request body split into undecoded parts.

    items: the messages as their bytes.
    fields: the bytes of every field, in order; the messages are replaced by an empty list.
    path_model: the model's name, if the path of the request has it.
    """

    api: Api
    fields: Mapping[str, bytes]
    items: Sequence[bytes]
    path_model: str = ""

    def body(self, items: Sequence[bytes], fields: Mapping[str, bytes] | None = None) -> bytes:
        """Assemble a body from messages.

        fields: the fields around the messages; None for the fields of this body.
        """
        around = self.fields if fields is None else fields
        if items and _is_bare(items[0], self.api):  # a bare string is the client's only message
            items = [object_of({"role": b'"user"', "content": items[0]}), *items[1:]]
        return object_with(around, format_named(self.api).requests.items, items)


def model_in(envelope: Envelope) -> str | None:
    """Return the model of a request; None if absent."""
    named = envelope.fields.get(format_named(envelope.api).requests.model_field)
    return envelope.path_model or (None if named is None else _text_of(bytes(named)))


@lru_cache(maxsize=64)
def _text_of(raw: bytes) -> str | None:
    """Return a text of a request; None for any other value."""
    value = decode_json(raw)
    return value if isinstance(value, str) else None


def open_body(body: bytes, api: Api) -> Envelope:
    """Split a request body. Raises BadInput for anything but a JSON object with a list of messages."""
    key = format_named(api).requests.items
    fields = object_fields(body, "the request body")
    given = fields.get(key, b"[]")
    if _is_bare(given, api):
        return Envelope(api, fields, [given])
    if key in fields:
        fields[key] = b"[]"
    return Envelope(api, fields, array_items(given, key))


def message_of(item: bytes, api: Api, place: int) -> tuple[Mapping[str, Any], Message]:
    """Decode one message to plain values and to a neutral message. Raises BadInput for anything but a JSON object.

    place: number of the message, for the report.
    """
    return messages_of((item,), api, place)[0]


def messages_of(items: Sequence[bytes], api: Api, first: int) -> list[tuple[Mapping[str, Any], Message]]:
    """Decode messages in a row, each as `message_of` does.

    first: number of the first of them, for the report.
    """
    wire = format_named(api).requests
    values: Iterable[object]
    try:
        values = decode_each(items)
    except ValueError:  # the report names the first message that is wrong
        values = (_value(item, f"{wire.items}.{place}") for place, item in enumerate(items, first))
    found: list[tuple[Mapping[str, Any], Message]] = []
    for place, (item, given) in enumerate(zip(items, values, strict=True), first):
        value = {"role": "user", "content": given} if isinstance(given, str) and _is_bare(item, api) else given
        if not isinstance(value, dict):
            raise BadInput(f"{wire.items}.{place} is not a JSON object")
        found.append((value, wire.message(value, place)))
    return found


def with_texts(item: bytes, api: Api, texts: Mapping[int, str]) -> bytes:
    """Replace the content of some results in a message. The remaining bytes stay the same.

    texts: new contents by block.
    """
    return format_named(api).requests.with_results(item, texts)


def with_arguments(item: bytes, api: Api, arguments: Mapping[int, str]) -> bytes:
    """Replace the arguments of some calls in a message of the model. The remaining bytes stay the same.

    arguments: JSON text by block.
    """
    return format_named(api).requests.with_arguments(item, arguments)


def with_notes(item: bytes, api: Api, notes: Sequence[str]) -> bytes:
    """Append notes to a message of the user's side: as blocks, or as separate user messages, as the format has it.

    The result is the message, followed by the new messages, joined by commas.
    """
    return format_named(api).requests.with_notes(item, notes)


def with_words(item: bytes, api: Api, words: MessageTexts) -> bytes:
    """Change the text of a user message. Blocks without a replacement keep their bytes."""
    return format_named(api).requests.with_words(item, words)


def without_blocks(item: bytes, api: Api, gone: Collection[int]) -> bytes:
    """Remove some blocks of thinking from a message. In a format without such blocks the message stays unchanged."""
    shorter = format_named(api).requests.without_blocks
    return item if shorter is None else shorter(item, gone)


def _is_bare(given: bytes, api: Api) -> bool:
    """Whether the messages are a bare string, a short form of one message."""
    return given.lstrip()[:1] == b'"' and format_named(api).requests.takes_bare_string


def decode(body: bytes, api: Api) -> WireRequest:
    """Decode a request body. Raises BadInput for anything but a JSON object with a list of messages."""
    wire = format_named(api).requests
    fields = object_fields(body, "the request body")
    rest = {name: _value(raw, name) for name, raw in fields.items() if name in wire.system_fields}
    given = fields.get(wire.items, b"[]")
    if _is_bare(given, api):
        # A bare string is a short form of one message; it contains no result that could be replaced.
        said = Message("user", (Text(str(_value(given, wire.items))),))
        return WireRequest(api, body, fields, (given,), (said,), wire.system(rest))
    items = tuple(array_items(given, wire.items))
    messages = tuple(_message(wire, item, place) for place, item in enumerate(items))
    return WireRequest(api, body, fields, items, messages, wire.system(rest))


def render(messages: Sequence[Message], api: Api, *, model: str, max_tokens: int = 8192) -> dict[str, Any]:
    """Render neutral messages as a request body of plain values, for conversations from outside this wire format."""
    return format_named(api).requests.render(messages, model, max_tokens=max_tokens)


def _block_at(messages: Sequence[Message], message: int, block: int) -> object:
    if not 0 <= message < len(messages) or not 0 <= block < len(messages[message].blocks):
        return None
    return messages[message].blocks[block]


def _message(wire: RequestForm, item: bytes, place: int) -> Message:
    value = _value(item, f"{wire.items}.{place}")
    if not isinstance(value, dict):
        raise BadInput(f"{wire.items}.{place} is not a JSON object")
    return wire.message(value, place)


def _value(raw: bytes, what: str) -> object:
    try:
        return decode_json(raw)
    except ValueError as problem:
        raise BadInput(f"{what} is not JSON: {problem}") from problem


# --- names ---


def chain_name(before: str, value: Json) -> str:
    """The name of a message after the message named `before` ("": the first): 32 hexadecimal digits."""
    return _chain_name(before, encode_json(_canonical(value)))


def chain_names(root: str, before: str, values: Iterable[Json], breaks: Mapping[str, int]) -> list[str]:
    """The names of messages after the message named `before` ("": the first; then they follow `root`).

    breaks: names of messages after which the journal was broken, with the number of breaks.
    """
    names: list[str] = []
    for text in encode_each([_canonical(value) for value in values]):
        before = _chain_name((before or root) + "~" * breaks.get(before, 0), text)
        names.append(before)
    return names


def _chain_name(before: str, text: bytes) -> str:
    digest = blake2b(before.encode(), digest_size=_SIZE)
    digest.update(b"\n")
    digest.update(text)
    return digest.hexdigest()


def same_name(value: object) -> bytes:
    """A digest of any part of a request without its breakpoints: a system prompt, a list of tools."""
    parts = _content(value) if isinstance(value, str | list) else value
    return blake2b(encode_json(parts), digest_size=_SIZE).digest()


def _canonical(value: Json) -> dict[str, Any]:
    return {
        name: _content(value[name]) if name in _CONTENTS else value[name]
        for name in sorted(value)
        if name not in _MARKS and value[name] is not None and _DEFAULTS.get(name, value) != value[name]
    }


def _content(content: object) -> object:
    if isinstance(content, str):
        return [{"text": content, "type": "text"}]
    if isinstance(content, list):
        return [_block(one) if isinstance(one, dict) else one for one in content]
    return content


def _block(block: dict[str, Any]) -> dict[str, Any]:
    made = _canonical(block)
    if made.get("type") in _TEXTS:
        made["type"] = "text"
    return made
