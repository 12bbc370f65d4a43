"""What of a stream the client sees, however its bytes are cut."""

import json
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagein.model.messages import Usage
from pagein.providers.validity import Api
from pagein.providers.wire import format_named
from pagein.providers.wire.anthropic_messages.stream_merge import MessagesMerger
from pagein.providers.wire.openai_chat.stream_merge import ChatMerger
from pagein.providers.wire.openai_responses.stream_merge import ResponsesMerger
from pagein.providers.wire.streams.event_stream import EventStream
from pagein.providers.wire.streams.model_reply import ModelReply as Read
from pagein.providers.wire.streams.stream_merge import StreamMerger
from pagein.simulator.anthropic_messages import answers as anthropic_answers
from pagein.simulator.neutral_answer import ReplyCall, ReplyText, ReplyThought, SimulatedReply, Spoken
from pagein.simulator.openai_chat import answers as chat_answers
from pagein.simulator.openai_responses import answers as responses_answers

OURS = ("peek", "search")
Format = tuple[Api, Callable[[SimulatedReply], Iterator[bytes]], Callable[..., StreamMerger]]
FORMATS: list[Format] = [
    ("anthropic", anthropic_answers.events, MessagesMerger),
    ("openai_chat", chat_answers.events, ChatMerger),
    ("openai_responses", responses_answers.events, ResponsesMerger),
]
formats = pytest.mark.parametrize("form", FORMATS, ids=[one[0] for one in FORMATS])

words = st.sampled_from(["hm", 'look: "index":3, tool_use', "é😀\n\nevent: error\n", 'data: [DONE] "error"', "x" * 70])
names = st.sampled_from(["Bash", "Read", *OURS])
arguments = words.map(lambda text: json.dumps({"id": text}))


@st.composite
def blocks(draw: st.DrawFn) -> tuple[Spoken, ...]:
    kinds = draw(st.lists(st.sampled_from("twc"), min_size=1, max_size=6))
    made: list[Spoken] = []
    for place, kind in enumerate(kinds):
        if kind == "t":
            made.append(ReplyThought(draw(words), f"sig{place}"))
        elif kind == "w":
            made.append(ReplyText(draw(words)))
        else:
            made.append(ReplyCall(f"c{place}", draw(names), draw(arguments)))
    return tuple(made)


def reply(said: tuple[Spoken, ...], tag: str) -> SimulatedReply:
    return SimulatedReply(tag, "m", 1, said, Usage(fresh=10, output=5))


def fed(merger: StreamMerger, stream: bytes, cuts: list[int]) -> bytes:
    ends = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    return b"".join(merger.take(stream[start:end]) for start, end in pairwise(ends)) + merger.flush()


def read(api: Api, stream: bytes) -> Read:
    reading = format_named(api).answers.reader()
    for event in EventStream().feed(stream):
        reading.take(event)
    return reading.reply()


def hidden(said: tuple[Spoken, ...]) -> tuple[Spoken, ...]:
    return tuple(one for one in said if not (isinstance(one, ReplyCall) and one.name in OURS))


@formats
@settings(max_examples=60, deadline=None)
@given(said=blocks(), cuts=st.lists(st.integers(0, 5000), max_size=12))
def test_an_answer_without_calls_of_ours_passes_as_the_bytes_it_came_as(
    form: Format, said: tuple[Spoken, ...], cuts: list[int]
) -> None:
    _, events, merger_of = form
    stream = b"".join(events(reply(hidden(said), "a")))
    merger = merger_of(OURS)
    assert fed(merger, stream, cuts) == stream
    assert not merger.held


@formats
@settings(max_examples=100, deadline=None)
@given(turns=st.lists(blocks(), min_size=1, max_size=3), cuts=st.lists(st.integers(0, 5000), max_size=12))
def test_a_client_reads_what_all_turns_said_without_calls_of_ours(
    form: Format, turns: list[tuple[Spoken, ...]], cuts: list[int]
) -> None:
    api, events, merger_of = form
    # what is shown of a turn that goes on holds no calls of the client's
    ours = [
        (*(one for one in turn if not isinstance(one, ReplyCall)), ReplyCall("p", "peek", "{}")) for turn in turns[:-1]
    ]
    merger, shown = merger_of(OURS), b""
    for place, turn in enumerate([*ours, turns[-1]]):
        stream = b"".join(events(reply(turn, f"{place}")))
        shown += fed(merger, stream, cuts)
        assert merger.ended
        if place < len(ours):
            assert format_named(api).answers.turn(read(api, stream), OURS).goes_on
            merger.begin(spoke=False)
    shown += merger.end_frames()
    seen = read(api, shown)
    last = turns[-1]
    expected = (*(block for turn in ours for block in hidden(turn)), *hidden(last))
    stop = "" if any(isinstance(one, ReplyCall) for one in hidden(last)) else None
    whole = read(api, b"".join(events(reply(expected, "0"))))
    assert seen.finished
    assert without_names(seen.message) == without_names(whole.message)
    assert stop is None or seen.stop == whole.stop
    assert seen.usage is not None
    assert seen.usage.output == 5 * (len(ours) + 1)
    frames = [frame for frame in shown.split(b"\n\n") if b"response." in frame and api == "openai_responses"]
    numbers = [json.loads(frame.partition(b"data: ")[2])["sequence_number"] for frame in frames if b"data: {" in frame]
    assert numbers == sorted(set(numbers))


def without_names(message: object) -> object:
    """A message without the ids of items, which tell of the turn that they stood in."""
    text = json.dumps(message)
    value = json.loads(text) if message is not None else {}
    for one in value.get("output", ()):
        one.pop("id", None)
    return value


@formats
def test_an_answer_that_was_cut_off_in_a_call_of_ours_calls_nothing(form: Format) -> None:
    api, events, _ = form
    said = (ReplyText("let me"), ReplyCall("c", "peek", '{"id": "x"}'))
    whole = SimulatedReply("a", "m", 1, said, Usage(output=3), stop="max_tokens")
    turn = format_named(api).answers.turn(read(api, b"".join(events(whole))), OURS)
    assert turn.own == ()
    assert turn.said == turn.shown
    assert b"peek" not in b"".join(turn.said)


def test_a_tool_of_our_name_in_a_namespace_of_the_client_is_called_by_the_client() -> None:
    said = ReplyCall("c", "search", '{"pattern": "x"}', "mcp__pagein")
    stream, merger = b"".join(responses_answers.events(reply((said,), "a"))), ResponsesMerger(OURS)
    assert fed(merger, stream, []) == stream
    answers, found = format_named("openai_responses").answers, read("openai_responses", stream)
    turn = answers.turn(found, OURS)
    assert (turn.own, turn.calls_client, merger.held) == ((), True, False)
    assert json.loads(turn.shown[0])["namespace"] == "mcp__pagein"
    whole = answers.merged([found.message or {}], OURS)
    assert [one["name"] for one in whole["output"]] == ["search"]
