"""The shared map against a dictionary."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from pagein.model.shared_collections import SharedMap

changes = st.lists(st.tuples(st.text(max_size=3), st.none() | st.integers()), max_size=120)


@given(changes)
def test_a_shared_map_behaves_as_the_dictionary_it_replaces(steps: list[tuple[str, int | None]]) -> None:
    shared, plain = SharedMap[int](), dict[str, int]()
    for key, value in steps:
        before, copy = shared, dict(shared)
        if value is None:
            shared = shared.without(key)
            plain.pop(key, None)
        else:
            shared = shared.put(key, value)
            plain[key] = value
        assert dict(before) == copy  # the old one is as it was
        assert dict(shared) == plain
        assert len(shared) == len(plain)
        assert (key in shared) == (key in plain)


@given(st.permutations(sorted({f"file {i}" for i in range(60)})))
def test_order_follows_from_the_keys_and_not_from_their_history(keys: list[str]) -> None:
    one, other = SharedMap[int](), SharedMap[int]()
    for key in keys:
        one = one.put(key, 1)
    for key in sorted(keys):
        other = other.put(key, 1)
    assert one == other
    assert list(one) == list(other)
    assert hash(one) == hash(other)


def test_one_more_key_copies_a_path_and_not_the_map() -> None:
    def size(node: object, seen: set[int]) -> int:
        if id(node) in seen:
            return 0
        seen.add(id(node))
        inner = sum(size(child, seen) for child in node) if isinstance(node, tuple) else 0
        return sys.getsizeof(node) + inner

    big = SharedMap[int]()
    for i in range(5000):
        big = big.put(f"src/module_{i}.py", i)
    seen: set[int] = set()
    whole = size(big._root, seen)
    assert size(big.put("src/one_more.py", 1)._root, seen) < whole / 100


def test_a_missing_key_is_a_key_error_and_prints_as_a_mapping_does() -> None:
    empty = SharedMap[int]()
    assert empty.get("a") is None
    assert empty.without("a") is empty
    assert repr(empty.put("a", 1)) == "SharedMap({'a': 1})"
    assert empty.put("a", 1) != {"a": 1}
