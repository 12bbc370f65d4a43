"""An upstream's answer as it comes, out of its coding, and what may go wrong on the way."""

from collections.abc import AsyncIterator
from typing import Final

from aiohttp import ClientError, ClientResponse

from pagein.gateway.http.content_codings import Decoder, decoder
from pagein.gateway.http.event_stream import LONGEST

UPSTREAM: Final = (ClientError, OSError)
"""What may go wrong on the way to the upstream and back. TimeoutError is one of the operating system's."""


class BrokenAnswer(Exception):
    """The upstream broke off in the middle of its answer."""


async def read_more(upstream: ClientResponse) -> bytes:
    """Whatever has come since, b"" at the end. Raises Broken."""
    try:
        return await upstream.content.readany()
    except UPSTREAM as problem:
        raise BrokenAnswer from problem


def is_readable(upstream: ClientResponse) -> bool:
    """Whether its coding can be read here."""
    return _decoder(upstream) is not None


async def pieces_of(upstream: ClientResponse) -> AsyncIterator[bytes]:
    """What an upstream answers, out of its coding, as it comes. Raises Broken."""
    reading = _decoder(upstream)
    while part := await read_more(upstream):
        try:
            for piece in (part,) if reading is None else reading.decode(part):
                yield piece
        except ValueError as problem:
            raise BrokenAnswer from problem


async def read_start(pieces: AsyncIterator[bytes], found: list[bytes]) -> bool:
    """Put an answer into `found`, as far as it is looked at. Whether that is all of it. Raises Broken."""
    left = LONGEST
    async for piece in pieces:
        found.append(piece)
        left -= len(piece)
        if left < 0:
            return False
    return True


def _decoder(upstream: ClientResponse) -> Decoder | None:
    return decoder(upstream.headers.get("Content-Encoding", ""))
