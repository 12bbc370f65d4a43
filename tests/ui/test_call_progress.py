"""The tree of calls as a person sees it."""

import io

from rich.console import Console

from pagein.delegation.call_tree import CallNode, OperationView
from pagein.policy.delegation.child_costs import CallCost
from pagein.ui.call_progress import call_progress, call_tree


def node(call: str, status: str, parent: str | None = None, **more: object) -> CallNode:
    return CallNode(call, parent, 2 if parent else 1, "a/b", "?", (f"pg-{call}",), 0.0, status, **more)  # type: ignore[arg-type]


VIEW = OperationView(
    "batch-1",
    "batch",
    "What\n is it?",
    9,
    CallCost(9, 0.5, 100, 10),
    CallCost(2, 0.02, 20, 2),
    3,
    1,
    (node("one", "success", seconds=1.5), node("two", "running", doing="turn 2"), node("deep", "running", "two")),
)


def shown(view: OperationView) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(call_tree(view))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_tree_shows_running_calls_first_and_children_below_the_call_that_asked() -> None:
    text = shown(VIEW)
    assert "batch 'What is it?': 3 of 9, 1 without answer; $0.0200 of at most $0.5000" in text
    assert text.index("pg-two turn 2") < text.index("pg-deep") < text.index("pg-one")
    assert "pg-one 1.5 s" in text


def test_a_call_with_the_escapes_of_a_terminal_shows_none() -> None:
    assert "\x1b" not in shown(
        OperationView("q", "query", "\x1b[31mred", 1, CallCost(), calls=(node("\x1b[2J", "running"),))
    )


def test_without_a_terminal_nothing_is_shown() -> None:
    console = Console(file=io.StringIO(), width=100)
    with call_progress(console, wanted=True) as show:
        show(VIEW)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == ""
