"""Pack bytes for the disk: compressed if smaller, with a checksum; alone, as a delta, in a bundle, or as a journal line.

Rules of this file
------------------
1. A delta is a zstd frame whose dictionary is the base. zstd does not detect a wrong dictionary of this kind, so every frame
   carries a checksum, and every reader of a blob hashes it again.
2. A bundle is a single zstd frame with the bytes of several contents. What is stored for a content in it is its place there.
3. A packed journal line is a zstd frame with a checksum. Its dictionary `FRAME` contains the texts around which every line is built.
   What is compressed in it is the line's short form. Segments have many short forms together.
4. In the line, a long text of a result is replaced by a mark: the byte 1 and the 32 bytes of the hash of its blob. So a journal and
   the objects made from it share the text. JSON has no byte 1, so a mark is no text of anybody.
5. A text is shared only if its JSON form can be made again, byte for byte.
6. The content of an evicted object is not shared: the line keeps it in full, so that either can be made again from the other.
7. The table `line_text` tells which lines need a blob. A blob that is removed is put back into these lines first.
"""

import contextlib
import re
import struct
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, TypeAlias

import msgspec
import zstandard

from pagein.errors import DamagedBlob
from pagein.model.json_text import encode_json
from pagein.model.names import ContentHash

AS_IT_IS: Final = 0
ZSTD: Final = 1
DIFFERENCE: Final = 2
BRIDGE: Final = 3
"""Uncompressed; marks an entry that only fills the place of a lost entry."""
FRAMED: Final = 4
"""A journal line, packed with `FRAME`."""
BUNDLE: Final = 5
"""Several contents together."""
MEMBER: Final = 6
"""The place of a content in a bundle, which is its base."""
SHORT: Final = 7
"""A journal line as a segment has it: what is compressed in a packed line. It is never stored in a row."""
SOURCED: Final = 8
"""Several contents together, compressed against what journals say (`bundle_sources.py`)."""
PINNED: Final = 9
"""The place of a content in a bundle that has the content in its short form (`pinned_texts.py`)."""
FRAME_HEAD: Final = 18
"""Bytes that are enough to read the size of what a zstd frame has."""
_LEVEL: Final = 3
NO_PLACE: Final = bytes(8)
"""What a blob has in place of its bytes while these are in the table `alone`: as long as a place in a bundle."""
_PLACE: Final = struct.Struct(">II")
QUICKLY: Final = 9
"""A level for what is compressed within a transaction."""
SLOWLY: Final = 17
"""A level for what is compressed outside of a transaction: a sixteenth smaller than `QUICKLY`, in eleven times as long."""
_LEVEL_WITH_BASE: Final = 12
_BUNDLES_AT_HAND: Final = 20  # of up to 4 MB each: texts that say again what was said before are in earlier bundles
_WINDOW_OF_SOURCES: Final = 24
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
FRAME: Final = (
    b'{"v":1,"id":"0","parent":"0","at":1.0,"entry":"noted","note":{"kind":"client","profile":"other"}}'
    b'{"v":1,"id":"0","parent":"0","at":1.0,"entry":"noted","note":{"kind":"session.recorded","agent":"","folder":""}}'
    b'{"v":1,"id":"0","parent":"0","at":1.0,"entry":"request_sent","model":"","moment":1.0,"usage":{"input":1}}'
    b'{"v":1,"id":"0","at":1.0,"entry":"said","message":{"role":"system","blocks":[{"type":"text","text":""}]}}'
    b'{"v":1,"id":"0","parent":"0","at":1.0,"entry":"said","message":{"role":"user","blocks":[{"type":"text","text":"","injected":""}]'
    b',"at":1.0},"tokens":1}'
    b'{"v":1,"id":"0","parent":"0","at":1.0,"entry":"said","message":{"role":"assistant","blocks":[{"type":"thinking","text":"",'
    b'"signature":""},{"type":"text","text":""},{"type":"tool_call","id":"call_","name":"","arguments":"{\\"file_path\\":\\"/",'
    b'"accesses":[{"op":"write","path":"","start":null,"end":null,"via":"native"}]},{"type":"tool_call","id":"toolu_01","name":"bash",'
    b'"arguments":"{\\"command\\":\\"cd /home/ && ","accesses":[{"op":"edit","path":"/home/","start":null,"end":null,"via":"shell",'
    b'"filtered":true},{"op":"read","path":"/home/","start":1,"end":null,"via":"shell"}]}],"at":1.0,"model":"gpt-5","usage":{"input":1,'
    b'"output":1,"cache_read":1,"cache_write":1,"cache_write_5m":1,"cache_write_1h":1,"reasoning":1},"stop":"end_turn","id":"msg_01"},'
    b'"tokens":1}'
    b'{"v":1,"id":"0","parent":"0","at":1.0,"entry":"said","message":{"role":"tool","blocks":[{"type":"tool_result","call_id":"toolu_01",'
    b'"text":"","name":"Bash","is_error":true,"start":1,"lines":1,"total_lines":1}],"at":1.0},"result_tokens":[1],"tokens":1}'
    b'"stop":"tool_use","id":"msg_01'
)
"""Texts that most lines contain, the most frequent ones last. Stored lines need it: it never changes under this codec."""
_LONG: Final = 200
"""Length of a text in its JSON form from which sharing pays."""
_MARK: Final = re.compile(rb"\x01(.{32})", re.DOTALL)
_RESULT: Final = b'"type":"tool_result"'
_TEXT: Final = re.compile(rb'"text":("[^"\\]*(?:\\.[^"\\]*)*")', re.DOTALL)
_mine: Final = threading.local()
_bundles: Final[deque[tuple[bytes, bytes]]] = deque(maxlen=_BUNDLES_AT_HAND)


# --- contents ---

PackedBytes: TypeAlias = tuple[int, bytes]
"""The codec's number and the packed bytes."""


def pack(content: bytes) -> PackedBytes:
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


def pack_bundle(contents: Sequence[bytes], base: bytes = b"", level: int = QUICKLY) -> tuple[bytes, list[bytes]]:
    """Return the packed bytes of a bundle (codec `BUNDLE`), and of each content in it (codec `MEMBER`).

    base: the dictionary; with one, the packed bytes are a delta
    level: of the compression without a base
    """
    compressor = _base_compressor(base) if base else zstandard.ZstdCompressor(level=level, write_checksum=True)
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
        return unpack_once(data, lambda packed: unpack(ZSTD, packed))
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


def size_in(head: bytes) -> int:
    """Return the size of what a zstd frame has, given its first `FRAME_HEAD` bytes; 0 for a damaged frame."""
    try:
        return max(0, zstandard.frame_content_size(head))
    except zstandard.ZstdError:
        return 0


def unpack_once(data: bytes, unpacked: Callable[[bytes], bytes]) -> bytes:
    """Return the contents of a bundle. Kept for a while: neighbours are read one after the other.

    unpacked: unpacks the bundle
    """
    # compared as they are: a hash of so many bytes would take longer
    for kept in tuple(_bundles):
        if kept[0] == data:
            with contextlib.suppress(ValueError, IndexError):  # another thread was faster
                _bundles.remove(kept)
            _bundles.appendleft(kept)
            return kept[1]
    contents = unpacked(data)
    _bundles.appendleft((data, contents))
    return contents


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


def _base_compressor(base: bytes) -> zstandard.ZstdCompressor:
    """Return a compressor for a bundle with this dictionary."""
    parameters = zstandard.ZstdCompressionParameters.from_level(
        _LEVEL_WITH_BASE, window_log=_WINDOW_OF_SOURCES, write_checksum=True
    )
    return zstandard.ZstdCompressor(compression_params=parameters, dict_data=_dictionary(base))


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


# --- journal lines ---


@dataclass(frozen=True, slots=True)
class PackedLine:
    """A journal line, packed, and the texts that it needs as blobs, by their hashes."""

    codec: int
    data: bytes
    texts: dict[ContentHash, bytes]


def pack_line(line: bytes, shares: Callable[[ContentHash], bool] = lambda _: True) -> PackedLine:
    """Pack a journal line.

    shares: whether the text of a result, with this hash, becomes a blob
    """
    texts: dict[ContentHash, bytes] = {}
    if b"\1" in line:  # not written by `encode_entry`; it could not be told from a mark
        return PackedLine(AS_IT_IS, line, texts)
    short = _without_texts(line, texts, shares) if len(line) >= _LONG and _RESULT in line else line
    data = pack_short(short)
    return PackedLine(FRAMED, data, texts) if texts or len(data) < len(line) else PackedLine(AS_IT_IS, line, texts)


def pack_lines(lines: Sequence[bytes]) -> list[PackedLine]:
    """Pack journal lines, with all their long texts as blobs."""
    return [pack_line(line) for line in lines]


def unpack_line(codec: int, data: bytes, load: Callable[[ContentHash], bytes]) -> bytes:
    """Return the line of packed bytes. Raises DamagedBlob, and MissingBlob as `load` does.

    load: returns the bytes under a hash
    """
    if codec not in (FRAMED, SHORT):
        return unpack(codec, data)
    short = short_line(codec, data)
    if b"\1" not in short:
        return short
    return _MARK.sub(lambda mark: _json_of(load(ContentHash(mark[1].hex()))), short)


def texts_in(codec: int, data: bytes) -> Sequence[ContentHash]:
    """Return the hashes of the blobs that a packed line needs. Raises DamagedBlob."""
    if codec not in (FRAMED, SHORT):
        return ()
    return tuple(dict.fromkeys(ContentHash(name.hex()) for name in _MARK.findall(short_line(codec, data))))


def short_line(codec: int, data: bytes) -> bytes:
    """Return the short form (codec `SHORT`) of a line that is packed (codec `FRAMED`), or is short already. Raises DamagedBlob."""
    return data if codec == SHORT else unpack_short(data)


def _without_texts(line: bytes, texts: dict[ContentHash, bytes], shares: Callable[[ContentHash], bool]) -> bytes:
    parts: list[bytes] = []
    last = 0
    for found in _TEXT.finditer(line):
        start, end = found.span(1)
        if end - start < _LONG:
            continue
        token = line[start:end]
        content = _content_of(token)
        if content is None:
            continue
        digest = sha256(content).digest()  # the mark holds these bytes
        name = ContentHash(digest.hex())
        if not shares(name):
            continue
        texts[name] = content
        parts += (line[last:start], b"\1", digest)
        last = end
    return b"".join((*parts, line[last:]))


def _content_of(token: bytes) -> bytes | None:
    """Return the bytes to store for a JSON string, or None if its JSON form could not be made from them."""
    try:
        content = _tools().texts.decode(token).encode()
    except (msgspec.MsgspecError, UnicodeError):
        return None
    return content if _json_of(content) == token else None


def _json_of(content: bytes) -> bytes:
    try:
        return encode_json(content.decode())
    except UnicodeDecodeError as problem:
        raise DamagedBlob(f"a text of a journal is no text: {problem}") from problem


def pack_short(short: bytes) -> bytes:
    """Pack the short form of a line (codec `FRAMED`)."""
    data: bytes = _tools().compressor.compress(short)
    return data


def unpack_short(data: bytes) -> bytes:
    """Return the short form of a packed line. Raises DamagedBlob."""
    try:
        if not 0 <= zstandard.frame_content_size(data) < _LARGEST:
            raise DamagedBlob("the compressed frame does not say how long its content is")
        line: bytes = _tools().decompressor.decompress(data)
    except (zstandard.ZstdError, MemoryError) as problem:
        raise DamagedBlob(str(problem)) from problem
    return line


class _Tools:
    """What a thread needs to pack and unpack lines. Making it anew for each line would cost more than the work."""

    def __init__(self) -> None:
        dictionary = zstandard.ZstdCompressionDict(FRAME, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        dictionary.precompute_compress(level=_LEVEL)
        self.compressor: Any = zstandard.ZstdCompressor(level=_LEVEL, dict_data=dictionary, write_checksum=True)
        self.decompressor: Any = zstandard.ZstdDecompressor(dict_data=dictionary)
        self.texts = msgspec.json.Decoder(str)


def _tools() -> _Tools:
    found: _Tools | None = getattr(_mine, "tools", None)
    if found is None:
        found = _mine.tools = _Tools()
    return found
