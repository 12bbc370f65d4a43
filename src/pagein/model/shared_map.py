"""An immutable mapping with structural sharing between an old and a new version.

A fold that keeps its state at every entry of a branch cannot copy a dictionary per entry. Here a change copies one path
through a tree of 32-way nodes and shares the rest. The order of keys follows from the keys alone.
"""

import zlib
from collections.abc import Iterator, Mapping
from typing import Final, Generic, TypeAlias, TypeVar, cast

V = TypeVar("V")
Leaf: TypeAlias = dict[str, V]
_BITS: Final = 5
_WIDTH: Final = 1 << _BITS
_FULL: Final = 8  # a leaf with more keys than this is split
_DEPTH: Final = 6  # 30 of the 32 bits; keys with the same 30 bits share a leaf


def _place(key: str) -> int:
    return zlib.crc32(key.encode("utf-8", "surrogatepass"))


class SharedMap(Mapping[str, V], Generic[V]):
    """An immutable mapping from texts to values. `put` and `without` return new mappings in logarithmic time."""

    __slots__ = ("_root", "_size")

    def __init__(self) -> None:
        self._root: object = {}
        self._size = 0

    def put(self, key: str, value: V) -> "SharedMap[V]":
        """Return a mapping with a key set."""
        grown = SharedMap[V]()
        grown._root = _put(self._root, _place(key), 0, key, value)
        grown._size = self._size + (key not in self)
        return grown

    def without(self, key: str) -> "SharedMap[V]":
        """Return a mapping without the key, or the same mapping if the key is missing."""
        if key not in self:
            return self
        shrunk = SharedMap[V]()
        shrunk._root = _drop(self._root, _place(key), 0, key)
        shrunk._size = self._size - 1
        return shrunk

    def __getitem__(self, key: str) -> V:
        node, place = self._root, _place(key)
        while isinstance(node, tuple):
            node = node[place % _WIDTH]
            place >>= _BITS
        return cast("Leaf[V]", node)[key]

    def __iter__(self) -> Iterator[str]:
        waiting: list[object] = [self._root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, tuple):
                waiting.extend(reversed(node))
            else:
                yield from sorted(cast("Leaf[V]", node))

    def __len__(self) -> int:
        return self._size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedMap) and dict(self) == dict(other)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self)))

    def __repr__(self) -> str:
        return f"SharedMap({dict(self)!r})"


def _put(node: object, place: int, depth: int, key: str, value: V) -> object:
    if isinstance(node, tuple):
        at = place % _WIDTH
        return (*node[:at], _put(node[at], place >> _BITS, depth + 1, key, value), *node[at + 1 :])
    leaf = {**cast("Leaf[V]", node), key: value}
    if len(leaf) <= _FULL or depth >= _DEPTH:
        return leaf
    children: list[Leaf[V]] = [{} for _ in range(_WIDTH)]
    for name, kept in leaf.items():
        children[(_place(name) >> (_BITS * depth)) % _WIDTH][name] = kept
    return tuple(children)


def _drop(node: object, place: int, depth: int, key: str) -> object:
    if isinstance(node, tuple):
        at = place % _WIDTH
        return (*node[:at], _drop(node[at], place >> _BITS, depth + 1, key), *node[at + 1 :])
    return {name: kept for name, kept in cast("Leaf[object]", node).items() if name != key}
