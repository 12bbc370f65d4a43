"""Pack bytes for the disk: compressed if smaller, with a checksum; alone, or as a delta against other bytes.

A delta is a zstd frame whose dictionary is the base. zstd does not detect a wrong dictionary of this kind, so every frame
carries a checksum, and every reader of a blob hashes it again.
"""

from typing import Final

import zstandard

from pagein.errors import DamagedBlob

AS_IT_IS: Final = 0
ZSTD: Final = 1
DIFFERENCE: Final = 2
BRIDGE: Final = 3
"""Uncompressed; marks an entry that only fills the place of a lost entry."""
_LEVEL: Final = 3
# with a base that contains nearly all of the content, a higher level is hardly slower
_LEVEL_OF_DIFFERENCES: Final = 9
_WORTH_TRYING: Final = 128
# A damaged frame header may claim any size; no stored content comes near this limit.
_LARGEST: Final = 1 << 32
# A delta below the first share of the content is used without comparison, otherwise only if clearly smaller than the content packed alone.
_CLEARLY: Final = 0.05
_SMALLER: Final = 0.8
# At level 3 zstd sizes its match tables for small inputs, and does not find matches in a large base at all.
_TABLES: Final = ((1 << 19, None), (1 << 22, (24, 20, 19)), (1 << 25, (25, 22, 22)))
"""Table sizes (window, hash, chain) by the joint size of base and content. Beyond the last size, no delta is tried."""


def pack(content: bytes) -> tuple[int, bytes]:
    """Return the codec's number and the packed bytes."""
    if len(content) >= _WORTH_TRYING:
        small = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(content)
        if len(small) < len(content):
            return ZSTD, small
    return AS_IT_IS, content


def pack_against(content: bytes, base: bytes) -> tuple[int, bytes]:
    """Pack as `pack`, or as a delta (codec `DIFFERENCE`) if the delta against the base is much smaller."""
    compressor = _difference_compressor(content, base)
    if compressor is None:
        return pack(content)
    difference = compressor.compress(content)
    if len(difference) <= _CLEARLY * len(content):
        return DIFFERENCE, difference
    codec, alone = pack(content)
    return (DIFFERENCE, difference) if len(difference) < _SMALLER * len(alone) else (codec, alone)


def unpack(codec: int, data: bytes, base: bytes | None = None) -> bytes:
    """Return the content of packed bytes, given the same base. Raises DamagedBlob if the bytes are damaged."""
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
    """Return a compressor with this base as dictionary, or None if a delta does not pay."""
    # zstd ignores a dictionary of less than eight bytes
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
