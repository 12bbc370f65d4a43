"""Hostile and damaged requests harm no other caller, and are refused as the provider would refuse them."""

import gzip
import json
import sqlite3
import threading
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from tests.gateway.processes import gateway_process, logged, noted
from tests.gateway.test_serve import conversation, sent
from tests.gateway.upstreams import run

from pagein.errors import StoreError
from pagein.gateway.http.content_codings import decode_body
from pagein.simulator import SimulatedProvider
from pagein.store.sqlite.sqlite_database import SqliteDatabase

PACKERS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("zstd", zstandard.ZstdCompressor().compress),
]


@pytest.mark.parametrize(("coding", "pack"), PACKERS)
def test_no_more_of_a_packed_body_is_unpacked_than_may_be_sent(coding: str, pack: Callable[[bytes], bytes]) -> None:
    bomb = pack(b" " * (64 << 20))
    tracemalloc.start()
    try:
        assert decode_body(bomb, coding, 1 << 20) is None
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("coding", "pack"), [*PACKERS, ("identity", bytes)])
def test_a_packed_body_is_read_up_to_the_very_limit_and_in_several_members(
    coding: str, pack: Callable[[bytes], bytes]
) -> None:
    assert decode_body(pack(b"x" * 1000), coding, 1000) == b"x" * 1000
    assert decode_body(pack(b"x" * 1001), coding, 1000) is None
    if coding != "deflate":
        assert decode_body(pack(b"ab") + pack(b"cd"), coding, 100) == b"abcd"


def test_a_packed_body_that_ends_too_soon_is_not_taken_for_whole() -> None:
    assert decode_body(gzip.compress(b'{"a": 1}')[:-8], "gzip", 100) is None


def test_a_locked_store_changes_nothing_of_what_was_sent_before(tmp_path: Path) -> None:
    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path, "--budget", "8") as (url, _):
        for turns in range(14):
            run(sent(url, conversation(turns)))
        before = provider.requests[-1].body["messages"]
        assert before != conversation(13)["messages"]
        # what is noted late would find the store locked
        noted(tmp_path, 14)
        lock = sqlite3.connect(tmp_path / "s.pagein", isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        try:
            for turns in (14, 15):
                assert run(sent(url, conversation(turns)))[0] == 200
                asked = provider.requests[-1].body["messages"]
                assert asked[: len(before)] == before
                assert asked[len(before) :] == conversation(turns)["messages"][len(before) :]  # type: ignore[index]
        finally:
            lock.execute("ROLLBACK")
            lock.close()
        assert run(sent(url, conversation(16)))[0] == 200
        assert len(json.dumps(provider.requests[-1].body)) < len(json.dumps(conversation(16))) / 2
    assert [line["kind"] for line in logged(tmp_path, "failure")] == ["engine", "engine"]


def test_threads_that_wait_for_one_that_hangs_are_told_so(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "s.pagein", patience=0.2, longest=0.2)
    try:
        with database.open_writer():
            waiting: list[BaseException] = []

            def write() -> None:
                try:
                    with database.open_writer():
                        pass
                except StoreError as problem:
                    waiting.append(problem)

            thread = threading.Thread(target=write)
            thread.start()
            thread.join(60)
            assert not thread.is_alive()
        assert "at work" in str(waiting[0])
    finally:
        database.close()
