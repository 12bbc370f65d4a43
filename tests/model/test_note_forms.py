"""Every kind of note in the journal: its stored form, and what becomes of a note that cannot be understood."""

import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.model.cache_notes import CacheMissNote, CacheSavingsNote, CacheVerdictNote
from pagein.model.delegation_notes import ChildResultNote, QuoteNote
from pagein.model.entries import NoteEntry
from pagein.model.guard_notes import ReadMeasureNote, SearchMeasureNote
from pagein.model.journal_notes import (
    BreakpointChoice,
    BrokenNote,
    CachedPrefixNote,
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
    SystemPromptNote,
    ToolsLaterNote,
    ToolsNote,
    UsageNote,
    WithheldReadNote,
)
from pagein.model.layout_notes import InlineNote, PooledRequestNote
from pagein.model.memory_notes import (
    AnswerNote,
    ChatSummaryNote,
    FileSightingNote,
    ObjectNameNote,
    ObjectViewNote,
    OpenChatsNote,
    RecordedNote,
    RememberedNote,
    SessionPlaceNote,
)
from pagein.model.messages import Usage
from pagein.model.names import ContentHash
from pagein.model.note_forms import KINDS, decode_note, encode_note, kind_of
from pagein.model.pins import Wish
from pagein.model.pool_notes import PoolAct, PoolNote
from pagein.model.read_events import FileRead, FileRefresh, FileWrite, MalformedRecord
from pagein.model.spans import Spans
from pagein.model.tier_notes import TierNote

SOURCE = Path(__file__).resolve().parents[2] / "src"
HASH = ContentHash.of(b"text")
READ = FileRead("/a", "full", HASH, 3, 1, 3, 9, emitted=Spans.of((1, 3)))
WRITE = FileWrite("/a", HASH, 3, Spans.of((1, 3)), whole=True)
LEASE = CachedPrefixNote(300.0, sent=10.0, held=20.0, until=50.0, returns=2, kept=1, spent=2.5, place=4)
# Notes with the text under which they are stored. It must not change: stores of earlier versions hold it.
STORED: list[tuple[Note, str]] = [
    (ClientNote("claude-code"), '{"profile":"claude-code"}'),
    (SystemPromptNote("Be brief.\nWorking directory: /w"), '{"text":"Be brief.\\nWorking directory: /w"}'),
    (PrefixDigests("m", "t"), '{"model":"m","tools":"t","system":"","settings":"","headers":""}'),
    (
        PrefixDigests("m", "t", tokens=700),
        '{"model":"m","tools":"t","system":"","settings":"","headers":"","tokens":700}',
    ),
    (CacheMarksNote("front"), "front"),
    (
        ToolsNote((OfferedTool("peek", "shows", {"type": "object"}),)),
        '[{"name":"peek","description":"shows","schema":{"type":"object"}}]',
    ),
    (
        FurtherUsageNote("recall", Usage(1, 2, 3, 0, 4)),
        '{"reason":"recall","usage":{"fresh":1,"read":2,"written":3,"written_1h":0,"output":4}}',
    ),
    (
        CacheMissNote("expired", "nobody", 9, "a pause"),
        '{"cause":"expired","who":"nobody","tokens":9,"words":"a pause"}',
    ),
    (ToolsLaterNote(), "{}"),
    (
        DeferredToolsNote(("Read", "CronCreate"), ("CronCreate",)),
        '{"offered":["Read","CronCreate"],"deferred":["CronCreate"]}',
    ),
    (BreakpointChoice((3, 0), messages=8), '{"frontier":[3,0],"messages":8}'),
    (BreakpointChoice(anchor=0, short=True), '{"short":true,"anchor":0}'),
    (BreakpointChoice(tail=(7, 1)), '{"tail":[7,1]}'),
    (GuardReportNote(), "{}"),
    (ShownOnceNote(("c1", "c2"), 12.5), '{"calls":["c1","c2"],"saved":12.5}'),
    (PassthroughNote(), "{}"),
    (UsageNote(Usage(fresh=5, read=9)), '{"fresh":5,"read":9,"written":0,"written_1h":0,"output":0}'),
    (CachedPrefixNote(3600.0), '{"lifetime":3600.0,"saved":0.0,"held":0.0,"anchored":0.0}'),
    (
        LEASE,
        '{"lifetime":300.0,"saved":0.0,"sent":10.0,"held":20.0,"anchored":0.0,"until":50.0,"returns":2,"kept":1,"spent":2.5,"place":4}',
    ),
    (
        CacheVerdictNote("claude-sonnet-4-5", "hour", held=True, at=9.0, anchored=7.0, read=7.0),
        '{"model":"claude-sonnet-4-5","practice":"hour","held":true,"at":9.0,"anchored":7.0,"read":7.0}',
    ),
    (CacheSavingsNote(12_500.0, 9.0), '{"saved":12500.0,"at":9.0}'),
    (ExchangeNote("", ("c",), ("{}",)), '{"text":"","calls":["c"],"actual":["{}"]}'),
    (ExchangeNote("a", (), ("{}",), ("[]",)), '{"text":"a","calls":[],"actual":["{}"],"answers":["[]"]}'),
    (RestoredMessagesNote(2), '{"messages": 2}'),
    (BrokenNote(10), '{"messages": 10}'),
    (ForgottenNote(), "{}"),
    (
        ReadNote(READ, "trace", "a", 9, 7),
        (
            f'{{"readcache":{{"v":1,"pathKey":"/a","scopeKey":"full","servedHash":"{HASH.hex}","mode":"full","totalLines":3,'
            '"rangeStart":1,"rangeEnd":3,"bytes":9,"spans":[[1,3]]},"baselineBytes":9,"sentBytes":7,"textHash":"trace","given":"a"}'
        ),
    ),
    (
        ReadNote(READ, "trace", "a", 9, 7, before=4),
        (
            f'{{"readcache":{{"v":1,"pathKey":"/a","scopeKey":"full","servedHash":"{HASH.hex}","mode":"full","totalLines":3,'
            '"rangeStart":1,"rangeEnd":3,"bytes":9,"spans":[[1,3]]},"baselineBytes":9,"sentBytes":7,"before":4,"textHash":"trace",'
            '"given":"a"}'
        ),
    ),
    (
        ReadNote(WRITE, "trace", "a"),
        (
            f'{{"v":1,"kind":"authored","pathKey":"/a","servedHash":"{HASH.hex}","totalLines":3,"spans":[[1,3]],"copies":[],'
            '"whole":true,"textHash":"trace","given":"a"}'
        ),
    ),
    (ReadNote(FileRefresh("/a", (2, 3)), at=5), '{"v":1,"kind":"invalidate","pathKey":"/a","scopeKey":"r:2:3","at":5}'),
    (WithheldReadNote("ab"), '"ab"'),
    (ForgottenReadNote(), "{}"),
    (ExcludedReadNote(), "{}"),
    (PinNote(Wish("pin", "c", id="1")), '{"act":"pin","id":"1","call_id":"c"}'),
    (PinNote(Wish("say", text="no tabs", id="1")), '{"act":"say","id":"1","text":"no tabs"}'),
    (PinNote(), "{}"),
    (RecallNote("peek", ("a",)), '{"tool":"peek","objects":["a"]}'),
    (
        RecallNote("search", (), "c\ud800", ("[hint]",)),
        '{"tool":"search","objects":[],"call_id":"c\\ud800","hints":["[hint]"]}',
    ),
    (
        IngestNote("o", "/a", HASH, 2, 4, "text"),
        f'{{"object_id":"o","pathKey":"/a","servedHash":"{HASH.hex}","tokens":2,"chars":4,"description":"text"}}',
    ),
    (
        ChildResultNote("o", "child-1", "extract", HASH.hex, 2, 4, "why?", "a/b", ("o@1",), ("o",), "id", 7.5),
        (
            f'{{"object_id":"o","call":"child-1","kind":"extract","content":"{HASH.hex}","tokens":2,"chars":4,"title":"why?",'
            '"model":"a/b","targets":["o@1"],"references":["o"],"artifact":"id","at":7.5}'
        ),
    ),
    (
        ChildResultNote(
            "o", "child-1", "query", HASH.hex, 2, 4, evidence=(QuoteNote("x = 1", "o", 2, 3, 4), QuoteNote("y"))
        ),
        (
            f'{{"object_id":"o","call":"child-1","kind":"query","content":"{HASH.hex}","tokens":2,"chars":4,"evidence":['
            '{"quote":"x = 1","object_id":"o","version":2,"first":3,"last":4,"exact":true},'
            '{"quote":"y","object_id":"","version":null,"first":0,"last":0,"exact":true}]}'
        ),
    ),
    (ObjectNameNote("o", "plan\ud800"), '{"object_id":"o","nickname":"plan\\ud800"}'),
    (ObjectNameNote("o"), '{"object_id":"o","nickname":null}'),
    (ObjectViewNote("o", ("path", "summary")), '{"object_id":"o","fields":["path","summary"]}'),
    (OpenChatsNote("one"), '{"session":"one"}'),
    (AnswerNote('{"v":1,"role":"assistant","blocks":[]}'), '{"v":1,"role":"assistant","blocks":[]}'),
    (ChatSummaryNote("o", "long", "short", 3), '{"object_id":"o","long":"long","short":"short","turns":3}'),
    (ObjectViewNote("o"), '{"object_id":"o","fields":null}'),
    (
        ReadMeasureNote("snippet", "/w/a.py", 3, 9, 5, 80, 4, "ab", degraded=True, unrelated=True),
        '{"mode":"snippet","pathKey":"/w/a.py","first":3,"last":9,"lines":5,"chars":80,"new":4,"textHash":"ab","degraded":true,"unrelated":true}',
    ),
    (ReadMeasureNote("file"), '{"mode":"file"}'),
    (ReadMeasureNote("snippet", "", 3, 9, gaps=((4, 8),)), '{"mode":"snippet","first":3,"last":9,"gaps":[[4,8]]}'),
    (
        SearchMeasureNote("say \ud800", ("/w/a.py",), 2, "code", "src"),
        '{"query":"say \\ud800","hits":2,"where":"code","scope":"src","paths":["/w/a.py"]}',
    ),
    (SearchMeasureNote("x"), '{"query":"x","where":"stored"}'),
    (RecordedNote(), "{}"),
    (
        RecordedNote("claude-code/subagent", "/srv/shop", "s-1"),
        '{"agent":"claude-code/subagent","cwd":"/srv/shop","parent":"s-1"}',
    ),
    (
        RememberedNote("/home/me/opencode.db", "ses_1", "12.5", ("ses_1",)),
        '{"file":"/home/me/opencode.db","member":"ses_1","stamp":"12.5","sessions":["ses_1"]}',
    ),
    (
        SessionPlaceNote("s", "0f", "/w", follows=True),
        '{"session":"s","machine":"0f","folder":"/w","follows":true}',
    ),
    (
        UsageNote(Usage(1, 2, 3, 0, 4), "msg_1"),
        '{"fresh":1,"read":2,"written":3,"written_1h":0,"output":4,"answer":"msg_1"}',
    ),
    (
        CacheMissNote("", "", 0, told="unavailable"),
        '{"cause":"","who":"","tokens":0,"told":"unavailable"}',
    ),
    (
        FileSightingNote("0f", "/w/b.py", "move", "/w/a.py", HASH.hex, HASH.hex, 4),
        f'{{"machine":"0f","path":"/w/b.py","op":"move","before":"/w/a.py","content":"{HASH.hex}","digest":"{HASH.hex}","size":4}}',
    ),
    (
        FileSightingNote("0f", "/w/a.py", "delete", is_by_person=True),
        '{"machine":"0f","path":"/w/a.py","op":"delete","is_by_person":true}',
    ),
    (
        TierNote(seen=(("a.py", "ab12", 3.5),), gone=("b.py",), restarted=True, covered=3),
        '{"seen":[["a.py","ab12",3.5]],"gone":["b.py"],"restarted":true,"covered":3}',
    ),
    (
        PooledRequestNote("claude-sonnet-4-5", prefix=900.0, floor=3, cold=True),
        '{"model":"claude-sonnet-4-5","prefix":900.0,"floor":3,"cold":true}',
    ),
    (InlineNote("its thinking is bound"), '{"reason":"its thinking is bound"}'),
    (
        PoolNote((PoolAct("activate", "o-1", "file", "text", "ab12", 3, "/a.py", "python"), PoolAct("epoch")), "cd34"),
        (
            '{"acts":[{"act":"activate","id":"o-1","type":"file","content":"text","version":"ab12","chars":3,"path":"/a.py",'
            '"file_type":"python"},{"act":"epoch","content":"unread"}],"trace":"cd34"}'
        ),
    ),
]


@pytest.mark.parametrize(("note", "stored"), STORED)
def test_the_stored_form_of_a_note_stays_and_is_read_again(note: Note, stored: str) -> None:
    kind, data = encode_note(note)
    assert (kind, data) == (kind_of(type(note)), stored)
    assert decode_note(kind, stored) == note
    assert NoteEntry.of(note) == NoteEntry(kind, data)


def test_every_class_of_note_has_a_kind_and_an_example() -> None:
    classes = set(get_args(Note)) - {OtherNote}
    assert {one.note for one in KINDS} == classes
    assert {type(note) for note, _ in STORED} == classes
    assert len({one.name for one in KINDS}) == len(KINDS)


def test_the_name_of_a_kind_stands_once_in_the_source() -> None:
    """Names of several words; `hand`, `recall`, `reading` and others are words of their own.

    The dictionary by which lines are packed repeats parts of lines.
    """
    sources = (path for path in sorted(SOURCE.rglob("*.py")) if path.name != "packed_bytes.py")
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    counts = {
        one.name: len(re.findall(rf"""["']{re.escape(one.name)}["']""", text)) for one in KINDS if "." in one.name
    }
    assert set(counts.values()) == {1}, counts


@given(
    kind=st.sampled_from([*(one.name for one in KINDS), "request.later"]),
    data=st.text() | st.sampled_from(["{}", "[]", "null", '{"v":1}', '{"tool":1}', '{"readcache":{}}', "[" * 5000]),
)
def test_damaged_data_are_kept_as_they_are_stored(kind: str, data: str) -> None:
    entry = NoteEntry(kind, data)
    assert entry.note is entry.note  # decoded once
    assert (entry.kind, entry.data) == (kind, data)
    if isinstance(entry.note, OtherNote):
        assert encode_note(entry.note) == (kind, data)


def test_a_kind_of_another_program_is_an_other_note() -> None:
    assert NoteEntry("mine", "[]").note == OtherNote("mine", "[]")
    assert NoteEntry.of(OtherNote("mine", "[]")) == NoteEntry("mine", "[]")


def test_a_damaged_note_whose_presence_counts_is_an_empty_one() -> None:
    assert decode_note("request.tools", "{}") == ToolsNote(None)
    assert decode_note("request.exchange", "{}") == ExchangeNote("", (), ())
    assert decode_note("request.broken", "no json") == BrokenNote()
    assert decode_note("hand", "no json") == PinNote()
    assert decode_note("reading", "no json") == MalformedRecord("not a JSON object")
