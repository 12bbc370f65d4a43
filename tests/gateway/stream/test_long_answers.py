"""Long and compressed answers delay no other request, and take bounded memory."""

import gzip
import json
import threading
import tracemalloc
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gateway.curation.test_guarded_curator import BODY, Scripted
from tests.gateway.stream.test_reply_reader import MESSAGES
from tests.gateway.stream.test_stream_merge import OURS
from tests.gateway.test_shutdown import BEGINS, CALL, PEEK
from tests.gateway.upstreams import Answer, run, says, stage, streams

from pagein.gateway.curation.guarded_curator import CuratedRequest, CurationRequest
from pagein.gateway.http import content_codings
from pagein.gateway.http.content_codings import decoder
from pagein.gateway.stream import answer_tee, upstream_answer, whole_answer
from pagein.gateway.stream.answer_tee import Tee
from pagein.providers.wire import json_values
from pagein.providers.wire.anthropic_messages import reply_reader
from pagein.providers.wire.anthropic_messages.stream_merge import MessagesMerger
from pagein.providers.wire.streams import event_stream, stream_merge
from pagein.providers.wire.streams.stream_merge import TooLong

DELTA = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word "}}\n\n'
LONG = [MESSAGES[0], BEGINS % (0, b'{"type":"text","text":""}'), *([DELTA * 500] * 40), *CALL[-3:]]
JSON = (
    b'{"type":"message","role":"assistant","stop_reason":"end_turn","content":[{"type":"text","text":"' + b"w " * 99999
)


def offering(asked: CurationRequest) -> CuratedRequest:
    return CuratedRequest(asked.body, "s", "m", tools=frozenset(OURS))


def plain(asked: CurationRequest) -> CuratedRequest:
    return CuratedRequest(asked.body, "s", "m")


def bare(text: bytes) -> bytes:
    packing = zlib.compressobj(wbits=-15)
    return packing.compress(text) + packing.flush()


PACKINGS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", bare),
    ("zstd", zstandard.compress),
]
packings = pytest.mark.parametrize(("coding", "pack"), PACKINGS, ids=["gzip", "zlib", "bare", "zstd"])


@pytest.mark.parametrize("prepare", [plain, offering], ids=["beside", "woven"])
@pytest.mark.parametrize(
    "answer",
    [
        streams(LONG),
        says(gzip.compress(b"".join(LONG), 1), "Content-Type: text/event-stream", "Content-Encoding: gzip"),
        says(JSON + b'"}]}', "Content-Type: application/json"),
    ],
    ids=["stream", "packed", "whole"],
)
def test_no_answer_is_read_where_all_streams_are_served(
    prepare: Callable[[CurationRequest], CuratedRequest],
    answer: Answer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where: set[threading.Thread] = set()
    taken, decoded = event_stream.EventStream.feed, json_values.decoded_object

    def feed(self: event_stream.EventStream, part: bytes) -> list[event_stream.Event]:
        where.add(threading.current_thread())
        return taken(self, part)

    def parsed(text: bytes) -> object:
        where.add(threading.current_thread())
        return decoded(text)

    monkeypatch.setattr(event_stream.EventStream, "feed", feed)
    for module in (reply_reader, whole_answer):
        monkeypatch.setattr(module, "decoded_object", parsed)

    async def go() -> None:
        async with stage(answer, tmp_path, curator=Scripted(prepare)) as on:
            assert (await on.post("/v1/messages", BODY, Accept_Encoding="identity"))[0] == 200
            (call,) = await on.calls()
            assert (call["finished"], call["unread"]) == (True, "")

    run(go())
    assert where
    assert threading.main_thread() not in where


@packings
def test_few_bytes_that_stand_for_many_are_unpacked_in_pieces_and_not_for_ever(
    coding: str, pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_codings, "UNPACKED", 40 << 20)
    reading = decoder(coding)
    assert reading is not None
    bomb, found = pack(bytes(48 << 20)), 0
    assert len(bomb) < 1 << 16
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than"):  # noqa: PT012 -- it comes after some pieces
            for piece in reading.decode(bomb):
                found += len(piece)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    assert 30 << 20 < found <= 40 << 20


@packings
@settings(max_examples=30)
@given(
    st.binary(max_size=40)
    | st.integers(0, 1 << 18).map(bytes)
    | st.integers(1 << 16, 1 << 17).map(lambda n: b"ab" * n),
    st.lists(st.integers(0, 1 << 18), max_size=5),
)
def test_what_is_unpacked_is_what_was_packed_however_it_is_cut(
    coding: str, pack: Callable[[bytes], bytes], text: bytes, cuts: list[int]
) -> None:
    packed, reading = pack(text), decoder(coding)
    assert reading is not None
    ends = sorted({0, len(packed), *(cut % (len(packed) + 1) for cut in cuts)})
    assert b"".join(piece for start, end in pairwise(ends) for piece in reading.decode(packed[start:end])) == text


def test_a_packed_answer_that_is_a_bomb_ends_its_reading_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_codings, "UNPACKED", 1 << 20)
    packed = gzip.compress(bytes(4 << 20))
    answer = says(packed, "Content-Type: application/json", "Content-Encoding: gzip")

    async def go() -> None:
        async with stage(answer, tmp_path, curator=Scripted(plain)) as on:
            async with on.client.post(on.url + "/v1/messages", data=BODY) as got:
                assert await got.read() == bytes(4 << 20)  # the client's own to unpack
            assert [call["unread"] for call in await on.calls()] == ["content"]

    run(go())


@pytest.mark.parametrize("packed", [False, True])
def test_an_answer_too_long_to_be_looked_at_passes_whole(
    packed: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (upstream_answer, answer_tee):
        monkeypatch.setattr(module, "LONGEST", 1 << 16)
    body = JSON + b'"}]}'
    sent, coding = (gzip.compress(body), ["Content-Encoding: gzip"]) if packed else (body, [])

    async def go() -> None:
        answer = says(sent, "Content-Type: application/json", "X-Mark: 1", *coding)
        async with stage(answer, tmp_path, curator=Scripted(offering)) as on:
            async with on.client.post(on.url + "/v1/messages", data=BODY) as got:
                assert (got.status, got.headers["X-Mark"], await got.read()) == (200, "1", body)
            assert [call["unread"] for call in await on.calls()] == ["size"]

    run(go())


def woven(parts: list[bytes]) -> tuple[MessagesMerger, list[bytes]]:
    merger = MessagesMerger(OURS)
    return merger, [merger.take(part) for part in parts]


@pytest.mark.parametrize("line", [b"\n", b"\r\n", b"\r"])
@given(size=st.integers(1, 90))
@settings(max_examples=30)
def test_a_frame_too_long_to_be_looked_at_passes_as_it_comes_and_those_behind_it_are_looked_at(
    line: bytes, size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_merge, "LONGEST", 300)
        giant = DELTA.replace(b"word ", b"w" * 500)
        stream = b"".join([MESSAGES[0], giant, DELTA, BEGINS % (1, PEEK), CALL[2].replace(b":0", b":1"), *CALL[3:]])
        stream = stream.replace(b"\n", line)
        merger, shown = woven([stream[start : start + size] for start in range(0, len(stream), size)])
        assert b"".join(shown) == b"".join([MESSAGES[0], giant, DELTA]).replace(b"\n", line)
        assert merger.held
        assert merger.ended


def test_a_frame_too_long_to_be_changed_is_a_break_where_it_would_have_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_merge, "LONGEST", 300)
    with pytest.raises(TooLong):
        woven([CALL[0], BEGINS % (0, PEEK), DELTA.replace(b"word ", b"w" * 500)[:400]])


def test_a_long_frame_takes_time_by_its_length_and_no_more() -> None:
    """Each byte is looked at once: 8 MB in small pieces, of which each would else be put together with all before it."""
    merger = MessagesMerger(OURS)
    frame = DELTA.replace(b"word ", b"w" * (8 << 20))
    copied = 0

    class Counted(bytes):
        def __radd__(self, other: bytes) -> bytes:
            nonlocal copied
            copied += len(other)
            return other + bytes(self)

    shown = [merger.take(Counted(frame[start : start + 1000])) for start in range(0, len(frame), 1000)]
    assert b"".join(shown) == frame
    assert copied < len(frame)


def test_a_tee_says_when_there_is_much_to_read() -> None:
    reading = Tee("anthropic", [("content-type", "text/event-stream")])
    told = [reading.feed(part) for part in LONG]
    assert told[0] is False
    assert told[-1] is True
    reading.read()
    assert reading.feed(b"") is False
    assert json.dumps(reading.reply().message).count("word") == 20000
