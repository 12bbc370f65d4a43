"""Recall exchanges: calls of recall tools that pagein answered within a single request of the client, and searches for deferred tools.

Rules of this file
------------------
1. The client saw one answer, and sends it back as one message. The provider saw more: the message with the recall
   calls, pagein's results, and the model's answer to them. Later requests send this full exchange in place of the
   client's message, so that the provider's prefix stays the same.
2. The client's message is recognised by its text and calls, right after the request that it answers, because clients
   encode an answer in their own forms.
3. Searches for deferred tools, which the provider answers itself, are part of such an exchange. They go with their tools:
   a reference to a tool that is not deferred would be refused.
4. The exchange is journaled after that request, so it holds in every process, and on that branch alone.
5. A recalled text leaves with the first epoch that rewrites its part of the prompt anyway, some calls after the recall
   (`engine.send.sent_changes`). The recall call stays visible, and a repetition of it brings the text back.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pagein.engine.intake.message_chain import Transcript, Unit
from pagein.engine.send.message_changes import MessageChange
from pagein.engine.send.splice import HiddenExchange
from pagein.model.entries import EntryId
from pagein.model.fields import object_at
from pagein.model.journal_notes import ExchangeNote
from pagein.model.json_text import array_of, decode_json, encode_json, object_of
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.policy.stubs.result_stubs import LONGEST
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.json_values import Json, objects_in
from pagein.providers.wire.request_body import Envelope, message_of, with_texts
from pagein.providers.wire.tool_offers import deferred_names

LEFT: Final = "This recall has left the window. Call it again to see it."
"""What stands in place of a recalled text that has left."""
_RECALLS: Final = frozenset({"peek", "search"})
_REFERENCE: Final = b'"tool_reference"'


@dataclass(frozen=True, slots=True)
class RecallExchange:
    """The full exchange between a request and the client's answer, as messages (Responses: items) in JSON.

    merged: the answer as the client saw it.
    actual: the messages in its place, beginning and ending with the model's.
    answers: pagein's results for calls in the last message, next to calls that the client answers: blocks for Messages,
        else messages.
    """

    merged: tuple[bytes, ...]
    actual: tuple[bytes, ...]
    answers: tuple[bytes, ...] = ()


def note_of(exchange: RecallExchange, api: Api) -> ExchangeNote:
    """Return the note of an exchange. Raises BadInput for an unreadable message."""
    messages = [message_of(raw, api, place)[1] for place, raw in enumerate(exchange.merged)]
    text, calls = _text_and_calls(messages, api)
    actual = tuple(raw.decode("utf-8", "surrogatepass") for raw in exchange.actual)
    answers = tuple(raw.decode("utf-8", "surrogatepass") for raw in exchange.answers)
    return ExchangeNote(text, calls, actual, answers)


class Exchanges:
    """Find recall exchanges in requests. Looks at each message once. Not thread-safe."""

    def __init__(self) -> None:
        self._known: dict[tuple[EntryId, int], HiddenExchange | None] = {}

    def of(
        self, script: Transcript, exchanges: Mapping[EntryId, Sequence[ExchangeNote]], envelope: Envelope
    ) -> Mapping[int, HiddenExchange]:
        """Return the hidden exchanges of a request, by the number of the client's merged answer.

        exchanges: the records of `MessageIndex.exchanges`; may grow meanwhile.
        envelope: of the request to send. A search that found a tool which is not deferred in it any more is left out.
        """
        found: dict[int, HiddenExchange] = {}
        for name, records in list(exchanges.items()):
            before = script.place_of(name)
            if before is None or before + 1 >= len(script.units):
                continue
            unit = script.units[before + 1]
            key = unit.name, len(records)
            if key not in self._known:
                self._known[key] = _exchange_of(_newest_match(unit, records, script.api), script.api)
            stood = self._known[key]
            if stood is not None and stood.tools and not stood.tools <= deferred_names(envelope.fields, script.api):
                continue
            # pagein's results come before the client's: after the last message there is no place for them
            if stood is not None and not (stood.answers and before + 2 >= len(script.units)):
                found[before + 1] = stood
        return found


def with_exchanges(
    changes: Mapping[int, MessageChange], stood: Mapping[int, HiddenExchange]
) -> Mapping[int, MessageChange]:
    """Add hidden exchanges to the changes of a request."""
    if not stood:
        return changes
    made = dict(changes)
    for place, one in stood.items():
        change = made.get(place, MessageChange())
        made[place] = replace(change, stands=one.spent if change.spent else one.actual)
        if one.answers:
            answers = one.spent_answers if change.spent else one.answers
            made[place + 1] = replace(made.get(place + 1, MessageChange()), answers=answers)
    return made


def _exchange_of(record: ExchangeNote | None, api: Api) -> HiddenExchange | None:
    if record is None:
        return None
    actual, answers = _encode_raws(record.actual), _encode_raws(record.answers)
    recalls = frozenset(call for raw in actual for call in _recalls_in(raw, api))
    spent = tuple(_without_texts(raw, api, recalls) for raw in actual)
    if format_named(api).answers.with_results is None:
        return HiddenExchange(
            (*actual, *answers), spent=(*spent, *(_without_texts(raw, api, recalls) for raw in answers))
        )
    tools = frozenset(name for raw in actual for name in _tools_found(raw))
    return HiddenExchange(
        actual, answers, tools, spent, tuple(_answer_without_text(raw, api, recalls) for raw in answers)
    )


def _recalls_in(raw: bytes, api: Api) -> Iterator[str]:
    """Yield the ids of the calls in a message that recall texts."""
    for block in message_of(raw, api, 0)[1].blocks:
        if isinstance(block, ToolCall) and block.name in _RECALLS:
            yield block.id


def _without_texts(raw: bytes, api: Api, recalls: frozenset[str]) -> bytes:
    """Return a message without the recalled texts of some calls."""
    blocks = enumerate(message_of(raw, api, 0)[1].blocks)
    places = [
        place
        for place, one in blocks
        if isinstance(one, ToolResult) and one.call_id in recalls and len(one.text) > LONGEST and not one.images
    ]
    return with_texts(raw, api, dict.fromkeys(places, LEFT)) if places else raw


def _answer_without_text(raw: bytes, api: Api, recalls: frozenset[str]) -> bytes:
    """Return a block with a result of pagein's, without the text if one of these calls recalled it."""
    whole = object_of({"role": b'"user"', "content": array_of([raw])})
    made = _without_texts(whole, api, recalls)
    return raw if made is whole else encode_json(_object(made)["content"][0])


def _tools_found(raw: bytes) -> Iterator[str]:
    """Yield the names of the deferred tools to which search results in a message refer."""
    if _REFERENCE not in raw:
        return
    for block in objects_in(_object(raw).get("content")):
        for one in objects_in(object_at(block, "content").get("tool_references")):
            yield str(one.get("tool_name"))


def _object(raw: bytes) -> Json:
    value = decode_json(raw)
    return value if isinstance(value, dict) else {}


def _newest_match(unit: Unit, records: Sequence[ExchangeNote], api: Api) -> ExchangeNote | None:
    """Return the newest record that matches the message."""
    if unit.message.role != "assistant":
        return None
    said = _text_and_calls([unit.message], api)
    matches = (one for one in reversed(records) if one.actual and (one.text, one.calls) == said)
    return next(matches, None)


def _text_and_calls(messages: Sequence[Message], api: Api) -> tuple[str, tuple[str, ...]]:
    has_ids = format_named(api).requests.has_call_ids
    blocks = [block for one in messages for block in one.blocks]
    text = "".join("".join(block.text.split()) for block in blocks if isinstance(block, Text))
    return text, tuple(block.id if has_ids else block.name for block in blocks if isinstance(block, ToolCall))


def _encode_raws(raws: Sequence[str]) -> tuple[bytes, ...]:
    return tuple(raw.encode("utf-8", "surrogatepass") for raw in raws)
