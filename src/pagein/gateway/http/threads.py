"""Worker threads that do not delay the end of the process.

The standard library's worker threads are joined at interpreter exit, so a thread that hangs on a locked store would prevent the gateway
from ending. Abandoning these threads loses nothing: a store stays consistent whenever a process dies.
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
    """An executor also accepted by event loops, which require a `ThreadPoolExecutor`.

    A new thread starts when work arrives and no thread is free, up to `most` threads.
    """

    def __init__(self, most: int, name: str) -> None:
        super().__init__(most)  # the base class starts no threads, because it never gets work
        self._most = most
        self._name = name
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._state = threading.Condition()
        self._begun = 0
        self._busy = 0
        self._waiting: set[Future[Any]] = set()
        self._closed = False

    def submit(self, work: Callable[P, T], /, *args: P.args, **named: P.kwargs) -> Future[T]:
        """Schedule work. Raises RuntimeError after `shutdown`."""
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
                threading.Thread(target=self._run_worker, name=f"{self._name}_{self._begun}", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 -- the executor's
        """Accept no more work. Running work continues and is not awaited, whatever `wait` says (see `join`)."""
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
        """Wait until no work is running, at most this many seconds. Return whether none is."""
        with self._state:
            return self._state.wait_for(lambda: not self._busy, seconds)

    def _run_worker(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            del work  # release references before waiting for the next work
            with self._state:
                self._busy -= 1
                self._state.notify_all()


def _settle(future: Future[T], work: Callable[[], T]) -> None:
    try:
        result = work()
    except BaseException as problem:  # noqa: BLE001 -- raised again for the waiting caller
        future.set_exception(problem)
    else:
        future.set_result(result)
