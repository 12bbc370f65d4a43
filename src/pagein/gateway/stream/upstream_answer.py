"""Read an upstream's answer in decoded pieces, and report failures."""

from collections.abc import AsyncIterator
from typing import Final

from aiohttp import ClientError, ClientResponse

from pagein.gateway.http.content_codings import Decoder, decoder
from pagein.providers.wire.streams.event_stream import LONGEST

UPSTREAM: Final = (ClientError, OSError)
"""Failures of an upstream connection. TimeoutError is an OSError."""


class BrokenAnswer(Exception):
    """The upstream broke off in the middle of its answer."""


async def read_more(upstream: ClientResponse) -> bytes:
    """Return the bytes received since the last call, b"" at the end. Raises BrokenAnswer."""
    try:
        return await upstream.content.readany()
    except UPSTREAM as problem:
        raise BrokenAnswer from problem


def is_readable(upstream: ClientResponse) -> bool:
    """Return whether the answer's content coding is supported."""
    return _decoder(upstream) is not None


async def pieces_of(upstream: ClientResponse) -> AsyncIterator[bytes]:
    """Yield the decoded answer as it arrives. Raises BrokenAnswer."""
    reading = _decoder(upstream)
    while part := await read_more(upstream):
        try:
            for piece in (part,) if reading is None else reading.decode(part):
                yield piece
        except ValueError as problem:
            raise BrokenAnswer from problem


async def read_start(pieces: AsyncIterator[bytes], found: list[bytes]) -> bool:
    """Collect an answer in `found`, up to the size limit. Return whether it is complete. Raises BrokenAnswer."""
    left = LONGEST
    async for piece in pieces:
        found.append(piece)
        left -= len(piece)
        if left < 0:
            return False
    return True


def _decoder(upstream: ClientResponse) -> Decoder | None:
    return decoder(upstream.headers.get("Content-Encoding", ""))
