"""A request body: decoded messages, and the bytes to send.

Rules of this file
------------------
1. An unchanged body is sent as the very bytes that came in.
2. An unchanged message keeps its bytes. A message with a replaced result keeps every byte outside that content,
   including unknown fields and key order; only white space between fields and blocks is lost.
3. A body that no provider could read is a BadInput. A strange but readable body is passed on.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from pagein.errors import BadInput, HostError
from pagein.model.json_text import decode_json, encode_json
from pagein.model.messages import Message, Text, ToolResult
from pagein.providers.validity.rules import Api
from pagein.providers.wire import anthropic_messages, json_spans, openai_chat, openai_responses
from pagein.providers.wire.json_values import with_field
from pagein.providers.wire.wire_format import Format

_FORMATS: Final[Mapping[Api, Format]] = {
    "anthropic": anthropic_messages.FORMAT,
    "openai_chat": openai_chat.FORMAT,
    "openai_responses": openai_responses.FORMAT,
}


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A decoded request body.

    original: the bytes as they came in.
    fields: the top-level fields as their bytes, in order.
    items: the messages as their bytes.
    messages: the decoded messages, one for each item.
    system: prompts outside the messages.
    changed: whether the request differs from `original`.
    """

    api: Api
    original: bytes
    fields: Mapping[str, bytes]
    items: tuple[bytes, ...]
    messages: tuple[Message, ...]
    system: tuple[Message, ...]
    changed: bool = False

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
        wire = _FORMATS[self.api]
        return self._with({place: wire.with_results(self.items[place], change) for place, change in by_message.items()})

    def _with(self, changes: Mapping[int, bytes]) -> "WireRequest":
        """Replace some messages of the request."""
        if not changes:
            return self
        items, messages = list(self.items), list(self.messages)
        for place, item in changes.items():
            items[place] = item
            messages[place] = _message(_FORMATS[self.api], item, place)
        return replace(self, items=tuple(items), messages=tuple(messages), changed=True)

    def body(self) -> bytes:
        """The bytes to send."""
        if not self.changed:
            return self.original
        key = _FORMATS[self.api].items
        return json_spans.object_of({**self.fields, key: json_spans.array_of(self.items)})


@dataclass(frozen=True, slots=True)
class Envelope:
    """A request body split into undecoded parts.

    items: the messages as their bytes.
    fields: the bytes of every field, in order; the messages are replaced by an empty list.
    """

    api: Api
    fields: Mapping[str, bytes]
    items: Sequence[bytes]

    def body(self, items: Sequence[bytes], fields: Mapping[str, bytes] | None = None) -> bytes:
        """Assemble a body from messages.

        fields: the fields around the messages; None for the fields of this body.
        """
        around = self.fields if fields is None else fields
        if items and _is_bare(items[0], self.api):  # a bare string is the client's only message
            items = [json_spans.object_of({"role": b'"user"', "content": items[0]}), *items[1:]]
        return json_spans.object_with(around, _FORMATS[self.api].items, items)


def open_body(body: bytes, api: Api) -> Envelope:
    """Split a request body. Raises BadInput for anything but a JSON object with a list of messages."""
    key = _FORMATS[api].items
    fields = json_spans.fields(body, "the request body")
    given = fields.get(key, b"[]")
    if _is_bare(given, api):
        return Envelope(api, fields, [given])
    if key in fields:
        fields[key] = b"[]"
    return Envelope(api, fields, json_spans.items(given, key))


def items_key(api: Api) -> str:
    """The field of a body that holds the messages."""
    return _FORMATS[api].items


def message_of(item: bytes, api: Api, place: int) -> tuple[Mapping[str, Any], Message]:
    """Decode one message to plain values and to a neutral message. Raises BadInput for anything but a JSON object.

    place: number of the message, for the report.
    """
    wire = _FORMATS[api]
    value = _value(item, f"{wire.items}.{place}")
    if isinstance(value, str) and _is_bare(item, api):
        value = {"role": "user", "content": value}
    if not isinstance(value, dict):
        raise BadInput(f"{wire.items}.{place} is not a JSON object")
    return value, wire.message(value)


def with_texts(item: bytes, api: Api, texts: Mapping[int, str]) -> bytes:
    """Replace the content of some results in a message. The remaining bytes stay the same.

    texts: new contents by block.
    """
    return _FORMATS[api].with_results(item, texts)


def with_arguments(item: bytes, api: Api, arguments: Mapping[int, str]) -> bytes:
    """Replace the arguments of some calls in a message of the model. The remaining bytes stay the same.

    arguments: JSON text by block.
    """
    return _FORMATS[api].with_arguments(item, arguments)


def with_notes(item: bytes, api: Api, notes: Sequence[str]) -> bytes:
    """Append notes to a message of the user's side: as blocks, or in OpenAI's formats as separate user messages.

    The result is the message, followed by the new messages, joined by commas.
    """
    match api:
        case "anthropic":
            return with_field(item, "content", partial(_with_blocks, notes=notes))
        case "openai_chat":
            behind = [encode_json({"role": "user", "content": note}) for note in notes]
        case "openai_responses":
            behind = [encode_json({"type": "message", **_user_content(note)}) for note in notes]
    return b",".join([item, *behind])


def _user_content(note: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "input_text", "text": note}]}


def _with_blocks(content: bytes | None, notes: Sequence[str]) -> bytes:
    raw = (content or b"[]").strip()
    blocks = (
        [json_spans.object_of({"type": b'"text"', "text": raw})]
        if raw[:1] == b'"'
        else json_spans.items(raw, "content")
    )
    return json_spans.array_of([*blocks, *(encode_json({"type": "text", "text": note}) for note in notes)])


@dataclass(frozen=True, slots=True)
class MessageTexts:
    """Replacements and additions for the text of a user message.

    texts: replacement texts by block.
    front, behind: texts to add before and after the blocks.
    """

    texts: Mapping[int, str] = field(default_factory=dict)
    front: str = ""
    behind: str = ""


def with_words(item: bytes, api: Api, words: MessageTexts) -> bytes:
    """Change the text of a user message. Blocks without a replacement keep their bytes.

    Texts are added to a string content directly, and in the Messages format as separate blocks.
    """
    kind = "input_text" if api == "openai_responses" else "text"

    def change_content(content: bytes | None) -> bytes:
        raw = (content or b"[]").strip()
        if raw[:1] == b'"':
            said = encode_json(words.texts[0]) if 0 in words.texts else raw
            if not words.front and not words.behind:
                return said
            if api != "anthropic":
                texts = (words.front, str(_value(said, "content")), words.behind)
                return encode_json("\n\n".join(text for text in texts if text))
            blocks = [json_spans.object_of({"type": b'"text"', "text": said})]
        else:
            blocks = json_spans.items(raw, "content")
            for place, text in words.texts.items():
                blocks[place] = with_field(blocks[place], "text", lambda _, text=text: encode_json(text))  # type: ignore[misc]
        front, behind = (
            [encode_json({"type": kind, "text": one})] if one else [] for one in (words.front, words.behind)
        )
        return json_spans.array_of([*front, *blocks, *behind])

    return with_field(item, "content", change_content)


def without_blocks(item: bytes, api: Api, gone: Collection[int]) -> bytes:
    """Remove some blocks of thinking from a message. In a format without such blocks the message stays unchanged."""
    shorter = _FORMATS[api].without_blocks
    return item if shorter is None else shorter(item, gone)


def _is_bare(given: bytes, api: Api) -> bool:
    """Whether the messages are a bare string, a short form of one message."""
    return api == "openai_responses" and given.lstrip()[:1] == b'"'


def decode(body: bytes, api: Api) -> WireRequest:
    """Decode a request body. Raises BadInput for anything but a JSON object with a list of messages."""
    wire = _FORMATS[api]
    fields = json_spans.fields(body, "the request body")
    rest = {name: _value(raw, name) for name, raw in fields.items() if name in ("system", "instructions")}
    given = fields.get(wire.items, b"[]")
    if _is_bare(given, api):
        # A bare string is a short form of one message; it contains no result that could be replaced.
        said = Message("user", (Text(str(_value(given, wire.items))),))
        return WireRequest(api, body, fields, (given,), (said,), wire.system(rest))
    items = tuple(json_spans.items(given, wire.items))
    messages = tuple(_message(wire, item, place) for place, item in enumerate(items))
    return WireRequest(api, body, fields, items, messages, wire.system(rest))


def render(messages: Sequence[Message], api: Api, *, model: str, max_tokens: int = 8192) -> dict[str, Any]:
    """Render neutral messages as a request body of plain values, for conversations from outside this wire format."""
    return _FORMATS[api].render(messages, model, max_tokens=max_tokens)


def _block_at(messages: Sequence[Message], message: int, block: int) -> object:
    if not 0 <= message < len(messages) or not 0 <= block < len(messages[message].blocks):
        return None
    return messages[message].blocks[block]


def _message(wire: Format, item: bytes, place: int) -> Message:
    value = _value(item, f"{wire.items}.{place}")
    if not isinstance(value, dict):
        raise BadInput(f"{wire.items}.{place} is not a JSON object")
    return wire.message(value)


def _value(raw: bytes, what: str) -> object:
    try:
        return decode_json(raw)
    except ValueError as problem:
        raise BadInput(f"{what} is not JSON: {problem}") from problem
