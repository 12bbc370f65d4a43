"""Read the bytes of a source as numbered lines and decoded objects. Damage becomes a value, never an exception."""

import json
import zlib
from collections.abc import Iterable, Iterator
from lzma import LZMAError
from typing import Final, TypeAlias, cast

import msgspec
from zstandard import ZstdError

from pagein.model.messages import UnreadableLine
from pagein.replay.readers.row_fields import Row, json_text
from pagein.replay.readers.source import Source, open_stream

Numbered: TypeAlias = tuple[int, bytes]

_EXCERPT: Final = 120
DAMAGE: Final = (OSError, EOFError, zlib.error, LZMAError, ZstdError)
_DECODER: Final = msgspec.json.Decoder()
_LONGEST_LINE: Final = 256 * 1024 * 1024


def raw_lines(source: Source) -> Iterator[Numbered | UnreadableLine]:
    """Yield the lines of a source with their numbers (from 1), without blank ones.

    Ends with an UnreadableLine at damage in the file or at an overlong line.
    """
    number = 0
    try:
        with open_stream(source) as stream:
            for line in iter(lambda: stream.readline(_LONGEST_LINE), b""):
                number += 1
                if len(line) >= _LONGEST_LINE:
                    yield UnreadableLine(number, f"a line of over {_LONGEST_LINE >> 20} MiB", _excerpt(line[:_EXCERPT]))
                    return
                if not line.isspace():
                    yield number, line
    except DAMAGE as error:
        yield UnreadableLine(number + 1, f"the file cannot be read further: {str(error) or type(error).__name__}")


def decode(number: int, raw: bytes) -> Row | UnreadableLine:
    """Decode one line as an object, or return the reason of the failure."""
    try:
        value = decode_json(raw)
    except ValueError as error:
        torn = "" if raw.endswith(b"\n") else "torn last line: "
        return UnreadableLine(number, f"{torn}not JSON: {error}", _excerpt(raw))
    if not isinstance(value, dict):
        return UnreadableLine(number, f"a JSON {type(value).__name__}, not an object", _excerpt(raw))
    return cast("Row", value)


def unknown_row(line: int, why: str, row: object) -> UnreadableLine:
    """Return a row that was decoded, and means nothing to the reader of its format."""
    return UnreadableLine(line, why, json_text(row)[:_EXCERPT])


def decode_json(raw: bytes) -> object:
    """Decode JSON text. Half surrogates and bytes outside UTF-8 become U+FFFD, as on the wire. Raises ValueError."""
    try:
        return _DECODER.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_patiently(raw)


def _decode_patiently(raw: bytes) -> object:
    try:
        value = json.loads(raw.decode("utf-8-sig", "replace"), parse_constant=_refuse)
        whole = json.dumps(value, ensure_ascii=False)
        return _DECODER.decode(whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON value")


def _excerpt(raw: bytes) -> str:
    return raw[:_EXCERPT].decode("utf-8", "replace").strip()


def rows_at(source: Source, numbers: Iterable[int]) -> Iterator[tuple[int, Row | UnreadableLine]]:
    """Decode only the lines with these numbers, given in ascending order."""
    wanted = iter(numbers)
    target = next(wanted, None)
    for item in raw_lines(source):
        if target is None:
            return
        number, decoded = (item.line, item) if isinstance(item, UnreadableLine) else (item[0], None)
        while target is not None and target < number:
            target = next(wanted, None)
        if target == number:
            yield number, decoded if decoded is not None else decode(number, cast("Numbered", item)[1])
