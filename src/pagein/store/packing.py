"""Bytes as they lie on disk: compressed where that helps, with a checksum."""

from typing import Final

import zstandard

from pagein.errors import DamagedBlob

AS_IT_IS: Final = 0
ZSTD: Final = 1
_LEVEL: Final = 3
_WORTH_TRYING: Final = 128
# A damaged frame header may claim any size; nothing we store comes near this.
_LARGEST: Final = 1 << 32


def packed(content: bytes) -> tuple[int, bytes]:
    """The codec's number and the bytes to keep."""
    if len(content) >= _WORTH_TRYING:
        small = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(content)
        if len(small) < len(content):
            return ZSTD, small
    return AS_IT_IS, content


def unpacked(codec: int, data: bytes) -> bytes:
    """What was packed. Raises DamagedBlob where that cannot be told."""
    if codec == AS_IT_IS:
        return data
    if codec != ZSTD:
        raise DamagedBlob(f"unknown codec {codec}")
    try:
        if not 0 <= zstandard.frame_content_size(data) < _LARGEST:
            raise DamagedBlob("the compressed frame does not say how long its content is")
        return zstandard.ZstdDecompressor().decompress(data)
    except (zstandard.ZstdError, MemoryError) as problem:
        raise DamagedBlob(str(problem)) from problem
