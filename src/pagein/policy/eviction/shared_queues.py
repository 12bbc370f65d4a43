"""Immutable queues and lists with shared structure, for folds that remember a state per entry."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


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
