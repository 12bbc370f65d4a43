import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.conversations import MESSAGES, NUMBERS, TEXTS, TIMES

from pagein.errors import BadInput
from pagein.model.codec import Fields, decode_entry, decode_message, encode_body, encode_entry, encode_message
from pagein.model.entries import (
    Body,
    CompactionEntry,
    Entry,
    EpochEntry,
    InsertEntry,
    MessageEntry,
    NoteEntry,
    PagedOut,
    RecallEntry,
    RequestSent,
    Restoration,
    ThinkingObject,
)
from pagein.model.messages import Message, Text, UnreadableLine
from pagein.model.names import ContentHash

PAGED = st.builds(
    PagedOut,
    call_id=TEXTS,
    object_id=TEXTS,
    content=st.binary(max_size=4).map(ContentHash.of),
    tokens=NUMBERS,
    chars=NUMBERS,
    stub=TEXTS,
    message=NUMBERS,
    block=NUMBERS,
)
RESTORED = st.builds(
    Restoration, call_id=TEXTS, object_id=TEXTS, text=TEXTS, tokens=NUMBERS, message=NUMBERS, block=NUMBERS
)
THOUGHT = st.builds(
    ThinkingObject, object_id=TEXTS, content=st.binary(max_size=4).map(ContentHash.of), tokens=NUMBERS, chars=NUMBERS
)
BODIES: st.SearchStrategy[Body] = st.one_of(
    st.builds(MessageEntry, message=MESSAGES, result_tokens=st.lists(NUMBERS, max_size=3).map(tuple)),
    st.builds(CompactionEntry, kept=NUMBERS),
    st.builds(
        EpochEntry,
        number=NUMBERS,
        frontier=NUMBERS,
        paged=st.lists(PAGED, max_size=2).map(tuple),
        restored=st.lists(RESTORED, max_size=2).map(tuple),
        thought=st.none() | THOUGHT,
    ),
    st.builds(InsertEntry, kind=TEXTS, text=TEXTS, tokens=NUMBERS, names=st.lists(TEXTS, max_size=2).map(tuple)),
    st.builds(RequestSent, epoch=NUMBERS, length=NUMBERS),
    st.builds(RecallEntry, object_id=TEXTS),
    st.builds(NoteEntry, kind=TEXTS, data=TEXTS),
)
ENTRIES = st.builds(Entry, id=TEXTS, parent=st.none() | TEXTS, body=BODIES, at=st.none() | TIMES)


@given(MESSAGES)
def test_a_message_survives_its_line(message: Message) -> None:
    line = encode_message(message)
    assert b"\n" not in line
    assert decode_message(line) == message


@given(ENTRIES)
def test_an_entry_survives_its_line(entry: Entry) -> None:
    line = encode_entry(entry)
    assert b"\n" not in line
    assert decode_entry(line) == entry


@given(BODIES, BODIES)
def test_two_bodies_have_one_canonical_form_only_if_they_are_equal(one: Body, other: Body) -> None:
    assert (encode_body(one) == encode_body(other)) == (one == other)


@given(ENTRIES, st.data())
def test_a_torn_line_is_a_value_and_never_an_exception(entry: Entry, data: st.DataObject) -> None:
    line = encode_entry(entry)
    torn = line[: data.draw(st.integers(0, len(line) - 1))]
    found = decode_entry(torn, number=7)
    assert isinstance(found, UnreadableLine)
    assert found.line == 7


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")))
def test_garbage_is_a_value_and_never_an_exception(garbage: bytes) -> None:
    assert isinstance(decode_entry(garbage), UnreadableLine)
    assert isinstance(decode_message(garbage), UnreadableLine)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
)


@given(ENTRIES, st.data(), JSON)
def test_a_line_with_one_wrong_value_is_read_or_is_a_value(entry: Entry, data: st.DataObject, wrong: object) -> None:
    fields = json.loads(encode_entry(entry))
    fields[data.draw(st.sampled_from(sorted(fields)))] = wrong
    assert isinstance(decode_entry(json.dumps(fields).encode()), Entry | UnreadableLine)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"v":1}',
        b'{"v":2,"id":"a","entry":"compacted","kept":0}',
        b'{"v":"1","id":"a","entry":"compacted","kept":0}',
        b'{"v":[],"id":"a","entry":"compacted","kept":0}',
        b'{"v":1,"id":"a","entry":"unheard of"}',
        b'{"v":1,"id":"a","entry":[]}',
        b'{"v":1,"id":"a","entry":"compacted","kept":"many"}',
        b'{"v":1,"id":"a","entry":"said","message":{"role":"user","blocks":[{"type":"new"}]}}',
        b'{"v":1,"id":"a","entry":"said","message":{"role":"nobody","blocks":[]}}',
        b'{"v":1,"id":"a","entry":"said","message":null}',
        b'{"v":1,"id":"a","entry":"epoch_opened","number":1,"frontier":0,"paged":[{"content":"short"}]}',
        b"[" * 100_000,
        b'{"v":1,"id":"a","entry":"noted","kind":"k","data":' + b"9" * 10_000 + b"}",
    ],
)
def test_what_cannot_be_understood_is_unreadable(line: bytes) -> None:
    found = decode_entry(line)
    assert isinstance(found, UnreadableLine)
    assert found.why
    assert len(found.excerpt) <= 80


def test_fields_of_a_later_writer_are_passed_over() -> None:
    assert decode_entry(b'{"v":1,"id":"a","entry":"compacted","kept":2,"why":"later"}') == Entry(
        "a", None, CompactionEntry(2)
    )


def test_an_older_line_is_lifted_one_version_at_a_time() -> None:
    def second(old: Fields) -> Fields:
        return {**old, "v": 1, "kept": int(old["kept"])}

    def first(old: Fields) -> Fields:
        return {"v": 0, "id": old["name"], "entry": "compacted", "kept": old["kept"]}

    line = b'{"v":-1,"name":"a","kept":"3"}'
    assert decode_entry(line, upgrades={-1: first, 0: second}) == Entry("a", None, CompactionEntry(3))
    assert isinstance(decode_entry(line, upgrades={-1: first}), UnreadableLine)


def test_a_step_that_leads_nowhere_does_not_hang() -> None:
    assert isinstance(decode_entry(b'{"v":0}', upgrades={0: lambda old: old}), UnreadableLine)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_time_that_json_cannot_hold_is_refused(number: float) -> None:
    with pytest.raises(BadInput):
        encode_message(Message("user", (Text("hi"),), at=number))
    with pytest.raises(BadInput):
        encode_entry(Entry("a", None, CompactionEntry(), at=number))
