"""Reading as the journal keeps it: events about files, as `Noted` entries of kind `reading`."""

from dataclasses import dataclass
from typing import Final

from pagein.model.codec import decode_json, encode_json
from pagein.model.entries import Body, Noted
from pagein.model.entries import Compacted as WindowCompacted
from pagein.model.reading import Compacted, FileAuthored, Invalidated, Malformed, ReadEvent, ReadServed
from pagein.policy import readmeta

KIND: Final = "reading"
_BASELINE: Final = "baselineBytes"
_SENT: Final = "sentBytes"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of UTF-8: what the host's own read would have sent, and what was sent instead."""

    baseline: int = 0
    sent: int = 0

    @property
    def saved(self) -> int:
        """Bytes that never entered the window. Never negative: no answer is longer than its baseline."""
        return max(0, self.baseline - self.sent)


NO_SIZES: Final = Sizes()


def served(event: ReadServed, sizes: Sizes) -> str:
    """The record of an answered read."""
    return _text({"readcache": readmeta.encode(event), _BASELINE: sizes.baseline, _SENT: sizes.sent})


def authored(event: FileAuthored) -> str:
    """The record of the model's own write or edit."""
    return _text(readmeta.encode_authored(event))


def invalidated(event: Invalidated, at: float) -> str:
    """The record of a refresh. `at`: seconds since 1970; kept in milliseconds, as the specification has it (section 4)."""
    return _text(readmeta.encode_invalidation(event, max(1, round(at * 1000))))


def event_of(body: Body) -> ReadEvent | None:
    """What an entry says about files; None where it says nothing."""
    match body:
        case WindowCompacted():
            return Compacted()
        case Noted(kind=kind, data=data) if kind == KIND:
            record = _record(data)
            if isinstance(record, dict) and "readcache" in record:
                return readmeta.decode(record)
            return Malformed("not a JSON object") if record is None else readmeta.decode_entry(record)
        case _:
            return None


def sizes_of(body: Body) -> Sizes:
    """What an entry says was sent, and would have been sent; nothing where it does not say."""
    record = _record(body.data) if isinstance(body, Noted) and body.kind == KIND else None
    if not isinstance(record, dict):
        return NO_SIZES
    baseline, sent = record.get(_BASELINE), record.get(_SENT)
    if isinstance(baseline, int) and isinstance(sent, int) and min(baseline, sent) >= 0:
        return Sizes(baseline, sent)
    return NO_SIZES


def _record(data: str) -> object:
    try:
        return decode_json(data.encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None


def _text(record: dict[str, object]) -> str:
    return encode_json(record).decode()
