"""The stored form of each kind of note: the name of the kind, and a text, mostly JSON.

Rules of this file
------------------
1. The stored form of a kind never changes, because entries are named by it.
2. Decoding never raises. A kind of another program or of a newer version becomes an `OtherNote`, and so do damaged data. Where
   the mere presence of a note has an effect, a damaged note becomes an empty one of its kind.
3. A note is decoded from what is stored, after redaction. So every process folds the same state (law 6).
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, TypeVar, cast, get_args

import msgspec

from pagein.errors import BadName
from pagein.model import memory_notes, read_records
from pagein.model.cache_notes import CacheMissNote, CacheSavingsNote, CacheVerdictNote
from pagein.model.delegation_notes import ChildResultNote
from pagein.model.guard_notes import ReadMeasureNote, SearchMeasureNote
from pagein.model.journal_notes import (
    BreakpointChoice,
    BrokenNote,
    CachedPrefixNote,
    CacheMarks,
    CacheMarksNote,
    ClientNote,
    DeferredToolsNote,
    ExchangeNote,
    ExcludedReadNote,
    ForgottenNote,
    ForgottenReadNote,
    FurtherUsageNote,
    GuardReportNote,
    IngestNote,
    Note,
    OfferedTool,
    OtherNote,
    PassthroughNote,
    PinNote,
    PrefixDigests,
    ReadNote,
    RecallNote,
    RestoredMessagesNote,
    ShownOnceNote,
    StoredNote,
    SystemPromptNote,
    ToolsLaterNote,
    ToolsNote,
    UsageNote,
    WithheldReadNote,
)
from pagein.model.json_text import decode_json, encode_json
from pagein.model.layout_notes import InlineNote, PooledRequestNote
from pagein.model.messages import Usage
from pagein.model.names import ContentHash
from pagein.model.pins import ACTS, Act, Wish
from pagein.model.pool_notes import PoolNote
from pagein.model.read_events import FileRead, FileRefresh, FileWrite, MalformedRecord
from pagein.model.tier_notes import TierNote

_N = TypeVar("_N")
_MEASURE_NAMES: Final = {"path": "pathKey", "item": "textHash"}


@dataclass(frozen=True, slots=True)
class NoteKind:
    """A kind of note.

    name: the kind as stored.
    note: its class.
    has_words: True if the data may hold words of the conversation, names of files, or digests of either.
    encode: returns the stored text of a note. decode: returns its note. Raises ValueError or BadName for damaged data.
    """

    name: str
    note: type[Note]
    has_words: bool
    encode: Callable[[Any], str]
    decode: Callable[[str], StoredNote]


def encode_note(note: Note) -> tuple[str, str]:
    """Return the kind and the stored text of a note. Raises ValueError for text outside JSON."""
    if isinstance(note, OtherNote):
        return note.kind, note.data
    kind = _OF_CLASS[type(note)]
    return kind.name, kind.encode(note)


def decode_note(kind: str, data: str) -> StoredNote:
    """Return the note that is stored under this kind. Never raises."""
    known = _OF_NAME.get(kind)
    try:
        return OtherNote(kind, data) if known is None else known.decode(data)
    except (ValueError, BadName):
        return OtherNote(kind, data)


def kind_of(note: type[Note]) -> str:
    """Return the kind under which notes of a class are stored."""
    return _OF_CLASS[note].name


# --- stored forms ---


def _encode(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _decode_fields(note: type[_N]) -> Callable[[str], _N]:
    return lambda data: msgspec.json.decode(data, type=note)


def _encode_set_fields(*always: str) -> Callable[[Any], str]:
    """Return a function that encodes fields with a value other than the default, and the fields in `always`."""

    def encode(note: Any) -> str:  # noqa: ANN401 -- one of the notes
        values = ((one.name, getattr(note, one.name), one.default) for one in fields(note))
        return _encode({name: value for name, value, default in values if value != default or name in always})

    return encode


def _decode_marks(data: str) -> CacheMarksNote:
    if data not in get_args(CacheMarks):
        raise ValueError(data)
    return CacheMarksNote(cast("CacheMarks", data))


def _decode_client(data: str) -> ClientNote:
    name = _record(data).get("profile")
    return ClientNote(name if isinstance(name, str) else "")


def _decode_tools(data: str) -> ToolsNote:
    try:
        return ToolsNote(msgspec.json.decode(data, type=tuple[OfferedTool, ...]))
    except ValueError:
        return ToolsNote(None)


def _decode_usage(data: str) -> UsageNote:
    return UsageNote(msgspec.json.decode(data, type=Usage), str(_record(data).get("answer") or ""))


def _decode_exchange(data: str) -> ExchangeNote:
    try:
        return msgspec.json.decode(data, type=ExchangeNote)
    except ValueError:
        return ExchangeNote("", (), ())


def _encode_count(note: RestoredMessagesNote | BrokenNote) -> str:
    return json.dumps({"messages": note.messages})  # with a space, unlike the other kinds


def _count(data: str) -> int:
    try:
        count = _record(data).get("messages")
    except ValueError:
        return 0
    return count if isinstance(count, int) else 0


def _encode_read(note: ReadNote) -> str:
    match note.event:
        case FileRead():
            sizes = {"baselineBytes": note.baseline, "sentBytes": note.sent}
            more = _nonempty(before=note.before, repeat=note.repeat)
            record: dict[str, object] = {"readcache": read_records.encode(note.event), **sizes, **more}
        case FileWrite():
            record = read_records.encode_authored(note.event)
        case FileRefresh():
            return encode_json(read_records.encode_invalidation(note.event, note.at)).decode()
    return encode_json({**record, "textHash": note.trace, "given": note.given}).decode()


def _decode_read(data: str) -> ReadNote | MalformedRecord:
    try:
        record = _plain(data)
    except ValueError:
        record = None
    if record is None:
        return MalformedRecord("not a JSON object")
    is_read = isinstance(record, dict) and "readcache" in record
    event = read_records.decode(record) if is_read else read_records.decode_entry(record)
    if isinstance(event, MalformedRecord):
        return event
    trace, given, at = record.get("textHash"), record.get("given"), record.get("at")
    baseline, sent = record.get("baselineBytes"), record.get("sentBytes")
    if not isinstance(baseline, int) or not isinstance(sent, int) or min(baseline, sent) < 0:
        baseline = sent = 0
    counts = record.get("before"), record.get("repeat")
    return ReadNote(
        event,
        trace if isinstance(trace, str) else "",
        given if isinstance(given, str) else "",
        baseline,
        sent,
        at if isinstance(at, int) else 0,
        *(one if isinstance(one, int) and one > 0 else 0 for one in counts),
    )


def _decode_withheld(data: str) -> WithheldReadNote:
    return WithheldReadNote(data.strip('"'))


def _encode_pin(note: PinNote) -> str:
    wish = note.wish
    if wish is None:
        return "{}"
    record: dict[str, object] = {"act": wish.act, "id": wish.id}
    return encode_json({**record, **_nonempty(call_id=wish.call_id, text=wish.text)}).decode()


def _decode_pin(data: str) -> PinNote:
    try:
        record = _plain(data)
    except ValueError:
        return PinNote()
    match record:
        case {"act": str(act), "id": str(name), **rest} if act in ACTS:
            return PinNote(Wish(cast("Act", act), str(rest.get("call_id", "")), str(rest.get("text", "")), name))
    return PinNote()


def _encode_recall(note: RecallNote) -> str:
    record: dict[str, object] = {"tool": note.tool, "objects": list(note.objects)}
    return encode_json({**record, **_nonempty(call_id=note.call_id, hints=list(note.hints))}).decode()


def _decode_recall(data: str) -> RecallNote:
    match _plain(data):
        case {"tool": str(tool), "objects": [*objects], **rest}:
            hints = rest.get("hints")
            shown = tuple(str(one) for one in hints) if isinstance(hints, list) else ()
            return RecallNote(tool, tuple(str(one) for one in objects), str(rest.get("call_id", "")), shown)
    raise ValueError(data)


def _encode_ingest(note: IngestNote) -> str:
    """Encode path and content under the names used in read records, because an export redacts fields by name."""
    named = {"object_id": note.object_id, "pathKey": note.path, "servedHash": note.content.hex}
    return encode_json({**named, "tokens": note.tokens, "chars": note.chars, "description": note.description}).decode()


def _decode_ingest(data: str) -> IngestNote:
    match _plain(data):
        case {
            "object_id": str(object_id),
            "pathKey": str(path),
            "servedHash": str(content),
            "tokens": int(tokens),
            "chars": int(chars),
            "description": str(description),
        }:
            return IngestNote(object_id, path, ContentHash.parse(content), tokens, chars, description)
    raise ValueError(data)


def _encode_object_name(note: memory_notes.ObjectNameNote) -> str:
    return encode_json({"object_id": note.object_id, "nickname": note.nickname}).decode()


def _decode_object_name(data: str) -> memory_notes.ObjectNameNote:
    match _plain(data):
        case {"object_id": str(object_id), "nickname": str() | None as nickname}:
            return memory_notes.ObjectNameNote(object_id, nickname)
    raise ValueError(data)


def _encode_object_view(note: memory_notes.ObjectViewNote) -> str:
    fields = None if note.fields is None else list(note.fields)
    return encode_json({"object_id": note.object_id, "fields": fields}).decode()


def _decode_object_view(data: str) -> memory_notes.ObjectViewNote:
    match _plain(data):
        case {"object_id": str(object_id), "fields": None}:
            return memory_notes.ObjectViewNote(object_id)
        case {"object_id": str(object_id), "fields": [*names]}:
            return memory_notes.ObjectViewNote(object_id, tuple(str(one) for one in names))
    raise ValueError(data)


def _encode_read_measure(note: ReadMeasureNote) -> str:
    """Encode path and digest under the names used in read records, because an export redacts fields by name."""
    values = {_MEASURE_NAMES.get(one.name, one.name): getattr(note, one.name) for one in fields(note)}
    return encode_json(_nonempty(**values)).decode()


def _decode_read_measure(data: str) -> ReadMeasureNote:
    names = {stored: name for name, stored in _MEASURE_NAMES.items()}
    record = {names.get(name, name): value for name, value in _record(data).items()}
    return msgspec.convert(record, ReadMeasureNote)


def _encode_search_measure(note: SearchMeasureNote) -> str:
    values = {one.name: getattr(note, one.name) for one in fields(note) if one.name != "paths"}
    return encode_json({"query": note.query, **_nonempty(**values, paths=list(note.paths))}).decode()


def _decode_search_measure(data: str) -> SearchMeasureNote:
    return msgspec.convert(_record(data), SearchMeasureNote)


def _encode_pool(note: PoolNote) -> str:
    acts = [_nonempty(**{one.name: getattr(act, one.name) for one in fields(act)}) for act in note.acts]
    return encode_json(_nonempty(acts=acts, trace=note.trace, bounds=note.bounds, folder=note.folder)).decode()


def _decode_pool(data: str) -> PoolNote:
    return msgspec.json.decode(data, type=PoolNote)


def _nonempty(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value}


def _plain(data: str) -> Any:  # noqa: ANN401 -- whatever JSON it is
    return decode_json(data.encode("utf-8", "surrogatepass"))


def _record(data: str) -> Mapping[str, object]:
    value = _plain(data)
    return value if isinstance(value, dict) else {}


def _kind(
    name: str,
    note: type[_N],
    encode: Callable[[Any], str] = _encode,
    decode: Callable[[str], StoredNote] | None = None,
    *,
    has_words: bool = False,
) -> NoteKind:
    return NoteKind(name, cast("type[Note]", note), has_words, encode, decode or cast("Any", _decode_fields(note)))


def _mark(name: str, note: Note) -> NoteKind:
    """Return a kind of note without data: the note's presence is the information."""
    return _kind(name, type(note), lambda _: "{}", lambda _: note)


KINDS: Final = (
    _kind("client.profile", ClientNote, lambda one: encode_json({"profile": one.profile}).decode(), _decode_client),
    _kind("request.head", PrefixDigests, _encode_set_fields("model", "tools", "system", "settings", "headers")),
    _kind("request.system", SystemPromptNote, has_words=True),
    _kind("request.caching", CacheMarksNote, lambda one: one.marks, _decode_marks),
    _kind("request.tools", ToolsNote, lambda one: _encode(one.tools), _decode_tools),
    _mark("request.tools.later", ToolsLaterNote()),
    _kind("request.tools.deferred", DeferredToolsNote),
    _kind("request.marks", BreakpointChoice, _encode_set_fields()),
    _kind("request.shown_once", ShownOnceNote),
    _mark("session.guarded", GuardReportNote()),
    _mark("request.passed", PassthroughNote()),
    _kind(
        "request.answered", UsageNote, lambda n: _encode(asdict(n.usage) | _nonempty(answer=n.answer)), _decode_usage
    ),
    _kind("request.further", FurtherUsageNote),
    _kind("request.answer", memory_notes.AnswerNote, lambda one: one.message, memory_notes.AnswerNote, has_words=True),
    _kind("request.lease", CachedPrefixNote, _encode_set_fields("saved", "held", "anchored")),
    _kind("cache.verdict", CacheVerdictNote),
    _kind("cache.savings", CacheSavingsNote, _encode_set_fields("saved", "at")),
    _kind("cache.miss", CacheMissNote, _encode_set_fields("cause", "who", "tokens")),
    _kind("request.exchange", ExchangeNote, _encode_set_fields(), _decode_exchange, has_words=True),
    _kind("request.mended", RestoredMessagesNote, _encode_count, lambda data: RestoredMessagesNote(_count(data))),
    _kind("request.broken", BrokenNote, _encode_count, lambda data: BrokenNote(_count(data))),
    _mark("forgotten", ForgottenNote()),
    _kind("reading", ReadNote, _encode_read, _decode_read, has_words=True),
    _kind("reading.withheld", WithheldReadNote, lambda one: f'"{one.digest}"', _decode_withheld, has_words=True),
    _mark("reading.forgotten", ForgottenReadNote()),
    _mark("withheld", ExcludedReadNote()),
    _kind("hand", PinNote, _encode_pin, _decode_pin, has_words=True),
    _kind("recall", RecallNote, _encode_recall, _decode_recall, has_words=True),
    _kind("ingested", IngestNote, _encode_ingest, _decode_ingest, has_words=True),
    _kind("child.result", ChildResultNote, _encode_set_fields("object_id", "call", "kind"), has_words=True),
    _kind("object.name", memory_notes.ObjectNameNote, _encode_object_name, _decode_object_name, has_words=True),
    _kind("object.view", memory_notes.ObjectViewNote, _encode_object_view, _decode_object_view, has_words=True),
    _kind("object.summary", memory_notes.ChatSummaryNote, has_words=True),
    _kind("chats.open", memory_notes.OpenChatsNote),
    _kind("read.measure", ReadMeasureNote, _encode_read_measure, _decode_read_measure, has_words=True),
    _kind("search.measure", SearchMeasureNote, _encode_search_measure, _decode_search_measure, has_words=True),
    _kind("session.recorded", memory_notes.RecordedNote, _encode_set_fields(), has_words=True),
    _kind("file.remembered", memory_notes.RememberedNote, _encode_set_fields(), has_words=True),
    _kind("session.place", memory_notes.SessionPlaceNote, _encode_set_fields(), has_words=True),
    _kind("file.sighting", memory_notes.FileSightingNote, _encode_set_fields(), has_words=True),
    _kind("pool", PoolNote, _encode_pool, _decode_pool, has_words=True),
    _kind("request.pooled", PooledRequestNote, _encode_set_fields()),
    _kind("request.inline", InlineNote, _encode_set_fields()),
    _kind("prompt.tiers", TierNote, _encode_set_fields(), has_words=True),
)
"""Every kind of note that pagein writes."""
_OF_CLASS: Final = {one.note: one for one in KINDS}
_OF_NAME: Final = {one.name: one for one in KINDS}
