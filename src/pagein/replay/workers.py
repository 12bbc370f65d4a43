"""Worker processes: a map over sources, in order, lazily, with a bounded number in flight.

The end of this process ends the workers and removes their temporary stores. A source that kills its worker (out of
memory, killed) is distinguished from sources in flight beside it, which continue.
"""

import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import chain, islice
from typing import Final, Generic, TypeAlias, TypeVar

from pagein.replay.readers import Source

Outcome = TypeVar("Outcome")
Act: TypeAlias = Callable[[Source], Outcome]
Spread: TypeAlias = Callable[[Act[Outcome], Iterator[Source]], Iterator[Outcome]]

_IN_FLIGHT: Final = 2  # sources per worker
_SMALL: Final = 4_000_000  # bytes of a source that can neither fill the memory nor take minutes


@contextmanager
def workers(jobs: int, died: Callable[[Source], Outcome]) -> Iterator[Spread[Outcome]]:
    """Yield a map over sources, on `jobs` processes (0: one per core; 1: this process only).

    With `jobs` 0, one small source alone is worked on in this process: a new process would take longer to start.

    died: returns the outcome of a source whose process was killed.
    """
    count = jobs or os.cpu_count() or 1
    if count == 1:
        yield map
        return
    crew = _Crew(count, died)

    def spread_or_map(act: Act[Outcome], sources: Iterator[Source]) -> Iterator[Outcome]:
        first = list(islice(sources, 0 if jobs else 1))
        if first and _is_small(first[0]):
            first += islice(sources, 1)
            if len(first) == 1:
                return map(act, first)
        return crew.spread(act, chain(first, sources))

    try:
        yield spread_or_map
    except BaseException:
        crew.end()
        raise
    crew.close()


def _is_small(source: Source) -> bool:
    return 0 < source.size <= _SMALL


class _Crew(Generic[Outcome]):
    """The process pool, with a new pool after a broken one."""

    def __init__(self, count: int, died: Callable[[Source], Outcome]) -> None:
        self._count = count
        self._died = died
        self._others = frozenset(multiprocessing.active_children())
        self._folder = tempfile.TemporaryDirectory(prefix="pagein-replay-", ignore_cleanup_errors=True)
        self._pool = self._new()

    def _new(self) -> ProcessPoolExecutor:
        spawn = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._count, spawn, initializer=_begin, initargs=(self._folder.name,))

    def spread(self, act: Act[Outcome], sources: Iterator[Source]) -> Iterator[Outcome]:
        waiting: deque[tuple[Source, Future[Outcome]]] = deque()
        for source in sources:
            waiting.append((source, self._submit(act, source)))
            while len(waiting) > _IN_FLIGHT * self._count:
                yield from self._first_of(waiting, act)
        while waiting:
            yield from self._first_of(waiting, act)

    def _first_of(self, waiting: "deque[tuple[Source, Future[Outcome]]]", act: Act[Outcome]) -> Iterator[Outcome]:
        source, future = waiting.popleft()
        try:
            yield future.result()
        except BrokenProcessPool:
            stranded = [source, *(other for other, _ in waiting)]
            waiting.clear()
            for one in stranded:
                yield self._alone(act, one)

    def _alone(self, act: Act[Outcome], source: Source) -> Outcome:
        """Run a source alone, so that a dying process identifies the source."""
        try:
            return self._submit(act, source).result()
        except BrokenProcessPool:
            return self._died(source)

    def _submit(self, act: Act[Outcome], source: Source) -> "Future[Outcome]":
        # A worker inherits the blocked signals: from its first instruction on, Ctrl-C reaches only this process.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return self._pool.submit(act, source)
        except BrokenProcessPool:
            self._pool.shutdown(wait=False)
            self._pool = self._new()
            return self._pool.submit(act, source)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def close(self) -> None:
        self._pool.shutdown()
        self._folder.cleanup()

    def end(self) -> None:
        """Kill the workers at once: waiting for a large session could take minutes."""
        for child in frozenset(multiprocessing.active_children()) - self._others:
            child.kill()
        self._pool.shutdown(cancel_futures=True)
        self._folder.cleanup()


def _begin(folder: str) -> None:
    """Set up a worker: ignore Ctrl-C, keep temporary files in this folder, and end with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = folder
    threading.Thread(target=_follow, args=(folder,), daemon=True).start()


def _follow(folder: str) -> None:
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    parent.join()
    shutil.rmtree(folder, ignore_errors=True)  # the parent, normally responsible for this, has ended
    os._exit(1)
