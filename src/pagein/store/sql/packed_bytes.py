"""Pack bytes for the disk: compressed if smaller, with a checksum; alone, as a delta against other bytes, or together in a bundle.

A delta is a zstd frame whose dictionary is the base. zstd does not detect a wrong dictionary of this kind, so every frame
carries a checksum, and every reader of a blob hashes it again.

A bundle is a single zstd frame with the bytes of several contents. What is stored for a content in it is its place there.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import zstandard

from pagein.errors import DamagedBlob

AS_IT_IS: Final = 0
ZSTD: Final = 1
DIFFERENCE: Final = 2
BRIDGE: Final = 3
"""Uncompressed; marks an entry that only fills the place of a lost entry."""
BUNDLE: Final = 5
"""Several contents together. Codec 4 is that of a framed line (`shared_lines`)."""
MEMBER: Final = 6
"""The place of a content in a bundle, which is its base."""
_LEVEL: Final = 3
NO_PLACE: Final = bytes(8)
"""What a blob has in place of its bytes while these are in the table `alone`: as long as a place in a bundle."""
_PLACE: Final = struct.Struct(">II")
_LEVEL_OF_BUNDLES: Final = 9
_BUNDLES_AT_HAND: Final = 8
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


def pack_bundle(contents: Sequence[bytes]) -> tuple[bytes, list[bytes]]:
    """Return the packed bytes of a bundle (codec `BUNDLE`), and of each content in it (codec `MEMBER`)."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL_OF_BUNDLES, write_checksum=True)
    places: list[bytes] = []
    start = 0
    for content in contents:
        places.append(_PLACE.pack(start, len(content)))
        start += len(content)
    return compressor.compress(b"".join(contents)), places


def unpack(codec: int, data: bytes, base: bytes | None = None) -> bytes:
    """Return the content of packed bytes, given the same base. Raises DamagedBlob if the bytes are damaged."""
    if codec in (AS_IT_IS, BRIDGE):
        return data
    if codec == BUNDLE:
        return _unpack_bundle(data)
    if codec == MEMBER:
        return _member_of(base, data)
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


@lru_cache(maxsize=_BUNDLES_AT_HAND)
def _unpack_bundle(data: bytes) -> bytes:
    """Return the contents of a bundle. Kept for a while: neighbours are read one after the other."""
    return unpack(ZSTD, data)


def _member_of(bundle: bytes | None, data: bytes) -> bytes:
    if bundle is None:
        raise DamagedBlob("the bundle that it is in is missing")
    start, length = _place_of(data)
    if start + length > len(bundle):
        raise DamagedBlob("its place in its bundle does not exist")
    return bundle[start : start + length]


def _place_of(data: bytes) -> tuple[int, int]:
    try:
        start, length = _PLACE.unpack(data)
    except struct.error as problem:
        raise DamagedBlob("its place in its bundle cannot be read") from problem
    return int(start), int(length)


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
