"""Objects put together from the bytes of their parts."""

import json

from hypothesis import given
from hypothesis import strategies as st

from pagein.model.json_text import object_with

NUMBERS = st.lists(st.integers(0, 99), max_size=4)


@given(st.dictionaries(st.sampled_from(["a", "b", "messages", 'a "name"']), st.integers(0, 9)), NUMBERS)
def test_an_object_has_its_fields_in_order_and_the_array_in_its_place(parts: dict[str, int], inner: list[int]) -> None:
    raws = {name: str(value).encode() for name, value in parts.items()}
    made = object_with(raws, "messages", [str(one).encode() for one in inner])
    want = {name: inner if name == "messages" else value for name, value in parts.items()} | {"messages": inner}
    assert list(json.loads(made).items()) == list(want.items())
