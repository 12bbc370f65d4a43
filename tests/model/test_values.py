import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.errors import BadInput, BadName
from pagein.model.identifiers import RANDOM_BYTES, object_id, uuid7
from pagein.model.names import ContentHash
from pagein.model.references import Pin, Reference
from pagein.model.values import Fields, canonical, frozen, parse_value, place_order, references_in
from pagein.store.random_ids import RandomIds
from pagein.store.sql.sql_rows import decode_text as unkept
from pagein.store.sql.sql_rows import encode_text

pytestmark = pytest.mark.damages_store

HASHES = st.binary(max_size=2).map(ContentHash.of)
TIMES = st.floats(allow_nan=False, allow_infinity=False)
WILD = st.text(st.characters(), max_size=8)
PINS = st.builds(Pin, TIMES, HASHES, HASHES, st.none() | HASHES)
REFERENCES = st.builds(
    Reference, WILD.filter(str.strip), st.none() | PINS, st.none() | WILD, st.sampled_from(["link", "about"])
)
NAMES = st.sampled_from(["$ref", "$", "$$ref", "a", "a/b", "~"]) | WILD
VALUES: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | TIMES | WILD | REFERENCES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)


@given(VALUES)
def test_what_is_written_canonically_reads_back_as_the_same(value: object) -> None:
    text = canonical(frozen(value))
    assert text.isascii()
    again = parse_value(text)
    assert again == frozen(value)
    assert canonical(again) == text


@given(VALUES, VALUES)
def test_different_values_have_different_forms(one: object, other: object) -> None:
    if canonical(frozen(one)) == canonical(frozen(other)):
        assert frozen(one) == frozen(other)


@given(st.dictionaries(WILD, st.integers(0, 3), max_size=5))
def test_the_order_in_which_keys_were_given_makes_no_difference(fields: dict[str, int]) -> None:
    backwards = dict(reversed(fields.items()))
    assert canonical(frozen(fields)) == canonical(frozen(backwards))


def test_what_differs_by_type_alone_differs() -> None:
    values = [1, 1.0, True, "1", None, [], {}, Reference("a"), {"$ref": {"id": "a"}}, {"$$ref": {"id": "a"}}]
    assert len({canonical(frozen(value)) for value in values}) == len(values)


def test_the_canonical_form_is_what_other_writers_are_told() -> None:
    value = frozen({"b": [1, 2.5, True, None], "a": "é\ud800\0", "$x": Reference("id", field="content")})
    assert canonical(value) == (
        '{"$$x":{"$ref":{"field":"content","id":"id"}},"a":"\\u00e9\\ud800\\u0000","b":[1,2.5,true,null]}'
    )


@pytest.mark.parametrize("wrong", [b"bytes", float("nan"), float("inf"), 2**63, {1: 2}, {"a": [object()]}])
def test_what_is_no_json_is_refused(wrong: object) -> None:
    with pytest.raises(BadInput):
        frozen(wrong)


def test_what_is_nested_without_end_is_refused() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(BadInput, match="nested"):
        frozen(value)


@pytest.mark.parametrize(
    "text", ["", "{", '{"$ref":3}', '{"$ref":{}}', '{"$ref":{"id":"a","pin":{"at":1}}}', "[" * 5_000]
)
def test_what_is_no_canonical_form_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_value(text)


def test_frozen_values_cannot_be_changed_through_what_they_were_made_of() -> None:
    inner = [1]
    given_fields = {"a": inner}
    value = frozen(given_fields)
    inner.append(2)
    given_fields["b"] = inner
    assert value == Fields({"a": (1,)})


def test_places_are_pointers_sorted_as_a_reader_meets_them() -> None:
    value = frozen(
        {"a/b": {"~": [Reference(str(number)) for number in range(11)]}, "10": Reference("x"), "²": Reference("y")}
    )
    places = [path for path, _ in references_in(value)]
    assert places == ["/10", *(f"/a~1b/~0/{number}" for number in range(11)), "/²"]
    mixed = [*places[5:], *places[:5]]
    assert sorted(mixed, key=place_order) == places


@given(WILD, WILD)
def test_texts_are_kept_so_that_every_database_takes_them(one: str, other: str) -> None:
    text = encode_text(one)
    assert unkept(text) == one
    assert "\0" not in text
    text.encode()
    assert encode_text(one + other).startswith(text)
    assert (encode_text(other) == text) == (one == other)


def test_json_beyond_our_own_is_read_alike() -> None:
    assert parse_value(json.dumps({"a": [1, {"b": "ü"}]}, indent=2)) == frozen({"a": [1, {"b": "ü"}]})


@given(st.lists(st.floats(0, 2**31, allow_nan=False), min_size=1, max_size=50))
def test_ids_are_made_in_ascending_order_even_if_the_clock_is_not(times: list[float]) -> None:
    source = RandomIds()
    ids = [source(at) for at in times]
    assert ids == sorted(set(ids))
    assert all(object_id(one, "file") == one for one in ids)


def test_an_id_tells_when_it_was_made() -> None:
    assert uuid7(0x0123_4567_89AB, bytes(RANDOM_BYTES)) == "01234567-89ab-7000-8000-000000000000"
    assert uuid7(2**48 - 1, b"\xff" * RANDOM_BYTES) == "ffffffff-ffff-7fff-bfff-ffffffffffff"
    for wrong in (-1, 2**48):
        with pytest.raises(BadInput):
            uuid7(wrong, bytes(RANDOM_BYTES))


@pytest.mark.parametrize(
    "wrong", ["", "x", "01234567-89ab-4000-8000-000000000000", "01234567-89AB-7000-8000-000000000000"]
)
def test_what_is_no_uuid7_is_the_id_of_a_tool_call_at_most(wrong: str) -> None:
    with pytest.raises(BadName):
        object_id(wrong, "file")
    if wrong:
        assert object_id(wrong, "toolcall") == wrong
