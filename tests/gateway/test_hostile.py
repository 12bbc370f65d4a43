"""What an attacker, or an accident, may send: it harms nobody else, and is refused as the provider would refuse it."""

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
import zstandard

from pagein.hosts.gateway.codings import decoded

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
        assert decoded(bomb, coding, 1 << 20) is None
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("coding", "pack"), [*PACKERS, ("identity", bytes)])
def test_a_packed_body_is_read_up_to_the_very_limit_and_in_several_members(
    coding: str, pack: Callable[[bytes], bytes]
) -> None:
    assert decoded(pack(b"x" * 1000), coding, 1000) == b"x" * 1000
    assert decoded(pack(b"x" * 1001), coding, 1000) is None
    if coding != "deflate":
        assert decoded(pack(b"ab") + pack(b"cd"), coding, 100) == b"abcd"


def test_a_packed_body_that_ends_too_soon_is_not_taken_for_whole() -> None:
    assert decoded(gzip.compress(b'{"a": 1}')[:-8], "gzip", 100) is None
