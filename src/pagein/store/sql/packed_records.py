"""Pack the records of versions for the disk.

Rules of this file
------------------
1. A packed record is a zstd frame with `FRAME` as dictionary: records are short, and alike. Whoever reads a record verifies its hash.
2. A hash in hexadecimal digits takes 33 bytes: the byte 1 and its own bytes. Records are ASCII without control characters, so the byte 1
   is never part of one. The hash of the version's content is in the row of the version too: here it is the byte 2.
3. In segments of several records, hashes of additional fields are shorter still (`record_hashes.py`).
4. Records are in segments (`sql_segments.py`). In an older store they are in the rows of their versions, packed or as texts.
"""

import re
import threading
from typing import Any, Final

import zstandard

from pagein.errors import DamagedBlob
from pagein.store.sql.sql_segments import Segments

FRAME: Final = (
    b'{"additional":{"turns.1.1":"","turns.2.1":"","turns.3.1":""},"content":null,"deleted":false,"id":"","locked":true,"metadata":{'
    b'"session_id":"","session_ref":{"$ref":{"id":"","relation":"session"}},"step_count":1,"title":"","turn_count":1},"nickname":null,'
    b'"provenance":{"generator":"system","origin":"","parent_refs":[]},"type":"chat","view":null}'
    b'"metadata":{"chat_ref":{"$ref":{"id":"","relation":"chat"}},"chats":[{"$ref":{"id":"","relation":"chat"}}],"cwd":"/home/",'
    b'"harness":"claude-code","models":["gpt-5"],"session_id":"","title":""},"nickname":null,'
    b'"provenance":{"generator":"system","origin":"","parent_refs":[]},"type":"session","view":null}'
    b'"relation":"chat"}},"session_id":"","turn":1},"nickname":null,"provenance":{"generator":"human","origin":"user-input",'
    b'"parent_refs":[]},"type":"user","view":null}'
    b'{"additional":{"spans":""},"content":"","deleted":false,"id":"","locked":false,"metadata":{"call":{"$ref":{"id":"toolu_01",'
    b'"relation":"call"}},"file_type":"py","home":"","known":"part","known":"whole","lines":1,"op":"write","op":"edit","op":"read",'
    b'"path":"/home/","proof":"edited","proof":"written","proof":"shown","turn":1,"turn_ref":{"$ref":{"id":"","pin":{"at":1.0,'
    b'"content_hash":null,"metadata_view_hash":"","object_hash":""},"relation":"chat"}},"unread":true,"user_ref":{"$ref":{"id":"",'
    b'"pin":{"at":1.0,"content_hash":"","metadata_view_hash":"","object_hash":""},"relation":"asked"}}},"nickname":null,'
    b'"provenance":{"generator":"agent","origin":"/home/","parent_refs":[]},"type":"file","view":null}'
    b'{"additional":{"args":""},"content":"","deleted":false,"id":"toolu_01","locked":false,"metadata":{"args_display":"{\\"command\\":'
    b'\\"cd /home/ && \\",\\"description\\":\\"{\\"file_path\\":\\"/home/","chat_ref":{"$ref":{"id":"","pin":{"at":1.0,"content_hash":'
    b'null,"metadata_view_hash":"","object_hash":""},"relation":"chat"}},"file_refs":[{"$ref":{"id":"","pin":{"at":1.0,"content_hash":"'
    b'","metadata_view_hash":"","object_hash":""},"relation":"file"}}],"place":1,"status":"fail","status":"ok","tool":"Bash","turn":1},'
    b'"nickname":null,"provenance":{"generator":"tool","origin":"toolcall","parent_refs":[]},"type":"toolcall","view":null}'
)
"""Texts that most records contain. Stored records need it: it never changes, or the packed form gets another first byte."""
_LEVEL: Final = 6
_HASH: Final = re.compile(rb'"([0-9a-f]{64})"')
_MARK: Final = re.compile(rb"\x01(.{32})|\x02", re.DOTALL)
CONTENT: Final = b"\2"
"""What a short form has in place of the hash of the content. Other hashes may have this byte, too."""
_LARGEST: Final = 1 << 32
_mine: Final = threading.local()


def shorten_record(record: str, content: bytes | None = None) -> bytes:
    """Return the short form of a record: hashes as bytes instead of digits.

    content: the hash of the version's content, if the row of the version has it
    """
    digits = None if content is None else content.hex().encode()
    return _HASH.sub(
        lambda found: CONTENT if found[1] == digits else b"\1" + bytes.fromhex(found[1].decode()), record.encode()
    )


def full_record(short: bytes, content: bytes | None = None) -> str:
    """Return the record behind a short form, the inverse of `shorten_record`. Raises DamagedBlob."""
    try:
        return _MARK.sub(lambda mark: b'"%s"' % (mark[1] or content or b"").hex().encode(), short).decode()
    except UnicodeDecodeError as problem:
        raise DamagedBlob(str(problem)) from problem


def unpack_record(stored: str | bytes) -> str:
    """Return a record from the row of its version. Raises DamagedBlob."""
    if isinstance(stored, str):
        return stored
    data = bytes(stored)
    return data.decode("utf-8", "replace") if data[:1] == b"{" else full_record(_unpack_short(data))


def _pack_short(short: bytes) -> bytes:
    packed: bytes = _tools().compressor.compress(short)
    return packed


def _unpack_short(data: bytes) -> bytes:
    try:
        if not 0 <= zstandard.frame_content_size(data) < _LARGEST:
            raise DamagedBlob("the compressed frame does not say how long its content is")
        short: bytes = _tools().decompressor.decompress(data)
    except (zstandard.ZstdError, MemoryError) as problem:
        raise DamagedBlob(str(problem)) from problem
    return short


RECORDS: Final = Segments("record_segment", _pack_short, _unpack_short, size=1 << 18, most=1024)
"""The short forms of the records of versions, by sequence."""


class _RecordTools:
    """The compressor and decompressor of a thread. New ones for each record would cost more than the work."""

    def __init__(self) -> None:
        dictionary = zstandard.ZstdCompressionDict(FRAME, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        dictionary.precompute_compress(level=_LEVEL)
        self.compressor: Any = zstandard.ZstdCompressor(level=_LEVEL, dict_data=dictionary)
        self.decompressor: Any = zstandard.ZstdDecompressor(dict_data=dictionary)


def _tools() -> _RecordTools:
    found: _RecordTools | None = getattr(_mine, "tools", None)
    if found is None:
        found = _mine.tools = _RecordTools()
    return found
