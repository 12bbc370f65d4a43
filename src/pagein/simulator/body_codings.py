"""Content encodings of request bodies."""

import zlib
from collections.abc import Callable, Mapping
from typing import Final

from pagein.errors import BadInput

MOST_BYTES: Final = 64 << 20
"""Largest accepted body, unpacked."""


def unpack_body(raw: bytes, encoding: str) -> bytes:
    """Remove the content encoding of a body. Raises BadInput for a damaged or too large body, or an unknown encoding."""
    for name in reversed([one.strip().lower() for one in encoding.split(",") if one.strip()]):
        unpack = _UNPACK.get(name)
        if unpack is None:
            raise BadInput(f"content encoding {name} is not supported")
        raw = unpack(raw)
    return raw


def _inflate(raw: bytes, bits: int) -> bytes:
    reader = zlib.decompressobj(bits)
    try:
        whole = reader.decompress(raw, MOST_BYTES)
    except zlib.error as problem:
        raise BadInput(f"the body cannot be decompressed: {problem}") from problem
    if not reader.eof:
        raise BadInput("the body cannot be decompressed: it ends early, or is too large")
    return whole


def _unpack_deflate(raw: bytes) -> bytes:
    # some clients write raw deflate, without the zlib frame
    return _inflate(raw, zlib.MAX_WBITS if raw[:1] and raw[0] & 15 == zlib.DEFLATED else -zlib.MAX_WBITS)


def _unpack_zstandard(raw: bytes) -> bytes:
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True) as reader:
            whole: bytes = reader.read(MOST_BYTES + 1)
    except zstandard.ZstdError as problem:
        raise BadInput(f"the body cannot be decompressed: {problem}") from problem
    if len(whole) > MOST_BYTES:
        raise BadInput("the body cannot be decompressed: it is too large")
    return whole


_UNPACK: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "identity": lambda raw: raw,
    "gzip": lambda raw: _inflate(raw, 16 + zlib.MAX_WBITS),
    "deflate": _unpack_deflate,
    "zstd": _unpack_zstandard,
}
