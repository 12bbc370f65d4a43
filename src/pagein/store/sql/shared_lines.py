"""Pack journal lines, with the texts of results kept as blobs, so that a journal and the objects made from it share them.

Rules of this file
------------------
1. A packed line is a zstd frame with a checksum. Its dictionary `FRAME` contains the texts around which every line is built.
2. In the line, a long text of a result is replaced by a mark: the byte 1 and the 32 bytes of the hash of its blob. JSON has no byte 1,
   so a mark is no text of anybody.
3. A text is shared only if its JSON form can be made again, byte for byte.
4. The content of an evicted object is not shared: the line keeps it in full, so that either can be made again from the other.
5. The table `line_text` tells which lines need a blob. A blob that is removed is put back into these lines first.
"""

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import zstandard

from pagein.errors import DamagedBlob
from pagein.model.json_text import encode_json
from pagein.model.names import ContentHash
from pagein.store.sql.packed_bytes import AS_IT_IS, unpack

FRAMED: Final = 4
"""The codec of a line packed with `FRAME`."""
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
_LEVEL: Final = 3
_MARK: Final = re.compile(rb"\x01(.{32})", re.DOTALL)
_RESULT: Final = b'"type":"tool_result"'
_TEXT: Final = re.compile(rb'"text":("[^"\\]*(?:\\.[^"\\]*)*")', re.DOTALL)
_LARGEST: Final = 1 << 32
_mine: Final = threading.local()


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
    data: bytes = _tools().compressor.compress(short)
    return PackedLine(FRAMED, data, texts) if texts or len(data) < len(line) else PackedLine(AS_IT_IS, line, texts)


def pack_lines(lines: Sequence[bytes]) -> list[PackedLine]:
    """Pack journal lines, with all their long texts as blobs."""
    return [pack_line(line) for line in lines]


def unpack_line(codec: int, data: bytes, load: Callable[[ContentHash], bytes]) -> bytes:
    """Return the line of packed bytes. Raises DamagedBlob, and MissingBlob as `load` does.

    load: returns the bytes under a hash
    """
    if codec != FRAMED:
        return unpack(codec, data)
    short = _unpack_frame(data)
    if b"\1" not in short:
        return short
    return _MARK.sub(lambda mark: _json_of(load(ContentHash(mark[1].hex()))), short)


def texts_in(codec: int, data: bytes) -> Sequence[ContentHash]:
    """Return the hashes of the blobs that a packed line needs. Raises DamagedBlob."""
    if codec != FRAMED:
        return ()
    return tuple(dict.fromkeys(ContentHash(name.hex()) for name in _MARK.findall(_unpack_frame(data))))


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
        name = ContentHash.of(content)
        if not shares(name):
            continue
        texts[name] = content
        parts += (line[last:start], b"\1", bytes.fromhex(name.hex))
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


def _unpack_frame(data: bytes) -> bytes:
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
