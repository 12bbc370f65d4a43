"""The progress of work on many files, on stderr, shown only to a person at a terminal."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from rich.console import Console

from pagein.ui.figures import plain

_A_WHILE: Final = 0.5
"""Seconds of work after which a bar appears."""


class ProgressListener(Protocol):
    """The progress of the work: sessions and bytes done, their totals (None: not known yet), and the current file."""

    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int | None: ...
    @property
    def file(self) -> str: ...
    @property
    def bytes_done(self) -> int: ...
    @property
    def bytes_total(self) -> int | None: ...


@contextmanager
def progress_bar(
    console: Console, *, wanted: bool, doing: str = "replaying"
) -> Iterator[Callable[[ProgressListener], None]]:
    """Show a progress bar during the block and remove it afterwards; nothing without a terminal or if unwanted."""
    if not (wanted and console.is_terminal):
        yield lambda _step: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[at]}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(doing, total=None, at="")

        def advance(step: ProgressListener) -> None:
            # bytes predict the rest better than sessions, because one session may be a hundred times another
            done, total = (step.bytes_done, step.bytes_total) if step.bytes_total else (step.done, step.total)
            of = "" if step.total is None else f"/{step.total}"
            bar.update(task, completed=done, total=total, at=f"{step.done}{of}  {_tail(step.file)}")

        yield advance


@contextmanager
def step_bar(console: Console, doing: str) -> Iterator[Callable[[int, int], None]]:
    """Show steps done of all steps during the block, once it takes a while; nothing without a terminal."""
    if not console.is_terminal:
        yield lambda _done, _all: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    began = time.monotonic()
    with Progress(*columns, console=console, transient=True, disable=False) as bar:
        task = bar.add_task(doing, total=None, visible=False)

        def advance(done: int, of: int) -> None:
            bar.update(task, completed=done, total=of, visible=time.monotonic() - began > _A_WHILE)

        yield advance


def _tail(file: str, room: int = 40) -> str:
    return plain(file if len(file) <= room else "..." + file[3 - room :])
