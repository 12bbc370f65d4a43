"""Bytes as they lie on disk: compressed where that helps, with a checksum; alone, or as what differs from other bytes.

A difference is a zstd frame whose dictionary is the base. zstd does not notice a wrong dictionary of this kind, so every frame
carries a checksum, and whoever reads a blob hashes it again.
"""

from typing import Final

import zstandard

from pagein.errors import DamagedBlob

AS_IT_IS: Final = 0
ZSTD: Final = 1
DIFFERENCE: Final = 2
BRIDGE: Final = 3
"""As it is; the entry only stands in the place of one that was lost."""
_LEVEL: Final = 3
# with a base that holds nearly all of the content, more thorough is hardly slower
_LEVEL_OF_DIFFERENCES: Final = 9
_WORTH_TRYING: Final = 128
# A damaged frame header may claim any size; nothing we store comes near this.
_LARGEST: Final = 1 << 32
# A difference is taken unasked below this share of the content, and otherwise where it is clearly smaller than the content alone.
_CLEARLY: Final = 0.05
_SMALLER: Final = 0.8
# At level 3 the tables that find matches are sized for small inputs, and lose a large base altogether (notes/libraries.md 5).
_TABLES: Final = ((1 << 19, None), (1 << 22, (24, 20, 19)), (1 << 25, (25, 22, 22)))
"""Up to which size of base and content together which window, hash and chain tables find the base again. Beyond, none is tried."""


def pack(content: bytes) -> tuple[int, bytes]:
    """The codec's number and the bytes to keep."""
    if len(content) >= _WORTH_TRYING:
        small = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(content)
        if len(small) < len(content):
            return ZSTD, small
    return AS_IT_IS, content


def pack_against(content: bytes, base: bytes) -> tuple[int, bytes]:
    """As `packed`, or with the codec `DIFFERENCE` where the content is much smaller when told by what differs from the base."""
    compressor = _difference_compressor(content, base)
    if compressor is None:
        return pack(content)
    difference = compressor.compress(content)
    if len(difference) <= _CLEARLY * len(content):
        return DIFFERENCE, difference
    codec, alone = pack(content)
    return (DIFFERENCE, difference) if len(difference) < _SMALLER * len(alone) else (codec, alone)


def unpack(codec: int, data: bytes, base: bytes | None = None) -> bytes:
    """What was packed, with the same base. Raises DamagedBlob where that cannot be told."""
    if codec in (AS_IT_IS, BRIDGE):
        return data
    if codec not in (ZSTD, DIFFERENCE):
        raise DamagedBlob(f"unknown codec {codec}")
    if codec == DIFFERENCE and base is None:
        raise DamagedBlob("what it differs from is missing")
    try:
        if not 0 <= zstandard.frame_content_size(data) < _LARGEST:
            raise DamagedBlob("the compressed frame does not say how long its content is")
        if codec == ZSTD or base is None:
            return zstandard.ZstdDecompressor().decompress(data)
        return zstandard.ZstdDecompressor(dict_data=_dictionary(base)).decompress(data)
    except (zstandard.ZstdError, MemoryError) as problem:
        raise DamagedBlob(str(problem)) from problem


def _difference_compressor(content: bytes, base: bytes) -> zstandard.ZstdCompressor | None:
    """What compresses this content with this base at hand, None where that does not pay."""
    # zstd takes less than eight bytes for no dictionary at all
    if len(content) < _WORTH_TRYING or len(base) < _WORTH_TRYING:
        return None
    dictionary = _dictionary(base)
    for size, tables in _TABLES:
        if len(content) + len(base) > size:
            continue
        if tables is None:
            return zstandard.ZstdCompressor(level=_LEVEL_OF_DIFFERENCES, dict_data=dictionary, write_checksum=True)
        window, hashes, chain = tables
        parameters = zstandard.ZstdCompressionParameters.from_level(
            _LEVEL, window_log=window, hash_log=hashes, chain_log=chain, write_checksum=True
        )
        return zstandard.ZstdCompressor(compression_params=parameters, dict_data=dictionary)
    return None


def _dictionary(base: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
