import asyncio
import gzip
import itertools
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gateway.upstreams import Answer, Got, run, says, stage, streams, until

from pagein.gateway.stream.answer_tee import Tee
from pagein.model.messages import Usage
from pagein.providers.validity import Api
from pagein.providers.wire import format_named
from pagein.providers.wire.streams.event_stream import Event, EventStream
from pagein.providers.wire.usage import parse_usage

JSON = {"Content-Type": "application/json"}
BODY = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'


def named(kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields}, ensure_ascii=False)}\n\n".encode()


MESSAGES = [
    named("message_start", message={"usage": {"input_tokens": 5, "cache_read_input_tokens": 70, "output_tokens": 1}}),
    named("content_block_start", index=0, content_block={"type": "thinking", "thinking": "", "signature": ""}),
    named("ping"),
    named("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "hm 😀"}),
    named("content_block_start", index=1, content_block={"type": "tool_use", "id": "t", "name": "read", "input": {}}),
    named("content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": '{"path":'}),
    named("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "sig"}),
    named("content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": '"é.py"}'}),
    named("content_block_delta", index=1, delta={"type": "unheard_of_delta", "x": 1}),
    named("content_block_stop", index=0),
    named("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 44}),
    named("message_stop"),
]
SAID = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm 😀", "signature": "sig"},
        {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "é.py"}},
    ],
}


def chat(**fields: object) -> bytes:
    return f"data: {json.dumps(fields)}\n\n".encode()


CHAT = [
    chat(choices=[{"index": 0, "delta": {"role": "assistant", "content": ""}}]),
    chat(choices=[{"index": 0, "delta": {"content": "he"}}]),
    chat(choices=[{"index": 0, "delta": {"content": "llo"}}]),
    chat(
        choices=[
            {"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}]}}
        ]
    ),
    chat(choices=[{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":1}'}}]}}]),
    chat(choices=[{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]),
    chat(
        choices=[], usage={"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens": 3}
    ),
    b"data: [DONE] \n\n",
]
OUTPUT = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hello"}]}]
RESPONSES = [
    named("response.created", response={"status": "in_progress"}),
    named("response.output_text.delta", delta="hello"),
    named("response.output_item.done", output_index=0, item=OUTPUT[0]),
    named(
        "response.completed",
        response={"status": "completed", "output": OUTPUT, "usage": {"input_tokens": 9, "output_tokens": 2}},
    ),
]


def test_a_character_whose_halves_come_in_two_events_is_read() -> None:
    """JSON may spell the halves as escapes. Such an event was skipped, and a continued answer lacked its text."""
    events = (
        b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
        *(
            b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%b"}}\n\n' % piece
            for piece in (b"a\\ud83d", b"\\ude00b")
        ),
    )
    reader = format_named("anthropic").answers.reader()
    for event in fed(b"".join(events), []):
        reader.take(event)
    assert json.dumps(reader.reply().message) == json.dumps(
        {"role": "assistant", "content": [{"type": "text", "text": "a😀b"}]}
    )


def fed(text: bytes, cuts: list[int]) -> list[Event]:
    stream = EventStream()
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    return [event for start, end in itertools.pairwise(places) for event in stream.feed(text[start:end])]


@given(
    st.lists(st.sampled_from(["a", "é😀", "", " x", "data", ":"]), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 200)),
)
def test_events_are_the_same_however_the_bytes_are_cut_and_the_lines_end(
    lines: list[str], ending: str, cuts: list[int]
) -> None:
    block = ["event: e", ": a comment", *(f"data: {line}" for line in lines), "id: 7", ""]
    text = "".join(line + ending for line in [*block, *block]).encode()
    expected = [Event("e", "\n".join(lines).encode())] * 2 if lines else []
    # a lone CR at the very end may yet become CRLF
    assert fed(text + b"\n", cuts) == expected


@settings(max_examples=300)
@given(
    st.binary(max_size=300),
    st.lists(st.integers(0, 300), max_size=5),
    st.sampled_from(["anthropic", "openai_chat", "openai_responses"]),
)
def test_no_bytes_end_the_reading_of_a_stream_badly(noise: bytes, cuts: list[int], api: Api) -> None:
    reading = format_named(api).answers.reader()
    for event in fed(b"data: " + noise + b"\n\n", cuts):
        reading.take(event)
    reading.reply()


@settings(max_examples=200)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.integers(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "type",
                        "index",
                        "delta",
                        "message",
                        "usage",
                        "choices",
                        "response",
                        "content_block",
                        "error",
                        "input_tokens",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=8,
    ),
    st.sampled_from(
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "message_delta",
            "error",
            "response.completed",
            "response.output_item.done",
        ]
    ),
    st.sampled_from(["anthropic", "openai_chat", "openai_responses"]),
)
def test_no_value_ends_the_reading_of_a_stream_badly(value: object, kind: str, api: Api) -> None:
    data = {"type": kind, **(value if isinstance(value, dict) else {"delta": value, "usage": value, "choices": value})}
    reading = format_named(api).answers.reader()
    reading.take(Event(kind, json.dumps(data).encode()))
    reading.reply()


@pytest.mark.parametrize(
    ("api", "parts", "message", "usage", "stop"),
    [
        ("anthropic", MESSAGES, SAID, Usage(fresh=5, read=70, output=44), "tool_use"),
        (
            "openai_chat",
            CHAT,
            {
                "role": "assistant",
                "content": "hello",
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
            },
            Usage(fresh=6, read=4, output=3),
            "tool_calls",
        ),
        ("openai_responses", RESPONSES, {"output": OUTPUT}, Usage(fresh=9, output=2), "completed"),
    ],
)
@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_a_streamed_answer_is_read_beside_its_way(
    api: Api, parts: list[bytes], message: object, usage: Usage, stop: str, step: int
) -> None:
    tee = Tee(api, [("Content-Type", "text/event-stream; charset=utf-8")])
    text = b"".join(parts)
    for start in range(0, len(text), step):
        tee.feed(text[start : start + step])
    reply = tee.reply()
    assert (reply.message, reply.usage, reply.stop, reply.finished) == (message, usage, stop, True)


def bare(text: bytes) -> bytes:
    packing = zlib.compressobj(wbits=-15)
    return packing.compress(text) + packing.flush()


@pytest.mark.parametrize(
    ("pack", "coding"),
    [(gzip.compress, "gzip"), (zlib.compress, "deflate"), (bare, "deflate"), (zstandard.compress, "zstd")],
)
def test_a_packed_stream_is_read_as_it_comes(pack: Callable[[bytes], bytes], coding: str) -> None:
    packed = pack(b"".join(MESSAGES))
    tee = Tee("anthropic", [("content-type", "text/event-stream"), ("content-encoding", coding)])
    for start in range(0, len(packed), 11):
        tee.feed(packed[start : start + 11])
    assert tee.reply().message == SAID
    assert tee.lost == ""


def test_what_cannot_be_read_is_lost_and_nothing_else() -> None:
    brotli = Tee("anthropic", [("content-type", "text/event-stream"), ("content-encoding", "br")])
    brotli.feed(b"\x0b\x02\x80hello")
    broken = Tee("anthropic", [("content-encoding", "gzip")])
    broken.feed(b"no gzip at all")
    assert brotli.reply().usage is None
    assert broken.reply().usage is None
    assert (brotli.lost, broken.lost) == ("coding", "content")


def test_a_stream_of_pings_is_no_finished_answer() -> None:
    tee = Tee("anthropic", [("content-type", "text/event-stream")])
    tee.feed(named("ping") * 41)
    assert not tee.reply().finished


def test_an_error_in_mid_stream_is_told_as_one(tmp_path: Path) -> None:
    parts = [*MESSAGES[:3], named("error", error={"type": "overloaded_error", "message": "Overloaded"})]

    async def go() -> None:
        async with stage(streams(parts), tmp_path) as on:
            status, body = await on.post("/v1/messages", BODY)
            assert (status, body) == (200, b"".join(parts))
            assert (await on.calls())[0]["finished"] is False

    run(go())


def test_usage_in_strange_forms_is_none_or_counts() -> None:
    assert parse_usage(None, "anthropic") is None
    assert parse_usage({"prompt_tokens": 3.0, "prompt_tokens_details": None}, "openai_chat") == Usage(fresh=3)
    assert parse_usage({"input_tokens": -4, "output_tokens": "7", "cache_creation": []}, "anthropic") == Usage()


@pytest.mark.parametrize(
    ("path", "parts"), [("/v1/messages", MESSAGES), ("/v1/chat/completions", CHAT), ("/v1/responses", RESPONSES)]
)
def test_each_event_passes_when_it_comes(path: str, parts: list[bytes], tmp_path: Path) -> None:
    async def go() -> None:
        arrived = asyncio.Semaphore()

        async def one_by_one(_: Got, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            for part in parts:  # each is said when the one before has arrived: one that was held back would be the last
                await arrived.acquire()
                writer.write(b"%x\r\n%b\r\n" % (len(part), part))
                await writer.drain()
            writer.write(b"0\r\n\r\n")
            await writer.drain()

        async with stage(one_by_one, tmp_path) as on:
            came = []
            async with on.client.post(on.url + path, data=BODY, headers={"Content-Type": "application/json"}) as answer:
                while part := await answer.content.readany():
                    came.append(part)
                    arrived.release()
            assert came == parts
            (call,) = await on.calls()
            assert call["finished"]
            assert call["output"] > 0

    run(go())


def test_a_client_that_hangs_up_ends_the_call_upstream_even_when_it_is_quiet(tmp_path: Path) -> None:
    async def answer(_: Got, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n:\n\n\r\n"
        )
        await asyncio.Event().wait()

    async def go() -> None:
        async with stage(answer, tmp_path) as on:
            reader, writer = await asyncio.open_connection("127.0.0.1", on.gateway.port)
            writer.write(b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
            await reader.readuntil(b":\n\n")
            writer.close()
            await on.upstream.gone.wait()
            (call,) = await on.calls()
            assert call["finished"] is False
            assert [line["side"] for line in on.logged() if line["event"] == "break"] == ["client"]

    run(go())


def test_a_client_that_hangs_up_before_there_is_an_answer_ends_the_call_upstream(tmp_path: Path) -> None:
    async def answer(_: Got, __: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async def go() -> None:
        async with stage(answer, tmp_path) as on:
            _, writer = await asyncio.open_connection("127.0.0.1", on.gateway.port)
            writer.write(b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
            await until(lambda: on.upstream.got)
            writer.close()
            await on.upstream.gone.wait()

    run(go())


async def short(_: Got, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9000\r\n\r\n" + MESSAGES[0])
    await writer.drain()
    writer.close()


@pytest.mark.parametrize(
    ("answer", "came"),
    [(short, MESSAGES[:1]), (streams(MESSAGES[:4], end=False), MESSAGES[:4])],
    ids=["length", "chunked"],
)
def test_an_answer_that_breaks_off_upstream_breaks_off_for_the_client(
    answer: Answer, came: list[bytes], tmp_path: Path
) -> None:
    async def go() -> None:
        async with stage(answer, tmp_path) as on:
            text, broke = b"", False
            async with on.client.post(on.url + "/v1/messages", data=BODY, headers=JSON) as got:
                try:
                    while part := await got.content.readany():
                        text += part
                except aiohttp.ClientPayloadError:
                    broke = True
            assert broke
            # all that came before the break did arrive
            assert text == b"".join(came)
            assert [line["side"] for line in on.logged() if line["event"] == "break"] == ["upstream"]
            assert (await on.calls())[0]["finished"] is False

    run(go())


def test_a_slow_client_slows_the_upstream_down_and_gets_everything(tmp_path: Path) -> None:
    part, count = named("content_block_delta", index=0, delta={"type": "text_delta", "text": "x" * 50_000}), 800
    written = 0

    async def answer(_: Got, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _number in range(count):
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
            written += 1
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def go() -> None:
        async with stage(answer, tmp_path) as on, aiohttp.ClientSession(read_bufsize=1 << 12) as client:
            async with client.post(on.url + "/v1/messages", data=BODY) as got:
                before = -1
                while written != before:  # until nothing more is taken
                    before = written
                    await asyncio.sleep(0.2)
                assert written < count * 0.7  # 40 MB would be in memory otherwise
                size = 0
                while piece := await got.content.readany():
                    size += len(piece)
            assert size == len(part) * count

    run(go())


def test_a_429_comes_back_word_for_word(tmp_path: Path) -> None:
    told = b'{"type":"error","error":{"type":"rate_limit_error","message":"Number of tokens"}, "request_id":"r"}'

    async def go() -> None:
        answer = says(told, "Content-Type: application/json", "retry-after: 11", status="429 Too Many Requests")
        async with stage(answer, tmp_path) as on, on.client.post(on.url + "/v1/messages", data=BODY) as got:
            assert (got.status, await got.read(), got.headers["retry-after"]) == (429, told, "11")

    run(go())


def test_many_idle_streams_at_once_all_come_to_their_end(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(streams(MESSAGES, pause=0.05), tmp_path) as on:
            connector = aiohttp.TCPConnector(limit=0)
            async with aiohttp.ClientSession(connector=connector) as client:

                async def one() -> bytes:
                    async with client.post(on.url + "/v1/messages", data=BODY) as got:
                        return await got.read()

                answers = await asyncio.gather(*(one() for _ in range(150)))
            assert set(answers) == {b"".join(MESSAGES)}

    run(go())
