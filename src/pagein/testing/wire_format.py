"""The contract of a wire format, as tests. Subclass it and provide the fixture `sample`.

Answers come from the simulated provider, which writes them by code of its own. So the suite checks both sides of a format.
"""

# ruff: noqa: S101 -- these are tests that ship

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from pagein.gateway.stream.continuation import continue_request
from pagein.gateway.stream.rounds import Rounds
from pagein.gateway.stream.whole_answer import whole
from pagein.model.json_text import encode_json
from pagein.model.messages import Message, Text, ToolCall, ToolResult, Usage
from pagein.providers.validity import Api
from pagein.providers.wire import FORMATS, check_body, decode, format_named, render
from pagein.providers.wire.breakpoint_edits import Wishes, changes, with_changes
from pagein.providers.wire.formats import api_of
from pagein.providers.wire.request_body import open_body, with_notes
from pagein.providers.wire.spliced_breakpoints import with_marks
from pagein.providers.wire.streams.event_stream import EventStream
from pagein.providers.wire.streams.model_reply import ModelReply
from pagein.providers.wire.streams.model_turn import OwnToolResult
from pagein.providers.wire.tool_offers import ToolOffer, definition, names_of, with_tools
from pagein.providers.wire.usage import usage_of
from pagein.simulator.formats import simulated_format
from pagein.simulator.neutral_answer import ReplyCall, ReplyText, SimulatedReply

OURS = "peek"
ANY_JSON: tuple[object, ...] = (None, 1, "x", [], [None], {}, {"content": 1}, {"parts": {}}, {"usage": [], "error": 1})
USAGE = Usage(fresh=30, read=20, output=7)


@dataclass(frozen=True, slots=True)
class WireSample:
    """A request in a wire format, written by hand, with the expected messages.

    The conversation is: the user's `question`, a call of the tool `read` with `{"path": "a.txt"}`, its result `answer`,
    and the user's `and now?`.

    body: the bytes of the request, with the tool `read` and a system prompt `be brief`.
    call, result: message and block of the call and of the result.
    broken: requests that the provider refuses, by the id of the rule.
    """

    api: Api
    body: bytes
    call: tuple[int, int]
    result: tuple[int, int]
    broken: Mapping[str, dict[str, Any]] = field(default_factory=dict)


def contents_of(messages: tuple[Message, ...]) -> list[object]:
    """What some messages say, without ids: texts, names and arguments of calls, and results."""
    found: list[object] = []
    for block in (block for one in messages for block in one.blocks):
        match block:
            case Text(text=text):
                found.append(text)
            case ToolCall(name=name, arguments=arguments):
                found.append((name, json.loads(arguments)))
            case ToolResult(text=text):
                found.append({"result": text})
            case _:
                pass
    return found


SAID: list[object] = ["question", ("read", {"path": "a.txt"}), {"result": "answer"}, "and now?"]


def reply_of(*blocks: ReplyText | ReplyCall) -> SimulatedReply:
    """An answer of the simulated provider."""
    return SimulatedReply("0123456789abcdef", "model", 1, blocks, USAGE)


RECALLING = reply_of(ReplyText("let me see "), ReplyCall("a_1", OURS, '{"id": "pg-1"}'))
CALLING = reply_of(ReplyText("hello"), ReplyCall("a_2", "read", '{"path": "b"}'))
SPEAKING = reply_of(ReplyText("done"))


def read_stream(api: Api, stream: bytes) -> ModelReply:
    """Read a stream as the gateway does."""
    reading, events = format_named(api).answers.reader(), EventStream()
    for event in (*events.feed(stream), *events.end()):
        reading.take(event)
    return reading.reply()


def stream_of(api: Api, reply: SimulatedReply) -> bytes:
    """An answer as a stream."""
    return b"".join(simulated_format(api).events(reply))


def body_of(api: Api, reply: SimulatedReply) -> dict[str, Any]:
    """An answer without streaming."""
    return simulated_format(api).whole(reply)


class WireFormatContract:
    """The contract of every wire format."""

    # --- requests ---

    def test_a_request_is_found_to_be_in_its_format_and_in_no_other(self, sample: WireSample) -> None:
        value = json.loads(sample.body)
        sure = [one.likeness(value) for one in FORMATS]
        assert api_of(sample.body) == sample.api
        assert len({one for one in sure if one}) == sum(one > 0 for one in sure)

    def test_an_unchanged_request_keeps_its_bytes(self, sample: WireSample) -> None:
        assert decode(sample.body, sample.api).body() == sample.body
        envelope = open_body(sample.body, sample.api)
        assert json.loads(envelope.body(envelope.items)) == json.loads(sample.body)

    def test_a_request_says_what_was_written(self, sample: WireSample) -> None:
        read = decode(sample.body, sample.api)
        head = [*read.system, *(one for one in read.messages if one.role == "system")]
        assert contents_of(tuple(head)) == ["be brief"]
        assert contents_of(tuple(one for one in read.messages if one.role != "system")) == SAID

    def test_a_call_and_its_result_have_one_id(self, sample: WireSample) -> None:
        messages = decode(sample.body, sample.api).messages
        call = messages[sample.call[0]].blocks[sample.call[1]]
        result = messages[sample.result[0]].blocks[sample.result[1]]
        assert isinstance(call, ToolCall)
        assert isinstance(result, ToolResult)
        assert call.id == result.call_id != ""

    def test_a_replaced_result_changes_nothing_else(self, sample: WireSample) -> None:
        read = decode(sample.body, sample.api)
        made = read.with_results({sample.result: "stub"})
        others = [place for place in range(len(read.items)) if place != sample.result[0]]
        assert [made.items[place] for place in others] == [read.items[place] for place in others]
        assert contents_of(decode(made.body(), sample.api).messages)[-4:] == [
            SAID[0],
            SAID[1],
            {"result": "stub"},
            SAID[3],
        ]
        assert check_body(json.loads(made.body()), sample.api) == []

    def test_replaced_arguments_change_nothing_else(self, sample: WireSample) -> None:
        read = decode(sample.body, sample.api)
        place, block = sample.call
        item = format_named(sample.api).requests.with_arguments(read.items[place], {block: '{"path":"b"}'})
        items = [item if at == place else one for at, one in enumerate(read.items)]
        made = open_body(sample.body, sample.api).body(items)
        assert contents_of(decode(made, sample.api).messages)[-4:] == [SAID[0], ("read", {"path": "b"}), *SAID[2:]]

    def test_notes_come_after_what_a_message_says(self, sample: WireSample) -> None:
        read = decode(sample.body, sample.api)
        last = with_notes(read.items[-1], sample.api, ["note one", "note two"])
        made = open_body(sample.body, sample.api).body([*read.items[:-1], last])
        assert contents_of(decode(made, sample.api).messages)[-3:] == ["and now?", "note one", "note two"]
        assert check_body(json.loads(made), sample.api) == []

    def test_a_rendered_conversation_says_the_same_and_is_accepted(self, sample: WireSample) -> None:
        messages = decode(sample.body, sample.api).messages
        body = render(messages, sample.api, model="model")
        assert check_body(body, sample.api) == []
        assert contents_of(decode(encode_json(body), sample.api).messages)[-4:] == SAID

    def test_a_message_of_any_shape_is_read(self, sample: WireSample) -> None:
        form = format_named(sample.api)
        for value in (one for one in ANY_JSON if isinstance(one, dict)):
            assert isinstance(form.requests.message(value, 0), Message)
            assert form.likeness(value) >= 0
            form.requests.cache_blocks(value)
            form.validity.turns(value)

    # --- tools ---

    def test_an_offered_tool_comes_after_the_clients_own(self, sample: WireSample) -> None:
        fields = open_body(sample.body, sample.api).fields
        offer = ToolOffer(OURS, "bring back")
        made = with_tools(fields, sample.api, [offer])
        assert names_of(fields, sample.api) == {"read"}
        assert names_of(made, sample.api) == {"read", OURS}
        form = format_named(sample.api).tools
        assert form.definitions(json.loads(made["tools"]))[0] == form.definitions(json.loads(fields["tools"]))[0]
        assert all(form.is_function(one) for one in form.definitions(json.loads(made["tools"])))
        assert OURS in json.dumps(definition(offer, sample.api))

    # --- refusals ---

    def test_the_sample_is_accepted(self, sample: WireSample) -> None:
        assert check_body(json.loads(sample.body), sample.api) == []

    def test_a_broken_request_is_refused_by_its_rule(self, sample: WireSample) -> None:
        for rule, body in sample.broken.items():
            assert rule in {one.rule for one in check_body(body, sample.api)}

    def test_a_rule_of_several_formats_is_one_rule(self, sample: WireSample) -> None:
        rules = format_named(sample.api).validity.rules
        shared = ((name, one) for other in FORMATS for name, one in other.validity.rules.items() if name in rules)
        assert all(one is rules[name] for name, one in shared)

    # --- the cache ---

    def test_breakpoints_are_placed_alike_in_values_and_in_bytes(self, sample: WireSample) -> None:
        body = json.loads(sample.body)
        made = changes(body, sample.api, Wishes(client="replaced"))
        placed = with_marks(decode(sample.body, sample.api), made)
        assert json.loads(placed.body()) == with_changes(body, made)
        assert made.is_nothing == (placed.body() == sample.body)
        if format_named(sample.api).cache.takes_ttls:
            assert not made.is_nothing
            assert check_body(json.loads(placed.body()), sample.api) == []

    # --- answers ---

    def test_the_usage_of_an_answer_is_read(self, sample: WireSample) -> None:
        assert usage_of(body_of(sample.api, CALLING), sample.api) == USAGE

    @pytest.mark.parametrize("reply", [CALLING, RECALLING, SPEAKING], ids=["call", "recall", "text"])
    def test_a_stream_says_what_the_whole_answer_says(self, sample: WireSample, reply: SimulatedReply) -> None:
        streamed = read_stream(sample.api, stream_of(sample.api, reply))
        answer = whole(sample.api, encode_json(body_of(sample.api, reply)))
        assert streamed.finished
        assert answer.finished
        assert streamed.stop == answer.stop
        assert answer.usage == USAGE
        one, other = (format_named(sample.api).answers.turn(read, (OURS,)) for read in (streamed, answer))
        assert (one.own, one.calls_client) == (other.own, other.calls_client)
        assert answer_texts(sample, streamed) == answer_texts(sample, answer)

    def test_a_stream_that_breaks_off_is_not_finished(self, sample: WireSample) -> None:
        events = list(simulated_format(sample.api).events(CALLING))
        assert not read_stream(sample.api, b"".join(events[: len(events) // 2])).finished

    def test_an_error_is_read_as_one(self, sample: WireSample) -> None:
        form = simulated_format(sample.api)
        assert whole(sample.api, encode_json(form.error(500))).error
        assert read_stream(sample.api, form.error_event(500)).error
        assert whole(sample.api, encode_json(format_named(sample.api).http.error(502, "told", "code"))).error
        assert "told" in json.dumps(format_named(sample.api).http.error(502, "told", "code"))

    def test_an_answer_of_any_shape_is_read(self, sample: WireSample) -> None:
        for value in ANY_JSON:
            read = whole(sample.api, encode_json(value))
            assert format_named(sample.api).answers.turn(read, (OURS,)).own == ()

    def test_recall_calls_are_apart_from_the_clients(self, sample: WireSample) -> None:
        form = format_named(sample.api).answers
        recalling = form.turn(whole(sample.api, encode_json(body_of(sample.api, RECALLING))), (OURS,))
        assert [(one.name, one.arguments) for one in recalling.own] == [(OURS, {"id": "pg-1"})]
        assert recalling.goes_on
        calling = form.turn(whole(sample.api, encode_json(body_of(sample.api, CALLING))), (OURS,))
        assert calling.own == ()
        assert calling.calls_client
        assert calling.said == calling.shown

    def test_a_request_continued_behind_a_recall_is_accepted(self, sample: WireSample) -> None:
        form = format_named(sample.api).answers
        turn = form.turn(whole(sample.api, encode_json(body_of(sample.api, RECALLING))), (OURS,))
        rounds = Rounds(form)
        rounds.end_turn(turn)
        rounds.add_answers([OwnToolResult(one, "recalled") for one in turn.own])
        made = continue_request(sample.body, sample.api, rounds.behind)
        assert check_body(json.loads(made), sample.api) == []
        said = contents_of(decode(made, sample.api).messages)
        assert said[-7:] == [*SAID, "let me see ", (OURS, {"id": "pg-1"}), {"result": "recalled"}]

    @pytest.mark.parametrize("size", [1, 7, 1 << 20])
    def test_a_stream_without_recall_calls_keeps_its_bytes(self, sample: WireSample, size: int) -> None:
        stream, merger = stream_of(sample.api, CALLING), format_named(sample.api).answers.merger((OURS,))
        cuts = [*range(0, len(stream), size), len(stream)]
        assert b"".join(merger.take(stream[one:two]) for one, two in pairwise(cuts)) + merger.flush() == stream
        assert not merger.held
        assert merger.ended

    def test_streams_merge_into_one_without_recall_calls(self, sample: WireSample) -> None:
        merger = format_named(sample.api).answers.merger((OURS,))
        shown = merger.take(stream_of(sample.api, RECALLING)) + merger.flush()
        assert merger.held
        assert merger.ended
        merger.begin(spoke=False)
        shown += merger.take(stream_of(sample.api, SPEAKING)) + merger.flush() + merger.end_frames()
        assert OURS.encode() not in shown
        merged = read_stream(sample.api, shown)
        assert merged.finished
        assert "".join(answer_texts(sample, merged)) == "let me see done"

    def test_answers_merge_into_one_without_recall_calls(self, sample: WireSample) -> None:
        answers = [body_of(sample.api, RECALLING), body_of(sample.api, CALLING)]
        merged = encode_json(format_named(sample.api).answers.merged(answers, (OURS,)))
        assert OURS.encode() not in merged
        assert "read" in json.dumps(json.loads(merged))
        assert whole(sample.api, merged).finished

    # --- over HTTP ---

    def test_its_path_is_a_call_of_its_own_and_of_no_other_format(self, sample: WireSample) -> None:
        path = format_named(sample.api).http.path.format(model="some-model")
        found = {one.name: one.http.endpoint(path) for one in FORMATS}
        assert [name for name, one in found.items() if one is not None] == [sample.api]
        own = found[sample.api]
        assert own is not None
        assert own.is_call
        assert (own.model == "some-model") == (format_named(sample.api).requests.model_field == "")


def answer_texts(sample: WireSample, reply: ModelReply) -> list[str]:
    """The texts of an answer, as they are sent back."""
    said = format_named(sample.api).answers.turn(reply, ()).said
    body = open_body(sample.body, sample.api).body(said)
    return [one for one in contents_of(decode(body, sample.api).messages) if isinstance(one, str)]
