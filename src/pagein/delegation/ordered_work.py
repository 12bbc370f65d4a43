"""Work on many items, a few at a time, with results in their order."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def work_on_each(items: Iterable[T], work: Callable[[int, T], Awaitable[None]], most: int) -> None:
    """Call a function with the place and the value of each item, in order, at most so many at a time.

    There are as many tasks as are at work, not as items: the next item is taken when one is done. If a call raises, or the caller
    is cancelled, all are cancelled and waited for.
    """
    places = enumerate(items)

    async def work_on_next() -> None:
        for place, item in places:
            await work(place, item)

    async with asyncio.TaskGroup() as group:
        for _ in range(most):
            group.create_task(work_on_next())
