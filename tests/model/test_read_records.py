"""Records of reading: exact out, forgiving in, and nothing trusted that a foreign record cannot prove."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.model.names import ContentHash
from pagein.model.read_events import FileRead, FileRefresh, FileWrite, LineCopy, MalformedRecord, Mode
from pagein.model.read_records import decode, decode_entry, encode, encode_authored, encode_invalidation
from pagein.model.spans import Spans

HASH = ContentHash.of(b"content")
BASE = ContentHash.of(b"base")


def record(**fields: object) -> dict[str, Any]:
    """A foreign record of version 1: a full read of 40 lines."""
    return {
        "v": 1,
        "pathKey": "/w/f",
        "scopeKey": "full",
        "servedHash": HASH.hex,
        "mode": "full",
        "totalLines": 40,
        "rangeStart": 1,
        "rangeEnd": 40,
        "bytes": 900,
        **fields,
    }


def read(details: object, text: str | None = None) -> FileRead:
    event = decode(details, text)
    assert isinstance(event, FileRead), event
    return event


runs = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 9)), max_size=4).map(
    lambda pairs: Spans.of(*((first, first + more) for first, more in pairs))
)
copies = st.lists(
    st.builds(LineCopy, st.just(BASE), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)), max_size=3
)


@given(
    st.sampled_from(["moved", "partly_known", "range_diff", "unchanged"]), runs, copies.map(tuple), st.integers(1, 60)
)
def test_what_is_written_is_read_back_the_same(
    mode: Mode, emitted: Spans, rests: tuple[LineCopy, ...], last: int
) -> None:
    event = FileRead("/w/f", mode, HASH, 60, 1, last, 5, BASE, emitted, rests, 2)
    assert decode(json.loads(json.dumps({"readcache": encode(event)}))) == event


def test_a_plain_read_is_written_as_the_specification_has_it_with_spans_added() -> None:
    event = FileRead("/w/f", "full", HASH, 40, 3, 9, 900, emitted=Spans.of((3, 9)))
    assert encode(event) == record(scopeKey="r:3:9", rangeStart=3, rangeEnd=9, spans=[[3, 9]])


def test_a_base_is_written_where_there_is_one() -> None:
    event = FileRead("/w/f", "unchanged", HASH, 40, 1, 40, 900, HASH, Spans())
    assert encode(event) == record(mode="unchanged", baseHash=HASH.hex, spans=[])


@given(runs, copies.map(tuple), st.booleans())
def test_writes_and_edits_are_read_back_the_same(authored: Spans, rests: tuple[LineCopy, ...], whole: bool) -> None:  # noqa: FBT001 - drawn
    event = FileWrite("/w/f", HASH, 60, authored, rests, whole)
    assert decode_entry(json.loads(json.dumps(encode_authored(event)))) == event


@pytest.mark.parametrize(("lines", "scope"), [(None, "full"), ((3, 9), "r:3:9")])
def test_refreshes_are_written_as_the_specification_has_them(lines: tuple[int, int] | None, scope: str) -> None:
    event = FileRefresh("/w/f", lines)
    written = encode_invalidation(event, 1700)
    assert written == {"v": 1, "kind": "invalidate", "pathKey": "/w/f", "scopeKey": scope, "at": 1700}
    assert decode_entry(written) == event


@pytest.mark.parametrize(
    "spoilt",
    [
        {"v": 0},
        {"v": 3},
        {"v": True},
        {"v": "1"},
        {"pathKey": ""},
        {"pathKey": 7},
        {"scopeKey": "r:9:2", "rangeStart": 2, "rangeEnd": 9},
        {"scopeKey": "r:0:2"},
        {"scopeKey": "r:1:2"},
        {"scopeKey": "half"},
        {"servedHash": ""},
        {"servedHash": "not a hash"},
        {"mode": "peek"},
        {"mode": ["full"]},
        {"mode": "unchanged"},
        {"mode": "diff", "baseHash": ""},
        {"mode": "unchanged_range", "scopeKey": "r:1:9", "rangeEnd": 9},
        {"totalLines": 0},
        {"totalLines": 39},
        {"rangeStart": 0},
        {"rangeEnd": 0},
        {"rangeEnd": 2.5},
        {"bytes": -1},
        {"bytes": None},
        {"spans": [[3]]},
        {"spans": [[9, 3]]},
        {"spans": "all"},
        {"v": 2},
        {"v": 2, "copies": [["x", 1, 1, 1]]},
        {"v": 2, "copies": [[HASH.hex, 0, 1, 1]]},
        {"debug": {"reason": "made_up"}},
        {"debug": "text"},
    ],
)
def test_a_record_with_one_wrong_field_is_not_trusted(spoilt: dict[str, object]) -> None:
    assert isinstance(decode({"readcache": record(**spoilt)}), MalformedRecord)


@pytest.mark.parametrize(
    "spoilt",
    [{"v": 2}, {"kind": "other"}, {"at": 0}, {"at": True}, {"at": None}, {"scopeKey": "r:0:1"}, {"pathKey": None}],
)
def test_a_refresh_with_one_wrong_field_is_not_obeyed(spoilt: dict[str, object]) -> None:
    written = {**encode_invalidation(FileRefresh("/w/f"), 1), **spoilt}
    assert isinstance(decode_entry(written), MalformedRecord)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just(HASH.hex),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(sorted(record())) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(
    json_values, st.sampled_from(sorted([*record(), "spans", "copies", "debug", "baseHash"])), st.sampled_from([1, 2])
)
def test_no_record_however_strange_raises(value: object, field: str, version: int) -> None:
    for details in (value, {"readcache": value}, {"readcache": record(**{"v": version, "copies": [], field: value})}):
        assert isinstance(decode(details), FileRead | MalformedRecord)
        assert isinstance(decode_entry(details), FileWrite | FileRefresh | MalformedRecord)


def test_a_baseline_without_a_base_is_valid() -> None:
    assert read({"readcache": record(mode="baseline_fallback")}).base is None
    assert read({"readcache": record(debug={"reason": "no_base_hash"})}).mode == "full"


def test_a_foreign_read_of_a_small_file_proves_its_scope() -> None:
    assert read({"readcache": record()}).emitted == Spans.of((1, 40))
    ranged = record(scopeKey="r:5:9", rangeStart=5, rangeEnd=9)
    assert read({"readcache": ranged}).emitted == Spans.of((5, 9))


def test_a_foreign_read_that_was_cut_proves_the_lines_let_through() -> None:
    cut = {"truncated": True, "truncatedBy": "lines", "outputLines": 2000, "totalLines": 2500}
    details = {"readcache": record(totalLines=2500, rangeEnd=2500), "truncation": cut}
    assert read(details).emitted == Spans.of((1, 2000))
    late = record(totalLines=2500, rangeStart=400, rangeEnd=2500, scopeKey="r:400:2500")
    assert read({"readcache": late, "truncation": cut}).emitted == Spans.of((400, 2399))
    over = {**cut, "outputLines": 0, "firstLineExceedsLimit": True}
    assert read({"readcache": record(), "truncation": over}).emitted == Spans()
    assert read({"readcache": record(), "truncation": {"truncated": False}}).emitted == Spans.of((1, 40))
    assert isinstance(decode({"readcache": record(), "truncation": "yes"}), MalformedRecord)
    assert isinstance(decode({"readcache": record(), "truncation": {"outputLines": -1}}), MalformedRecord)


def test_a_foreign_read_of_a_big_file_proves_nothing_unless_its_text_is_at_hand() -> None:
    big = record(bytes=90_000, totalLines=900, scopeKey="r:5:7", rangeStart=5, rangeEnd=7)
    assert read({"readcache": big}).emitted == Spans()
    shown = "a\nb\nc\n\n[893 more lines in file. Use offset=8 to continue.]"
    assert read({"readcache": big}, shown).emitted == Spans.of((5, 7))
    for other in ("a\nb\n\n[893 more lines in file. Use offset=8 to continue.]", "a\nb\nc", "a\nb\nc\n\n[cut here]"):
        assert read({"readcache": big}, other).emitted == Spans()
    tail = record(bytes=90_000, totalLines=900, scopeKey="r:899:900", rangeStart=899, rangeEnd=900)
    assert read({"readcache": tail}, "a\nb").emitted == Spans.of((899, 900))


def test_a_foreign_marker_has_no_lines_of_its_own() -> None:
    assert read({"readcache": record(mode="unchanged", baseHash=HASH.hex)}).emitted is None
