"""Worker threads that no end of the process waits for.

Those of the standard library are joined when the interpreter ends, so one that hangs on a locked store would keep the gateway from
ending, whoever asks for it. Nothing is lost with ours: a store is whole whenever a process dies.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeAlias, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Work: TypeAlias = Callable[[], None]


class Threads(ThreadPoolExecutor):
    """An executor, and one that an event loop takes for its own: loops take nothing but a `ThreadPoolExecutor`.

    A thread begins with the work for which none is free, up to `most`.
    """

    def __init__(self, most: int, name: str) -> None:
        super().__init__(most)  # has no threads of its own, as it is never given work
        self._most = most
        self._name = name
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._state = threading.Condition()
        self._begun = 0
        self._busy = 0
        self._waiting: set[Future[Any]] = set()
        self._closed = False

    def submit(self, work: Callable[P, T], /, *args: P.args, **named: P.kwargs) -> Future[T]:
        """Have it done. Raises RuntimeError after `shutdown`."""
        future: Future[T] = Future()

        def done() -> None:
            with self._state:
                self._waiting.discard(future)
            if future.set_running_or_notify_cancel():
                _settle(future, lambda: work(*args, **named))

        with self._state:
            if self._closed:
                raise RuntimeError("these threads were told to end")
            self._busy += 1
            self._waiting.add(future)
            self._work.put(done)
            if self._begun < min(self._busy, self._most):
                self._begun += 1
                threading.Thread(target=self._working, name=f"{self._name}_{self._begun}", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 -- the executor's
        """Take no more work. What is being done goes on, and is not waited for, whatever `wait` says (`join` does)."""
        del wait
        with self._state:
            if not self._closed:
                self._closed = True
                for _ in range(self._begun):
                    self._work.put(None)
            waiting = list(self._waiting) if cancel_futures else []
        for future in waiting:
            future.cancel()
        super().shutdown(wait=False)

    def join(self, seconds: float) -> bool:
        """Wait until nothing is being done, for so long. Whether that is so."""
        with self._state:
            return self._state.wait_for(lambda: not self._busy, seconds)

    def _working(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            del work  # what it holds is not to be kept until there is more to do
            with self._state:
                self._busy -= 1
                self._state.notify_all()


def _settle(future: Future[T], work: Callable[[], T]) -> None:
    try:
        result = work()
    except BaseException as problem:  # noqa: BLE001 -- whoever waits for it gets it
        future.set_exception(problem)
    else:
        future.set_result(result)
