"""Bodies taken apart behind those before: always the very parts that a body has by itself."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.engine.intake.body_reader import Opener
from pagein.engine.intake.message_chain import alike
from pagein.errors import BadInput
from pagein.providers.wire.request_body import open_body

TEXTS = st.text(alphabet='ab"\\[]{},: \n\ud83d\ude00é', max_size=12)
ITEMS = st.one_of(
    st.integers(0, 120), TEXTS, st.fixed_dictionaries({"role": st.just("user"), "content": TEXTS}), st.just([1, [2]])
)
WRITERS: list[Callable[[Any], bytes]] = [
    lambda value: json.dumps(value).encode(),
    lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="replace"),
    lambda value: json.dumps(value, indent=1).encode(),
]


@st.composite
def bodies(draw: st.DrawFn) -> list[bytes]:
    """Bodies of one client: longer, shorter, changed at some place, with other fields, cut off."""
    items = draw(st.lists(ITEMS, max_size=9))
    write = draw(st.sampled_from(WRITERS))
    made = []
    for _ in range(draw(st.integers(1, 7))):
        items = [*items[: draw(st.integers(0, len(items)))], *draw(st.lists(ITEMS, max_size=4))]
        front: dict[str, Any] = draw(
            st.sampled_from([{}, {"model": "one"}, {"x": {"messages": items[:2]}}, {"messages": [7]}])
        )
        behind: dict[str, Any] = draw(st.sampled_from([{}, {"tools": items[:1]}, {"system": "messages"}]))
        raw = write({**front, "messages": items, **behind})
        if draw(st.booleans()) and front == {"messages": [7]}:
            raw = raw[:-1] + b',"messages":' + write(draw(st.lists(ITEMS, max_size=3))) + b"}"
        made.append(raw[: draw(st.sampled_from([len(raw), len(raw), len(raw), -1, -3]))])
    return made


@given(bodies(), st.sampled_from(["one", None]))
def test_a_body_has_the_same_parts_whatever_came_before_it(some: list[bytes], hint: str | None) -> None:
    opener = Opener()
    for body in some:
        try:
            expected = open_body(body, "anthropic")
        except BadInput:
            with pytest.raises(BadInput):
                opener.parse(body, "anthropic", hint)
            continue
        found = opener.parse(body, "anthropic", hint)
        assert (list(found.items), dict(found.fields)) == (list(expected.items), dict(expected.fields))
        assert list(found.fields) == list(expected.fields)


def test_messages_that_came_before_are_the_very_same_objects() -> None:
    opener = Opener()
    items = [{"role": "user", "content": "x" * 9000} for _ in range(40)]
    first = opener.parse(json.dumps({"messages": items}).encode(), "anthropic", "s")
    marked = {**items[0], "cache_control": {"type": "ephemeral"}}
    then = opener.parse(json.dumps({"messages": [*items, marked]}).encode(), "anthropic", "s")
    assert all(one is other for one, other in zip(first.items, then.items, strict=False))


def test_a_list_that_stands_twice_is_read_as_the_last_one() -> None:
    opener = Opener()
    opener.parse(b'{"messages":[1,2]}', "anthropic", "s")
    twice = opener.parse(b'{"messages":[1,2],"messages":[3]}', "anthropic", "s")
    assert list(twice.items) == [b"3"]


def test_no_more_is_kept_than_may_be() -> None:
    opener = Opener(most=100_000)
    for number in range(50):
        body = json.dumps({"messages": [{"content": "y" * 9000, "number": number}]}).encode()
        opener.parse(body, "anthropic", f"s{number}")
        assert opener.size <= 100_000
    assert opener.size > 50_000


@given(st.lists(st.integers(0, 2), max_size=30), st.lists(st.integers(0, 2), max_size=30))
def test_lists_are_alike_up_to_the_first_item_that_differs(some: list[int], others: list[int]) -> None:
    expected = 0
    for one, other in zip(some, others, strict=False):
        if one != other:
            break
        expected += 1
    assert alike(some, others) == expected
