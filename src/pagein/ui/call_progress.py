"""The calls of an operation as a live tree on stderr, shown only to a person at a terminal."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text
from rich.tree import Tree

from pagein.ui.figures import plain

_SHOWN: Final = 12
"""Calls of one level that are shown: the running ones first."""
_MARKS: Final = {"running": "…", "success": "✓", "error": "✗", "timeout": "⏱", "cancelled": "-"}
_QUESTION: Final = 60


class ShownCost(Protocol):
    """A cost in words."""

    @property
    def says(self) -> str: ...


class ShownCall(Protocol):
    """A call with targets, model, state and current activity."""

    @property
    def call_id(self) -> str: ...
    @property
    def targets(self) -> tuple[str, ...]: ...
    @property
    def model(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def doing(self) -> str: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def cost(self) -> ShownCost: ...


class ShownOperation(Protocol):
    """An operation with its calls, its cost and the number of finished targets."""

    @property
    def kind(self) -> str: ...
    @property
    def question(self) -> str: ...
    @property
    def total(self) -> int: ...
    @property
    def done(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def estimated(self) -> ShownCost: ...
    @property
    def actual(self) -> ShownCost: ...
    @property
    def calls(self) -> Sequence[ShownCall]: ...
    def below(self, parent: str | None) -> Iterator[ShownCall]:
        """Yield the children of a call. None: the top-level calls."""
        ...


@contextmanager
def call_progress(console: Console, *, wanted: bool) -> Iterator[Callable[[ShownOperation], None]]:
    """Show the tree of calls during the block, from the first call on, and remove it afterwards; nothing without a terminal."""
    if not (wanted and console.is_terminal):
        yield lambda _: None
        return
    newest: list[ShownOperation] = []

    def draw() -> RenderableType:
        return call_tree(newest[-1]) if newest else Text("")

    live = Live(get_renderable=draw, console=console, transient=True, refresh_per_second=4)

    def show(operation: ShownOperation) -> None:
        newest[:] = [operation]
        if operation.calls and not live.is_started:  # not before: a question to the person may come first
            live.start()

    try:
        yield show
    finally:
        if live.is_started:
            live.stop()


def call_tree(operation: ShownOperation) -> Tree:
    """Return an operation with its calls, running calls first."""
    failed = f", {operation.failed} without answer" if operation.failed else ""
    question = plain(" ".join(operation.question.split())[:_QUESTION])
    tree = Tree(
        Text(
            f"{operation.kind} {question!r}: {operation.done} of {operation.total}{failed}; "
            f"{operation.actual.says} of at most {operation.estimated.says}"
        )
    )
    _add(tree, operation, None)
    return tree


def _add(tree: Tree, operation: ShownOperation, parent: str | None) -> None:
    calls = list(operation.below(parent))
    shown = [one for one in calls if one.status == "running"]
    shown += [one for one in reversed(calls) if one.status != "running"]
    for one in shown[:_SHOWN]:
        _add(tree.add(Text(_line(one))), operation, one.call_id)
    if len(shown) > _SHOWN:
        tree.add(Text(f"and {len(shown) - _SHOWN} more"))


def _line(one: ShownCall) -> str:
    targets = ", ".join(one.targets[:3]) + (f" and {len(one.targets) - 3} more" if len(one.targets) > 3 else "")  # noqa: PLR2004 -- a line has room for three
    words = [_MARKS.get(one.status, "?"), targets, one.doing]
    if one.seconds is not None:
        words.append(f"{one.seconds:.1f} s, {one.cost.says}")
    return plain(" ".join(filter(None, words)))
