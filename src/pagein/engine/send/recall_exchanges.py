"""Recall exchanges: calls of recall tools that pagein answered within a single request of the client.

Rules of this file
------------------
1. The client saw one answer, and sends it back as one message. The provider saw more: the message with the recall
   calls, pagein's results, and the model's answer to them. Later requests send this full exchange in place of the
   client's message, so that the provider's prefix stays the same.
2. The client's message is recognised by its text and calls, right after the request that it answers, because clients
   encode an answer in their own forms.
3. The exchange is journaled after that request, so it holds in every process, and on that branch alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pagein.engine.intake.message_chain import Transcript, Unit
from pagein.engine.send.message_changes import MessageChange
from pagein.engine.send.splice import HiddenExchange
from pagein.model.entries import EntryId
from pagein.model.journal_notes import ExchangeNote
from pagein.model.messages import Message, Text, ToolCall
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.request_body import message_of


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
        self, script: Transcript, exchanges: Mapping[EntryId, Sequence[ExchangeNote]]
    ) -> Mapping[int, HiddenExchange]:
        """Return the hidden exchanges of a request, by the number of the client's merged answer.

        exchanges: the records of `MessageIndex.exchanges`; may grow meanwhile.
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
        made[place] = replace(made.get(place, MessageChange()), stands=one.actual)
        if one.answers:
            made[place + 1] = replace(made.get(place + 1, MessageChange()), answers=one.answers)
    return made


def _exchange_of(record: ExchangeNote | None, api: Api) -> HiddenExchange | None:
    if record is None:
        return None
    actual, answers = _encode_raws(record.actual), _encode_raws(record.answers)
    is_beside = format_named(api).answers.with_results is not None
    return HiddenExchange(actual, answers) if is_beside else HiddenExchange((*actual, *answers))


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
