"""Requests and answers of children in the wire format of the client's own request. Pure functions.

Rules of this file
------------------
1. A child's request is a request of its own: system text, first message, tools. Nothing of the client's conversation is in it.
2. Cache breakpoints are set where the format needs them; other formats find shared prefixes by themselves.
3. An answer goes back as it was said: the provider's own message is carried along, because it may be signed.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal

from pagein.errors import (
    BrokenConnection,
    ChildModelError,
    OverloadedProvider,
    RefusedKey,
    RefusedRequest,
    UnknownModel,
    UnsupportedCall,
)
from pagein.model.json_text import array_of, decode_json, encode_json
from pagein.model.messages import Block, Message, Other, Text, ToolCall, Usage
from pagein.policy.privacy.sent_keys import without_keys
from pagein.ports import ChildAnswer, ChildRequest
from pagein.providers.caches.cache_values import LONG, SHORT, Breakpoint
from pagein.providers.validity import Api
from pagein.providers.wire.breakpoint_edits import SYSTEM, Address, Changes, with_changes
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.json_values import decoded_object, text_at
from pagein.providers.wire.streams.model_reply import ModelReply

_SAID: Final = "said"
_NO_KEY: Final = (401, 403)
_NO_MODEL: Final = 404
_BUSY: Final = (429, 503, 529)
_FAILED: Final = 500
_LONGEST: Final = 400
_STOPS: Final[Mapping[str, Literal["end", "tools", "length", "other"]]] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tools",
    "max_tokens": "length",
}


def child_body(request: ChildRequest, api: Api, model: str) -> bytes:
    """Return a child's request as a body. model: the name at the provider."""
    form = format_named(api)
    items = form.requests.items
    first, *rest = request.messages
    opening = (Message("system", (Text(request.system),)), first)
    body = form.requests.render(opening, model, max_tokens=request.max_output)
    if request.tools:
        more = [encode_json(form.tools.definition(one.name, one.description, one.schema)) for one in request.tools]
        body["tools"] = decode_json(form.tools.offered(b"[]", more))
    breakpoints = form.cache.breakpoints
    if breakpoints is not None and form.cache.needs_breakpoints and request.marks:
        marks: dict[Address, Mapping[str, Any] | None] = {}
        for mark in request.marks:
            word = breakpoints.word(Breakpoint(1, LONG if mark.ttl == "1h" else SHORT))
            marks[(0, mark.blocks - 1) if mark.blocks else (SYSTEM, 0)] = breakpoints.mark(word)
        body = with_changes(body, Changes(api, marks))
    if request.stream and form.requests.model_field:
        body["stream"] = True
    for message in rest:
        said = _said(message)
        body[items] = [*body[items], *(said or form.requests.render((message,), model, max_tokens=1)[items])]
    return encode_json(body)


def child_answer(body: bytes, api: Api, named: str, names: Sequence[str], sent: Collection[str] = ()) -> ChildAnswer:
    """Return the answer in the body of a response without a stream.

    named: the model that was asked. names: of the tools that were offered. sent: the keys of the request.
    Raises BrokenConnection for a body that is no answer.
    """
    value = decoded_object(body)
    if value is None or isinstance(value.get("error"), dict):
        raise BrokenConnection(f"the answer of {named} could not be read: {_words(body, sent)}")
    return reply_answer(format_named(api).answers.whole(value), api, text_at(value, "model") or named, names, sent)


def reply_answer(
    reply: ModelReply, api: Api, named: str, names: Sequence[str], sent: Collection[str] = ()
) -> ChildAnswer:
    """Return the answer in a reply. Raises BrokenConnection for a reply that is incomplete or has an error."""
    form = format_named(api)
    if reply.error:
        raise BrokenConnection(
            f"the answer of {named} ended with an error of the provider: {without_keys(reply.error, sent)}"
        )
    if not reply.finished:
        raise BrokenConnection(f"the answer of {named} ended before it was complete")
    blocks: list[Block] = []
    turn = form.answers.turn(reply, names)
    for place, said in enumerate(turn.said):
        blocks += form.requests.message(decoded_object(said) or {}, place).blocks
    has_calls = any(isinstance(one, ToolCall) for one in blocks)
    if turn.said:
        blocks.append(Other(_SAID, array_of(turn.said).decode()))
    stop = "tools" if has_calls else _STOPS.get(reply.stop.lower(), "end")
    usage = reply.usage if reply.usage != Usage() else None  # some upstreams fill in zeros: an answer is never free
    return ChildAnswer(tuple(blocks), usage, stop, named)


def http_error(
    status: int, body: bytes, retry_after: float | None, named: str, sent: Collection[str] = ()
) -> ChildModelError:
    """Return what a refused call stands for.

    retry_after: seconds that the provider asks to wait; None if it does not say. sent: the keys of the request.
    """
    words = _words(body, sent)
    if "stream" in words.lower() and status < _FAILED and status not in _BUSY:
        return UnsupportedCall(f"{named} answers only in a stream: {words}")
    if status in _NO_KEY:
        return RefusedKey(f"the provider of {named} refused the client's key: {words}")
    if status == _NO_MODEL:
        return UnknownModel(f"the provider has no model {named}: {words}")
    if status in _BUSY:
        return OverloadedProvider(f"{named} is overloaded: {words}", retry_after)
    if status >= _FAILED:
        return BrokenConnection(f"the provider of {named} failed: {words}", was_sent=False)
    return RefusedRequest(f"the provider refused the request to {named}: {words}")


def _said(message: Message) -> list[Any]:
    """Return the provider's own messages of an answer that goes back."""
    whole = next((one.json for one in message.blocks if isinstance(one, Other) and one.kind == _SAID), None)
    found = None if whole is None else decode_json(whole.encode())
    return found if isinstance(found, list) else []


def _words(body: bytes, sent: Collection[str]) -> str:
    """Return what the provider said about an error, without keys."""
    value = decoded_object(body) or {}
    error = value.get("error")
    words = text_at(error, "message") or text_at(value, "message") or body.decode("utf-8", "replace")
    words = without_keys(words, sent)
    return words if len(words) <= _LONGEST else words[:_LONGEST] + " ..."


def asked_wait(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that a refusal asks to wait, None if it does not say. `Retry-After` is a number or a date.

    now: seconds since 1970.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        told = headers.get(name, "")
        try:
            seconds = float(told) * unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - now)
    except (ValueError, OverflowError):
        return None
