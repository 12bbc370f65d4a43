"""Encode and decode reads, writes and refreshes of files as `NoteEntry` records of kind `reading`."""

from dataclasses import dataclass
from typing import Final, TypeAlias

from pagein.model import read_records
from pagein.model.entries import Body, NoteEntry
from pagein.model.entries import CompactionEntry as WindowCompacted
from pagein.model.json_text import decode_json, encode_json
from pagein.model.names import ContentHash
from pagein.model.read_events import CompactionEvent, FileRead, FileRefresh, FileWrite, MalformedRecord, ReadEvent

KIND: Final = "reading"
_BASELINE: Final = "baselineBytes"
_SENT: Final = "sentBytes"
_TRACE: Final = "textHash"
_GIVEN: Final = "given"

FileEvent: TypeAlias = FileRead | FileWrite | FileRefresh


@dataclass(frozen=True, slots=True)
class ReadNote:
    """A journal record about a file, with a hash to find the text in the window.

    event: the read, write or refresh.
    trace: hash of the answer, or of the text that a write or edit put into the file; "" if the record has none.
    given: the path as the call wrote it.
    """

    event: FileEvent
    trace: str = ""
    given: str = ""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Size of a read answer in bytes of UTF-8.

    baseline: size of the client's own answer.
    sent: size of the answer that was sent.
    """

    baseline: int = 0
    sent: int = 0

    @property
    def saved(self) -> int:
        """Bytes kept out of the window. Never negative: no answer is longer than the client's own."""
        return max(0, self.baseline - self.sent)


NO_SIZES: Final = Sizes()


def encode_read(event: FileRead, sizes: Sizes, text: str, given: str) -> str:
    """Encode a read that was answered with this text."""
    record = {"readcache": read_records.encode(event), _BASELINE: sizes.baseline, _SENT: sizes.sent}
    return _text({**record, _TRACE: trace_of(text), _GIVEN: given})


def encode_write(event: FileWrite, text: str, given: str) -> str:
    """Encode the model's own write or edit, which put this text into the file."""
    return _text({**read_records.encode_authored(event), _TRACE: trace_of(text), _GIVEN: given})


def encode_refresh(event: FileRefresh, at: float) -> str:
    """Encode a refresh.

    at: seconds since 1970; stored in milliseconds.
    """
    return _text(read_records.encode_invalidation(event, max(1, round(at * 1000))))


def event_of(body: Body) -> ReadEvent | None:
    """Return the event on files in an entry, or None."""
    match body:
        case WindowCompacted():
            return CompactionEvent()
        case NoteEntry(kind=kind, data=data) if kind == KIND:
            return _event(_record(data))
        case _:
            return None


def read_note_of(body: Body) -> ReadNote | None:
    """Return the record on a file in an entry, with the trace.

    None for unreadable entries and for entries without a record.
    """
    if not isinstance(body, NoteEntry) or body.kind != KIND:
        return None
    record = _record(body.data)
    event = _event(record)
    if not isinstance(record, dict) or not isinstance(event, FileRead | FileWrite | FileRefresh):
        return None
    trace, given = record.get(_TRACE), record.get(_GIVEN)
    return ReadNote(event, trace if isinstance(trace, str) else "", given if isinstance(given, str) else "")


def trace_of(text: str) -> str:
    """Return the identifying hash of a text: of the UTF-8, 64 hexadecimal digits."""
    return ContentHash.of(text.encode("utf-8", "surrogatepass")).hex


def sizes_of(body: Body) -> Sizes:
    """Return the sizes in an entry, or `NO_SIZES`."""
    record = _record(body.data) if isinstance(body, NoteEntry) and body.kind == KIND else None
    if not isinstance(record, dict):
        return NO_SIZES
    baseline, sent = record.get(_BASELINE), record.get(_SENT)
    if isinstance(baseline, int) and isinstance(sent, int) and min(baseline, sent) >= 0:
        return Sizes(baseline, sent)
    return NO_SIZES


def _event(record: object) -> ReadEvent:
    if isinstance(record, dict) and "readcache" in record:
        return read_records.decode(record)
    return MalformedRecord("not a JSON object") if record is None else read_records.decode_entry(record)


def _record(data: str) -> object:
    try:
        return decode_json(data.encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None


def _text(record: dict[str, object]) -> str:
    return encode_json(record).decode()
