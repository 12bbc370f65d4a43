"""Immutable mappings, queues and lists with structural sharing between an old and a new version.

A fold that keeps its state at every entry of a branch cannot copy a dictionary or a list per entry. In a mapping a change
copies one path through a tree of 32-way nodes and shares the rest; the order of keys follows from the keys alone. Queues
and lists share their links.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeAlias, TypeVar, cast

T = TypeVar("T")
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


class QueueItem(Protocol):
    """An item of a queue.

    since: the number of the call from which on it waits.
    """

    @property
    def since(self) -> int: ...


W = TypeVar("W", bound=QueueItem)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QueueLink(Generic[T]):
    """A linked list: the newest item, and the list before it."""

    last: T
    before: "QueueLink[T] | None"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SharedQueue(Generic[W]):
    """A first-in, first-out queue in two lists; each step is O(1) amortised.

    `_front` begins with the oldest item, `_back` with the newest.
    """

    _front: QueueLink[W] | None = None
    _back: QueueLink[W] | None = None

    @classmethod
    def of(cls, items: Iterable[W]) -> "SharedQueue[W]":
        """Return a queue of these items, in their order."""
        return cls(upside_down(link_items(items)), None)

    def with_item(self, item: W) -> "SharedQueue[W]":
        """Return the queue with another item at its end."""
        return SharedQueue(self._front, QueueLink(item, self._back))

    def with_items(self, items: Iterable[W]) -> "SharedQueue[W]":
        """Return the queue with further items at its end."""
        back = self._back
        for item in items:
            back = QueueLink(item, back)
        return SharedQueue(self._front, back)

    def split_until(self, last: int) -> "tuple[SharedQueue[W], list[W]]":
        """Return the queue without the items waiting since call number `last` or before, and the removed items."""
        front, back, out = self._front, self._back, list[W]()
        while True:
            if front is None:
                front, back = upside_down(back), None
            if front is None or front.last.since > last:
                return (SharedQueue(front, back), out) if out else (self, out)
            out.append(front.last)
            front = front.before

    def __iter__(self) -> Iterator[W]:
        yield from walk(self._front)
        yield from walk(upside_down(self._back))


def link_items(items: Iterable[T]) -> QueueLink[T] | None:
    """Return a linked list of these items, the last item newest."""
    link: QueueLink[T] | None = None
    for item in items:
        link = QueueLink(item, link)
    return link


def walk(link: QueueLink[T] | None) -> Iterator[T]:
    """Yield the items, newest first."""
    while link is not None:
        yield link.last
        link = link.before


def in_order(link: QueueLink[T] | None) -> list[T]:
    """Return the items, oldest first."""
    return list(walk(link))[::-1]


def upside_down(link: QueueLink[T] | None) -> QueueLink[T] | None:
    """Return the list in reverse order."""
    return link_items(walk(link))
