"""JSON that cannot have the words of a literal is not read; what a readable text says, its JSON says too."""

import re
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.call_counts import counted
from tests.model.conversations import TURNS
from tests.store.search.searched_stores import Desk

from pagein.model.chats import ChatTurn, turns_to_value
from pagein.model.names import ContentHash
from pagein.model.search_query import METADATA
from pagein.model.values import canonical, frozen
from pagein.model.version_hash import SealedDraft
from pagein.model.versions import Draft
from pagein.store.search.shelves import Loaded, may_say, readable, word_of
from pagein.testing.object_drafts import object_number

TEXTS = st.text(st.sampled_from('abcKs\u017f\u212aé0_5 .:"\\\n\x1b\x00$/true'), max_size=12)
NUMBERS = st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
)


def assert_said(name: str, data: bytes) -> None:
    for run in re.findall(r"[A-Za-z0-9_]{3,}", readable(name, data).decode()):
        if word := word_of(run):
            assert may_say(data, word, ignore_case=False)
            assert may_say(data, word.swapcase(), ignore_case=True)


@settings(max_examples=60)
@given(VALUES)
def test_every_word_of_a_field_is_in_its_json(value: object) -> None:
    assert_said("args", canonical(frozen(value)).encode())


@settings(max_examples=40)
@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.text("abc_0", max_size=9))
def test_every_word_of_metadata_is_in_the_record(metadata: dict[str, object], nickname: str) -> None:
    draft = Draft(id=object_number(1), type="note", nickname=nickname or None, metadata=metadata)
    assert_said(METADATA, SealedDraft.of(draft).record.encode())


@settings(max_examples=30)
@given(TURNS)
def test_every_word_of_a_page_is_in_its_json(turns: list[ChatTurn]) -> None:
    assert_said("turns.1.1", canonical(turns_to_value(turns)).encode())


def test_a_word_that_only_the_readable_text_has_is_none() -> None:
    assert [word_of(one) for one in ("--- toolcall", "status=open", "ab cd", "Nickname:")] == [""] * 4
    assert word_of("tool=read_file status=ok") == "read_file"


def test_letters_that_stand_for_others_without_regard_to_case_are_found() -> None:
    desk = Desk()
    desk.put(None, metadata={"note": "nee\u212arest"})  # the sign for kelvin, whose small letter is k
    assert len(desk.find("needk", ignore_case=True).hits) == 0
    assert len(desk.find("neekrest", ignore_case=True).hits) == 1
    assert len(desk.find("neekrest").hits) == 0


def test_a_text_of_many_items_is_read_once_and_json_only_if_it_may_match() -> None:
    desk = Desk()
    for number in range(1_000):
        desk.put("the same words", metadata={"note": f"number {number}"}, additional={"args": {"deep": [number % 7]}})
    loaded: list[ContentHash] = []
    load = desk.store.load

    def noted(names: Sequence[ContentHash]) -> Loaded:
        loaded.extend(names)
        return load(names)

    desk.store.load = noted  # type: ignore[method-assign]
    found, calls = counted(lambda: desk.find("no such words"))
    assert (len(found.hits), found.looked_into, calls["_lines"]) == (0, 1_000, 0)
    assert len(loaded) <= 3 * 8  # what is asked for before the first answers
    assert len(desk.find("number 77").hits) == 11
