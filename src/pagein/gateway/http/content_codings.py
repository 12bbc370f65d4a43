"""Decode content codings, whole bodies or streams, within memory limits."""

import zlib
from collections.abc import Iterator
from typing import Final, Protocol

_RAW: Final = -zlib.MAX_WBITS
_ANY_HEADER: Final = zlib.MAX_WBITS | 32
_STEP: Final = 1 << 16
# For zstd: 4 bytes may expand to 128 KB, and smaller output cannot be requested.
_SLICE: Final = 256
UNPACKED: Final = 256 << 20
"""Maximum decoded size of an answer, in bytes."""


class Decoder(Protocol):
    """Decodes a body piece by piece.

    A few bytes can expand beyond available memory. So decoded bytes come in pieces of at most 8 MB, and no body is decoded to more
    than UNPACKED.
    """

    def decode(self, part: bytes) -> Iterator[bytes]:
        """Yield the decoded bytes added by this part. Raises ValueError for invalid or oversized data."""


def decoder(coding: str) -> Decoder | None:
    """Return a decoder for the value of a `content-encoding` header, or None for an unsupported coding."""
    match coding.strip().lower():
        case "" | "identity":
            return _Plain()
        case "gzip" | "x-gzip":
            return _Zlib(_ANY_HEADER)
        case "deflate":
            return _Deflate()
        case "zstd":
            return _Zstd()
        case _:
            return None


def decode_body(body: bytes, coding: str, limit: int) -> bytes | None:
    """Return a whole decoded body; None if unsupported, invalid, incomplete, or longer than `limit` bytes.

    Never decodes more than `limit`, because a few bytes can expand beyond available memory.
    """
    match coding.strip().lower():
        case "" | "identity":
            return body if len(body) <= limit else None
        case "gzip" | "x-gzip":
            return _inflate(body, _ANY_HEADER, limit)
        case "deflate":
            bare = not body or body[0] & 0x0F != zlib.DEFLATED
            return _inflate(body, _RAW if bare else zlib.MAX_WBITS, limit)
        case "zstd":
            return _unzstd(body, limit)
        case _:
            return None


def _inflate(body: bytes, bits: int, limit: int) -> bytes | None:
    found, left = [], limit + 1
    try:
        while body:  # members may follow one another
            reader = zlib.decompressobj(bits)
            part = reader.decompress(body, left)
            found.append(part)
            left -= len(part)
            if not reader.eof or left <= 0:
                return None
            body = reader.unused_data
    except zlib.error:
        return None
    return b"".join(found)


def _unzstd(body: bytes, limit: int) -> bytes | None:
    import zstandard

    found, left = [], limit
    try:
        with zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True) as reader:
            while part := reader.read(_STEP):
                found.append(part)
                left -= len(part)
                if left < 0:
                    return None
    except (zstandard.ZstdError, MemoryError):
        return None
    return b"".join(found)


class _Plain:
    def decode(self, part: bytes) -> Iterator[bytes]:
        yield part


class _Zlib:
    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._reader = zlib.decompressobj(bits)
        self._left = UNPACKED

    def decode(self, part: bytes) -> Iterator[bytes]:
        full = False
        while part or full:  # a full piece may be followed by more
            try:
                piece = self._reader.decompress(part, _STEP)
            except zlib.error as problem:
                raise ValueError(f"not in its coding: {problem}") from problem
            self._left = _room(self._left, piece)
            full, part = len(piece) == _STEP, self._reader.unconsumed_tail
            if piece:
                yield piece
            if self._reader.eof:
                full, part = False, self._reader.unused_data
                if part:  # members may follow one another
                    self._reader = zlib.decompressobj(self._bits)


class _Deflate:
    """Decodes `deflate`, which means zlib but is often raw in practice: the first byte decides."""

    def __init__(self) -> None:
        self._reader: _Zlib | None = None

    def decode(self, part: bytes) -> Iterator[bytes]:
        if not part:
            return
        if self._reader is None:
            self._reader = _Zlib(zlib.MAX_WBITS if part[0] & 0x0F == zlib.DEFLATED else _RAW)
        yield from self._reader.decode(part)


class _Zstd:
    def __init__(self) -> None:
        import zstandard

        self._failure = zstandard.ZstdError
        self._reader = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
        self._left = UNPACKED

    def decode(self, part: bytes) -> Iterator[bytes]:
        for start in range(0, len(part), _SLICE):
            try:
                piece = self._reader.decompress(part[start : start + _SLICE])
            except self._failure as problem:
                raise ValueError(f"not in its coding: {problem}") from problem
            self._left = _room(self._left, piece)
            if piece:
                yield piece


def _room(left: int, piece: bytes) -> int:
    if len(piece) > left:
        raise ValueError(f"stands for more than {UNPACKED:,} bytes")
    return left - len(piece)
