"""Take the heads of journal lines out of segments: the ids of an entry and of its parent, which the rows of the entries have too.

Rules of this file
------------------
1. The short form of a head is the byte 2, three bytes of a checksum of the head, and the distance to the row of the parent. JSON has no
   byte 2, so a line with its head in full is told by its first byte.
2. The distance is 0 if the head has no parent. A parent counts if it is an entry of the same session, less than 256 rows before, in the
   same segment; another one stays in the line, after the head.
3. A line whose head cannot be made again is damaged: the checksum shows an id that changed.
4. Before an entry goes without its session, the lines of its segment get their heads again (`sql_lines.free_heads`).
"""

import re
import zlib
from collections.abc import Mapping
from typing import Final

from pagein.errors import DamagedBlob
from pagein.store.sql.short_names import entry_id, entry_key

_HEAD: Final = re.compile(rb'\{"v":1,"id":"([0-9a-f]{32})",(?:"parent":"([0-9a-f]{32})",)?')
SHORT_HEAD: Final = b"\2"
_CHECK: Final = 3
_FARTHEST: Final = 255
_SIZE: Final = len(SHORT_HEAD) + _CHECK + 1


def shorten_heads(lines: Mapping[int, bytes], entries: Mapping[int, tuple[int, bytes]]) -> dict[int, bytes]:
    """Return the lines of a segment with short heads, as far as a head can be made again.

    lines: short forms of lines, by the numbers of their entries
    entries: sessions and stored ids of entries, by number
    """
    made: dict[int, bytes] = {}
    places: dict[tuple[int, bytes], int] = {}
    for number, line in sorted(lines.items()):
        session, key = entries.get(number, (0, b""))
        made[number] = _shortened(line, number, session, key, places)
        places[session, key] = number
    return made


def parent_of(number: int, line: bytes) -> int:
    """Return the number of the entry whose id the short head of a line needs: its own if the head has no parent."""
    return number - line[_SIZE - 1]


def lengthen_head(number: int, line: bytes, keys: Mapping[int, bytes]) -> bytes:
    """Return the line behind a line with a short head. Raises DamagedBlob.

    keys: stored ids of entries, by number
    """
    before = parent_of(number, line)
    if number not in keys or before not in keys:
        raise DamagedBlob("the row of its entry, or of its parent, is missing")
    head = _head_of(keys[number], None if before == number else keys[before])
    if _checksum(head) != line[len(SHORT_HEAD) : _SIZE - 1]:
        raise DamagedBlob("the row of its entry, or of its parent, has another id")
    return head + line[_SIZE:]


def _shortened(line: bytes, number: int, session: int, key: bytes, places: Mapping[tuple[int, bytes], int]) -> bytes:
    found = _HEAD.match(line)
    if found is None or entry_key(found[1].decode()) != key:
        return line
    before = None if found[2] is None else places.get((session, entry_key(found[2].decode())))
    distance = 0 if before is None else number - before
    if distance > _FARTHEST:
        distance = 0
    head = _head_of(key, entry_key(found[2].decode()) if distance else None)
    return SHORT_HEAD + _checksum(head) + bytes((distance,)) + line[len(head) :]


def _head_of(key: bytes, parent: bytes | None) -> bytes:
    head = f'{{"v":1,"id":"{entry_id(key)}",'
    return (head if parent is None else f'{head}"parent":"{entry_id(parent)}",').encode()


def _checksum(head: bytes) -> bytes:
    return zlib.crc32(head).to_bytes(4, "big")[:_CHECK]
