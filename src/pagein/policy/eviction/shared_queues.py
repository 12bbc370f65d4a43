"""Queues and lists that share what they keep, for folds that remember a state per entry."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QueueLink(Generic[T]):
    """The newest of a list, and those before it."""

    last: T
    before: "QueueLink[T] | None"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SharedQueue(Generic[T]):
    """First in, first out, in two lists: `_front` begins with the oldest, `_back` with the newest. Each step is O(1) amortised."""

    _front: QueueLink[T] | None = None
    _back: QueueLink[T] | None = None

    @classmethod
    def of(cls, items: Iterable[T]) -> "SharedQueue[T]":
        """A queue of these, the first of them first."""
        return cls(upside_down(link_items(items)), None)

    def with_item(self, item: T) -> "SharedQueue[T]":
        """The queue with one more at its end."""
        return SharedQueue(self._front, QueueLink(item, self._back))

    def split_ready(self, ready: Callable[[T], bool]) -> "tuple[SharedQueue[T], list[T]]":
        """The queue without those at its head that are ready, and these."""
        front, back, out = self._front, self._back, list[T]()
        while True:
            if front is None:
                front, back = upside_down(back), None
            if front is None or not ready(front.last):
                return (SharedQueue(front, back), out) if out else (self, out)
            out.append(front.last)
            front = front.before

    def __iter__(self) -> Iterator[T]:
        yield from walk(self._front)
        yield from walk(upside_down(self._back))


def link_items(items: Iterable[T]) -> QueueLink[T] | None:
    """A list of these, the last of them newest."""
    link: QueueLink[T] | None = None
    for item in items:
        link = QueueLink(item, link)
    return link


def walk(link: QueueLink[T] | None) -> Iterator[T]:
    """Newest first."""
    while link is not None:
        yield link.last
        link = link.before


def upside_down(link: QueueLink[T] | None) -> QueueLink[T] | None:
    """The same list from its other end."""
    return link_items(walk(link))
